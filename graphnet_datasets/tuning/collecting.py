"""`collect_tasks`: the operators of graphs as tasks, each once, resumable."""

from __future__ import annotations

import collections
import dataclasses
import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from ..atomic import write_text
from ..decoding import read_json_lines
from ..errors import CompilerUnavailableError, DatasetNotFoundError
from ..isolation import Limits, LocalPool, Work, num_processors
from ..schema.tables import TUNING_TASKS
from ..storage.collection import Collection, Count
from ..storage.filters import Filters
from ..storage.parts import PartReader
from ..storage.selection import select_rows
from ..storage.staging import Staging
from ..terminal import counted
from ..version import __version__
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
    """What became of one graph: how many tasks it has, or why there is none.

    `skipped` counts its functions that are no tasks, by reason.
    """

    id: str
    num_tasks: int = 0
    skipped: Mapping[str, int] = dataclasses.field(default_factory=dict)
    reason: str = ""
    message: str = ""


@dataclasses.dataclass(frozen=True)
class TaskReport:
    """What cutting gave: the dataset, None without a task, and what became of each graph."""

    out: Path | None
    report_path: Path
    tasks: tuple[Task, ...]
    outcomes: tuple[GraphTasks, ...]
    num_resumed: int = 0

    @property
    def refused(self) -> list[GraphTasks]:
        """The graphs without a task."""
        return [each for each in self.outcomes if not each.num_tasks]

    def summary(self) -> str:
        """Return the report in a few lines for a terminal."""
        calls = sum(each.num_tasks for each in self.outcomes)
        where = f"{counted(len(self.tasks), 'task')} written to {self.out}"
        lines = [
            f"{where if self.out else 'Nothing written'}; {counted(calls, 'function')} of "
            f"{counted(len(self.outcomes), 'graph')}"
        ]
        families = collections.Counter(each.family for each in self.tasks)
        lines += [f"  {family}: {count}" for family, count in families.most_common()]
        reasons = collections.Counter(each.reason for each in self.refused)
        lines += [
            f"  {counted(count, 'graph')} without: {reason}"
            for reason, count in reasons.most_common()
        ]
        skipped: collections.Counter[str] = collections.Counter()
        for each in self.outcomes:
            skipped.update(each.skipped)
        lines += [
            f"  {counted(count, 'function')} left out: {reason}"
            for reason, count in skipped.most_common()
        ]
        return "\n".join([*lines, f"Report: {self.report_path}"])


def collect_tasks(
    what: Any,
    out: str | os.PathLike[str],
    *,
    mcpu: str = "native",
    threads: int = 1,
    dataset: str | os.PathLike[str] = "graphnet",
    filters: Filters | None = None,
    jobs: int | None = None,
    limits: Limits = TASK_LIMITS,
    on_progress: Count | None = None,
) -> TaskReport:
    """Write a dataset directory with the operators of samples as tasks for a processor of TVM.

    `what`, `filters` and `dataset` choose samples as `select_rows` does. Each is exported, lowered
    and cut in a process of its own, at the sizes of its example inputs; equal operators of several
    graphs become one task with all of them as sources. `threads` belongs to the target. `out` holds
    the config `tuning_tasks` and `tasks-report.jsonl`. What is done is kept in a hidden directory
    beside `out`; after a stop of any kind the same call goes on from there.

    Raises:
        CompilerUnavailableError: TVM is not installed.
        DatasetNotFoundError: nothing has such a name, or no sample of torch is left.
        DatasetExistsError: `out` is there already, or another call is writing it.
        RunError: the worker processes cannot be started.
    """
    check_tvm()
    job = {"mcpu": mcpu, "threads": threads}
    collecting = _Collecting(Path(out), {**job, "key": f"{__version__} {json.dumps(job)}"})
    finished = collecting.find_finished()
    if finished is not None:
        return finished
    collecting.staging.check_free()
    rows = [
        row for row in select_rows(what, filters, dataset=dataset) if row["framework"] == "torch"
    ]
    if not rows:
        raise DatasetNotFoundError(
            "There is no such sample of torch: the filters leave none. `graphnet list` shows what "
            "there is."
        )
    work = Work("graphnet_datasets.tuning.extract_server", PHASES, limits)
    with collecting.staging.hold():
        pool = LocalPool(work, min(jobs or num_processors(), len(rows)))
        try:
            collecting.collection.fill(rows, pool, on_progress or (lambda _done, _total: None))
        finally:
            pool.close()
        return collecting.finish(rows)


