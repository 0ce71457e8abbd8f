#!/usr/bin/env bash
# Runs the tests (or the test files given) with the oldest releases that pyproject.toml admits: a lower limit that nobody has
# tried is a guess. Their own requirements are as new as pip finds them.
set -euo pipefail
cd "$(dirname "$0")/.."
place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
"${PYTHON:-python3}" -m venv "$place/env"
"$place/env/bin/python" - >"$place/oldest.txt" <<'END'
import re
import tomllib

with open("pyproject.toml", "rb") as file:
    project = tomllib.load(file)["project"]
extras = project["optional-dependencies"]
names = "plot", "tables", "scip", "data", "dev"
for requirement in [*project["dependencies"], *(r for name in names for r in extras[name])]:
    if found := re.fullmatch(r"([\w-]+)>=([\d.]+)", requirement.split(";")[0].strip()):
        name, version = found.groups()
        if name not in ("mypy", "ruff"):  # they check the sources, whatever is installed
            print(f"{name}=={version}")
END
cat "$place/oldest.txt"
"$place/env/bin/python" -m pip install --quiet --disable-pip-version-check -r "$place/oldest.txt" -e .
export OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 MPLBACKEND=agg
# Old releases of Hypothesis warn now and then of a generator of their own.
"$place/env/bin/python" -m pytest -n 2 --dist worksteal -W ignore::hypothesis.errors.HypothesisWarning "$@"
