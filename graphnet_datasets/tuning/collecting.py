"""Resumable extraction of the distinct operators of graphs as tasks."""

from __future__ import annotations

import collections
import contextlib
import dataclasses
import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from ..decoding import read_json_lines
from ..errors import CompilerUnavailableError
from ..isolation import Limits, LocalPool, Work, num_processors
from ..storage.filters import Filters
from ..storage.mapping import Count, Result, ResumableMap, ignore, row_item, row_name
from ..storage.parts import PartReader
from ..storage.selection import require
from ..storage.staging import Staging
from ..terminal import counted
from .records import fill_tuning, read_tasks
from .task import Task, TaskSource

GIB = 2**30
PHASES = ("load", "export", "lower")
TASK_LIMITS = Limits(
    phase_timeouts_s={"load": 120.0, "export": 300.0, "lower": 300.0}, memory_bytes=6 * GIB
)
REPORT_NAME = "tasks-report.jsonl"


@dataclasses.dataclass(frozen=True)
class GraphTasks:
    """The outcome of one graph: its number of tasks, or the reason why it has no task.

    `skipped` counts the functions that are not tasks, by reason.
    """

    id: str
    num_tasks: int = 0
    skipped: Mapping[str, int] = dataclasses.field(default_factory=dict)
    reason: str = ""
    message: str = ""


@dataclasses.dataclass(frozen=True)
class TaskReport:
    """The result of an extraction: the dataset, None without tasks, and each graph's outcome."""

    out: Path | None
    report_path: Path
    tasks: tuple[Task, ...]
    outcomes: tuple[GraphTasks, ...]
    num_resumed: int = 0

    @property
    def refused(self) -> list[GraphTasks]:
        """The graphs without a task."""
        return [outcome for outcome in self.outcomes if not outcome.num_tasks]

    def summary(self) -> str:
        """Return a summary in a few lines for a terminal."""
        calls = sum(outcome.num_tasks for outcome in self.outcomes)
        where = f"{counted(len(self.tasks), 'task')} written to {self.out}"
        lines = [
            f"{where if self.out else 'Nothing written'}; {counted(calls, 'function')} of "
            f"{counted(len(self.outcomes), 'graph')}"
        ]
        families = collections.Counter(task.family for task in self.tasks)
        lines += [f"  {family}: {count}" for family, count in families.most_common()]
        reasons = collections.Counter(outcome.reason for outcome in self.refused)
        lines += [
            f"  {counted(count, 'graph')} without tasks: {reason}"
            for reason, count in reasons.most_common()
        ]
        skipped: collections.Counter[str] = collections.Counter()
        for outcome in self.outcomes:
            skipped.update(outcome.skipped)
        lines += [
            f"  {counted(count, 'function')} skipped: {reason}"
            for reason, count in skipped.most_common()
        ]
        return "\n".join([*lines, f"Report: {self.report_path}"])


def collect_tasks(
    samples: Any,
    out: str | os.PathLike[str],
    *,
    mcpu: str = "native",
    threads: int = 1,
    dataset: str | os.PathLike[str] = "graphnet",
    filters: Filters | None = None,
    jobs: int | None = None,
    limits: Limits = TASK_LIMITS,
    on_progress: Count = ignore,
) -> TaskReport:
    """Extract the operators of samples as tasks for one CPU target, and write them as a dataset.

    Samples are selected as in `select_rows`. Each sample is exported and lowered in a separate
    process at the sizes of its example inputs. Equal operators of several graphs become one task
    with all graphs as sources. `threads` is part of the target. `out` contains the config
    `tuning_tasks` and `tasks-report.jsonl`. Progress is stored in a hidden directory beside `out`;
    after an interruption, repeat the call to resume there.

    Raises:
        CompilerUnavailableError: TVM is not installed.
        DatasetNotFoundError: no sample or dataset matches, or no torch sample remains.
        DatasetExistsError: `out` already exists, or another call is writing it.
        RunError: the worker processes cannot be started.
    """
    check_tvm()
    staging = Staging(Path(out), "tasks")
    if staging.is_published:
        return _read_finished(staging)
    staging.check_free()
    chosen = require(samples, filters, dataset=dataset, framework="torch")
    work = Work("graphnet_datasets.tuning.extract_worker", PHASES, limits)
    mapping = ResumableMap(staging, {"mcpu": mcpu, "threads": threads}, limits)
    pool = LocalPool(work, min(jobs or num_processors(), len(chosen)))
    with staging.hold(), contextlib.closing(pool):
        results = mapping.run(map(row_item, chosen.stream()), pool)
        names = [row_name(*name) for name in chosen.names]
        ordered = mapping.collect(results, names, on_progress)
        return _finish(staging, ordered, mapping.num_resumed)


def check_tvm() -> None:
    """Raise an error if TVM is not installed, without importing it.

    Raises:
        CompilerUnavailableError: TVM is not installed.
    """
    import importlib.util

    if importlib.util.find_spec("tvm") is None:
        raise CompilerUnavailableError(
            "Tuning needs TVM. Install it with `pip install 'graphnet-datasets[tuning]'`."
        )


def merge_tasks(tasks: Iterable[Task]) -> list[Task]:
    """Merge equal tasks and their sources; sort by the total flops of all calls, descending.

    Two tasks are equal if their ids are, or if their targets and TVM's structural hashes are.

    >>> task = Task("a", "{}", "{}", "matmul", "matmul", (), (), sources=(TaskSource("x", "1", 2),))
    >>> same = dataclasses.replace(task, sources=(TaskSource("y", "2", 3),))
    >>> [merged.weight for merged in merge_tasks([task, same])]
    [5]
    """
    merged: dict[str, Task] = {}
    same: dict[tuple[str, str, str], str] = {}
    for task in tasks:
        key = (task.structural_hash or task.task_id, task.hash_version, task.target_json)
        identity = same.setdefault(key, task.task_id)
        first = merged.get(identity)
        if first is None:
            merged[identity] = task
            continue
        counts: dict[tuple[str, str], int] = collections.Counter()
        for source in (*first.sources, *task.sources):
            counts[source.sample_id, source.graph_hash] += source.count
        sources = tuple(TaskSource(*place, count) for place, count in counts.items())
        merged[identity] = dataclasses.replace(first, sources=sources)
    return sorted(merged.values(), key=lambda task: (-task.flops * task.weight, task.task_id))


def _read_finished(staging: Staging) -> TaskReport:
    """Return the report of a call that was interrupted after publishing."""
    path = staging.target / REPORT_NAME
    outcomes = tuple(GraphTasks(**fields) for fields in read_json_lines(path))
    tasks = tuple(merge_tasks(read_tasks(staging.target).tasks.values()))
    staging.discard()
    return TaskReport(staging.target, path, tasks, outcomes, num_resumed=len(outcomes))


def _finish(staging: Staging, results: Sequence[Result], num_resumed: int) -> TaskReport:
    """Write the dataset and the report."""
    outcomes = tuple(
        GraphTasks(
            result.sample_id, result.num_rows, result.notes.get("skipped", {}), *result.refusal
        )
        for result in results
    )
    reader = PartReader()
    rows = (row for result in results for row in reader.rows(result))
    tasks = tuple(merge_tasks(Task.from_row(row.to_pylist()[0]) for row in rows))

    def write(staged: Path) -> None:
        fill_tuning(staged, tasks, ())

    out, path = staging.publish_with_report(REPORT_NAME, outcomes, write if tasks else None)
    return TaskReport(out, path, tasks, outcomes, num_resumed)
