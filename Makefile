# Each target works in a fresh clone with Python (>= 3.11) and make alone: it builds .venv and installs what it needs there.
PYTHON ?= python3
BIN := .venv/bin
RUN := OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 MPLBACKEND=agg $(BIN)/python -m pytest -n 2

.PHONY: demo test lint soak soak-client soak-coverage soak-files notebooks solvers wheel-check bench docs clean

demo: .venv/.demo
	MPLBACKEND=agg $(BIN)/optdp demo

test: lint
	$(RUN)

lint: .venv/.dev
	$(BIN)/ruff check optdp tests benchmarks
	$(BIN)/ruff format --check optdp tests benchmarks
	$(BIN)/mypy

soak: .venv/.dev
	$(RUN) -m soak

# Confidence intervals of all mechanisms, 4,000 surveys in each of some 400 cells: hours (SURVEYS=400 for a shorter look).
soak-coverage: .venv/.dev
	OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 $(BIN)/python -m pytest -s -m soak tests/test_coverage.py

# At least 100,000 outputs of every mechanism equal in library, Python and JavaScript; sizes and answers per second.
soak-client: .venv/.dev
	OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 $(BIN)/python -m pytest -s -m soak tests/test_client.py

# 100,000 mutated files of all solutions: prints how many were refused, and that none was wrongly accepted.
soak-files: .venv/.dev
	OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 $(BIN)/python -m tests.soak_files --count 100000 --jobs 2

notebooks: .venv/.dev .venv/.notebooks
	$(RUN) -m notebook

solvers: .venv/.dev .venv/.gurobi,ipopt,dask
	$(RUN) tests/test_nonlinear.py tests/test_packaging.py

# The wheel alone, without extras, in an environment of its own.
wheel-check:
	PYTHON=$(PYTHON) tests/wheel_check.sh

bench: .venv/.dev
	for b in piecewise kernel finite additive unbiased lip vector; do $(BIN)/python benchmarks/$$b.py || exit 1; done

docs: .venv/.docs
	$(BIN)/optdp problems --markdown > docs/solved.md
	for f in docs/figures/*.py; do $(BIN)/python $$f || exit 1; done
	OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 $(BIN)/optdp audit --out docs/audit.md
	OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 $(BIN)/optdp discoveries --out docs/discoveries.md

clean:
	rm -rf .venv build dist demo-output *.egg-info

# .venv/.NAME says that the extra NAME is installed.
.venv/.%: pyproject.toml
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e ".[$*]"
	touch $@
