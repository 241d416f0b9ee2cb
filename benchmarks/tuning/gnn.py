"""Cost models by their rank correlation within tasks: graph network, trees, predictor.

    python benchmarks/tuning/gnn.py POOL --graphs graphs.npz --seeds 2

Three splits: rows at random, tasks held out, families held out. A line per split and model: the
mean over tasks of Spearman's correlation of prediction and score, its interval by drawing tasks
anew, and one with what the graph network has more than the trees on the same tasks. `graphs.npz` is
what `program_graphs.py` writes; without it there is no graph network.
Flops alone say nothing within a task: all of its candidates have the same.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence

import numpy as np
from replaying import Kept, load, parser, show
from scipy.stats import spearmanr

from graphnet_datasets.tuning import CostModel, Measurement, Pool, PoolSpace
from graphnet_datasets.tuning.curves import bootstrap
from graphnet_datasets.tuning.graph_files import load_graphs
from graphnet_datasets.tuning.models.gbdt import GbdtModel
from graphnet_datasets.tuning.models.gnn import GnnModel
from graphnet_datasets.tuning.models.predictor import Predictor

MIN_TEST_ROWS = 5
SPLITS = ("random", "tasks", "families")


def main(argv: Sequence[str] | None = None) -> None:
    """Train and test all models on all splits, and print the figures."""
    arguments = parser(__doc__ or "")
    arguments.add_argument("--graphs", help="program graphs of the pool's candidates")
    arguments.add_argument("--epochs", type=int, default=40)
    arguments.add_argument("--width", type=int, default=48, help="of the graph network")
    arguments.add_argument("--folds", type=int, default=4)
    arguments.add_argument("--splits", nargs="+", choices=SPLITS, default=list(SPLITS))
    given = arguments.parse_args(argv)
    pool, space = load(given)
    if given.graphs:
        space = PoolSpace(pool, graphs=load_graphs(given.graphs))
    tasks = list(pool.tasks.values())
    makers: dict[str, Callable[[int], CostModel]] = {
        "trees": lambda seed: GbdtModel(space, seed=seed),
        "predictor": lambda seed: Predictor(space, tasks, seed=seed, epochs=given.epochs),
    }
    if given.graphs:
        makers["gnn"] = lambda seed: GnnModel(
            space, seed=seed, epochs=given.epochs, width=given.width
        )
    kept = Kept(given, pool, given.epochs, given.width, given.folds)
    rows = [row for task in tasks for row in pool.rows(task) if row.is_ok]
    for split in given.splits:
        found: dict[str, dict[str, list[float]]] = {name: {} for name in makers}
        for seed in range(given.seeds):
            for fold, (train, test) in enumerate(splits(pool, rows, split, given.folds, seed)):
                for name, make in makers.items():

                    def run(make=make, seed=seed, train=train, test=test) -> dict[str, float]:
                        model = make(seed)
                        model.fit(train)
                        return correlations(pool, model, test)

                    for task_id, value in kept.get(("gnn", split, name, seed, fold), run).items():
                        found[name].setdefault(task_id, []).append(value)
        means = {
            name: {task_id: float(np.mean(values)) for task_id, values in by_task.items()}
            for name, by_task in found.items()
        }
        for name, by_task in means.items():
            if by_task:
                centre, low, high = bootstrap(np.array(list(by_task.values())))
                show(
                    "gnn",
                    split=split,
                    model=name,
                    rows=len(rows),
                    seeds=given.seeds,
                    tasks=len(by_task),
                    spearman=centre,
                    interval=[low, high],
                )
        if means.get("gnn"):
            more = [value - means["trees"][task_id] for task_id, value in means["gnn"].items()]
            centre, low, high = bootstrap(np.array(more))
            show("gnn", split=split, rows=len(rows), gnn_over_trees=centre, interval=[low, high])


def splits(
    pool: Pool, rows: list[Measurement], split: str, folds: int, seed: int
) -> Iterator[tuple[list[Measurement], list[Measurement]]]:
    """Give training and test rows; what is held out is a share of rows, of tasks, or a family."""
    rng = np.random.default_rng(seed)
    if split == "random":
        is_test = rng.random(len(rows)) < 1 / folds
        yield (
            [row for row, held in zip(rows, is_test, strict=True) if not held],
            [row for row, held in zip(rows, is_test, strict=True) if held],
        )
        return
    key = {
        task_id: task.family if split == "families" else task_id
        for task_id, task in pool.tasks.items()
    }
    names = sorted(set(key.values()))
    if len(names) < 2:
        return
    groups = np.array_split(rng.permutation(names), min(folds, len(names)))
    for group in groups:
        held = set(group)
        yield (
            [row for row in rows if key[row.task_id] not in held],
            [row for row in rows if key[row.task_id] in held],
        )


def correlations(pool: Pool, model: CostModel, test: list[Measurement]) -> dict[str, float]:
    """Return Spearman's correlation of prediction and speed in each task of the test rows."""
    by_task: dict[str, list[Measurement]] = {}
    for row in test:
        by_task.setdefault(row.task_id, []).append(row)
    found = {}
    for task_id, own in by_task.items():
        if len(own) < MIN_TEST_ROWS:
            continue
        scores, _ = model.predict(pool.tasks[task_id], [row.candidate for row in own])
        speeds = [-pool.score_ms(task_id, row.trace_hash) for row in own]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of constant predictions, which correlate with nothing
            value = float(spearmanr(scores, speeds).statistic)
        found[task_id] = 0.0 if np.isnan(value) else value
    return found


if __name__ == "__main__":
    main()
