"""How long the README's commands and the notebooks take: each in a process of its own, CPU and wall seconds.

    python benchmarks/commands.py              # all of them; `make test` alone takes many minutes
    python benchmarks/commands.py --skip test  # without the commands that have this word
    python benchmarks/commands.py --notebooks ogpm places

Commands are read from the README's blocks of console text (lines that begin with "$ "); its block of Python is run as it stands.
They run in the checkout and use what is installed there: `make demo` finds .venv or builds it.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from optdp.report.report import Column, Report

ROOT = Path(__file__).resolve().parent.parent
NOTEBOOK = """
import sys
import nbformat
from nbclient import NotebookClient
NotebookClient(nbformat.read(sys.argv[1], 4), timeout=600, kernel_name="python3", resources={"metadata": {"path": "."}}).execute()
"""
COLUMNS = [
    Column("what", "what"), Column("cpu", "CPU s", ".1f"), Column("wall", "wall s", ".1f"), Column("status", "status"),
]  # fmt: skip


def measured(what: str, words: list[str], folder: Path) -> dict[str, Any]:
    """CPU seconds of a command and all processes that it waited for, and wall seconds."""
    path = os.pathsep.join(filter(None, (str(ROOT), os.environ.get("PYTHONPATH"))))  # notebooks run this checkout
    told = os.environ | {"PYTHONPATH": path, "MPLBACKEND": "agg"}
    before, began = os.times(), time.perf_counter()
    done = subprocess.run(words, cwd=folder, env=told, stdin=subprocess.DEVNULL, capture_output=True, text=True)
    wall, after = time.perf_counter() - began, os.times()
    last = (done.stderr.strip().splitlines() or [""])[-1][:80]
    status = "done" if done.returncode == 0 else f"failed ({done.returncode}): {last}"
    spent = sum(after[2:4]) - sum(before[2:4])
    return {"what": what, "cpu": spent, "wall": wall, "status": status}


def readme(skip: tuple[str, ...] = ()) -> Report:
    """Every command of the README, and its example."""
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    blocks = re.findall(r"^```console\n(.*?)^```", text, re.S | re.M)
    commands = [
        line[2:].partition("  #")[0].strip() for block in blocks for line in block.splitlines() if line.startswith("$ ")
    ]
    rows = []
    for command in commands:
        left_out = any(word in command.split() for word in skip)
        rows.append(
            {"what": command, "status": "not run here"}
            if left_out
            else measured(command, ["bash", "-c", command], ROOT)
        )
    with tempfile.TemporaryDirectory() as name:
        for k, code in enumerate(re.findall(r"^```python\n(.*?)^```", text, re.S | re.M), 1):
            rows.append(measured(f"Python example {k}", [sys.executable, "-c", code], Path(name)))
    return Report("Commands of the README", COLUMNS, rows)


def notebooks(names: list[str] | None = None) -> Report:
    """Every notebook, executed from top to bottom by nbclient."""
    rows = []
    for path in sorted((ROOT / "notebooks").glob("*.ipynb")):
        if names is None or path.stem in names:
            with tempfile.TemporaryDirectory() as folder:
                rows.append(measured(path.name, [sys.executable, "-c", NOTEBOOK, str(path)], Path(folder)))
    return Report("Notebooks", COLUMNS, rows, ["With the start of the kernel and the import of libraries."])


def main() -> None:
    """Print both tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--skip", nargs="*", default=[], metavar="WORD", help="leave out commands with these words")
    parser.add_argument("--notebooks", nargs="*", metavar="NAME", help="these notebooks alone, and no commands")
    args = parser.parse_args()
    if args.notebooks is None:
        print(readme(tuple(args.skip)), end="\n\n", flush=True)
    print(notebooks(args.notebooks or None))


if __name__ == "__main__":
    main()
