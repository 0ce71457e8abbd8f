"""The `optdp` command. One module for each group of commands; each adds its own parsers."""

from __future__ import annotations

import argparse
import importlib
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

import optdp
from optdp import files

if TYPE_CHECKING:
    Subparsers = argparse._SubParsersAction[argparse.ArgumentParser]

#: Modules with a function `register(commands: Commands)`, in the order of the help text.
MODULES = ("problems", "lip", "survey", "columns", "audit", "atlas", "tools")

#: Options that name a file to write, and the commands of which --out does (of others it may be a folder that is made).
WRITTEN = ("html", "plot", "write", "save_mechanism", "out")
ONE_FILE = ("solve", "plan", "client", "atlas")


@dataclass(frozen=True)
class Commands:
    """Where commands are added: `optdp NAME`, `optdp solve PROBLEM` and `optdp report PROBLEM`."""

    top: Subparsers
    solve: Subparsers
    report: Subparsers


@cache
def build_parser() -> argparse.ArgumentParser:
    """The whole command line."""
    parser = argparse.ArgumentParser(
        prog="optdp",
        description="Optimal differential privacy mechanisms, with proof.",
        epilog="A solution is printed with its verification: what was checked again, in exact and ball arithmetic.",
    )
    parser.add_argument("--version", action="version", version=f"optdp {optdp.__version__}")
    top = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    solve = top.add_parser("solve", help="the best mechanism for a problem, with its certified bracket")
    report = top.add_parser("report", help="gap reports: optimum, bounds and published mechanisms over a grid")
    commands = Commands(
        top,
        solve.add_subparsers(dest="problem", metavar="PROBLEM", required=True),
        report.add_subparsers(dest="problem", metavar="PROBLEM", required=True),
    )
    for name in MODULES:
        importlib.import_module(f"optdp.cli.{name}").register(commands)
    return parser


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line. **Returns** 0, 1 if a check of a solve failed, or 2 after an error, which is one line on stderr."""
    args = build_parser().parse_args(arguments)
    try:
        for name in WRITTEN:
            if getattr(args, name, None) is not None and (name != "out" or args.command in ONE_FILE):
                files.writable(getattr(args, name))
        return int(args.run(args))
    except BrokenPipeError:
        sys.stderr.close()  # the reader of our output has gone: nothing is left to say
        return 0
    except KeyboardInterrupt:
        return 130
    except OSError as error:
        told = f"{error.filename}: {error.strerror}" if error.filename and error.strerror else error
        print(f"optdp: error: {told}", file=sys.stderr)
        return 2
    except (ValueError, TypeError, RuntimeError, ArithmeticError, MemoryError) as error:
        print(f"optdp: error: {error}", file=sys.stderr)
        return 2
