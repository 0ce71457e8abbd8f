"""`optdp audit`."""

from __future__ import annotations

import argparse
import json
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from optdp.cli import Commands


def register(commands: Commands) -> None:
    """Add the commands of this module."""
    parser = commands.top.add_parser("audit", help="the published claims of the five papers, decided by program")
    _options(parser, "one claim (OGPM-3) or one paper (OGPM)")
    parser.set_defaults(run=_audit, what="audit")
    parser = commands.top.add_parser("discoveries", help="what the programs found beyond the papers, proven again")
    _options(parser, "one discovery (D-OGPM-1)")
    parser.set_defaults(run=_audit, what="discoveries")


def _options(parser: argparse.ArgumentParser, ids: str) -> None:
    parser.add_argument("--claim", action="append", metavar="ID", help=f"{ids}; may be repeated")
    parser.add_argument("--json", action="store_true", help="print everything as JSON")
    parser.add_argument("--markdown", action="store_true", help="print the whole document as Markdown")
    parser.add_argument("--out", metavar="FILE", help="write the document to a file")
    parser.add_argument("--jobs", type=int, default=2, help="processes (default 2)")


def _audit(args: argparse.Namespace) -> int:
    from concurrent.futures import ProcessPoolExecutor

    from optdp import files
    from optdp.audit import audit as module

    decide = module.audit if args.what == "audit" else module.discoveries
    if args.jobs > 1 and not args.claim:
        with ProcessPoolExecutor(args.jobs) as pool:
            found = decide(executor=pool)
    else:
        found = decide(args.claim)
    if args.json:
        print(json.dumps(found.to_json_rows(), indent=2, default=str))
    elif args.markdown or (args.claim and not args.out):
        print(found.to_markdown())
    else:
        print(found)
    if args.out:
        files.write_text(args.out, found.to_markdown())
    return 0 if found.settled else 1
