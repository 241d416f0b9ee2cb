"""DynaTune by replay: the area under the total latency of graphs against seconds, by allocator.

    python benchmarks/tuning/dynatune.py POOL --seeds 20

Graphs are those that the tasks' sources name, each task weighted with how often a graph calls it;
few graphs have many operators, so that several are tuned together until there are `--min-tasks`,
as Ansor's scheduler does with a set of networks; with `--partitions 2` the graphs are drawn into
sets twice. The inner tuner's proposals for each task and seed are made once and are the same for
all allocators; its seconds are not charged, those of the allocator are. `clairvoyant` knows how
each task's curve goes on and gives each slot to the task with the largest gain per second over any
number of slots. A line per set of graphs and allocator, and one per allocator with the median ratio
to Ansor's gradient.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence

import numpy as np
from replaying import Kept, load, parser, replay, show, with_choice

from graphnet_datasets.tuning import (
    Budget,
    Candidate,
    Measurement,
    Pool,
    PoolSpace,
    ReplayMeasurer,
    Task,
    make_allocator,
    tune,
)
from graphnet_datasets.tuning.curves import area, best_total, bootstrap, total_curve
from graphnet_datasets.tuning.tuners.base import MemoryTuner

ALLOCATORS = ("round-robin", "gradient", "dynatune")
Order = dict[str, list[str]]
"""By task: the hashes of its candidates in the order of proposal."""


def main(argv: Sequence[str] | None = None) -> None:
    """Replay all sets of graphs, seeds and allocators, and print the figures."""
    arguments = parser(__doc__ or "")
    arguments.add_argument("--min-tasks", type=int, default=10)
    arguments.add_argument("--min-candidates", type=int, default=100)
    arguments.add_argument("--max-sets", type=int, default=8)
    arguments.add_argument("--partitions", type=int, default=2, help="of the graphs into sets")
    arguments.add_argument("--tuner", default="alt", help="of each task")
    arguments.add_argument("--trees", type=int, default=16, help="of the tuner `alt`, greedy here")
    arguments.add_argument("--slot", type=int, default=4)
    arguments.add_argument("--trials-per-task", type=int, default=48)
    arguments.add_argument("--exploration", type=float, default=0.3, help="c of DynaTune")
    arguments.add_argument("--own-share", type=float, default=0.5, help="see DynaTune")
    given = arguments.parse_args(argv)
    pool, space = load(given)
    tasks = with_choice(pool, given.min_candidates)
    sets = [
        each
        for seed in range(given.partitions)
        for each in sets_of_graphs(tasks, given.min_tasks, seed)
    ][: given.max_sets]
    if not sets:
        raise SystemExit(f"No set of graphs has {given.min_tasks} tasks in the pool.")
    kept = Kept(given, pool, given.tuner, given.trees, given.slot, given.trials_per_task)
    ratios: dict[str, list[np.ndarray]] = {}
    for names, weighted in sets:
        own = Pool(weighted, [row for task in weighted for row in pool.rows(task)])
        found: dict[str, list[float]] = {each: [] for each in (*ALLOCATORS, "clairvoyant")}
        for seed in range(given.seeds):
            order = {
                task.task_id: kept.get(
                    ("order", task.task_id, seed),
                    lambda t=task, s=seed: proposals(space, pool.tasks[t.task_id], given, s),
                )
                for task in weighted
            }
            ids = [task.task_id for task in weighted]
            areas = kept.get(
                ("dynatune", ids, seed, given.exploration, given.own_share),
                lambda w=weighted, o=own, p=order, s=seed: run(o, w, p, given, s),
            )
            for each, value in areas.items():
                found[each].append(value)
        for each, values in found.items():
            over = np.array(values) / np.array(found["gradient"])
            ratios.setdefault(each, []).append(over)
            centre, low, high = bootstrap(over, lambda rows: float(np.median(rows)))
            show(
                "dynatune",
                graphs=names,
                tasks=len(weighted),
                allocator=each,
                area_over_gradient=centre,
                interval=[low, high],
                seeds=given.seeds,
            )
    for each, parts in ratios.items():
        rows = np.array(parts)
        centre, low, high = bootstrap(rows, lambda drawn: float(np.median(drawn)))
        show(
            "dynatune",
            allocator=each,
            sets=len(rows),
            seeds=given.seeds,
            median_area_over_gradient=centre,
            interval=[low, high],
        )


def sets_of_graphs(
    tasks: Sequence[Task], min_tasks: int, seed: int = 0
) -> list[tuple[list[str], list[Task]]]:
    """Return sets of graphs with enough tasks, each task with its counts in them.

    Every graph is in one set, which one `seed` decides; a rest that has too few is left out.
    """
    names = sorted({source.sample_id for task in tasks for source in task.sources})
    order = np.random.default_rng(seed).permutation(len(names))
    sets: list[tuple[list[str], list[Task]]] = []
    chosen: list[str] = []
    for index in order:
        chosen.append(names[index])
        own = [
            dataclasses.replace(task, sources=sources)
            for task in tasks
            if (sources := tuple(each for each in task.sources if each.sample_id in chosen))
        ]
        if len(own) >= min_tasks:
            sets.append((chosen, own))
            chosen = []
    return sets


def proposals(space: PoolSpace, task: Task, given, seed: int) -> list[str]:
    """Return all candidates of a task in the order in which the inner tuner measures them.

    It chooses twice as many as a task gets on the average; what is left then is dear to fit to and
    gains nothing any more, and follows at random.
    """
    options = {"trees": given.trees, "phases": "score"} if given.tuner == "alt" else {}
    hashes = [row.trace_hash for row in space.pool.rows(task)]
    count = min(2 * given.trials_per_task, len(hashes))
    slot = min(given.slot, count)
    rows = replay(
        space, [task], given.tuner, seed=seed, trials=count, slot_trials=slot, options=options
    )
    chosen = [row.trace_hash for row in rows]
    left = sorted(set(hashes) - set(chosen))
    return chosen + [left[index] for index in np.random.default_rng(seed).permutation(len(left))]


class Recorded(MemoryTuner):
    """Proposes in an order that is known."""

    def __init__(self, space: PoolSpace, order: Order) -> None:
        super().__init__(space)
        self._order = order
        self._found = {
            each.trace_hash: each
            for key in order
            for each in space.enumerate(space.pool.tasks[key])
        }
        self._used = dict.fromkeys(order, 0)

    def choose(self, task: Task, n: int) -> list[Candidate]:
        """Return the next ones."""
        start = self._used[task.task_id]
        own = self._order[task.task_id][start : start + n]
        self._used[task.task_id] += len(own)
        return [self._found[each] for each in own]


def run(pool: Pool, tasks: Sequence[Task], order: Order, given, seed: int) -> dict[str, float]:
    """Return the area of each allocator, above the best that is known, to the same second."""
    trials = given.trials_per_task * len(tasks)
    rows = {
        each: tune(
            tasks,
            Recorded(PoolSpace(pool), order),
            ReplayMeasurer(pool),
            make_allocator(each, tasks, seed=seed, options=_options(each, given)),
            Budget(trials),
            seed=seed,
        ).rows
        for each in ALLOCATORS
    }
    rows["clairvoyant"] = clairvoyant(pool, tasks, order, given.slot, trials)
    curves = {each: total_curve(pool, found) for each, found in rows.items()}
    until = min(seconds[-1] for seconds, _ in curves.values())
    floor = best_total(pool)
    return {each: area(*curve, until, floor) for each, curve in curves.items()}


def _options(allocator: str, given) -> dict[str, float]:
    belief = {"exploration": given.exploration, "own_share": given.own_share}
    return {"slot_trials": given.slot, **(belief if allocator == "dynatune" else {})}


def clairvoyant(
    pool: Pool, tasks: Sequence[Task], order: Order, slot: int, trials: int
) -> list[Measurement]:
    """Return the rows of slots in the order of their gain per second, known beforehand."""
    slots: list[list[list[Measurement]]] = []
    gains: list[np.ndarray] = []
    lengths: list[np.ndarray] = []
    for task in tasks:
        alone = Pool([task], pool.rows(task))
        known = {each.trace_hash: each for each in PoolSpace(alone).enumerate(task)}
        rows = list(ReplayMeasurer(alone).measure([known[each] for each in order[task.task_id]]))
        own = [rows[start : start + slot] for start in range(0, len(rows), slot)]
        seconds, totals = total_curve(alone, rows)
        ends = np.minimum(np.arange(1, len(own) + 1) * slot, len(rows))
        slots.append(own)
        gains.append(np.append(totals[0], totals[ends]))
        lengths.append(np.append(0.0, seconds[ends]))
    used = [0] * len(tasks)
    ordered: list[Measurement] = []
    while len(ordered) < trials:
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
