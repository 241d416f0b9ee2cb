"""Cost models by their rank correlation within tasks: graph network, trees, predictor.

    python benchmarks/tuning/gnn.py POOL --graphs graphs.npz --seeds 2

Three splits: rows at random, tasks held out, families held out. A line per split and model: the
mean over tasks of Spearman's correlation of prediction and score, its interval by drawing tasks
anew, and one with what the graph network has more than the trees on the same tasks. `graphs.npz` is
what `program_graphs.py` writes; without it there is no graph network. `trees` is Ansor's model,
`log trees` the same features fitted to the logarithm of times (`log_trees.py`). Where the records
have features of machine code, `code trees` learn from them as well, and so does `gnn with code`.
Flops alone say nothing within a task: all of its candidates have the same. Over all tasks together
they say nearly everything, which is why correlations are within tasks; of the random split the one
over all test rows stands beside it (`over_all`). `halves` is the correlation within tasks of the
repetitions that are learned from with those that score: no model can be asked for more.
"""

from __future__ import annotations

import functools
import math
import warnings
from collections.abc import Callable, Iterator, Sequence

import numpy as np
from graph_files import load_graphs
from log_trees import LogTrees
from replaying import Kept, load, parser, show
from scipy.stats import spearmanr

from graphnet_datasets.tuning import CostModel, Measurement, Pool, PoolSpace
from graphnet_datasets.tuning.curves import bootstrap
from graphnet_datasets.tuning.models.code_trees import CodeTrees
from graphnet_datasets.tuning.models.gbdt import GbdtModel
from graphnet_datasets.tuning.models.gnn import GnnModel
from graphnet_datasets.tuning.models.predictor import Predictor

MIN_TEST_ROWS = 5
PREDICTOR_EPOCHS = 40
OVER_ALL = "over all"
VERSION = "gnn, lowered programs"
"""What is kept of runs is of these models: change it with them."""
SPLITS = ("random", "tasks", "families")


def main(argv: Sequence[str] | None = None) -> None:
    """Train and test all models on all splits, and print the figures."""
    arguments = parser(__doc__ or "")
    arguments.add_argument("--graphs", help="program graphs of the pool's candidates")
    arguments.add_argument("--epochs", type=int, default=12, help="of a graph network")
    arguments.add_argument(
        "--members", type=int, default=3, help="graph networks that are averaged"
    )
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
        "log trees": lambda seed: LogTrees(space, seed=seed),
        "predictor": lambda seed: Predictor(space, tasks, seed=seed, epochs=PREDICTOR_EPOCHS),
    }
    if given.graphs:
        network = functools.partial(
            GnnModel, space, epochs=given.epochs, members=given.members, width=given.width
        )
        makers["gnn"] = lambda seed: network(seed=seed)
        if space.machine_code_set:
            makers["gnn with code"] = lambda seed: network(seed=seed, uses_machine_code=True)
    if space.machine_code_set:
        makers["code trees"] = lambda seed: CodeTrees(space, seed=seed)
    kept = Kept(given, pool, given.epochs, given.members, given.width, given.folds)
    rows = [row for task in tasks for row in pool.rows(task) if row.is_ok]
    show("gnn", halves=halves(pool, rows), rows=len(rows))
    for split in given.splits:
        found: dict[str, dict[str, list[float]]] = {name: {} for name in makers}
        for seed in range(given.seeds):
            for fold, (train, test) in enumerate(splits(pool, rows, split, given.folds, seed)):
                for name, make in makers.items():

                    def run(make=make, seed=seed, train=train, test=test) -> dict[str, float]:
                        model = make(seed)
                        model.fit(train)
                        return correlations(pool, model, train, test)

                    key = (VERSION, split, name, seed, fold)
                    for task_id, value in kept.get(key, run).items():
                        found[name].setdefault(task_id, []).append(value)
        means = {
            name: {task_id: float(np.mean(values)) for task_id, values in by_task.items()}
            for name, by_task in found.items()
        }
        over_all = {name: by_task.pop(OVER_ALL, None) for name, by_task in means.items()}
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
                    **({"over_all": over_all[name]} if split == "random" else {}),
                )
        for name in ("gnn", "gnn with code"):
            if means.get(name):
                more = [value - means["trees"][task_id] for task_id, value in means[name].items()]
                centre, low, high = bootstrap(np.array(more))
                figures = {"gnn_over_trees": centre, "interval": [low, high], "of": name}
                show("gnn", split=split, rows=len(rows), **figures)


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


def correlations(
    pool: Pool, model: CostModel, train: list[Measurement], test: list[Measurement]
) -> dict[str, float]:
    """Return Spearman's correlation of prediction and speed in each task of the test rows.

    `OVER_ALL` is that of all rows together, where a prediction is taken to be the throughput
    relative to the best of the task among the training rows.
    """
    best: dict[str, float] = {}
    for row in train:
        best[row.task_id] = min(best.get(row.task_id, math.inf), row.latency_ms)
    by_task: dict[str, list[Measurement]] = {}
    for row in test:
        by_task.setdefault(row.task_id, []).append(row)
    found = {}
    predicted, measured = [], []
    for task_id, own in by_task.items():
        scores, _ = model.predict(pool.tasks[task_id], [row.candidate for row in own])
        speeds = [-pool.score_ms(task_id, row.trace_hash) for row in own]
        predicted += list(np.maximum(scores, 1e-3) / best.get(task_id, 1.0))
        measured += speeds
        if len(own) >= MIN_TEST_ROWS:
            found[task_id] = spearman(scores, speeds)
    return found | {OVER_ALL: spearman(predicted, measured)}


def spearman(first: Sequence[float] | np.ndarray, second: Sequence[float]) -> float:
    """Return the rank correlation, 0 where one of both is constant."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # constants correlate with nothing
        value = float(spearmanr(first, second).statistic)
    return 0.0 if np.isnan(value) else value


def halves(pool: Pool, rows: list[Measurement]) -> float:
    """Return the mean over tasks of how the two halves of the repetitions correlate."""
    by_task: dict[str, list[Measurement]] = {}
    for row in rows:
        by_task.setdefault(row.task_id, []).append(row)
    return float(
        np.mean(
            [
                spearman(
                    [float(np.median(row.times_ms[0::2])) for row in own],
                    [pool.score_ms(task_id, row.trace_hash) for row in own],
                )
                for task_id, own in by_task.items()
                if len(own) >= MIN_TEST_ROWS
            ]
        )
    )


if __name__ == "__main__":
    main()
