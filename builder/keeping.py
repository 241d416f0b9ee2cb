"""Outcomes of checks of captured graphs.

Outcomes are stored beside the row in the build directory and enter the dataset when it is written,
together with stored columns of the same graph in an earlier version of the dataset.
"""

from __future__ import annotations

import contextlib
import json
import queue
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path
from typing import Any, TypeVar

from graphnet_datasets.atomic import write_text
from graphnet_datasets.inputs import misfits
from graphnet_datasets.sample import Sample
from graphnet_datasets.schema.graphs import CALIBRATION_COLUMNS, VALIDATION_COLUMNS
from graphnet_datasets.schema.tables import CONFIGS, GRAPHS
from graphnet_datasets.storage.table import check_file, read_table
from graphnet_datasets.validation import CHECKS, RUNNING, CheckResult, Validation, Validator

from .capturing import Keys
from .catalog import Entry

ENDING = ".checks.json"
"""Suffix of the file with outcomes of checks, which maps ids of graphs to columns of their rows."""

KEPT = (*VALIDATION_COLUMNS, *CALIBRATION_COLUMNS)
"""Columns from runs of a graph, which remain valid as long as the graph has the same signature."""

Columns = Mapping[str, Any]
T = TypeVar("T")
U = TypeVar("U")


def path_of(row: Path) -> Path:
    """Return the file with the outcomes of checks of a row."""
    return row.with_suffix(ENDING)


def read_checks(row: Path) -> dict[str, Columns]:
    """Return the outcomes of the graphs in a row's file by id; empty if they were not checked."""
    path = path_of(row)
    return json.loads(path.read_text()) if path.is_file() else {}


def write_checks(row: Path, outcomes: Iterable[Columns]) -> None:
    """Store the outcomes of the graphs in a row's file beside it; each has an `id`."""
    columns = {
        outcome["id"]: {name: outcome[name] for name in VALIDATION_COLUMNS} for outcome in outcomes
    }
    write_text(path_of(row), json.dumps(columns))


def kept_columns(directory: Path) -> dict[str, Columns]:
    """Return the columns of a dataset's graphs that were measured by runs, by signature."""
    checks: dict[str, Columns] = {}
    names = [name for name, config in CONFIGS.items() if config.table is GRAPHS]
    for path in (file for name in names for file in sorted((directory / name).glob("*.parquet"))):
        present = [name for name in KEPT if name in check_file(path).names]
        for row in read_table(path, columns=["signature_hash", *present]).to_pylist():
            values = {name: row[name] for name in present if row[name] is not None}
            if values:
                checks[row["signature_hash"]] = values
    return checks


def with_kept(row: Mapping[str, Any], *checks: Columns) -> dict[str, Any]:
    """Return a row with null columns filled from stored columns.

    Outcomes of checks and the reasons of exclusion are always taken from the same validation.

    >>> with_kept({"id": "a", "calibration": None}, {"calibration": "unneeded"}, {"calibration": 1})
    {'id': 'a', 'calibration': 'unneeded'}
    >>> earlier = {"validation": ["failed"], "why_excluded": "It fails."}
    >>> with_kept({"id": "a"}, {"validation": ["passed"], "why_excluded": None}, earlier)
    {'id': 'a', 'validation': ['passed'], 'why_excluded': None}
    """
    result = dict(row)
    for columns in checks:
        row_columns = () if result.get("validation") is None else VALIDATION_COLUMNS
        result |= {
            name: value
            for name, value in columns.items()
            if result.get(name) is None and name not in row_columns
        }
    return result


def waiting(entries: Iterable[Entry], build: Path, keys: Keys) -> Iterator[tuple[Entry, Path]]:
    """Yield captured entries with unchecked graphs, with their files."""
    for entry in entries:
        path = keys.path(entry, build)
        if path.is_file() and not path_of(path).is_file():
            yield entry, path


def check(
    entries: Sequence[tuple[Entry, Path]], max_flops: float, memory_limit: float, jobs: int = 1
) -> Iterator[tuple[Entry, list[Validation]]]:
    """Check the graphs of entries, store each outcome beside its row, and yield it.

    Graphs with more than `max_flops` operations or with unknown sizes are not run; checks that need
    a run are skipped with this reason. `memory_limit` is in gigabytes, for each of `jobs` graphs at
    a time.
    """

    def one(pair: tuple[Entry, Path], validator: Validator) -> tuple[Entry, list[Validation]]:
        entry, path = pair
        outcomes = [checked(row, validator, max_flops) for row in read_table(path).to_pylist()]
        write_checks(
            path, ({"id": outcome.sample_id, **outcome.to_columns()} for outcome in outcomes)
        )
        return entry, outcomes

    yield from with_validators(one, entries, memory_limit, jobs)


def with_validators(
    work: Callable[[T, Validator], U], items: Iterable[T], memory_limit: float, jobs: int
) -> Iterator[U]:
    """Yield the result of each item when it is available; each job has its own validator."""
    idle: queue.SimpleQueue[Validator] = queue.SimpleQueue()

    def one(item: T) -> U:
        validator = idle.get()
        try:
            return work(item, validator)
        finally:
            idle.put(validator)

    with contextlib.ExitStack() as stack:
        for _ in range(jobs):
            validator = Validator(memory_limit_bytes=round(memory_limit * 1e9), jobs=1)
            idle.put(stack.enter_context(validator))
        # Threads suffice, because the validators' processes do the work.
        pool = stack.enter_context(ThreadPoolExecutor(jobs))
        stack.callback(pool.shutdown, cancel_futures=True)
        for future in as_completed([pool.submit(one, item) for item in items]):
            yield future.result()


def checked(row: Mapping[str, Any], validator: Validator, max_flops: float) -> Validation:
    """Return the outcome of the checks of a row, without checks that run large graphs."""
    sample = Sample.from_row(row)
    flops = row["flops"]
    if flops is not None and flops <= max_flops:
        return validator.validate(sample)
    validation = validator.validate(sample, [check for check in CHECKS if check not in RUNNING])
    size = "an unknown number of" if flops is None else f"{flops / 1e9:,.4g} billion"
    reason = f"It takes {size} operations; at most {max_flops / 1e9:,.4g} billion were to be run."
    versions = validation.results[0].versions
    skipped = [CheckResult(name, "skipped", reason, versions) for name in RUNNING]
    if faults := faults_of(sample):
        skipped[0] = CheckResult("runnable", "failed", faults[0], versions)
    by_name = {result.check: result for result in (*validation.results, *skipped)}
    return Validation(validation.sample_id, tuple(by_name[name] for name in CHECKS))


def faults_of(sample: Sample) -> list[str]:
    """Return the problems of a graph that would stop a run and can be detected without one."""
    problems = misfits(sample)
    if sample.framework == "torch":
        from .mixed_dtypes import mixed_dtypes

        problems += mixed_dtypes(sample)
    return problems
