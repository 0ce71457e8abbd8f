"""`optdp audit`."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import TYPE_CHECKING

from optdp.cli import options
from optdp.cli.options import option

if TYPE_CHECKING:
    from optdp.cli import Commands


def register(commands: Commands) -> None:
    """Add the commands of this module."""
    for name, text, ids in (
        (
            "audit",
            "the published claims of the five papers, decided by program",
            "one claim (OGPM-3) or one paper (OGPM)",
        ),
        ("discoveries", "what the programs found beyond the papers, proven again", "one discovery (D-OGPM-1)"),
    ):
        parser = commands.top.add_parser(name, help=text)
        option(parser, "--claim", None, f"{ids}; may be repeated", action="append", metavar="ID")
        option(parser, "--json", False, "print everything as JSON")
        option(parser, "--markdown", False, "print the whole document as Markdown")
        option(parser, "--out", None, "write the document to a file, or pages into a folder (NAME/)", metavar="FILE")
        options.add_workers(parser, 2)
        parser.set_defaults(run=_audit)


def _audit(args: argparse.Namespace) -> int:
    from optdp import files
    from optdp.audit import audit as module

    decide = getattr(module, args.command)
    if args.claim:  # few: other processes would take longer to start
        args.jobs = min(args.jobs, 1)
    with options.workers(args) as pool:
        found = decide(args.claim, executor=pool)
    if args.json:
        print(json.dumps(found.to_json_rows(), indent=2, default=str))
    elif args.markdown or (args.claim and not args.out):
        print(found.to_markdown())
    else:
        print(found)
    if args.out and args.out.endswith("/"):
        from optdp.audit.pages import pages

        Path(args.out).mkdir(parents=True, exist_ok=True)
        with files.together():
            for name, text in pages(found).items():
                files.write_text(Path(args.out, name), text)
    elif args.out:
        files.write_text(args.out, found.to_markdown())
    return 0 if found.settled else 1
