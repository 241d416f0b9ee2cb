"""What `python -m builder` does once models are captured: check them, ship them, count them."""

from __future__ import annotations

import argparse
from pathlib import Path

from .capturing import PACKAGE, Keys, known
from .sources import named_entries

SHIPPED = PACKAGE / "starter" / "graphnet"
"""The dataset that comes with the package."""


def add_check(parser: argparse.ArgumentParser) -> None:
    """Declare the options of `check`."""
    parser.set_defaults(run=_check)
    parser.add_argument("sources", nargs="*", help="default: all")
    parser.add_argument("--build", type=Path, default=Path("build/catalog"), help="captures")
    parser.add_argument(
        "--max-gflops", type=float, default=100.0, help="larger graphs are checked without a run"
    )
    parser.add_argument("--memory-limit", type=float, default=8.0, help="GB of one graph")


def add_ship(parser: argparse.ArgumentParser) -> None:
    """Declare the options of `ship`."""
    parser.set_defaults(run=_ship)
    parser.add_argument("--build", type=Path, default=Path("build/catalog"), help="captures")
    parser.add_argument("--out", type=Path, default=SHIPPED)
    parser.add_argument("--docs", type=Path, help="a text with the tables of both")
    parser.add_argument("--beside", type=Path, help="a dataset or table whose figures stand beside")


def add_goals(parser: argparse.ArgumentParser) -> None:
    """Declare the options of `goals`."""
    parser.set_defaults(run=_goals)
    parser.add_argument("dataset", type=Path, nargs="?", default=SHIPPED)
    parser.add_argument("--beside", type=Path, help="a dataset or table whose figures stand beside")
    parser.add_argument("--docs", type=Path, help="a text with the markers of the table of goals")


def _check(options: argparse.Namespace) -> int:
    from .keeping import check, waiting

    entries = named_entries(options.sources, None)
    left = list(waiting(entries, options.build, Keys(is_strict=False)))
    num_invalid = 0
    checked = check(left, options.max_gflops * 1e9, options.memory_limit)
    for number, (entry, outcomes) in enumerate(checked, 1):
        reasons = " ".join(each.why_excluded for each in outcomes if not each.is_valid)
        num_invalid += bool(reasons)
        print(f"{number:,} of {len(left):,}: {entry.name} {reasons}".rstrip(), flush=True)
    print(f"{len(left):,} entries checked, {num_invalid:,} with a graph that fails")
    return 0


def _ship(options: argparse.Namespace) -> int:
    from .effort import read_efforts
    from .report import write_report
    from .shipping import is_left_out, ship

    entries = named_entries([], None)
    keys = Keys(is_strict=False)
    found = (known(entry, keys.path(entry, options.build), True) for entry in entries)
    captures = [capture for capture in found if capture is not None]
    graphs = ship(captures, options.out)
    print(f"{len(graphs)} captured graphs in {options.out}")
    if options.docs is not None:
        shipped = [each for each in captures if not is_left_out(each.entry.library)]
        num_waiting = sum(not is_left_out(each.library) for each in entries) - len(shipped)
        write_report(options.docs, shipped, graphs, num_waiting, read_efforts(options.build))
    options.dataset = options.out
    _goals(options)
    return 0


def _goals(options: argparse.Namespace) -> int:
    from .goals import compare, read_goals, table, write_goals
    from .measures import counted_rows

    findings = compare(read_goals(), counted_rows(options.dataset))
    lines = list(table(findings, options.beside and counted_rows(options.beside)))
    print("\n".join(lines))
    if options.docs is not None:
        write_goals(options.docs, lines)
    return int(not all(each.is_met for each in findings))
