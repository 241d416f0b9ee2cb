"""Baselines of the problems: verdicts on compilers, as rows of `solutions`.

    python -m builder baselines --seconds 3600      # may be interrupted and repeated

All workloads share one resumable run for each framework. A problem gets its rows once all compilers
have a record for each of its workloads. Nothing else may run on the machine meanwhile.
"""

from __future__ import annotations

import argparse
import collections
import hashlib
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from graphnet_datasets.analysis.splits import SPLITS, split_of
from graphnet_datasets.atomic import replaced_directory
from graphnet_datasets.benchmark import Problem, Settings, Verdict
from graphnet_datasets.benchmark.problems import baselines_of, load_problems
from graphnet_datasets.benchmark.records.records import read_runs
from graphnet_datasets.benchmark.runner import run_records
from graphnet_datasets.errors import GraphNetError
from graphnet_datasets.schema.tables import SOLUTIONS
from graphnet_datasets.storage.layout import write_readme
from graphnet_datasets.storage.shards import write_shards
from graphnet_datasets.storage.table import read_table, to_arrow
from graphnet_datasets.terminal import counted

from .capturing import EMBEDDED

COMPILERS: Mapping[str, Sequence[str]] = {
    "torch": ("eager", "inductor", "tc"),
    "paddle": ("paddle-eager", "paddle-to-static"),
}
"""Compilers that are judged for the problems of each framework."""

AUTHOR = "graphnet-datasets"
LICENSE = "Apache-2.0"

SETTINGS = Settings(has_profile=False, phase_timeouts_s={"compile": 300.0})
"""Verdicts need no profile of kernels, which takes longer than the timed calls."""


def ordered(problems: Sequence[Problem]) -> list[Problem]:
    """Return problems by split, test problems first, ordered by a hash within each split."""

    def place(problem: Problem) -> tuple[int, str]:
        split = split_of(problem.row["split_group"])
        digest = hashlib.sha256(problem.row["form"].encode()).hexdigest()
        return -SPLITS.index(split), digest

    return sorted(problems, key=place)


def measure(
    problems: Sequence[Problem],
    build: Path,
    seconds: float | None = None,
    compilers_of: Mapping[str, Sequence[str]] = COMPILERS,
) -> None:
    """Run all workloads under the compilers of their framework, and store the records in `build`.

    Runs end with the first record after `seconds`. The same call continues with the workloads that
    have no record.
    """
    start_s = time.monotonic()
    for framework, compilers in compilers_of.items():
        parts = [part for problem in _of(framework, problems) for part in problem.parts]
        left_s = None if seconds is None else seconds - (time.monotonic() - start_s)
        if parts and (left_s is None or left_s > 0):
            run_records(
                parts, compilers, "cpu", build / framework, settings=SETTINGS, seconds=left_s
            )


def verdicts(
    problems: Sequence[Problem],
    build: Path,
    compilers_of: Mapping[str, Sequence[str]] = COMPILERS,
) -> Iterator[list[Verdict]]:
    """Yield the verdicts on the compilers for each problem whose workloads all have records."""
    for framework, compilers in compilers_of.items():
        if not (build / framework).is_dir():
            continue
        records: dict[str, list[Mapping[str, Any]]] = collections.defaultdict(list)
        for record in read_runs(build / framework).to_pylist():
            records[record["sample_id"]].append(record)
        for problem in _of(framework, problems):
            names = [part["id"] for part in problem.parts]
            if all({row["compiler"] for row in records[name]} >= {*compilers} for name in names):
                rows = [row for name in names for row in records[name]]
                yield baselines_of(problem, compilers, rows, "cpu", SETTINGS)


def ship(rows: Sequence[Mapping[str, Any]], dataset: Path) -> list[dict[str, Any]]:
    """Replace the baselines of a dataset, and return all rows of its table of solutions.

    Earlier rows are kept as long as their problem exists with the same form and workloads.
    """
    earlier = [
        row
        for path in sorted((dataset / SOLUTIONS.name).glob("*.parquet"))
        for row in read_table(path).to_pylist()
    ]
    current = {
        (problem.id, problem.row["form"], frozenset(part["id"] for part in problem.parts))
        for problem in load_problems(source=dataset)
    }
    merged = {row["solution_id"]: row for row in [*earlier, *rows]}
    solutions = sorted(
        (row for row in merged.values() if _judged_problem(row) in current),
        key=lambda row: (row["problem_id"], row["source"], row["solution_id"]),
    )
    with replaced_directory(dataset / SOLUTIONS.name) as place:
        write_shards([to_arrow(solutions, SOLUTIONS)], place, "train", table=SOLUTIONS)
    write_readme(dataset)
    return solutions


def add_baselines(parser: argparse.ArgumentParser) -> None:
    """Declare the options of `python -m builder baselines`."""
    parser.set_defaults(run=_baselines)
    parser.add_argument("--out", type=Path, default=EMBEDDED, help="dataset of the problems")
    parser.add_argument("--build", type=Path, default=Path("build/baselines"), help="records")
    parser.add_argument("--seconds", type=float, help="stop after this time; default: run all")
    parser.add_argument(
        "--no-run", action="store_true", help="only write the rows that follow from the records"
    )


def _baselines(options: argparse.Namespace) -> int:
    problems = ordered(load_problems(source=options.out))
    if not options.no_run:
        measure(problems, options.build, options.seconds)
    finished = list(verdicts(problems, options.build))
    if not finished:
        raise GraphNetError(
            f"`{options.build}` has no problem with records of all workloads. Run "
            "`python -m builder baselines` for longer; it continues where it stopped."
        )
    rows = [
        verdict.to_row(author=AUTHOR, license=LICENSE)
        for of_problem in finished
        for verdict in of_problem
    ]
    solutions = ship(rows, options.out)
    print(
        f"{counted(len(finished), 'problem')} of {len(problems):,} with baselines; "
        f"{counted(len(solutions), 'row')} in `{options.out / SOLUTIONS.name}`"
    )
    return 0


def _of(framework: str, problems: Sequence[Problem]) -> list[Problem]:
    return [problem for problem in problems if problem.row["framework"] == framework]


def _judged_problem(row: Mapping[str, Any]) -> tuple[str, str, frozenset[str]]:
    parts = frozenset(verdict["part_id"] for verdict in row["verdicts"])
    return row["problem_id"], row["form"], parts
