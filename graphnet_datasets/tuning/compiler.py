"""Compilers that run tuned schedules: of records, of templates, or of a predictor's choice."""

from __future__ import annotations

import abc
import collections
import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from ..compilers.options import Option
from ..compilers.tvm import Tvm, lowered
from ..errors import CompilerError, TuningError, UnverifiedProgramError
from .extract import (
    Extraction,
    extract_tasks,
    load_workload,
    replay,
    target_text,
    tool_versions,
)
from .intrinsics import import_meta_schedule
from .measurement import Measurement
from .records import TuningRecords, read_records
from .task import Task, TaskSource

MAX_TRIED = 8
"""Records of a task that are tried, the fastest first, where traces do not replay."""


@dataclasses.dataclass(frozen=True)
class Chosen:
    """A schedule for a task of the graph: its trace, and milliseconds a call, None if unknown."""

    trace_json: str
    latency_ms: float | None = None


@dataclasses.dataclass
class Coverage:
    """How much of a graph has a schedule: tasks, and flops of all calls."""

    num_tasks: int = 0
    num_tuned: int = 0
    flops: int = 0
    tuned_flops: int = 0
    num_broken: int = 0
    tuning_s: float = 0.0

    @property
    def share(self) -> float:
        """The share of the flops; of the tasks where none of them has flops."""
        if self.flops:
            return self.tuned_flops / self.flops
        return self.num_tuned / self.num_tasks if self.num_tasks else 0.0

    def text(self) -> str:
        """Return it as the warning of a run's record.

        >>> Coverage(4, 3, 100, 90, 0, 12.5).text()
        'tuned: 3 of 4 tasks, 90% of their flops, the rest as `tvm` has it; tuning took 12.5 s'
        """
        broken = f", {self.num_broken} traces did not replay" if self.num_broken else ""
        return (
            f"tuned: {self.num_tuned} of {self.num_tasks} tasks, {self.share:.0%} of their flops, "
            f"the rest as `tvm` has it{broken}; tuning took {self.tuning_s:.1f} s"
        )


class ScheduledTvm(Tvm):
    """`tvm` with schedules for some of the graph's tasks; a subclass says which.

    The tasks are cut behind the same passes as tuning cuts them, then the schedules are applied by
    a database of TVM in memory that holds workloads of this graph only.
    """

    extra = "tuning"
    coverage: Coverage
    """Of the last compilation."""

    def lower(self, tvm: Any, graph: Any, target: Any) -> Any:
        """Return the graph with the chosen schedules applied.

        Raises:
            CompilerError: no task of the graph has a schedule.
            UnverifiedProgramError: a trace holds something that is not on the verifier's list.
        """
        del tvm
        found = extract_tasks(lowered(graph, target), target, TaskSource("", "", 0))
        chosen = self.schedules(found)
        self.coverage = coverage = Coverage(tuning_s=self.tuning_s())
        database = self._database(found, chosen, target, coverage)
        if not coverage.num_tuned:
            raise CompilerError(self.nothing(found, target_text(target)))
        self.warnings.append(coverage.text())
        with database:
            return lowered(graph, target)

    @abc.abstractmethod
    def schedules(self, found: Extraction) -> Mapping[str, Sequence[Chosen]]:
        """Return schedules by task, the best first."""

    def tuning_s(self) -> float:
        """Return the seconds that finding the schedules took, when and wherever that was."""
        return 0.0

    @abc.abstractmethod
    def nothing(self, found: Extraction, target_json: str) -> str:
        """Return the message of the error that no task has a schedule."""

    def _database(
        self,
        found: Extraction,
        chosen: Mapping[str, Sequence[Chosen]],
        target: Any,
        coverage: Coverage,
    ) -> Any:
        ms = import_meta_schedule()
        database = ms.database.MemoryDatabase()
        for task in found.tasks:
            coverage.num_tasks += 1
            coverage.flops += task.flops * task.weight
            # Cut from the graph here: TVM has made its text a moment ago.
            workload = load_workload(task.workload_json, trust_remote_code=True)
            for each in chosen.get(task.task_id, ())[:MAX_TRIED]:
                try:
                    trace = replay(
                        workload, each.trace_json, trust_remote_code=self.trust_remote_code
                    ).trace
                except UnverifiedProgramError:
                    raise
                except TuningError:
                    coverage.num_broken += 1
                    continue
                seconds = 1.0 if each.latency_ms is None else each.latency_ms / 1e3
                database.commit_tuning_record(
                    ms.database.TuningRecord(
                        trace,
                        database.commit_workload(workload),
                        [seconds],
                        target,
                        ms.arg_info.ArgInfo.from_entry_func(workload, remove_preproc=True),
                    )
                )
                coverage.num_tuned += 1
                coverage.tuned_flops += task.flops * task.weight
                break
        return database


