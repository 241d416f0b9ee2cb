"""Ansor's cost model early in a search: fitted to 40 records of a task, what do its picks find?

    python benchmarks/tuning/trees_tries.py POOL
    python benchmarks/tuning/trees_tries.py POOL --every 1 --seeds 5

Each setting is fitted to records drawn from one task, `others` also to as many of each other task;
it ranks the rest. A line has means over tasks and seeds: rank correlation, and shares of the pool's
best that the 40 had, that the first pick has, and that the 40 have together with the first 16 picks
or with 16 at random.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from replaying import with_choice
from scipy.stats import spearmanr

from graphnet_datasets.tuning import Measurement, Pool, PoolSpace
from graphnet_datasets.tuning.models.gbdt import GbdtModel

NUM_SHOWN, NUM_PICKED = 40, 16
SETTINGS: dict[str, dict[str, Any]] = {
    "as shipped": {},
    "depth 3": {"max_depth": 3},
    "weights alike": {"least_weight": 1.0},
    "others": {"others": True},
    "others, depth 3": {"others": True, "max_depth": 3},
    "others, weights alike": {"others": True, "least_weight": 1.0},
}


def main(argv: Sequence[str] | None = None) -> None:
    """Print a line for each setting."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("pool", type=Path, help="a dataset with tuning_tasks and tuning_records")
    parser.add_argument("--every", type=int, default=3, help="of the tasks, each so many-th")
    parser.add_argument("--seeds", type=int, default=2)
    given = parser.parse_args(argv)
    pool = Pool.load(given.pool)
    space = PoolSpace(pool)
    rows = [[row for row in pool.rows(task) if row.is_ok] for task in with_choice(pool, 100)]
    rows = rows[:: given.every]
    for name, setting in SETTINGS.items():
        started = time.process_time()
        found = [
            figures(space, rows, place, seed, **setting)
            for place in range(len(rows))
            for seed in range(given.seeds)
        ]
        means = np.nanmean(found, axis=0).round(3).tolist()
        names = (
            *("rank_correlation", "share_of_shown", "share_of_pick"),
            *("share_with_picks", "share_with_random"),
        )
        line = {"setting": name, "tasks": len(rows), "seeds": given.seeds}
        line |= dict(zip(names, means, strict=True))
        line["cpu_s"] = round(time.process_time() - started, 1)
        print(json.dumps(line), flush=True)


def figures(
    space: PoolSpace,
    rows: Sequence[Sequence[Measurement]],
    place: int,
    seed: int,
    *,
    others: bool = False,
    **options: Any,
) -> tuple[float, ...]:
    """Return the five figures of one task; records are drawn alike for all settings."""
    rng = np.random.default_rng((seed, place))
    own = [rows[place][index] for index in rng.permutation(len(rows[place]))]
    shown, rest = own[:NUM_SHOWN], own[NUM_SHOWN:]
    known = list(shown)
    if others:
        for task in (*rows[:place], *rows[place + 1 :]):
            known += [task[index] for index in rng.permutation(len(task))[:NUM_SHOWN]]
    model = GbdtModel(space, seed=seed, **options)
    model.fit(known)
    task = space.pool.tasks[rest[0].task_id]
    scores, _ = model.predict(task, [row.candidate for row in rest])
    times = np.array([row.latency_ms for row in rest])
    picked = times[np.argsort(-scores, kind="stable")]
    best_shown = min(row.latency_ms for row in shown)
    best = min(best_shown, times.min())
    return (
        float(spearmanr(scores, -times)[0]),
        best / best_shown,
        best / picked[0],
        best / min(best_shown, picked[:NUM_PICKED].min()),
        best / min(best_shown, times[:NUM_PICKED].min()),
    )


if __name__ == "__main__":
    main()
