"""Input sensitivity: one configuration for all inputs, against one chosen for each input.

    python benchmarks/tuning/input_sensitivity.py sparsity --inputs 160
    python benchmarks/tuning/input_sensitivity.py sort --inputs 200
    python benchmarks/tuning/input_sensitivity.py compilers --runs RUNS [--t -3]

`sparsity` multiplies matrices that are dense, sparse or sparse by tiles, in three ways; whatever a
way prepares (a CSR, the list of tiles) is part of its time. `sort` sorts integers of any order and
range, in four ways. Both are measured live on one thread: landmarks and classifiers come from half
of the inputs, and on the other half features and decision are inside of the timed call. `compilers`
takes run records: the configuration is the compiler (eager is one), the time is relative to
eager's, features are the number of operators and eager's time, and each family is held out once.

Prints one JSON object per figure; `over_best_single` is the total time of the best single
configuration (chosen on the training part) over that of the dispatcher, `share_of_oracle` how much
of what always choosing right would gain the dispatcher gains; of compilers, whose times are ratios,
both are of the mean logarithm.
"""

from __future__ import annotations

import argparse
import math
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import scipy.sparse
from dispatching import compilers
from replaying import show
from threadpoolctl import threadpool_limits

from graphnet_datasets.tuning.curves import bootstrap
from graphnet_datasets.tuning.dispatch.two_level import TwoLevelDispatcher

TILE = 64
REPEATS = 3

Ways = dict[str, Callable[..., np.ndarray]]
Features = list[Callable[..., float]]