class TvmTuned(ScheduledTvm):
    """Take the best correct record of each task; tasks without one stay as `tvm` has them.

    Records of other targets (another processor, another number of threads), of other passes or of
    another version of TVM do not count.
    """

    name = "tvm-tuned"
    option_table: ClassVar[Mapping[str, Option]] = {
        **Tvm.option_table,
        "records": Option("", "A dataset of records, as `graphnet tune` writes it."),
    }

    def __init__(self, options: Mapping[str, Any] | None = None) -> None:
        super().__init__(options)
        self._records: TuningRecords | None = None
        self._tuning_s = 0.0

    def schedules(self, found: Extraction) -> Mapping[str, Sequence[Chosen]]:
        """Return the correct records of the graph's tasks.

        Raises:
            CompilerError: no records were named.
            DatasetNotFoundError: there is no such dataset, or it has no records.
        """
        if not self.options["records"]:
            raise CompilerError(
                f"`{self.name}` needs records. Make some with `graphnet tune … --out tuned`, and "
                "name them with the option `records=tuned/`."
            )
        self._records = read_records(self.options["records"], with_features=False)
        mine = {_identity(task): task.task_id for task in found.tasks}
        same = {
            identity: mine[_identity(task)]
            for identity, task in self._records.tasks.items()
            if _identity(task) in mine
        }
        own = [
            dataclasses.replace(each, task_id=same[each.task_id])
            for each in self._records.measurements
            if each.task_id in same
        ]
        self._tuning_s = sum((each.trial_s or 0.0) + (each.tuner_s or 0.0) for each in own)
        return best_of(own)

    def tuning_s(self) -> float:
        """Return the seconds that the records of the graph's tasks took."""
        return self._tuning_s

    def nothing(self, found: Extraction, target_json: str) -> str:
        """Say what the records are for instead."""
        records = self._records
        tasks = [] if records is None else list(records.tasks.values())
        targets = collections.Counter(each.target_json for each in tasks)
        if target_json in targets:
            ours = [each for each in tasks if each.target_json == target_json]
            versions = {each.tool_versions.get("tvm", "?") for each in ours}
            why = (
                f"none of their {len(ours)} tasks for this target is one of the graph's "
                f"{len(found.tasks)}, or none of these has a correct record (TVM there: "
                f"{', '.join(sorted(versions))}, here: {tool_versions()['tvm']})"
            )
        else:
            others = ", ".join(f"{text} ({count} tasks)" for text, count in targets.most_common(3))
            there = others or "there are no tasks"
            why = f"they are for other targets: {there}; here it is {target_json}"
        skipped = f" {records.skipped_text}." if records is not None and records.skipped else ""
        return (
            f"No record in `{self.options['records']}` fits a task of the graph: {why}. Tune the "
            f"graph with `graphnet tune`, with as many threads as it runs with.{skipped}"
        )


class TvmOneShot(ScheduledTvm):
    """Draw schedules of each task and take the one that a predictor likes best; run none of them.

    The predictor was trained on records of other tasks (see the tuner `oneshot`).
    """

    name = "tvm-oneshot"
    option_table: ClassVar[Mapping[str, Option]] = {
        **Tvm.option_table,
        "predictor": Option("", "The file of a trained predictor."),
        "candidates": Option(512, "Schedules drawn of each task."),
        "min_flops": Option(1_000_000, "Tasks of fewer flops stay as `tvm` has them."),
        "seed": Option(0, "Seed of the draws."),
    }

    def schedules(self, found: Extraction) -> Mapping[str, Sequence[Chosen]]:
        """Return the predictor's choice for each task that is worth it.

        Raises:
            CompilerError: no predictor was named.
            TuningError: its file cannot be read, or it was trained on other features.
        """
        from .registry import make_tuner
        from .space import TvmSpace

        if not self.options["predictor"]:
            raise CompilerError(
                f"`{self.name}` needs a predictor that was trained on records. Name its file with "
                "the option `predictor`."
            )
        tuner = make_tuner(
            "oneshot",
            TvmSpace(trust_remote_code=True),  # its tasks were cut from the graph here
            seed=self.options["seed"],
            options={
                "predictor": self.options["predictor"],
                "pool_size": self.options["candidates"],
            },
        )
        chosen: dict[str, list[Chosen]] = {}
        for task in found.tasks:
            if task.flops >= self.options["min_flops"]:
                try:
                    picked = tuner.propose(task, 1)
                except TuningError as error:
                    self.warnings.append(f"untuned: {task.task_name}: {error}")
                    continue
                chosen[task.task_id] = [Chosen(each.trace_json) for each in picked]
        return chosen

    def nothing(self, found: Extraction, target_json: str) -> str:
        """Say that no task is large enough."""
        del target_json
        return (
            f"None of the graph's {len(found.tasks)} tasks has at least "
            f"{self.options['min_flops']:,} flops and a schedule to choose. Set `min_flops` lower."
        )


def _identity(task: Task) -> tuple[str, ...]:
    """Return what two tasks share that are the same to TVM, however their texts are written."""
    return (task.structural_hash, task.hash_version, task.target_json, task.pipeline)


def best_of(measurements: Sequence[Measurement]) -> dict[str, list[Chosen]]:
    """Return the correct records of each task, the fastest first, each trace once.

    >>> from graphnet_datasets.tuning import Origin, TrialStatus
    >>> rows = [
    ...     Measurement("a", "slow", Origin.RANDOM, TrialStatus.OK, (2.0,)),
    ...     Measurement("a", "fast", Origin.RANDOM, TrialStatus.OK, (1.0,)),
    ...     Measurement("a", "wrong", Origin.RANDOM, TrialStatus.WRONG),
    ... ]
    >>> [each.trace_json for each in best_of(rows)["a"]]
    ['fast', 'slow']
    """
    found: dict[str, dict[str, Chosen]] = {}
    for each in sorted(measurements, key=lambda row: row.latency_ms):
        if each.is_ok:
            chosen = Chosen(each.trace_json, each.latency_ms)
            found.setdefault(each.task_id, {}).setdefault(each.trace_json, chosen)
    return {task: list(of_task.values()) for task, of_task in found.items()}
