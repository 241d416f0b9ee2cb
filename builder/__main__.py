"""`python -m builder`: make the embedded dataset, or the full one, out of catalogs of models."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable
from pathlib import Path

from graphnet_datasets.atomic import write_text
from graphnet_datasets.errors import GraphNetError

from .capturing import BUILDER, PACKAGE, Capture, Keys, default_jobs, known
from .catalog import Entry, read_catalog
from .executors import capture_all
from .starter import CATALOGS, calibrate, write_card, write_dataset, write_failures


def main(arguments: list[str] | None = None) -> int:
    """Run the command line and return its exit status."""
    arguments = sys.argv[1:] if arguments is None else arguments
    if arguments[:1] == ["import"]:
        return _import(arguments)
    parser = argparse.ArgumentParser(prog="python -m builder", description=__doc__)
    commands = parser.add_subparsers(required=True)
    _add_starter(commands.add_parser("starter", help="the embedded dataset, byte for byte"))
    again = commands.add_parser("calibrate", help="what `starter` does last, on what is embedded")
    again.set_defaults(run=_calibrate)
    again.add_argument("--out", type=Path, default=PACKAGE / "starter" / "graphnet")
    again.add_argument("--jobs", type=int, default=default_jobs())
    _add_columns(commands.add_parser("columns", help="renew what is known of the embedded graphs"))
    _add_subgraphs(commands.add_parser("subgraphs", help="the tables of subgraphs beside it"))
    _add_catalog(commands.add_parser("catalog", help="the full dataset, from every source"))
    _add_choose(commands.add_parser("choose", help="what of the full dataset is embedded"))
    commands.add_parser("import", help="GraphNet's trees, as `graphnet import` does")
    options = parser.parse_args(arguments)
    try:
        return options.run(options)
    except GraphNetError as error:
        print(error, file=sys.stderr)
        return 1


def _add_starter(parser: argparse.ArgumentParser) -> None:
    parser.set_defaults(run=_starter)
    parser.add_argument("--catalog", type=Path, action="append", help=f"default: {CATALOGS}")
    parser.add_argument("--out", type=Path, default=PACKAGE / "starter" / "graphnet")
    parser.add_argument("--build", type=Path, default=Path("build/starter"), help="cached captures")
    parser.add_argument(
        "--only", default="", help="capture what has this in its name, write nothing"
    )
    parser.add_argument("--jobs", type=int, default=default_jobs())
    parser.add_argument(
        "--no-calibration", action="store_true", help="leave out the statistics that fit graphs"
    )
    parser.add_argument(
        "--allow-failures", action="store_true", help="write the dataset without what failed"
    )


def _add_columns(parser: argparse.ArgumentParser) -> None:
    parser.set_defaults(run=_columns)
    parser.add_argument("--out", type=Path, default=PACKAGE / "starter" / "graphnet")
    parser.add_argument(
        "--regroup", action="store_true", help="make groups and splits anew: graphs may move"
    )


def _add_subgraphs(parser: argparse.ArgumentParser) -> None:
    from .subgraphs import NAMES

    parser.set_defaults(run=_subgraphs)
    parser.add_argument("names", nargs="*", help=f"of {', '.join(NAMES)}; default: all")
    parser.add_argument("--out", type=Path, default=PACKAGE / "starter" / "graphnet")
    parser.add_argument("--build", type=Path, default=Path("build/subgraphs"), help="what is done")
    parser.add_argument("--picture", type=Path, help="a directory for the picture of coverage")
    parser.add_argument("--docs", type=Path, help="a text with the markers of the table of them")
    parser.add_argument("--jobs", type=int, default=default_jobs())


def _add_catalog(parser: argparse.ArgumentParser) -> None:
    from .sources import SOURCES

    parser.set_defaults(run=_catalog)
    parser.add_argument("sources", nargs="*", help=f"of {', '.join(SOURCES)}; default: all")
    parser.add_argument("--build", type=Path, default=Path("build/catalog"), help="captures")
    parser.add_argument("--out", type=Path, help="the dataset; default: capture only")
    parser.add_argument("--docs", type=Path, help="a text with the markers of the table of models")
    parser.add_argument("--jobs", type=int, default=default_jobs())
    parser.add_argument("--executor", choices=("local", "ray"), default="local")
    parser.add_argument("--limit", type=int, help="at most so many entries of each source")
    parser.add_argument(
        "--retry", action="store_true", help="try again what failed in this build directory"
    )
    parser.add_argument(
        "--no-capture", action="store_true", help="take what the build directory holds"
    )


def _add_choose(parser: argparse.ArgumentParser) -> None:
    parser.set_defaults(run=_choose)
    parser.add_argument("--build", type=Path, default=Path("build/catalog"), help="captures")
    parser.add_argument("--count", type=int, default=400, help="graphs to add to the first ones")
    parser.add_argument("--out", type=Path, default=BUILDER / "chosen.txt")


def _starter(options: argparse.Namespace) -> int:
    catalogs = options.catalog or [BUILDER / name for name in CATALOGS]
    entries = [
        entry for path in catalogs for entry in read_catalog(path) if options.only in entry.name
    ]
    captures = _shown(capture_all(entries, options.build, options.jobs), len(entries))
    num_failures = write_failures(captures, options.build / "failures.json")
    if num_failures:
        print(f"{num_failures} of {len(entries)} entries failed; see {options.build}/failures.json")
    if options.only or (num_failures and not options.allow_failures):
        return int(bool(num_failures))
    counts = write_dataset(captures, options.out)
    print(f"{sum(counts.values())} graphs in {options.out}: {counts}")
    if not options.no_calibration:
        calibrate(options.out, options.jobs)
    return 0


def _calibrate(options: argparse.Namespace) -> int:
    calibrate(options.out, options.jobs)
    return 0


def _columns(options: argparse.Namespace) -> int:
    from .placing import known_groups, place, standing, write_placed

    entries = {entry.name: entry for name in CATALOGS for entry in read_catalog(BUILDER / name)}
    known = {} if options.regroup else known_groups(options.out)
    placed = place(standing(options.out, entries), known)
    write_placed(placed, options.out)
    write_card(options.out)
    groups = {group for _, group in placed.rows}
    print(f"{len(placed.rows)} graphs of {len(groups)} groups in {options.out}")
    for name in placed.left_out:
        print(f"left out, since it would link two splits: {name}")
    return 0


def _subgraphs(options: argparse.Namespace) -> int:
    from .subgraphs import NAMES, build, draw_coverage, write_coverage

    build(options.out, options.build, options.names or list(NAMES), options.jobs)
    if options.picture is not None:
        print(draw_coverage(options.out, options.picture))
    if options.docs is not None:
        write_coverage(options.out, options.docs)
    return 0


def _catalog(options: argparse.Namespace) -> int:
    from .full import write_full
    from .report import write_report

    entries = _entries(options.sources, options.limit)
    keys = Keys(is_strict=False)
    if options.no_capture:
        found = (known(entry, keys.path(entry, options.build), True) for entry in entries)
        captures = [capture for capture in found if capture is not None]
    else:
        captures = _shown(
            capture_all(
                entries,
                options.build,
                options.jobs,
                executor=options.executor,
                keys=keys,
                is_failure_kept=not options.retry,
            ),
            len(entries),
        )
        order = {entry.name: position for position, entry in enumerate(entries)}
        captures.sort(key=lambda capture: order[capture.entry.name])
    num_failures = sum(capture.path is None for capture in captures)
    print(f"{len(captures) - num_failures} captured, {num_failures} failed of {len(entries)}")
    if options.out is None:
        return 0
    graphs = write_full(captures, options.out)
    families = {graph.family for graph in graphs}
    print(f"{len(graphs)} graphs of {len(families)} families in {options.out}")
    if options.docs is not None:
        write_report(options.docs, captures, graphs, len(entries) - len(captures))
    return 0


def _choose(options: argparse.Namespace) -> int:
    from .choosing import choose

    keys = Keys(is_strict=False)
    entries = _entries([], None)
    found = (known(entry, keys.path(entry, options.build), True) for entry in entries)
    lines = choose([capture for capture in found if capture is not None], options.count)
    write_text(options.out, "\n".join(lines) + "\n")
    print(f"{len(lines)} lines in {options.out}")
    return 0


def _import(arguments: list[str]) -> int:
    from graphnet_datasets.cli.app import app

    try:
        app(arguments, prog_name="python -m builder")
    except SystemExit as end:
        return int(end.code or 0)
    return 0


def _entries(sources: list[str], limit: int | None) -> list[Entry]:
    """Return the entries of the named sources, each name once."""
    from .sources import SOURCES, entries_of

    unknown = sorted(set(sources) - set(SOURCES))
    if unknown:
        raise GraphNetError(f"There is no source `{unknown[0]}`. Choose of {', '.join(SOURCES)}.")
    entries = [entry for source in sources or SOURCES for entry in entries_of(source)[:limit]]
    return list({entry.name: entry for entry in entries}.values())


def _shown(captures: Iterable[Capture], total: int) -> list[Capture]:
    """Return what an iterator gives, with a bar and a line for each failure meanwhile."""
    from rich.progress import track

    shown: list[Capture] = []
    for capture in track(captures, description="capture", total=total):
        shown.append(capture)
        if capture.path is None:
            print(capture.entry.name, capture.reason, flush=True)
    return shown


if __name__ == "__main__":
    sys.exit(main())
