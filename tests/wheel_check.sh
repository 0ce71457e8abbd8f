#!/usr/bin/env bash
# Builds the wheel, installs it without extras into an empty environment, and uses it there as a user would.
set -euo pipefail
cd "$(dirname "$0")/.."
place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
"${PYTHON:-python3}" -m venv "$place/env"
pip=("$place/env/bin/python" -m pip --quiet --disable-pip-version-check)
rm -rf build # what an earlier build left there would get into the wheel
"${pip[@]}" wheel --no-deps --wheel-dir "$place" .
"${pip[@]}" install "$place"/*.whl
cd "$place" # nothing of the clone is in reach
optdp="$place/env/bin/optdp"
"$optdp" --version
"$optdp" problems
"$optdp" solve piecewise --eps 1 --out solution.json
"$optdp" verify solution.json
"$optdp" compare --eps 1 --loss squared
"$optdp" solve kernel --eps 1 --loss abs --rtol 0.01 --out kernel.json
"$optdp" verify kernel.json
"$optdp" demo --out demo-output
printf 'id,age\n1,30\n2,61\n' >in.csv
"$optdp" plan --eps 1 --number age:0:120 --flag smoker --out plan.json
for language in js python; do "$optdp" client --plan plan.json --language "$language" --out "client.$language"; done
"$optdp" randomize --eps "log(3)" --column age --lower 0 --upper 120 --keep id in.csv out.csv
# What is missing is named with the extra that brings it.
! "$optdp" solve piecewise --eps 1 --plot figure.png 2>error.txt
grep -F "optdp[plot]" error.txt
! "$optdp" solve piecewise --eps 1 --backend scip 2>error.txt
grep -F "optdp[scip]" error.txt
du -sm env/lib/python*/site-packages
