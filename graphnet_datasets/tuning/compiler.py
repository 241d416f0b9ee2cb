"""Compilers with tuned schedules from records, templates or a predictor."""

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
"""Maximum number of records per task that are replayed, fastest first, until one succeeds."""


@dataclasses.dataclass(frozen=True)
class Chosen:
    """A schedule for a task: its trace, and its latency in milliseconds or None if unknown."""

    trace_json: str
    latency_ms: float | None = None


@dataclasses.dataclass
class Coverage:
    """The share of a graph that has schedules, in tasks and in flops of all calls."""

    num_tasks: int = 0
    num_tuned: int = 0
    flops: int = 0
    tuned_flops: int = 0
    num_broken: int = 0
    tuning_s: float = 0.0

    @property
    def share(self) -> float:
        """The tuned share of the flops, or of the tasks if none of them has flops."""
        if self.flops:
            return self.tuned_flops / self.flops
        return self.num_tuned / self.num_tasks if self.num_tasks else 0.0

    def text(self) -> str:
        """Return the coverage as a warning for a run's record.

        >>> Coverage(4, 3, 100, 90, 0, 12.5).text()
        'tuned: 3 of 4 tasks, 90% of their flops, others as in `tvm`; tuning took 12.5 s'
        """
        broken = f", {self.num_broken} traces did not replay" if self.num_broken else ""
        return (
            f"tuned: {self.num_tuned} of {self.num_tasks} tasks, {self.share:.0%} of their flops, "
            f"others as in `tvm`{broken}; tuning took {self.tuning_s:.1f} s"
        )


class ScheduledTvm(Tvm):
    """`tvm` with schedules for some tasks of the graph; subclasses choose the schedules.

    Tasks are extracted after the same passes as in tuning. The schedules are applied through an
    in-memory TVM database that contains only workloads of this graph.
    """

    extra = "tuning"
    coverage: Coverage
    """The coverage of the last compilation."""

    def lower(self, tvm: Any, graph: Any, target: Any) -> Any:
        """Return the graph with the chosen schedules applied.

        Raises:
            CompilerError: no task of the graph has a schedule.
            UnverifiedProgramError: the verifier rejects a trace.
        """
        del tvm
        extraction = extract_tasks(lowered(graph, target), target, TaskSource("", "", 0))
        chosen = self.schedules(extraction)
        self.coverage = coverage = Coverage(tuning_s=self.tuning_s())
        database = self._database(extraction, chosen, target, coverage)
        if not coverage.num_tuned:
            raise CompilerError(self.nothing(extraction, target_text(target)))
        self.warnings.append(coverage.text())
        with database:
            return lowered(graph, target)

    @abc.abstractmethod
    def schedules(self, extraction: Extraction) -> Mapping[str, Sequence[Chosen]]:
        """Return schedules by task id, best first."""

    def tuning_s(self) -> float:
        """Return the seconds spent on finding the schedules, including earlier tuning."""
        return 0.0

    @abc.abstractmethod
    def nothing(self, extraction: Extraction, target_json: str) -> str:
        """Return the error message for a graph without schedules."""

    def _database(
        self,
        extraction: Extraction,
        chosen: Mapping[str, Sequence[Chosen]],
        target: Any,
        coverage: Coverage,
    ) -> Any:
        ms = import_meta_schedule()
        database = ms.database.MemoryDatabase()
        for task in extraction.tasks:
            coverage.num_tasks += 1
            coverage.flops += task.flops * task.weight
            # Extracted locally: TVM has just written this workload.
            workload = load_workload(task.workload_json, trust_remote_code=True)
            for candidate in chosen.get(task.task_id, ())[:MAX_TRIED]:
                try:
                    trace = replay(
                        workload, candidate.trace_json, trust_remote_code=self.trust_remote_code
                    ).trace
                except UnverifiedProgramError:
                    raise
                except TuningError:
                    coverage.num_broken += 1
                    continue
                seconds = 1.0 if candidate.latency_ms is None else candidate.latency_ms / 1e3
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
    """Use the best correct record of each task; tasks without a record stay as in `tvm`.

    Records of other targets (another processor or number of threads), other passes or another
    version of TVM are ignored.
    """

    name = "tvm-tuned"
    option_table: ClassVar[Mapping[str, Option]] = {
        **Tvm.option_table,
        "records": Option("", "A dataset of records, as written by `graphnet tune`."),
    }

    def __init__(self, options: Mapping[str, Any] | None = None) -> None:
        super().__init__(options)
        self._records: TuningRecords | None = None
        self._tuning_s = 0.0

    def schedules(self, extraction: Extraction) -> Mapping[str, Sequence[Chosen]]:
        """Return the correct records of the graph's tasks.

        Raises:
            CompilerError: the option `records` is missing.
            DatasetNotFoundError: the dataset does not exist, or has no records.
        """
        if not self.options["records"]:
            raise CompilerError(
                f"`{self.name}` needs records. Create some with `graphnet tune … --out tuned`, and "
                "pass the option `records=tuned/`."
            )
        self._records = read_records(self.options["records"], with_features=False)
        mine = {_identity(task): task.task_id for task in extraction.tasks}
        same = {
            identity: mine[_identity(task)]
            for identity, task in self._records.tasks.items()
            if _identity(task) in mine
        }
        own = [
            dataclasses.replace(row, task_id=same[row.task_id])
            for row in self._records.measurements
            if row.task_id in same
        ]
        self._tuning_s = sum((row.trial_s or 0.0) + (row.tuner_s or 0.0) for row in own)
        return best_of(own)

    def tuning_s(self) -> float:
        """Return the seconds spent on measuring the records of the graph's tasks."""
        return self._tuning_s

    def nothing(self, extraction: Extraction, target_json: str) -> str:
        """Return a message that explains why no record applies."""
        records = self._records
        tasks = [] if records is None else list(records.tasks.values())
        targets = collections.Counter(task.target_json for task in tasks)
        if target_json in targets:
            ours = [task for task in tasks if task.target_json == target_json]
            versions = {task.tool_versions.get("tvm", "?") for task in ours}
            reason = (
                f"none of their {len(ours)} tasks for this target is among the graph's "
                f"{len(extraction.tasks)} tasks with a correct record (TVM of the records: "
                f"{', '.join(sorted(versions))}, installed: {tool_versions()['tvm']})"
            )
        else:
            others = ", ".join(f"{text} ({count} tasks)" for text, count in targets.most_common(3))
            there = others or "no tasks"
            reason = f"they are for other targets ({there}), but this target is {target_json}"
        skipped = f" {records.skipped_text}." if records is not None and records.skipped else ""
        return (
            f"No record in `{self.options['records']}` applies to the graph: {reason}. Tune the "
            f"graph with `graphnet tune`, with the number of threads of the run.{skipped}"
        )


