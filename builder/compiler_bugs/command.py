"""`python -m builder compiler-bugs`."""

from __future__ import annotations

import argparse
from pathlib import Path

from graphnet_datasets.errors import GraphNetError

from ..capturing import EMBEDDED


def add_compiler_bugs(parser: argparse.ArgumentParser) -> None:
    """Declare the options of `compiler-bugs`."""
    parser.set_defaults(run=_compiler_bugs)
    parser.add_argument("--out", type=Path, default=EMBEDDED)
    parser.add_argument(
        "--measure", action="append", default=[], help="update the verdicts of this compiler"
    )
    parser.add_argument(
        "--only", default="", help="with --measure: only bugs with this substring in their names"
    )
    parser.add_argument("--runs", type=Path, default=Path("build/compiler_bugs"), help="records")
    parser.add_argument("--docs", type=Path, help="page with the markers of the table")


def _compiler_bugs(options: argparse.Namespace) -> int:
    from ..starter import write_card
    from .building import build, measure
    from .catalog import BUGS
    from .page import write_table

    bugs = [bug for bug in BUGS if options.only in bug.name]
    if not bugs:
        raise GraphNetError(
            f"No bug has `{options.only}` in its name. List the bugs with `graphnet list "
            "compiler_bugs`."
        )
    if options.measure:
        measure(bugs, options.measure, options.runs)
        return 0
    rows = build(options.out)
    write_card(options.out)
    num_verified = sum(row["is_verified"] for row in rows)
    print(f"{len(rows)} bugs in {options.out}, {num_verified} of them verified")
    if options.docs is not None:
        write_table(options.docs, rows)
    return 0
