"""DynaTune by replay: the area under a graph's total latency against seconds, by allocator.

    python benchmarks/tuning/dynatune.py POOL --seeds 20

Graphs are those that the tasks' sources name, weighted with how often each graph calls them. The
inner tuner is the same for all allocators; `clairvoyant` knows how each task's curve goes on and
gives each slot to the task with the largest gain per second over any number of slots. A line per
graph and allocator, and one with the median ratio to Ansor's gradient.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence

import numpy as np
from replaying import load, parser, replay, show

from graphnet_datasets.tuning import Measurement, Pool, PoolSpace, Task
from graphnet_datasets.tuning.curves import area, best_total, bootstrap, total_curve

ALLOCATORS = ("round-robin", "gradient", "dynatune")


def main(argv: Sequence[str] | None = None) -> None:
    """Replay all graphs, seeds and allocators, and print the figures."""
    arguments = parser(__doc__ or "")
    arguments.add_argument("--min-tasks", type=int, default=10)
    arguments.add_argument("--max-graphs", type=int, default=8)
    arguments.add_argument("--tuner", default="alt")
    arguments.add_argument("--slot", type=int, default=4)
    arguments.add_argument("--trials-per-task", type=int, default=48)
    given = arguments.parse_args(argv)
    pool, _ = load(given)
    graphs = graphs_of(pool, given.min_tasks)[: given.max_graphs]
    if not graphs:
        raise SystemExit(f"No graph has {given.min_tasks} tasks in the pool.")
    ratios = []
    for name, tasks in graphs:
        own = Pool(tasks, [row for task in tasks for row in pool.rows(task)])
        areas = {each: [] for each in (*ALLOCATORS, "clairvoyant")}
        for seed in range(given.seeds):
            rows = {
                each: replay(
                    PoolSpace(own),
                    tasks,
                    given.tuner,
                    seed=seed,
                    trials=given.trials_per_task * len(tasks),
                    slot_trials=given.slot,
                    allocator=each,
                )
                for each in ALLOCATORS
            }
            rows["clairvoyant"] = clairvoyant(own, tasks, given, seed)
            curves = {each: total_curve(own, found) for each, found in rows.items()}
            until = min(seconds[-1] for seconds, _ in curves.values())
            for each, (seconds, totals) in curves.items():
                areas[each].append(area(seconds, totals, until, best_total(own)))
        for each, found in areas.items():
            over = np.array(found) / np.array(areas["gradient"])
            ratios.append((each, over))
            centre, low, high = bootstrap(over, lambda rows: float(np.median(rows)))
            show(
                "dynatune",
                graph=name,
                tasks=len(tasks),
                allocator=each,
                area_over_gradient=centre,
                interval=[low, high],
                seeds=given.seeds,
            )
    for each in (*ALLOCATORS, "clairvoyant"):
        own_ratios = np.concatenate([over for name, over in ratios if name == each])
        show(
            "dynatune",
            allocator=each,
            graphs=len(graphs),
            median_area_over_gradient=float(np.median(own_ratios)),
        )


def graphs_of(pool: Pool, min_tasks: int) -> list[tuple[str, list[Task]]]:
    """Return the graphs with enough tasks, most tasks first, each task with its count there."""
    by_graph: dict[str, dict[str, Task]] = {}
    for task in pool.tasks.values():
        for source in task.sources:
            weighted = dataclasses.replace(task, sources=(source,))
            by_graph.setdefault(source.sample_id, {})[task.task_id] = weighted
    enough = [
        (name, list(tasks.values())) for name, tasks in by_graph.items() if len(tasks) >= min_tasks
    ]
    return sorted(enough, key=lambda pair: (-len(pair[1]), pair[0]))


def clairvoyant(pool: Pool, tasks: Sequence[Task], given, seed: int) -> list[Measurement]:
    """Return the rows of slots in the order of their gain per second, known beforehand."""
    slots: list[list[list[Measurement]]] = []
    gains: list[np.ndarray] = []
    lengths: list[np.ndarray] = []
    for task in tasks:
        alone = Pool([task], pool.rows(task))
        # as deep as any allocator may go: a run of it may spend all slots on one task
        rows = replay(
            PoolSpace(alone),
            [task],
            given.tuner,
            seed=seed,
            trials=min(given.trials_per_task * len(tasks), len(pool.rows(task))),
            slot_trials=given.slot,
        )
        own = [rows[start : start + given.slot] for start in range(0, len(rows), given.slot)]
        seconds, totals = total_curve(alone, rows)
        ends = np.minimum(np.arange(1, len(own) + 1) * given.slot, len(rows))
        slots.append(own)
        gains.append(np.append(totals[0], totals[ends]))
        lengths.append(np.append(0.0, seconds[ends]))
    used = [0] * len(tasks)
    ordered: list[Measurement] = []
    while len(ordered) < given.trials_per_task * len(tasks):
        rates = [_best_rate(*each) for each in zip(gains, lengths, used, strict=True)]
        index = int(np.argmax(rates))
        if rates[index] == -math.inf:
            break
        ordered += slots[index][used[index]]
        used[index] += 1
    return ordered


def _best_rate(totals: np.ndarray, seconds: np.ndarray, used: int) -> float:
    ahead = totals[used] - totals[used + 1 :]
    if not len(ahead):
        return -math.inf
    return float(np.max(ahead / np.maximum(seconds[used + 1 :] - seconds[used], 1e-9)))


if __name__ == "__main__":
    main()
