# Each target works in a fresh clone with Python (>= 3.11) and make alone: the first one builds .venv.
PYTHON ?= python3
BIN := .venv/bin
STAMP := .venv/.installed

.PHONY: demo test lint soak bench docs notebooks clean

demo: $(STAMP)
	MPLBACKEND=agg $(BIN)/optdp demo

test: lint
	OMP_NUM_THREADS=1 MPLBACKEND=agg $(BIN)/python -m pytest -n 2 -m "not soak"

lint: $(STAMP)
	$(BIN)/ruff check optdp tests benchmarks
	$(BIN)/ruff format --check optdp tests benchmarks
	$(BIN)/mypy

soak: $(STAMP)
	OMP_NUM_THREADS=1 MPLBACKEND=agg $(BIN)/python -m pytest -n 2 -m soak

bench: $(STAMP)
	for b in piecewise kernel additive unbiased lip; do $(BIN)/python benchmarks/$$b.py || exit 1; done

docs: $(STAMP)
	$(BIN)/optdp audit --out docs/audit.md
	$(BIN)/optdp discoveries --out docs/discoveries.md

notebooks: $(STAMP)
	$(BIN)/python -m pytest -n 2 tests/test_notebooks.py

clean:
	rm -rf .venv build demo-output *.egg-info

$(STAMP): pyproject.toml
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e ".[dev]"
	touch $@
