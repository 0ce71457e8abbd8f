# Each target works in a fresh clone with Python (>= 3.11) and make alone: it builds .venv and installs what it needs there.
PYTHON ?= python3
BIN := .venv/bin
# Each process has half of the files, in order, and then what the other has left: what tests of a file share is made once.
# Bytecode is kept whatever the environment says: each test that starts Python would compile the package anew.
RUN := PYTHONDONTWRITEBYTECODE= OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 MPLBACKEND=agg $(BIN)/python -m pytest -n 2 --dist worksteal

ONE := OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 MPLBACKEND=agg $(BIN)/python

.PHONY: demo test lint soak soak-client soak-coverage soak-files soak-calls soak-faults soak-brackets soak-samplers soak-noise notebooks solvers wheel-check oldest bench docs docs-data atlas clean

demo: .venv/.demo
	MPLBACKEND=agg $(BIN)/optdp demo

test: lint
	$(RUN)

lint: .venv/.dev
	$(BIN)/ruff check optdp tests benchmarks docs notebooks
	$(BIN)/ruff format --check optdp tests benchmarks docs notebooks
	$(BIN)/mypy

soak: .venv/.dev
	$(RUN) -m soak

# Confidence intervals of all mechanisms, 4,000 surveys in each of 360 cells: about half an hour on 2 cores (SURVEYS=400: a
# shorter look, JOBS: processes).
soak-coverage: .venv/.dev
	OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 $(BIN)/python -m pytest -s -m soak tests/test_coverage.py

# At least 100,000 outputs of every mechanism equal in library, Python and JavaScript; sizes and answers per second.
soak-client: .venv/.dev
	OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 $(BIN)/python -m pytest -s -m soak tests/test_client.py

# 100,000 mutated files of all solutions: prints how many were refused, and that none was wrongly accepted.
soak-files: .venv/.dev
	OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 $(BIN)/python -m tests.soak_files --count 100000 --jobs 2

# 50,000 calls of the public functions with wild arguments, 5,000 command lines in process and 200 as processes, on two cores.
soak-calls: .venv/.dev
	for part in 0 1; do $(ONE) -m tests.soak_calls --calls 25000 --lines 2500 --processes 100 --first $${part}000000 & pids="$$pids $$!"; done; \
	for pid in $$pids; do wait $$pid || bad=1; done; test -z "$$bad"

# 1,000 solves with solvers that fail: noise, nonsense, wrong statuses, exceptions, time limits; linear, nonlinear and conic.
soak-faults: .venv/.dev
	for part in 0 1; do $(ONE) -m tests.soak_faults --count 1000 --part $$part/2 & pids="$$pids $$!"; done; \
	for pid in $$pids; do wait $$pid || bad=1; done; test -z "$$bad"

# 500 brackets beside optima found by dense linear programs on grids, quadrature and search.
soak-brackets: .venv/.dev
	$(ONE) -m tests.soak_brackets --count 500

# Every sampler against its law, 200,000 outputs in each of some 350 cells.
soak-samplers: .venv/.dev
	$(ONE) -m tests.soak_samplers --count 200000

# the guarantee of additive noise, from its saved form alone
soak-noise: .venv/.dev
	$(ONE) -m tests.soak_noise --count 1000

notebooks: .venv/.dev .venv/.notebooks
	$(RUN) -m notebook

solvers: .venv/.dev .venv/.gurobi,ipopt,dask
	$(RUN) tests/test_nonlinear.py tests/test_packaging.py

# The wheel alone, without extras, in an environment of its own.
wheel-check:
	PYTHON=$(PYTHON) tests/wheel_check.sh

# The tests with the oldest releases of every library that pyproject.toml admits. FILES: these alone.
oldest:
	PYTHON=$(PYTHON) tests/oldest.sh $(FILES)

# docs/benchmarks.md, on an otherwise idle machine; each part prints its CPU seconds. PARTS="kernel growth": these alone; the others as they were.
bench: .venv/.dev .venv/.notebooks .venv/.gurobi,ipopt .venv/.accounting .venv/.peers
	$(ONE) benchmarks/page.py --peers .venv/peers/bin/python --parts $(PARTS)

# The libraries that are compared with, in an environment of their own.
.venv/.peers: benchmarks/requirements.txt
	test -x .venv/peers/bin/python || $(PYTHON) -m venv .venv/peers
	.venv/peers/bin/python -m pip install --quiet --disable-pip-version-check -r $<
	touch $@

# The site, docs/_build/html: warnings are errors, and every link within it is followed. Notebooks are shown as they are stored.
docs: .venv/.docs
	MPLBACKEND=agg $(BIN)/python -m sphinx -E -W --keep-going -q -b html docs docs/_build/html
	$(BIN)/python docs/check_links.py docs/_build/html

# The pages and figures that programs write, which are kept: the table of designs, the audit, the discoveries.
docs-data: .venv/.docs
	$(BIN)/optdp problems --markdown > docs/solved.md
	for f in docs/figures/*.py; do $(BIN)/python $$f || exit 1; done
	OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 $(BIN)/optdp audit --out docs/audit/
	OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 $(BIN)/optdp discoveries --out docs/discoveries/

# The package's atlas anew, after designs have changed: four minutes, and it goes on where it was interrupted.
atlas: .venv/.dev
	mkdir -p build
	OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 $(BIN)/optdp atlas --jobs 2 --out build/atlas.json
	mv build/atlas.json optdp/data/atlas.json

clean:
	rm -rf .venv build dist demo-output docs/_build *.egg-info

# .venv/.NAME says that the extra NAME is installed.
.venv/.%: pyproject.toml
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e ".[$*]"
	touch $@
