"""What the experiments by replay share: the pool, one run, the lines that are printed."""

from __future__ import annotations

import argparse
import hashlib
import json
import math
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from graphnet_datasets.atomic import append_json
from graphnet_datasets.decoding import read_journal
from graphnet_datasets.tuning import (
    Budget,
    Measurement,
    Pool,
    PoolSpace,
    ReplayMeasurer,
    Slot,
    Task,
    TaskAllocator,
    make_allocator,
    make_tuner,
    tune,
)


def parser(text: str) -> argparse.ArgumentParser:
    """Return a parser with the arguments of every experiment by replay."""
    made = argparse.ArgumentParser(description=text)
    made.add_argument("pool", type=Path, help="a dataset with tuning_tasks and tuning_records")
    made.add_argument("--seeds", type=int, default=20)
    made.add_argument("--family", help="only tasks of this family")
    made.add_argument("--kept", type=Path, help="a file of runs that were made, to go on from")
    return made


class Kept:
    """Runs that were made, by what they were made of: those of an earlier call are not made again.

    The file has a line for each, so that a stop loses one run. What is in a key has to be all that
    a run depends on; the pool is in every key.
    """

    def __init__(self, arguments: argparse.Namespace, pool: Pool, *settings: Any) -> None:
        self._path: Path | None = arguments.kept
        names = sorted(f"{key} {row}" for key in pool.tasks for row in pool.hashes(key))
        text = json.dumps([names, *settings])
        self.pool = hashlib.blake2b(text.encode(), digest_size=8).hexdigest()
        self._found: dict[str, Any] = dict(read_journal(self._path) if self._path else [])

    def get(self, key: Sequence[Any], make: Callable[[], Any]) -> Any:
        """Return the value of a run, JSON data, made where it is not known."""
        text = json.dumps([self.pool, *key])
        if text not in self._found:
            self._found[text] = json.loads(json.dumps(make()))
            if self._path is not None:
                self._path.parent.mkdir(parents=True, exist_ok=True)
                append_json(self._path, [text, self._found[text]])
        return self._found[text]


def load(arguments: argparse.Namespace) -> tuple[Pool, PoolSpace]:
    """Return the pool of the arguments, and the space of its candidates."""
    pool = Pool.load(arguments.pool)
    if arguments.family:
        tasks = [task for task in pool.tasks.values() if task.family == arguments.family]
        pool = Pool(tasks, [row for task in tasks for row in pool.rows(task)])
    return pool, PoolSpace(pool)


def replay(
    space: PoolSpace,
    tasks: Sequence[Task],
    tuner: str,
    *,
    seed: int,
    trials: int,
    slot_trials: int,
    allocator: str = "round-robin",
    options: Mapping[str, Any] | None = None,
    until: float | None = None,
) -> list[Measurement]:
    """Return the rows of one replayed run over some tasks of the pool.

    With `until` it ends when what each task ships has reached that share of its best: what comes
    after cannot change the number of trials that it took.
    """
    giving = make_allocator(allocator, tasks, seed=seed, options={"slot_trials": slot_trials})
    result = tune(
        tasks,
        make_tuner(tuner, space, seed=seed, options=options),
        ReplayMeasurer(space.pool),
        giving if until is None else Until(giving, space.pool, tasks, until),
        Budget(trials),
        seed=seed,
    )
    return result.rows


class Until(TaskAllocator):
    """Another allocator's slots until every task has reached a share of its best."""

    def __init__(
        self, inner: TaskAllocator, pool: Pool, tasks: Sequence[Task], share: float
    ) -> None:
        self.inner, self.pool, self.share = inner, pool, share
        self.slot_trials = inner.slot_trials
        self._shown = {task.task_id: math.inf for task in tasks}
        self._missing = set(self._shown)

    def reserve(self, trials_left: int) -> None:
        """Tell the other."""
        self.inner.reserve(trials_left)

    def next(self) -> Slot | None:
        """Return a slot while a task has not reached it."""
        return self.inner.next() if self._missing else None

    def observe(self, task: Task, measurements: Sequence[Measurement]) -> None:
        """Look at what would be shipped after each row."""
        self.inner.observe(task, measurements)
        for row in measurements:
            if row.latency_ms < self._shown[row.task_id]:
                self._shown[row.task_id] = row.latency_ms
                score = self.pool.score_ms(row.task_id, row.trace_hash)
                if score <= self.pool.best_score_ms(task) / self.share:
                    self._missing.discard(row.task_id)

    def drop(self, task: Task) -> None:
        """Give the task no more slots: it will not reach it."""
        self.inner.drop(task)
        self._missing.discard(task.task_id)

    def state(self) -> dict[str, Any]:
        """Return the state of the other: a replay is not resumed."""
        return dict(self.inner.state())

    def restore(self, state: Mapping[str, Any]) -> None:
        """Take the other's state."""
        self.inner.restore(state)


def show(experiment: str, **figures: Any) -> None:
    """Print one line of JSON."""
    plain = {key: _plain(each) for key, each in figures.items()}
    print(json.dumps({"experiment": experiment, **plain}), flush=True)


def _plain(value: Any) -> Any:
    if isinstance(value, float | np.floating):
        return round(float(value), 4)
    if isinstance(value, np.integer):
        return int(value)
    if isinstance(value, tuple | list):
        return [_plain(each) for each in value]
    return value


def with_choice(pool: Pool, least: int) -> list[Task]:
    """Return the tasks with enough candidates to choose from, most flops first.

    Raises:
        SystemExit: there is none.
    """
    tasks = [task for task in pool.tasks.values() if len(pool.rows(task)) >= least]
    if not tasks:
        raise SystemExit(f"No task of the pool has {least} candidates.")
    return sorted(tasks, key=lambda task: (-task.flops, task.task_id))


def same_code_groups(space: PoolSpace, tasks: Sequence[Task], size: int) -> list[list[Task]]:
    """Return groups of `size` tasks, neighbours in flops; a rest is left out.

    Those of a group are one code that differs in sizes: of one family, and with the same knobs.
    """
    by_code: dict[tuple[str, frozenset[str]], list[Task]] = {}
    for task in sorted(tasks, key=lambda each: (each.flops, each.task_id)):
        names = frozenset(name for each in space.enumerate(task) for name in space.knobs(each))
        by_code.setdefault((task.family, names), []).append(task)
    return [
        own[start : start + size]
        for own in by_code.values()
        for start in range(0, len(own) - size + 1, size)
    ]