def dense(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Multiply as if nothing was known."""
    return a @ b


def sparse_rows(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Make a CSR of what is not zero, and multiply with that."""
    return scipy.sparse.csr_array(a) @ b


def tiles(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Multiply the tiles of 64 by 64 that are not all zero."""
    m, k = a.shape
    blocks = a.reshape(m // TILE, TILE, k // TILE, TILE)
    is_used = blocks.any(axis=(1, 3))
    out = np.zeros((m, b.shape[1]), a.dtype)
    for row, columns in enumerate(is_used):
        for column in np.flatnonzero(columns):
            part = b[column * TILE : (column + 1) * TILE]
            out[row * TILE : (row + 1) * TILE] += blocks[row, :, column] @ part
    return out


def draw_product(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Return a left matrix of one of three kinds of sparsity and a dense right one."""
    m, k = (int(each) * TILE for each in rng.integers(6, 17, 2))
    n = int(rng.choice([16, 128, 512]))
    a = rng.standard_normal((m, k), dtype=np.float32)
    kind = rng.integers(3)
    if kind == 1:
        a *= rng.random((m, k), dtype=np.float32) < 10 ** rng.uniform(-3.5, -1.0)
    elif kind == 2:
        kept = rng.random((m // TILE, 1, k // TILE, 1)) < rng.uniform(0.02, 0.3)
        a = (a.reshape(m // TILE, TILE, k // TILE, TILE) * kept).reshape(m, k).astype(np.float32)
    return a, rng.standard_normal((k, n), dtype=np.float32)


def density(step: int) -> Callable[..., float]:
    """Return a feature: the log of the density of every `step`-th row and column."""

    def of(a: np.ndarray, *_: np.ndarray) -> float:
        return math.log10(np.count_nonzero(a[::step, ::step]) / a[::step, ::step].size + 1e-5)

    return of


def tile_share(a: np.ndarray, *_: np.ndarray) -> float:
    """Return the share of segments of 64 in every 64th row that hold anything."""
    return float(a[::TILE].reshape(-1, TILE).any(axis=1).mean())


PRODUCT_WAYS: Ways = {"dense": dense, "csr": sparse_rows, "tiles": tiles}
PRODUCT_FEATURES: Features = [
    lambda a, _: math.log2(a.size),
    lambda _, b: math.log2(b.shape[1]),
    density(67),
    density(13),
    tile_share,
]


def counting(values: np.ndarray) -> np.ndarray:
    """Sort by counting where the range allows it, otherwise by comparisons."""
    low, high = int(values.min()), int(values.max())
    if high - low > 4 * len(values):
        return np.sort(values, kind="stable")
    counts = np.bincount(values - low, minlength=high - low + 1)
    return np.repeat(np.arange(low, high + 1), counts)


def draw_list(rng: np.random.Generator) -> tuple[np.ndarray]:
    """Return integers of any number and range, in no order, nearly in order or in order."""
    n = int(2 ** rng.uniform(8, 18))
    values = rng.integers(0, int(2 ** rng.uniform(4, 40)), n)
    order = rng.integers(3)
    if order:
        values.sort()
    if order == 1:
        moved = rng.integers(0, n, max(1, n // 200))
        values[moved] = values[moved[::-1]]
    return (values,)


def log_range(values: np.ndarray) -> float:
    """Return log2 of the range of 32 sampled values."""
    return math.log2(float(np.ptp(values[:: max(1, len(values) // 32)])) + 1)


def disorder(values: np.ndarray) -> float:
    """Return the share of 64 sampled neighbours that are not in order."""
    step = max(1, (len(values) - 1) // 64)
    return float((values[1::step] < values[:-1:step][: len(values[1::step])]).mean())


LIST_WAYS: Ways = {
    "quicksort": lambda values: np.sort(values, kind="quicksort"),
    "stable": lambda values: np.sort(values, kind="stable"),
    "heapsort": lambda values: np.sort(values, kind="heapsort"),
    "counting": counting,
}
LIST_FEATURES: Features = [
    lambda values: math.log2(len(values)),
    log_range,
    # what counting depends on, and what no tree of either alone can say
    lambda values: log_range(values) - math.log2(len(values)),
    disorder,
]


def main(argv: Sequence[str] | None = None) -> None:
    """Measure one of the three cases and print its figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("case", choices=["sparsity", "sort", "compilers"])
    parser.add_argument("--inputs", type=int, default=160)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--runs", help="run records of several compilers on the same samples")
    parser.add_argument("--t", type=int, default=-3, help="the tolerance for `compilers`")
    parser.add_argument("--folds", type=int, default=10, help="of families, for `compilers`")
    given = parser.parse_args(argv)
    with threadpool_limits(1):
        if given.case == "sparsity":
            live("sparsity", PRODUCT_WAYS, PRODUCT_FEATURES, draw_product, given)
        elif given.case == "sort":
            live("sort", LIST_WAYS, LIST_FEATURES, draw_list, given)
        elif given.runs is None:
            parser.error("`compilers` needs --runs")
        else:
            compilers(given)


def seconds_of(call: Callable[[], Any]) -> float:
    """Return the least of some repetitions: what disturbs a call only makes it longer."""
    best = math.inf
    for _ in range(REPEATS):
        started = time.perf_counter()
        call()
        best = min(best, time.perf_counter() - started)
    return best


def seconds_of_all(ways: Ways, arguments: tuple[np.ndarray, ...]) -> list[float]:
    """Return the time of each way on one input."""
    return [seconds_of(lambda w=way: w(*arguments)) for way in ways.values()]


def live(
    case: str,
    ways: Ways,
    features: Features,
    draw: Callable[[np.random.Generator], tuple[np.ndarray, ...]],
    given: argparse.Namespace,
) -> None:
    """Measure all ways on all inputs, fit on half of them, and run the dispatcher on the rest."""
    rng = np.random.default_rng(given.seed)
    inputs = [draw(rng) for _ in range(given.inputs)]
    for each in inputs[:5]:  # every way gives the same
        expected, *others = (way(*each) for way in ways.values())
        for other in others:
            np.testing.assert_allclose(other, expected, rtol=2e-3, atol=2e-3)
    times = np.array(
        [[seconds_of(lambda w=way, e=each: w(*e)) for way in ways.values()] for each in inputs]
    )
    values = np.array([[feature(*each) for feature in features] for each in inputs])
    costs = np.array(
        [
            float(np.mean([seconds_of(lambda f=feature, e=each: f(*e)) for each in inputs[:20]]))
            for feature in features
        ]
    )
    half = len(inputs) // 2
    dispatcher = TwoLevelDispatcher(seed=given.seed)
    dispatcher.fit(values[:half], list(ways), times[:half], costs)

    def dispatched(arguments: tuple[np.ndarray, ...]) -> np.ndarray:
        way = dispatcher.choose_with(lambda index: features[index](*arguments))
        return ways[way](*arguments)

    # Its repetitions stand beside those of all ways again: what the machine did in between is
    # in both.
    held, own = [], []
    for each in inputs[half:]:
        held.append(seconds_of_all(ways, each))
        own.append(seconds_of(lambda e=each: dispatched(e)))
    report(case, dispatcher, list(ways), times[:half], np.array(held), np.array(own))


def report(
    case: str,
    dispatcher: TwoLevelDispatcher,
    names: list[str],
    train: np.ndarray,
    held: np.ndarray,
    own: np.ndarray,
) -> None:
    """Print the gain over the best configuration, and its share of the possible gain."""
    single = int(train.sum(axis=0).argmin())
    rows = np.stack([held[:, single], own, held.min(axis=1)], axis=1)
    ratio, low, high = bootstrap(rows, lambda each: float(each[:, 0].sum() / each[:, 1].sum()))
    total = rows.sum(axis=0)
    gain = total[0] - total[2]
    show(
        "input_sensitivity",
        case=case,
        train=len(train),
        test=len(held),
        chosen=dispatcher.chosen,
        landmarks=dispatcher.landmarks,
        best_single=names[single],
        over_best_single=ratio,
        interval=[low, high],
        geomean_over_best_single=float(np.exp(np.log(rows[:, 0] / rows[:, 1]).mean())),
        share_of_oracle=float((total[0] - total[1]) / gain) if gain > 0 else 1.0,
    )


if __name__ == "__main__":
    main()