class TvmOneShot(ScheduledTvm):
    """Draw schedules of each task and use the best one by a predictor, without measuring.

    The predictor must be trained on records of other tasks (see the tuner `oneshot`).
    """

    name = "tvm-oneshot"
    option_table: ClassVar[Mapping[str, Option]] = {
        **Tvm.option_table,
        "predictor": Option("", "Path of a trained predictor."),
        "candidates": Option(512, "Number of schedules drawn per task."),
        "min_flops": Option(1_000_000, "Tasks with fewer flops keep the schedule of `tvm`."),
        "seed": Option(0, "Seed of the draws."),
    }

    def schedules(self, extraction: Extraction) -> Mapping[str, Sequence[Chosen]]:
        """Return the predictor's choice for each task with at least `min_flops` flops.

        Raises:
            CompilerError: the option `predictor` is missing.
            TuningError: the predictor cannot be loaded, or was trained on other features.
        """
        from .registry import make_tuner
        from .space import TvmSpace

        if not self.options["predictor"]:
            raise CompilerError(
                f"`{self.name}` needs a trained predictor. Pass its path as the option `predictor`."
            )
        tuner = make_tuner(
            "oneshot",
            TvmSpace(trust_remote_code=True),  # its tasks were extracted locally
            seed=self.options["seed"],
            options={
                "predictor": self.options["predictor"],
                "pool_size": self.options["candidates"],
            },
        )
        chosen: dict[str, list[Chosen]] = {}
        for task in extraction.tasks:
            if task.flops >= self.options["min_flops"]:
                try:
                    picked = tuner.propose(task, 1)
                except TuningError as error:
                    self.warnings.append(f"untuned: {task.task_name}: {error}")
                    continue
                chosen[task.task_id] = [Chosen(candidate.trace_json) for candidate in picked]
        return chosen

    def nothing(self, extraction: Extraction, target_json: str) -> str:
        """Return a message that no task is large enough."""
        del target_json
        return (
            f"None of the graph's {len(extraction.tasks)} tasks has at least "
            f"{self.options['min_flops']:,} flops and a schedule. Lower `min_flops`."
        )


def _identity(task: Task) -> tuple[str, ...]:
    """Return the properties that identify a task in TVM, independent of its JSON."""
    return (task.structural_hash, task.hash_version, task.target_json, task.pipeline)


def best_of(measurements: Sequence[Measurement]) -> dict[str, list[Chosen]]:
    """Return the distinct correct records of each task, fastest first.

    >>> from graphnet_datasets.tuning import Origin, TrialStatus
    >>> rows = [
    ...     Measurement("a", "slow", Origin.RANDOM, TrialStatus.OK, (2.0,)),
    ...     Measurement("a", "fast", Origin.RANDOM, TrialStatus.OK, (1.0,)),
    ...     Measurement("a", "wrong", Origin.RANDOM, TrialStatus.WRONG),
    ... ]
    >>> [candidate.trace_json for candidate in best_of(rows)["a"]]
    ['fast', 'slow']
    """
    schedules: dict[str, dict[str, Chosen]] = {}
    for record in sorted(measurements, key=lambda row: row.latency_ms):
        if record.is_ok:
            chosen = Chosen(record.trace_json, record.latency_ms)
            schedules.setdefault(record.task_id, {}).setdefault(record.trace_json, chosen)
    return {task: list(of_task.values()) for task, of_task in schedules.items()}