def check_tvm() -> None:
    """Refuse to go on without TVM, which is not imported.

    Raises:
        CompilerUnavailableError: it is not installed.
    """
    import importlib.util

    if importlib.util.find_spec("tvm") is None:
        raise CompilerUnavailableError(
            "Tuning needs TVM. Install it with `pip install 'graphnet-datasets[tuning]'`."
        )


def merge_tasks(tasks: Iterable[Task]) -> list[Task]:
    """Return each task once, with the sources of all, by falling flops of all calls.

    Two tasks are the same where their ids are, or their targets and TVM's structural hashes.

    >>> one = Task("a", "{}", "{}", "matmul", "matmul", (), (), sources=(TaskSource("x", "1", 2),))
    >>> two = dataclasses.replace(one, sources=(TaskSource("y", "2", 3),))
    >>> [each.weight for each in merge_tasks([one, two])]
    [5]
    """
    merged: dict[str, Task] = {}
    same: dict[tuple[str, str, str], str] = {}
    for each in tasks:
        key = (each.structural_hash or each.task_id, each.hash_version, each.target_json)
        identity = same.setdefault(key, each.task_id)
        first = merged.get(identity)
        if first is None:
            merged[identity] = each
            continue
        counts: dict[tuple[str, str], int] = collections.Counter()
        for source in (*first.sources, *each.sources):
            counts[source.sample_id, source.graph_hash] += source.count
        sources = tuple(TaskSource(*place, count) for place, count in counts.items())
        merged[identity] = dataclasses.replace(first, sources=sources)
    return sorted(merged.values(), key=lambda each: (-each.flops * each.weight, each.task_id))


class _Collecting:
    """One collection: its parts on disk, and the steps from them to the dataset."""

    def __init__(self, target: Path, job: Mapping[str, Any]) -> None:
        self.staging = Staging(target, "tasks")
        nothing = {"num_tasks": 0, "skipped": {}}
        self.collection = Collection(self.staging, job, TUNING_TASKS.schema, nothing)

    def find_finished(self) -> TaskReport | None:
        """Return the report of a collection that was stopped when all but the tidying was done."""
        if not self.staging.is_published:
            return None
        target = self.staging.target
        path = target / REPORT_NAME
        outcomes = tuple(GraphTasks(**fields) for fields in read_json_lines(path))
        tasks = tuple(merge_tasks(read_tasks(target).tasks.values()))
        self.staging.discard()
        return TaskReport(target, path, tasks, outcomes, num_resumed=len(outcomes))

    def finish(self, rows: Sequence[Mapping[str, Any]]) -> TaskReport:
        """Write the dataset and the report from the parts."""
        notes, num_resumed = self.collection.parts_of(rows), self.collection.num_resumed
        outcomes = tuple(
            GraphTasks(note["id"], note["num_tasks"], note["skipped"], *(note["refused"] or ()))
            for note, _ in notes
        )
        tasks = tuple(merge_tasks(_tasks_of(notes)))
        target = self.staging.target
        report = "".join(f"{json.dumps(dataclasses.asdict(each))}\n" for each in outcomes)
        if not tasks:
            path = target.with_name(f"{target.name}.{REPORT_NAME}")
            write_text(path, report)
            return TaskReport(None, path, (), outcomes, num_resumed)
        staged = self.staging.new_place()
        fill_tuning(staged, tasks, ())
        write_text(staged / REPORT_NAME, report)
        self.staging.publish(staged)
        return TaskReport(
            target, target / REPORT_NAME, tasks, outcomes, self.collection.num_resumed
        )


def _tasks_of(notes: Iterable[tuple[Mapping[str, Any], Path]]) -> Iterator[Task]:
    reader = PartReader()
    for note, path in notes:
        for index in range(note["num_tasks"]):
            (row,) = reader.row(path, index).to_pylist()
            yield Task.from_row(row)
