"""`optdp atlas`."""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from typing import TYPE_CHECKING

from optdp.cli import options
from optdp.cli.options import option

if TYPE_CHECKING:
    from optdp.cli import Commands
    from optdp.report.atlas import Atlas


def register(commands: Commands) -> None:
    """Add the command of this module."""
    parser = commands.top.add_parser(
        "atlas",
        help="certified optima over grids, with the published mechanisms beside them",
        description="Without --out: what is in an atlas, by default that of the package, or tables of its charts (--chart). With "
        "--out: computes an atlas. The file is written whole after every point; interrupted and called again, the command solves "
        "what is missing and nothing twice.",
    )
    option(parser, "--out", None, "the atlas to compute or to go on with (.json)", metavar="FILE")
    option(parser, "--chart", None, "a chart; may be repeated (default: all)", action="append", metavar="NAME")
    text = "the grid in place of that of each chart"
    option(parser, "--eps", None, text, type=options.parse_number, nargs="+", metavar="EPS")
    option(parser, "--rtol", None, "the tolerance in place of that of each chart", type=options.parse_float)
    options.add_workers(parser)
    parser.add_argument(
        "--atlas", default=None, metavar="FILE", help="the atlas to show (default: that of the package)"
    )
    parser.set_defaults(run=_atlas)


def _atlas(args: argparse.Namespace) -> int:
    from optdp.report.atlas import atlas, chart_all

    if args.out is None:
        for name in ("eps", "rtol", "dask"):
            if getattr(args, name) is not None:
                raise ValueError(f"--{name} is not allowed without --out, the file to compute")
        known = atlas(args.atlas)
        print("\n\n".join(known.report(name).to_text() for name in args.chart) if args.chart else _summary(known))
        return 0
    if args.atlas is not None:
        raise ValueError("--atlas is not allowed with --out: it is the atlas to show")
    began = time.perf_counter()
    with options.workers(args) as pool:
        done = chart_all(args.out, args.chart, levels=args.eps, rtol=args.rtol, executor=pool)
    print(_summary(done.atlas))
    size = Path(args.out).stat().st_size
    print(
        f"{args.out}: {size} bytes; {done.solved} points solved, {done.kept} there before, {time.perf_counter() - began:.1f} s"
    )
    return 0


def _summary(known: Atlas) -> str:
    points = known.points
    counts = {name: [p for p in points if p.chart == name] for name in known.charts}
    width = max(map(len, counts), default=0)
    lines = [
        f"  {name.ljust(width)}  {len(found):3} points, {sum(p.certified for p in found):3} certified to their tolerance, "
        f"largest gap {max(p.gap for p in found):.1e}"
        for name, found in counts.items()
    ]
    total = (
        f"optdp {known.version}: {len(counts)} charts, {len(points)} points, {sum(p.verified for p in points)} verified, "
        f"{sum(p.certified for p in points)} certified to their tolerance, {sum(len(p.rivals) for p in points)} published values"
    )
    return "\n".join([*lines, total])
