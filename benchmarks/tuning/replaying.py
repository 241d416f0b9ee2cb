"""What the experiments by replay share: the pool, one run, the lines that are printed."""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from graphnet_datasets.tuning import (
    Budget,
    Measurement,
    Pool,
    PoolSpace,
    ReplayMeasurer,
    Task,
    make_allocator,
    make_tuner,
    tune,
)


def parser(text: str) -> argparse.ArgumentParser:
    """Return a parser with the arguments of every experiment by replay."""
    made = argparse.ArgumentParser(description=text)
    made.add_argument("pool", help="a dataset with tuning_tasks and tuning_records")
    made.add_argument("--seeds", type=int, default=20)
    made.add_argument("--family", help="only tasks of this family")
    return made


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
) -> list[Measurement]:
    """Return the rows of one replayed run over some tasks of the pool."""
    result = tune(
        tasks,
        make_tuner(tuner, space, seed=seed, options=options),
        ReplayMeasurer(space.pool),
        make_allocator(allocator, tasks, seed=seed, options={"slot_trials": slot_trials}),
        Budget(trials),
        seed=seed,
    )
    return result.rows


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


def same_family_groups(tasks: Sequence[Task], size: int) -> list[list[Task]]:
    """Return groups of `size` tasks of one family, neighbours in flops; a rest is left out."""
    by_family: dict[str, list[Task]] = {}
    for task in sorted(tasks, key=lambda each: (each.flops, each.task_id)):
        by_family.setdefault(task.family, []).append(task)
    return [
        own[start : start + size]
        for own in by_family.values()
        for start in range(0, len(own) - size + 1, size)
    ]
