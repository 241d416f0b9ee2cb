"""Commands of `python -m builder` after the captures: check, ship and count graphs."""

from __future__ import annotations

import argparse
from collections import Counter
from pathlib import Path

import pyarrow as pa

from .capturing import EMBEDDED, Keys, default_jobs, ended
from .seeding import take_over
from .sources import named_entries


def add_check(parser: argparse.ArgumentParser) -> None:
    """Declare the options of `check`."""
    parser.set_defaults(run=_check)
    parser.add_argument("sources", nargs="*", help="default: all")
    parser.add_argument("--build", type=Path, default=Path("build/catalog"), help="captures")
    parser.add_argument(
        "--max-gflops",
        type=float,
        default=100.0,
        help="maximum GFLOP of a graph that is run by the checks",
    )
    parser.add_argument(
        "--memory-limit", type=float, default=8.0, help="memory limit of a graph in GB"
    )
    parser.add_argument(
        "--standing", type=Path, help="check the unchecked rows of this dataset instead"
    )
    parser.add_argument(
        "--failed",
        action="append",
        default=[],
        help="with --standing: also rows that failed this check",
    )
    parser.add_argument("--jobs", type=int, default=default_jobs(), help="graphs at a time")


def add_ship(parser: argparse.ArgumentParser) -> None:
    """Declare the options of `ship`."""
    parser.set_defaults(run=_ship)
    parser.add_argument("--build", type=Path, default=Path("build/catalog"), help="captures")
    parser.add_argument("--out", type=Path, default=EMBEDDED)
    parser.add_argument("--docs", type=Path, help="page with the markers of both tables")
    parser.add_argument(
        "--anew",
        action="store_true",
        help="omit existing graphs that were not captured in this build",
    )
    parser.add_argument(
        "--regroup",
        action="store_true",
        help="compute groups and splits again; graphs may change their split",
    )
    _add_comparing(parser)


def add_goals(parser: argparse.ArgumentParser) -> None:
    """Declare the options of `goals`."""
    parser.set_defaults(run=_goals)
    parser.add_argument("dataset", type=Path, nargs="?", default=EMBEDDED)
    parser.add_argument("--docs", type=Path, help="page with the markers of the table of goals")
    _add_comparing(parser)


