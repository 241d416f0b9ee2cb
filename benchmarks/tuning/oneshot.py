"""One-shot by replay: what the first picks reach on families that the predictor never saw.

    python benchmarks/tuning/oneshot.py POOL --seeds 5 --rows 100 1000 10000

For each number of training rows, held-out family and model a line with the mean over tasks of best
known over picked (of 1 and of 5 picks), by the repetitions that were not shown; `random` picks too.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from replaying import load, parser, show

from graphnet_datasets.tuning import CostModel, Measurement, Pool, PoolSpace, ReplayMeasurer, Task
from graphnet_datasets.tuning.curves import bootstrap
from graphnet_datasets.tuning.models.gbdt import GbdtModel
from graphnet_datasets.tuning.models.predictor import Predictor

PICKS = (1, 5)


def main(argv: Sequence[str] | None = None) -> None:
    """Train on all families but one, pick in it, and print the figures."""
    arguments = parser(__doc__ or "")
    arguments.add_argument("--rows", type=int, nargs="+", default=[100, 1000, 10_000])
    arguments.add_argument("--epochs", type=int, default=60)
    given = arguments.parse_args(argv)
    pool, space = load(given)
    families = sorted({task.family for task in pool.tasks.values()})
    if len(families) < 2:
        raise SystemExit("The pool has one family; none can be held out.")
    for count in given.rows:
        collected: dict[tuple[str, int], list[float]] = {}
        for family in families:
            held = [task for task in pool.tasks.values() if task.family == family]
            seen = [task for task in pool.tasks.values() if task.family != family]
            for seed in range(given.seeds):
                rows = shown_rows(pool, space, seen, count, seed)
                models: dict[str, CostModel] = {
                    "predictor": Predictor(space, seen, seed=seed, epochs=given.epochs),
                    "trees": GbdtModel(space, seed=seed),
                }
                for model in models.values():
                    model.fit(rows)
                for task in held:
                    for name in (*models, "random"):
                        order = ranked(space, models.get(name), task, seed)
                        for picks in PICKS:
                            reached = reach(pool, space, task, order[:picks])
                            collected.setdefault((name, picks), []).append(reached)
        for (name, picks), reached in collected.items():
            centre, low, high = bootstrap(np.array(reached))
            show(
                "oneshot",
                rows=count,
                families_held_out=len(families),
                model=name,
                picks=picks,
                of_best=centre,
                interval=[low, high],
            )


def shown_rows(
    pool: Pool, space: PoolSpace, tasks: Sequence[Task], count: int, seed: int
) -> list[Measurement]:
    """Return up to `count` rows with features, as a tuner is shown them, evenly over tasks."""
    each = -(-count // len(tasks))
    drawn = [one for task in tasks for one in space.sample(task, each, seed)][:count]
    return list(ReplayMeasurer(pool).measure(drawn))


def ranked(space: PoolSpace, model: CostModel | None, task: Task, seed: int) -> list[int]:
    """Return the candidates' indices, best predicted first; without a model at random."""
    everything = space.enumerate(task)
    if model is None:
        return [int(each) for each in np.random.default_rng(seed).permutation(len(everything))]
    scores, _ = model.predict(task, everything)
    return [int(each) for each in np.argsort(-scores, kind="stable")]


def reach(pool: Pool, space: PoolSpace, task: Task, picked: Sequence[int]) -> float:
    """Return best known over what one would ship: the pick with the least time shown."""
    everything = space.enumerate(task)
    rows = list(ReplayMeasurer(pool).measure([everything[index] for index in picked]))
    shipped = min(rows, key=lambda row: row.latency_ms)
    return pool.best_score_ms(task) / pool.score_ms(task.task_id, shipped.trace_hash)


if __name__ == "__main__":
    main()
