"""Complete tuning runs, from sample names to a dataset of measurements."""

from __future__ import annotations

import collections
import dataclasses
import json
import math
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from ..atomic import write_text
from ..decoding import read_json
from ..errors import TuningError, UnverifiedProgramError
from ..isolation import Limits
from ..schema import CONFIGS
from ..storage.filters import Filters
from ..storage.mapping import Count, ignore
from ..storage.staging import Staging
from ..terminal import counted
from .allocators.base import DEFAULT_SLOT_TRIALS
from .collecting import collect_tasks
from .isolated_space import IsolatedSpace
from .journal import Journal
from .languages import language_of
from .loop import Budget, Progress, TuningResult, tune
from .measure import MEASURE_LIMITS, LiveMeasurer, TimingPlan
from .measurement import Measurement
from .records import fill_tuning, read_records, read_tasks
from .registry import check_names, make_allocator, make_tuner
from .tables import TUNING_TASKS
from .target import foreign, target_of
from .task import Task

REPORT_NAME = "tune-report.json"
SECONDS_PER_TRIAL = 1.5
"""Assumed seconds per trial for the estimate in the plan."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class TaskChoice:
    """A filter of tasks by family and flops; empty and None values keep all tasks.

    `max_tasks` is shared out over the families, so that families of cheap tasks remain. Within a
    family the tasks with the most flops over all calls come first.
    """

    family: tuple[str, ...] = ()
    min_flops: int = 0
    max_flops: int | None = None
    max_tasks: int | None = None

    def choose(self, tasks: Iterable[Task]) -> list[Task]:
        """Return the selected tasks, one of each family in turn, by total flops.

        >>> def task(name, family, flops):
        ...     return Task(name, "{}", "{}", name, family, (), (), flops=flops)
        >>> tasks = [task("a", "matmul", 9), task("b", "matmul", 8), task("c", "norm", 1)]
        >>> [task.task_id for task in TaskChoice(max_tasks=2).choose(tasks)]
        ['a', 'c']
        """
        groups: dict[str, list[Task]] = collections.defaultdict(list)
        for task in sorted(tasks, key=lambda item: (-item.flops * item.weight, item.task_id)):
            is_family = not self.family or task.family in self.family
            most = math.inf if self.max_flops is None else self.max_flops
            if is_family and self.min_flops <= task.flops <= most:
                groups[task.family].append(task)
        chosen = []
        for turn in range(max(map(len, groups.values()), default=0)):
            chosen += [group[turn] for group in groups.values() if turn < len(group)]
        return chosen[: self.max_tasks]


@dataclasses.dataclass(frozen=True)
class RunPlan:
    """The plan of a run, computed before its first trial."""

    tasks: tuple[Task, ...]
    trials: int
    seconds: float
    slot_trials: int
    num_resumed: int
    skipped: Mapping[str, int]

    def text(self) -> str:
        """Return the plan in a few lines for a terminal."""
        families = collections.Counter(task.family for task in self.tasks)
        named = ", ".join(f"{count} {family}" for family, count in families.most_common())
        expected = min(self.seconds, (self.trials - self.num_resumed) * SECONDS_PER_TRIAL)
        lines = [
            f"{counted(len(self.tasks), 'task')}: {named}",
            f"{self.trials} trials in slots of {self.slot_trials}, "
            + ("no time limit" if math.isinf(self.seconds) else f"at most {self.seconds:.0f} s")
            + f"; about {expected / 60:.0f} min at {SECONDS_PER_TRIAL:g} s per trial",
        ]
        if self.num_resumed:
            lines.append(
                f"{counted(self.num_resumed, 'trial was', 'trials were')} measured earlier"
            )
        lines += [
            f"{counted(count, 'task')} skipped: {reason}" for reason, count in self.skipped.items()
        ]
        return "\n".join(lines)


@dataclasses.dataclass(frozen=True)
class TuningRun:
    """The output of a run: the dataset of its tasks and records, and its result."""

    out: Path
    plan: RunPlan
    result: TuningResult

    def summary(self) -> str:
        """Return a summary in a few lines for a terminal."""
        rows = self.result.rows
        statuses = collections.Counter(str(row.status) for row in rows)
        counts = ", ".join(f"{count} {status}" for status, count in statuses.most_common())
        lines = [
            f"{counted(len(rows), 'measurement')} of {counted(len(self.plan.tasks), 'task')} "
            f"written to {self.out} in {self.result.seconds:.0f} s: {counts}"
        ]
        names = {task.task_id: task.task_name for task in self.plan.tasks}
        lines += [f"  {names[task]}: {reason}" for task, reason in self.result.ended.items()]
        return "\n".join(lines)


def tune_samples(
    samples: Any,
    out: str | os.PathLike[str],
    *,
    tuner: str = "ansor",
    tuner_options: Mapping[str, Any] | None = None,
    allocator: str = "gradient",
    allocator_options: Mapping[str, Any] | None = None,
    trials: int = 64,
    budget_s: float = math.inf,
    seed: int = 0,
    choice: TaskChoice | None = None,
    plan: TimingPlan | None = None,
    limits: Limits = MEASURE_LIMITS,
    num_workers: int = 1,
    threads: int = 1,
    dataset: str | os.PathLike[str] = "graphnet",
    filters: Filters | None = None,
    trust_remote_code: bool = False,
    on_collect: Count = ignore,
    on_plan: Callable[[RunPlan], None] | None = None,
    on_trial: Callable[[Progress], None] | None = None,
) -> TuningRun:
    """Tune the operators of samples and write a dataset of tasks and records.

    Samples are selected as in `select_rows`; the path of a dataset with the config `tuning_tasks`
    selects its tasks instead. `trials` is the average per task; the allocator distributes them.
    Progress is stored in a hidden directory beside `out`. After an interruption, repeat the call to
    resume there, including the unfinished batch. Without `trust_remote_code`, tasks that the
    verifier rejects are skipped and counted by reason.

    Raises:
        CompilerUnavailableError: TVM is not installed, or the language of the tasks.
        DatasetNotFoundError: no sample or dataset matches.
        DatasetExistsError: `out` already exists, or another call is writing it.
        TuningError: no task is left, the tasks have several languages, the trials do not allow one
            slot per task, or a run with other settings was started at `out`.
        UnknownTunerError: the tuner or allocator does not exist.
    """
    check_names(tuner, allocator)
    plan, choice = plan or TimingPlan(), choice or TaskChoice()
    staging = Staging(Path(out), "tuning", pattern="*/*.json*")
    finished = _finished(staging)
    if finished is not None:
        return finished
    staging.check_free()
    with staging.hold():
        tasks = _tasks_of(samples, staging, threads, dataset, filters, on_collect)
        chosen = choice.choose(tasks)
        language = language_of(chosen)
        language.check()
        settings = {
            "tuner": tuner,
            "tuner_options": dict(tuner_options or {}),
            "allocator": allocator,
            "allocator_options": dict(allocator_options or {}),
            "trials": trials,
            "seed": seed,
            "timing": dataclasses.asdict(plan),
            "tasks": [task.task_id for task in chosen],
        }
        with IsolatedSpace(
            kind=space_of(tuner), language=language, trust_remote_code=trust_remote_code
        ) as space:
            journal = Journal(staging.directory / "run", settings)
            chosen, skipped = usable(chosen, space)
            if trials < DEFAULT_SLOT_TRIALS and allocator_options is None:
                allocator_options = {"slot_trials": trials}
            task_allocator = make_allocator(allocator, chosen, seed=seed, options=allocator_options)
            budget = Budget(trials * len(chosen), budget_s)
            run_plan = RunPlan(
                tuple(chosen),
                budget.trials,
                budget_s,
                task_allocator.slot_trials,
                len(journal.rows),
                skipped,
            )
            if on_plan is not None:
                on_plan(run_plan)
            with LiveMeasurer(
                chosen,
                plan=plan,
                limits=limits,
                num_workers=num_workers,
                mcpu=space.mcpu,
                trust_remote_code=trust_remote_code,
            ) as measurer:
                result = tune(
                    chosen,
                    make_tuner(tuner, space, seed=seed, options=tuner_options),
                    measurer,
                    task_allocator,
                    budget,
                    run_id=journal.run_id,
                    tuner_name=tuner,
                    tuner_options=json.dumps(tuner_options or {}, sort_keys=True),
                    seed=seed,
                    keep=journal.append,
                    save_state=journal.save_state,
                    on_trial=on_trial,
                    state=journal.state,
                    rows=journal.rows,
                )
        return _published(staging, run_plan, result, settings)


def usable(tasks: Sequence[Task], space: IsolatedSpace) -> tuple[list[Task], dict[str, int]]:
    """Return the tasks that this machine can tune, and counts of the others by reason.

    Raises:
        TuningError: no task is left.
    """
    usable_tasks: list[Task] = []
    skipped: collections.Counter[str] = collections.Counter()
    for task in tasks:
        try:
            problem = foreign(target_of(task), space.mcpu, space.language.kind)
            if problem:
                skipped[f"it {problem}"] += 1
                continue
            space.add(task)
            usable_tasks.append(task)
        except UnverifiedProgramError as error:
            skipped[str(error)] += 1
        except TuningError as error:
            skipped[str(error).partition(":")[0].replace(f"`{task.task_name}`", "…")] += 1
    if not usable_tasks:
        reasons = "; ".join(f"{count}: {reason}" for reason, count in skipped.items())
        raise TuningError(
            f"No task is left to tune ({reasons or 'the filter excludes all'}). Relax the filter, "
            "or extract tasks for this machine with `graphnet tasks`."
        )
    return usable_tasks, dict(skipped)


def space_of(tuner: str) -> str:
    """Return the kind of search space that a tuner uses: templates or sketches.

    >>> space_of("bolt"), space_of("ansor")
    ('templates', 'sketches')
    """
    return "templates" if tuner == "bolt" else "sketches"


def _tasks_of(
    samples: Any,
    staging: Staging,
    threads: int,
    dataset: str | os.PathLike[str],
    filters: Filters | None,
    on_collect: Count,
) -> list[Task]:
    names = [samples] if isinstance(samples, str | os.PathLike) else list(samples)
    if len(names) == 1 and _is_dataset_of_tasks(names[0]):
        return list(read_tasks(names[0]).tasks.values())
    place = staging.directory / "tasks"
    if not place.exists():
        report = collect_tasks(
            samples,
            place,
            threads=threads,
            dataset=dataset,
            filters=filters,
            jobs=1,
            on_progress=on_collect,
        )
        if report.out is None:
            raise TuningError(
                "No task could be extracted from the samples. Choose samples with supported "
                f"operators.\n{report.summary()}"
            )
    return list(read_tasks(place).tasks.values())


def _is_dataset_of_tasks(name: Any) -> bool:
    """Return whether a name is a directory of tasks; the name of a config selects its graphs."""
    if not isinstance(name, str | os.PathLike) or name in CONFIGS:
        return False
    return (Path(name) / TUNING_TASKS.name).is_dir()


def _finished(staging: Staging) -> TuningRun | None:
    """Return the run of an earlier call that published `out` but was stopped before its cleanup."""
    if not staging.is_published:
        return None
    tuning_records = read_records(staging.target)
    report = read_json(staging.target / REPORT_NAME)
    rows = list(tuning_records.measurements)
    best: dict[str, Measurement] = {}
    for row in sorted(rows, key=lambda record: record.latency_ms):
        if row.is_ok:
            best.setdefault(row.task_id, row)
    tasks, seconds = tuple(tuning_records.tasks.values()), float(report["seconds"])
    plan = RunPlan(tasks, len(rows), math.inf, 0, len(rows), report["skipped"])
    staging.discard()
    return TuningRun(staging.target, plan, TuningResult(rows, best, report["ended"], seconds))


def _published(
    staging: Staging, plan: RunPlan, result: TuningResult, settings: Mapping[str, Any]
) -> TuningRun:
    staged = staging.new_place()
    fill_tuning(staged, plan.tasks, result.rows)
    report = {
        "settings": {name: value for name, value in settings.items() if name != "tasks"},
        "trials": len(result.rows),
        "seconds": result.seconds,
        "ended": result.ended,
        "skipped": dict(plan.skipped),
        "best_ms": {task: row.latency_ms for task, row in result.best.items()},
    }
    write_text(staged / REPORT_NAME, json.dumps(report, indent=1) + "\n")
    staging.publish(staged)
    return TuningRun(staging.target, plan, result)
