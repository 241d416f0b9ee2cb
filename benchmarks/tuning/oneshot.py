"""One-shot by replay: what the first picks reach on families that the predictor never saw.

    python benchmarks/tuning/oneshot.py POOL --seeds 20 --rows 100 1000 10000

For each number of training rows and model a line with the mean over the tasks of held-out families
of best known over picked (of 1 and of 5 picks), by the repetitions that were not shown; `random`
picks too. Many rows leave little to draw and take long: of more than 500 a seed stands for two, of
more than 1,000 for four, and so on (`seeds` in each line).
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence

import numpy as np
from replaying import Kept, load, parser, show, with_choice

from graphnet_datasets.tuning import CostModel, Measurement, Pool, PoolSpace, ReplayMeasurer, Task
from graphnet_datasets.tuning.curves import bootstrap
from graphnet_datasets.tuning.models.code_trees import CodeTrees
from graphnet_datasets.tuning.models.gbdt import GbdtModel
from graphnet_datasets.tuning.models.predictor import Predictor

PICKS = (1, 5)


def main(argv: Sequence[str] | None = None) -> None:
    """Train on all families but one, pick in it, and print the figures."""
    arguments = parser(__doc__ or "")
    arguments.add_argument("--rows", type=int, nargs="+", default=[100, 1000, 10_000])
    arguments.add_argument("--epochs", type=int, default=60)
    arguments.add_argument("--min-candidates", type=int, default=20)
    given = arguments.parse_args(argv)
    pool, space = load(given)
    tasks = with_choice(pool, given.min_candidates)
    families = sorted({task.family for task in tasks})
    kept = Kept(given, pool, given.epochs, given.min_candidates)
    if len(families) < 2:
        raise SystemExit("The pool has one family; none can be held out.")
    for count in given.rows:
        collected: dict[tuple[str, int], dict[str, list[float]]] = {}
        num_seeds = max(2, min(given.seeds, given.seeds * 500 // count))
        for family in families:
            held = [task for task in tasks if task.family == family]
            seen = [task for task in tasks if task.family != family]
            for seed in range(min(num_seeds, given.seeds)):
                found = kept.get(
                    ("oneshot", space.machine_code_set, count, family, seed),
                    lambda h=held, s=seen, n=count, d=seed: run(pool, space, h, s, n, d, given),
                )
                for name, picks, task_id, reached in found:
                    by_task = collected.setdefault((name, picks), {})
                    by_task.setdefault(task_id, []).append(reached)
        available = sum(len(pool.rows(task)) for task in tasks)
        for (name, picks), by_task in collected.items():
            means = [float(np.mean(each)) for each in by_task.values()]
            centre, low, high = bootstrap(np.array(means))
            show(
                "oneshot",
                rows=min(count, available),
                seeds=min(num_seeds, given.seeds),
                tasks=len(means),
                families_held_out=len(families),
                model=name,
                picks=picks,
                of_best=centre,
                interval=[low, high],
            )


def run(
    pool: Pool,
    space: PoolSpace,
    held: Sequence[Task],
    seen: Sequence[Task],
    count: int,
    seed: int,
    given: argparse.Namespace,
) -> list[tuple[str, int, str, float]]:
    """Return model, picks, held-out task, and what it reached there."""
    rows = shown_rows(pool, space, seen, count, seed)
    models: dict[str, CostModel] = {
        "predictor": Predictor(space, seen, seed=seed, epochs=given.epochs),
        "trees": GbdtModel(space, seed=seed),
    }
    if space.machine_code_set:
        models["code trees"] = CodeTrees(space, seed=seed)
    for model in models.values():
        model.fit(rows)
    found = []
    for task in held:
        for name in (*models, "random"):
            order = ranked(space, models.get(name), task, seed)
            for picks in PICKS:
                reached = reach(pool, space, task, order[:picks])
                found.append((name, picks, task.task_id, reached))
    return found


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