def _add_comparing(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--beside", type=Path, help="dataset or table to compare with")
    parser.add_argument("--picture", type=Path, help="SVG file for the sizes of the graphs")
    parser.add_argument(
        "--write-holds", action="store_true", help="update goals.toml with the goals that are met"
    )


def add_measure(parser: argparse.ArgumentParser) -> None:
    """Declare the options of `measure`."""
    parser.set_defaults(run=_measure)
    parser.add_argument("arms", nargs="*", help="names of `builder.arms.ARMS`; default: all")
    parser.add_argument("--dataset", type=Path, default=EMBEDDED)
    parser.add_argument("--out", type=Path, default=Path("build/runs"), help="records")
    parser.add_argument("--limit", type=int, help="maximum number of graphs of each framework")
    parser.add_argument(
        "--max-gflops",
        type=float,
        default=50.0,
        help="maximum GFLOP of a graph without the tag `small`",
    )
    parser.add_argument(
        "--budget", type=float, default=0.5, help="time budget of a graph in seconds"
    )
    parser.add_argument(
        "--together", type=int, help="number of graphs that all arms time before the next graphs"
    )
    parser.add_argument("--anew", action="store_true", help="also time graphs with records")


def add_runs(parser: argparse.ArgumentParser) -> None:
    """Declare the options of `runs`."""
    parser.set_defaults(run=_runs)
    parser.add_argument("pool", type=Path, help="directory of records written by `measure`")
    parser.add_argument("--out", type=Path, default=EMBEDDED)
    parser.add_argument("--docs", type=Path, help="a page with the markers of the tables")


def add_rejudge(parser: argparse.ArgumentParser) -> None:
    """Declare the options of `rejudge`."""
    parser.set_defaults(run=_rejudge)
    parser.add_argument("--out", type=Path, default=EMBEDDED, help="the dataset of the records")
    parser.add_argument("--docs", type=Path, help="a page with the markers of the tables")


def _measure(options: argparse.Namespace) -> int:
    from .arms import measure

    measured = measure(
        options.dataset,
        options.out,
        options.arms,
        limit=options.limit,
        max_flops=options.max_gflops * 1e9,
        budget_s=options.budget,
        num_together=options.together,
        is_anew=options.anew,
    )
    for name, records in measured:
        statuses = Counter(records["status"][:])
        counts = ", ".join(f"{count} {status}" for status, count in statuses.most_common())
        print(f"{name}: {counts}", flush=True)
    return 0


def _runs(options: argparse.Namespace) -> int:
    from .arms import ship_runs

    _print_tables(ship_runs(options.pool, options.out), options)
    return 0


def _rejudge(options: argparse.Namespace) -> int:
    from graphnet_datasets.benchmark.records.records import read_runs
    from graphnet_datasets.schema.tables import RUNS

    from .rejudging import lines_of, rejudge

    print("\n".join(lines_of(rejudge(options.out))))
    _print_tables(read_runs(options.out / RUNS.name), options)
    return 0


def _print_tables(runs: pa.Table, options: argparse.Namespace) -> None:
    """Renew the card, print the tables of records, and write them into a page."""
    from .arms import ARMS_BEGIN, ARMS_END, table_of_arms, table_of_breaking
    from .breaking import BEGIN, END
    from .pages import write_between
    from .starter import write_card

    write_card(options.out)
    arms, operators = table_of_arms(runs), table_of_breaking(runs, options.out)
    print("\n".join([*arms, "", *operators]))
    if options.docs is not None:
        write_between(options.docs, ARMS_BEGIN, ARMS_END, arms)
        write_between(options.docs, BEGIN, END, operators)


def _check(options: argparse.Namespace) -> int:
    from .keeping import check, waiting
    from .standing_checks import check_standing

    max_flops, memory = options.max_gflops * 1e9, options.memory_limit
    if options.standing is not None:
        num_checked = 0
        for outcome in check_standing(
            options.standing, max_flops, memory, options.jobs, options.failed
        ):
            num_checked += 1
            print(f"{outcome.sample_id} {outcome.why_excluded or ''}".rstrip(), flush=True)
        print(f"{num_checked:,} graphs checked")
        return 0
    entries = named_entries(options.sources, None)
    left = list(waiting(entries, options.build, Keys(is_strict=False)))
    num_invalid = 0
    checked = check(left, max_flops, memory, options.jobs)
    for number, (entry, outcomes) in enumerate(checked, 1):
        reasons = " ".join(outcome.why_excluded for outcome in outcomes if not outcome.is_valid)
        num_invalid += bool(reasons)
        print(f"{number:,} of {len(left):,}: {entry.name} {reasons}".rstrip(), flush=True)
    print(f"{len(left):,} entries checked, {num_invalid:,} with a graph that fails")
    return 0


def _ship(options: argparse.Namespace) -> int:
    from .effort import with_earlier
    from .report import write_report
    from .shipping import is_left_out, ship

    entries = named_entries([], None)
    keys = Keys(is_strict=False)
    if not options.anew:
        take_over(entries, options.out, options.build, keys)
    captures = ended(entries, options.build, keys)
    tried = {capture.entry.name for capture in captures}
    waiting = set() if options.anew else {entry.name for entry in entries} - tried
    graphs = ship(captures, options.out, waiting, is_regrouped=options.regroup)
    print(f"{len(graphs)} captured graphs in {options.out}")
    if options.docs is not None:
        shipped = [capture for capture in captures if not is_left_out(capture.entry.library)]
        num_waiting = sum(not is_left_out(entry.library) for entry in entries) - len(shipped)
        write_report(options.docs, shipped, graphs, num_waiting, with_earlier(options.build))
    options.dataset = options.out
    _goals(options)
    return 0


def _goals(options: argparse.Namespace) -> int:
    from .goals import BESIDE, compare, draw_sizes, read_goals, table, write_goals, write_holds
    from .measures import counted_rows

    counted = counted_rows(options.dataset)
    beside = options.beside and counted_rows(options.beside)
    findings = compare(read_goals(), counted)
    lines = list(table(findings, beside))
    print("\n".join(lines))
    if options.docs is not None:
        write_goals(options.docs, lines)
    if options.write_holds:
        write_holds(findings)
    if options.picture is not None:
        others = {} if beside is None else {BESIDE: beside}
        draw_sizes({"this dataset": counted, **others}, options.picture)
    return int(not all(finding.is_met for finding in findings))
