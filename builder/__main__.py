"""`python -m builder`: build the embedded dataset, or the full dataset, from catalogs of models."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

from graphnet_datasets.atomic import append_json, write_text
from graphnet_datasets.errors import GraphNetError

from .audit import MAX_FLOPS, WAYS
from .baselines import add_baselines
from .capturing import BUILDER, EMBEDDED, FAILURE, Capture, Keys, default_jobs, ended, known
from .catalog import DTYPES, Entry, read_catalog
from .compiler_bugs.command import add_compiler_bugs
from .executors import capture_all
from .finishing import add_check, add_goals, add_measure, add_rejudge, add_runs, add_ship
from .gpu_cache.command import add_check as add_check_gpu_cache
from .gpu_cache.command import add_gpu_cache
from .gpu_records.command import add_gpu_records
from .notebooks import add_notebooks
from .problems import add_problems
from .progress import follow, summary
from .seeding import take_over
from .sources import named_entries
from .starter import CATALOGS, calibrate, write_card, write_dataset, write_failures

INTERRUPTED = 130
"""Exit status of a program that was stopped by Ctrl-C: 128 + SIGINT."""


def main(arguments: list[str] | None = None) -> int:
    """Run the command line and return its exit status."""
    arguments = sys.argv[1:] if arguments is None else arguments
    if arguments[:1] == ["import"]:
        return _import(arguments)
    parser = argparse.ArgumentParser(prog="python -m builder", description=__doc__)
    commands = parser.add_subparsers(required=True)
    _add_starter(
        commands.add_parser("starter", help="build the dataset of the project's own catalogs")
    )
    again = commands.add_parser(
        "calibrate", help="calibrate the embedded graphs (also the last step of `starter`)"
    )
    again.set_defaults(run=_calibrate)
    again.add_argument("--out", type=Path, default=EMBEDDED)
    again.add_argument("--jobs", type=int, default=default_jobs())
    again.add_argument(
        "--every", type=int, help="only compare one graph in so many, and change no table"
    )
    again.add_argument(
        "--journal",
        type=Path,
        default=Path("build/signals.jsonl"),
        help="with --every: file of the figures; the same command continues it",
    )
    again.add_argument(
        "--max-gflops", type=float, default=2.0, help="with --every: GFLOP of the largest graph"
    )
    _add_columns(
        commands.add_parser("columns", help="update the derived columns of the embedded graphs")
    )
    _add_subgraphs(
        commands.add_parser("subgraphs", help="build the tables of subgraphs of a dataset")
    )
    add_problems(commands.add_parser("problems", help="build the table of problems of a dataset"))
    add_baselines(
        commands.add_parser("baselines", help="judge compilers on the problems of a dataset")
    )
    _add_tuning(commands.add_parser("tuning", help="add tasks and records of tuning to a dataset"))
    _add_machine_code(
        commands.add_parser("machine-code", help="add features of machine code to tuning records")
    )
    _add_catalog(commands.add_parser("catalog", help="build the full dataset from all sources"))
    add_goals(commands.add_parser("goals", help="compare a dataset with its goals"))
    add_notebooks(commands.add_parser("notebooks", help="execute the notebooks of examples/"))
    weights = commands.add_parser("weights", help="measure the weights of the captured models")
    weights.set_defaults(run=_weights)
    weights.add_argument("sources", nargs="*", help="default: all")
    weights.add_argument("--build", type=Path, default=Path("build/catalog"))
    weights.add_argument("--jobs", type=int, default=default_jobs())
    hours = commands.add_parser(
        "hours", help="print the time and memory of the captures of a build directory"
    )
    hours.set_defaults(run=_hours)
    hours.add_argument("--build", type=Path, default=Path("build/catalog"))
    add_ship(commands.add_parser("ship", help="copy the full dataset into the package"))
    add_measure(
        commands.add_parser("measure", help="time the graphs of a dataset under every compiler")
    )
    add_runs(commands.add_parser("runs", help="copy the records of `measure` into the package"))
    add_rejudge(commands.add_parser("rejudge", help="judge the embedded records again"))
    _add_audit(
        commands.add_parser("audit", help="capture models and compare the captures with the models")
    )
    add_check(commands.add_parser("check", help="check the captured graphs"))
    _add_choose(
        commands.add_parser("choose", help="choose the graphs of the full dataset to embed")
    )
    add_gpu_records(commands)
    add_gpu_cache(
        commands.add_parser("gpu-cache", help="compile for a GPU on a machine without one")
    )
    add_check_gpu_cache(
        commands.add_parser("check-gpu-cache", help="check that a GPU uses kernels from the caches")
    )
    add_compiler_bugs(
        commands.add_parser("compiler-bugs", help="build the table of known bugs of compilers")
    )
    commands.add_parser("import", help="import GraphNet directories like `graphnet import`")
    options = parser.parse_args(arguments)
    try:
        return options.run(options)
    except GraphNetError as error:
        print(error, file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        build = getattr(options, "build", options.__dict__.get("out"))
        print(
            f"Stopped. Finished captures are in `{build}`; the same command continues from there.",
            file=sys.stderr,
        )
        return INTERRUPTED


def _add_starter(parser: argparse.ArgumentParser) -> None:
    parser.set_defaults(run=_starter)
    parser.add_argument("--catalog", type=Path, action="append", help=f"default: {CATALOGS}")
    parser.add_argument("--out", type=Path, default=Path("build/starter/graphnet"))
    parser.add_argument("--build", type=Path, default=Path("build/starter"), help="cached captures")
    parser.add_argument(
        "--only",
        default="",
        help="capture only entries with this substring in their name, and write no dataset",
    )
    parser.add_argument("--jobs", type=int, default=default_jobs())
    parser.add_argument("--no-calibration", action="store_true", help="skip the calibration")
    parser.add_argument(
        "--only-failed", action="store_true", help="retry failed entries, and write no dataset"
    )
    parser.add_argument(
        "--allow-failures", action="store_true", help="write the dataset without the failed entries"
    )


def _add_columns(parser: argparse.ArgumentParser) -> None:
    parser.set_defaults(run=_columns)
    parser.add_argument("--out", type=Path, default=EMBEDDED)
    parser.add_argument(
        "--add", type=Path, help="build directory with captures of other catalogs to add"
    )
    parser.add_argument(
        "--regroup",
        action="store_true",
        help="compute groups and splits again; graphs may change their split",
    )


def _add_subgraphs(parser: argparse.ArgumentParser) -> None:
    from .subgraphs import NAMES

    parser.set_defaults(run=_subgraphs)
    parser.add_argument("names", nargs="*", help=f"of {', '.join(NAMES)}; default: all")
    parser.add_argument("--out", type=Path, default=EMBEDDED)
    parser.add_argument(
        "--build", type=Path, default=Path("build/subgraphs"), help="directory of finished work"
    )
    parser.add_argument("--picture", type=Path, help="directory for the picture of coverage")
    parser.add_argument("--docs", type=Path, help="page with markers for the table of subgraphs")
    parser.add_argument("--jobs", type=int, default=default_jobs())
    parser.add_argument("--max-ops", type=int, help="omit graphs with more operators")


def _add_tuning(parser: argparse.ArgumentParser) -> None:
    parser.set_defaults(run=_tuning)
    parser.add_argument("pool", type=Path, help="dataset written by `graphnet tune`")
    parser.add_argument("--out", type=Path, default=EMBEDDED)


def _add_machine_code(parser: argparse.ArgumentParser) -> None:
    parser.set_defaults(run=_machine_code)
    parser.add_argument("--out", type=Path, default=EMBEDDED)
    parser.add_argument(
        "--journal",
        type=Path,
        default=Path("build/machine_code.jsonl"),
        help="file of finished records; the same command continues it",
    )


def _add_catalog(parser: argparse.ArgumentParser) -> None:
    from .sources import SOURCES

    parser.set_defaults(run=_catalog)
    parser.add_argument("sources", nargs="*", help=f"of {', '.join(SOURCES)}; default: all")
    parser.add_argument("--build", type=Path, default=Path("build/catalog"), help="captures")
    parser.add_argument("--out", type=Path, help="the dataset; default: capture only")
    parser.add_argument("--docs", type=Path, help="page with markers around the table of models")
    parser.add_argument("--jobs", type=int, default=default_jobs())
    parser.add_argument("--executor", choices=("local", "ray"), default="local")
    parser.add_argument("--limit", type=int, help="maximum number of entries of each source")
    parser.add_argument(
        "--anew", action="store_true", help="also capture the graphs of the embedded dataset"
    )
    parser.add_argument(
        "--retry", action="store_true", help="retry the failures in this build directory"
    )
    parser.add_argument(
        "--only-failed",
        action="store_true",
        help="capture only failed entries, and write no dataset",
    )
    parser.add_argument(
        "--no-capture", action="store_true", help="use the captures in the build directory"
    )


def _add_audit(parser: argparse.ArgumentParser) -> None:
    parser.set_defaults(run=_audit)
    parser.add_argument("--models", type=int, default=100, help="number of models with a verdict")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=default_jobs())
    parser.add_argument("--library", action="append", help="default: every installed library")
    parser.add_argument(
        "--way", choices=WAYS, default="extract",
        help="`export` captures with `extract_export`; `backward` also compares gradients",
    )  # fmt: skip
    parser.add_argument("--dtype", action="append", choices=DTYPES, help="default: every dtype")
    parser.add_argument(
        "--max-flops", type=int, default=MAX_FLOPS, help="of the models' embedded graphs"
    )
    parser.add_argument(
        "--twice", action="store_true", help="capture each model twice and compare the hashes"
    )
    parser.add_argument(
        "--out", type=Path, default=Path("build/audit.jsonl"),
        help="file of results, one JSON line per model; the same command continues it",
    )  # fmt: skip


def _audit(options: argparse.Namespace) -> int:
    """Capture models with weights and print a JSON object per model and a summary."""
    from .audit import FAILED, Audit, audit, catalog_entries, draw, read_results, summary
    from .libraries import LIBRARIES

    entries = [
        entry
        for entry in catalog_entries(max_flops=options.max_flops)
        if (not options.library or entry.library in options.library)
        and (not options.dtype or entry.dtype in options.dtype)
        and (options.way == "extract" or LIBRARIES[entry.library].framework == "torch")
    ]
    earlier = read_results(options.out, entries)
    options.out.parent.mkdir(parents=True, exist_ok=True)
    results: list[Audit] = []
    drawn = draw(entries, options.seed)
    for result in audit(
        drawn, options.models, options.jobs, earlier, way=options.way, is_twice=options.twice
    ):
        results.append(result)
        print(json.dumps(result.to_json()), flush=True)
        if len(results) > len(earlier):
            append_json(options.out, result.to_json())
    counts = summary(results)
    print(json.dumps(counts))
    return int(counts[FAILED] > 0 or counts["equal"] + counts["refused"] < options.models)


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
    keys = Keys()
    if options.only_failed:
        entries = _failed(entries, options.build, keys)
    captures = _captured(entries, options, keys)
    num_failures = write_failures(captures, options.build / "failures.json")
    if num_failures:
        print(f"{num_failures} of {len(entries)} entries failed; see {options.build}/failures.json")
    if options.only or options.only_failed or (num_failures and not options.allow_failures):
        return int(bool(num_failures))
    counts = write_dataset(captures, options.out)
    print(f"{sum(counts.values())} graphs in {options.out}: {counts}")
    if not options.no_calibration:
        calibrate(options.out, options.jobs)
    return 0


def _calibrate(options: argparse.Namespace) -> int:
    if options.every is not None:
        return _compare(options)
    calibrate(options.out, options.jobs)
    return 0


def _compare(options: argparse.Namespace) -> int:
    """Print the figures of a part of the graphs before and after calibration."""
    from .signals import compare, summary

    lines = []
    for line in compare(
        options.out,
        options.journal,
        options.every,
        options.jobs,
        max_flops=options.max_gflops * 1e9,
    ):
        lines.append(line)
        print(json.dumps(line), flush=True)
    print("\n".join(summary(lines)))
    return 0


def _columns(options: argparse.Namespace) -> int:
    from graphnet_datasets.schema.tables import SUBGRAPHS, TRUNCATED

    from .placing import captured, known_groups, place, standing, write_again, write_placed
    from .resplitting import drop_workloads, resplit
    from .subgraphs import drop_parts, stale_parents

    entries = {entry.name: entry for name in CATALOGS for entry in read_catalog(BUILDER / name)}
    groups_of = None if options.regroup else known_groups(options.out)
    rows = list(standing(options.out, entries))
    if options.add is not None:
        there = {row.id for row in rows}
        keys = Keys()
        waiting = [entry for name, entry in entries.items() if name not in there]
        captures = (known(entry, keys.path(entry, options.add), False) for entry in waiting)
        rows += captured([capture for capture in captures if capture is not None], is_analysed=True)
    placed = place(rows, groups_of)
    is_apart = any((options.out / TRUNCATED).glob("*.parquet"))
    write_placed(placed, options.out, is_truncated_apart=is_apart)
    write_again(options.out, SUBGRAPHS)
    if options.regroup:
        resplit(options.out)
    drop_parts(options.out, stale_parents(options.out))
    drop_workloads(options.out)
    write_card(options.out)
    groups = {group for _, group in placed.rows}
    print(f"{len(placed.rows)} graphs of {len(groups)} groups in {options.out}")
    for name in placed.left_out:
        print(f"omitted, because it would link two splits: {name}")
    return 0


def _subgraphs(options: argparse.Namespace) -> int:
    from .subgraphs import NAMES, build, draw_coverage, write_coverage

    build(options.out, options.build, options.names or list(NAMES), options.jobs, options.max_ops)
    if options.picture is not None:
        print(draw_coverage(options.out, options.picture))
    if options.docs is not None:
        write_coverage(options.out, options.docs, options.max_ops)
    return 0


def _tuning(options: argparse.Namespace) -> int:
    from .starter import write_card
    from .tuning import ship

    print(ship(options.pool, options.out))
    write_card(options.out)
    return 0


def _machine_code(options: argparse.Namespace) -> int:
    from .starter import write_card
    from .tuning import add_machine_code

    def show(done: int, total: int) -> None:
        print(f"{done:,} of {total:,}", flush=True)

    print(add_machine_code(options.out, options.journal, on_record=show))
    write_card(options.out)
    return 0


def _catalog(options: argparse.Namespace) -> int:
    from .effort import add_up, read_efforts
    from .full import write_full
    from .report import write_report

    entries = named_entries(options.sources, options.limit)
    keys = Keys(is_strict=False)
    if not options.anew:
        take_over(entries, EMBEDDED, options.build, keys)
    if options.no_capture:
        captures = ended(entries, options.build, keys)
    else:
        chosen = _failed(entries, options.build, keys) if options.only_failed else entries
        is_kept = not (options.retry or options.only_failed)
        captures = _captured(
            chosen, options, keys, executor=options.executor, is_failure_kept=is_kept
        )
        if options.only_failed:
            print(f"{summary(captures)} of the failed entries")
            return 0
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
        num_waiting = len(entries) - len(captures)
        efforts = add_up(read_efforts(options.build))
        write_report(options.docs, captures, graphs, num_waiting, efforts)
    return 0


def _weights(options: argparse.Namespace) -> int:
    from .executors import measure_all
    from .weights import waiting

    keys = Keys(is_strict=False)
    entries = list(waiting(named_entries(options.sources, None), options.build, keys))
    num_failed = 0
    for number, (entry, reason) in enumerate(
        measure_all(entries, options.build, keys, options.jobs), 1
    ):
        num_failed += bool(reason)
        print(f"{number:,} of {len(entries):,}: {entry.name} {reason}".rstrip(), flush=True)
    print(f"{len(entries) - num_failed:,} measured, {num_failed:,} failed")
    return int(bool(num_failed))


def _hours(options: argparse.Namespace) -> int:
    from .effort import RECORDS, add_up, effort_table, read_efforts

    efforts = read_efforts(options.build)
    if not efforts:
        raise GraphNetError(
            f"`{options.build}` has no `{RECORDS}`. Choose a build directory with captures."
        )
    print("\n".join(effort_table(add_up(efforts))))
    return 0


def _choose(options: argparse.Namespace) -> int:
    from .choosing import choose

    keys = Keys(is_strict=False)
    entries = named_entries([], None)
    lines = choose(ended(entries, options.build, keys), options.count)
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


def _captured(
    entries: list[Entry], options: argparse.Namespace, keys: Keys, **more: Any
) -> list[Capture]:
    """Capture entries and report progress."""
    num_known = sum(
        known(entry, keys.path(entry, options.build), more.get("is_failure_kept", False))
        is not None
        for entry in entries
    )
    captures = capture_all(entries, options.build, options.jobs, keys=keys, **more)
    return follow(captures, len(entries), num_known)


def _failed(entries: list[Entry], build: Path, keys: Keys) -> list[Entry]:
    """Return the entries whose last capture failed."""
    paths = {entry.name: keys.path(entry, build) for entry in entries}
    return [
        entry
        for entry in entries
        if paths[entry.name].with_suffix(FAILURE).is_file() and not paths[entry.name].is_file()
    ]


if __name__ == "__main__":
    sys.exit(main())
