"""Figures of a part of the graphs before and after calibration, in a resumable journal."""

from __future__ import annotations

import collections
import contextlib
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from graphnet_datasets import Sample
from graphnet_datasets.atomic import append_json
from graphnet_datasets.decoding import read_journal
from graphnet_datasets.errors import GraphNetError
from graphnet_datasets.frameworks import FRAMEWORK_VARIABLE, calibrate, measure_signal
from graphnet_datasets.inputs.attention import LEAST_ENTROPY, MOST_ENTROPY
from graphnet_datasets.inputs.sensitivity import LEAST_SENSITIVITY
from graphnet_datasets.isolation import LocalPool, Reporter, Work
from graphnet_datasets.sample.vocabulary import TASKS
from graphnet_datasets.storage.calibrating import CALIBRATION_LIMITS as LIMITS
from graphnet_datasets.storage.calibrating.rows import MAX_INPUT_BYTES
from graphnet_datasets.storage.calibrating.tables import TableRows
from graphnet_datasets.storage.calibrating.worker import PHASES, prepare
from graphnet_datasets.storage.mapping import Item, ResumableMap, digest_of, map_items
from graphnet_datasets.storage.staging import Staging
from graphnet_datasets.storage.table import read_table

__all__ = ["PHASES", "compare", "prepare", "summary", "work"]

_SCALARS = ["id", "framework", "task", "flops", "input_bytes"]


def work(payload: Mapping[str, Any], reporter: Reporter, directory: Path) -> None:
    """Compare rows; called in worker processes."""
    del reporter  # every job starts in the only phase
    map_items(payload, directory, _compare_row)


def _compare_row(
    row: Mapping[str, Any], job: Mapping[str, Any]
) -> tuple[tuple[()], dict[str, Any]]:
    """Return the figures of a row and of its new calibration as notes, or the reason of a
    failure."""
    del job
    try:
        sample = Sample.from_row(row)
        before = measure_signal(sample, allow_unchecked_operators=True)
        fitted = calibrate(sample, allow_unchecked_operators=True)
        after = measure_signal(fitted, allow_unchecked_operators=True)
    except GraphNetError as error:
        return (), {"reason": str(error)}
    return (), {"before": before.columns(), "after": after.columns()}


def compare(
    dataset: Path,
    journal: Path,
    every: int,
    jobs: int,
    *,
    max_flops: float,
) -> Iterator[dict[str, Any]]:
    """Yield the figures of one graph in `every` before and after calibration.

    Graphs beyond the limits are not counted. The results are appended to `journal`, and graphs in
    it are not run again. The dataset is not changed.
    """
    journal.parent.mkdir(parents=True, exist_ok=True)
    lines = {line["id"]: line for line in read_journal(journal)}
    yield from lines.values()
    chosen: dict[str, dict[str, tuple[TableRows, int, str]]] = collections.defaultdict(dict)
    number = 0
    for path in (path for task in TASKS for path in sorted((dataset / task).glob("*.parquet"))):
        rows = TableRows(path)
        for place, row in enumerate(read_table(path, columns=_SCALARS).to_pylist()):
            if row["flops"] is None or row["flops"] > max_flops:
                continue
            if row["input_bytes"] > MAX_INPUT_BYTES:
                continue
            number += 1
            if number % every == 0 and row["id"] not in lines:
                chosen[row["framework"]][row["id"]] = rows, place, row["task"]
    for framework, places in chosen.items():
        pool = LocalPool(
            Work("builder.signals", PHASES, LIMITS, {FRAMEWORK_VARIABLE: framework}), jobs
        )
        mapping = ResumableMap(Staging(journal, "signals"), {}, LIMITS)
        with contextlib.closing(pool):
            for result in mapping.run(_items(places), pool):
                notes = {"reason": result.lost} if result.lost else dict(result.notes)
                task = places[result.name][2]
                line = {"id": result.name, "framework": framework, "task": task, **notes}
                append_json(journal, line)
                yield line


def _items(places: Mapping[str, tuple[TableRows, int, str]]) -> Iterator[Item]:
    for name, (rows, place, _) in places.items():
        row = rows[place]
        yield Item(name, digest_of(sorted(row.items())), row)


def summary(lines: Iterable[Mapping[str, Any]]) -> Iterator[str]:
    """Yield the shares of graphs within both intervals, for each task and for all.

    >>> figures = {"input_sensitivity": 0.4, "attention_entropy": None}
    >>> print(*summary([{"task": "cv", "before": figures, "after": figures}]), sep="\\n")
    cv: sensitivity 1 of 1 before, 1 of 1 after; attention 0 of 0 before, 0 of 0 after
    all: sensitivity 1 of 1 before, 1 of 1 after; attention 0 of 0 before, 0 of 0 after
    """
    by_task: dict[str, list[Mapping[str, Any]]] = collections.defaultdict(list)
    for line in lines:
        if "after" in line:
            by_task[line["task"]].append(line)
    by_task = dict(sorted(by_task.items()))
    for task, part in (
        *by_task.items(),
        ("all", [line for own in by_task.values() for line in own]),
    ):
        shares = [
            f"{name} "
            + ", ".join(f"{_share(part, stage, column, low, high)} {stage}" for stage in _STAGES)
            for name, column, low, high in _FIGURES
        ]
        yield f"{task}: {'; '.join(shares)}"


_STAGES = ("before", "after")
_FIGURES = (
    ("sensitivity", "input_sensitivity", LEAST_SENSITIVITY, 2.0),
    ("attention", "attention_entropy", LEAST_ENTROPY, MOST_ENTROPY),
)


def _share(
    lines: Iterable[Mapping[str, Any]], stage: str, column: str, low: float, high: float
) -> str:
    numbers = [line[stage][column] for line in lines if line[stage][column] is not None]
    return f"{sum(low <= number <= high for number in numbers)} of {len(numbers)}"
