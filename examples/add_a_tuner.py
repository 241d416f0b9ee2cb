"""A tuner of one's own: neighbours of the best. `graphnet tune … --tuner add_a_tuner.py:Neighbours`

python examples/add_a_tuner.py            # on a made-up pool, against random
graphnet tune --replay POOL --tuner examples/add_a_tuner.py:Neighbours --tuner random
"""

from __future__ import annotations

import json

import numpy as np

from graphnet_datasets.tuning import (
    Budget,
    Candidate,
    Measurement,
    Origin,
    Pool,
    PoolSpace,
    ReplayMeasurer,
    Task,
    TrialStatus,
    make_allocator,
    make_tuner,
    task_key,
    tune,
)
from graphnet_datasets.tuning.curves import trials_to
from graphnet_datasets.tuning.tuners.base import MemoryTuner


class Neighbours(MemoryTuner):
    """Of the candidates that are left those whose decisions are nearest to the best so far."""

    def choose(self, task: Task, n: int) -> list[Candidate]:
        """Return `n` candidates: at random first, then nearest to the fastest."""
        drawn = self.fresh(task, 512)
        measured = [row for row in self.rows_of(task) if row.is_ok]
        if not measured:
            order = np.random.default_rng(self.next_seed()).permutation(len(drawn))
            return [drawn[index] for index in order[:n]]
        best = self.space.knobs(min(measured, key=lambda row: row.latency_ms).candidate)

        def distance(candidate: Candidate) -> float:
            knobs = self.space.knobs(candidate)
            return sum(
                abs(knobs.get(name, 0) - best.get(name, 0)) for name in sorted({*knobs, *best})
            )

        return sorted(drawn, key=distance)[:n]


def made_up_pool(num_tasks: int = 4) -> Pool:
    """Return tiles of two loops, fastest where both fit a cache; a real pool is a dataset."""
    tasks, rows = [], []
    for number in range(num_tasks):
        task = Task(task_key(str(number), "{}"), str(number), "{}", f"t{number}", "toy", (), ())
        tasks.append(task)
        for i in range(12):
            for j in range(12):
                decisions = [[0, [4096 >> i, 1 << i]], [1, [4096 >> j, 1 << j]]]
                trace = json.dumps([[["SamplePerfectTile", [], [2], []]] * 2, decisions])
                time_ms = 1 + (i - 6 - number / 2) ** 2 / 8 + (j - 4) ** 2 / 5
                times = (time_ms, time_ms * 1.01)
                rows.append(
                    Measurement(
                        task.task_id, trace, Origin.RANDOM, TrialStatus.OK, times, trial_s=1.0
                    )
                )
    return Pool(tasks, rows)


def main() -> None:
    """Replay both tuners on the pool and print after how many trials they reach 95 %."""
    pool = made_up_pool()
    tasks = list(pool.tasks.values())
    for name in ("random", f"{__file__}:Neighbours"):
        needed = []
        for seed in range(10):
            result = tune(
                tasks,
                make_tuner(name, PoolSpace(pool), seed=seed),
                ReplayMeasurer(pool),
                make_allocator("round-robin", tasks),
                Budget(trials=64 * len(tasks)),
            )
            needed += [trials_to(pool, task, result.rows, cap=64) for task in tasks]
        print(f"{name.rpartition(':')[2]:>10}: {np.mean(needed):.1f} trials to 95 %")


if __name__ == "__main__":
    main()
