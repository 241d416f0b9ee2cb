"""The samples whose S(t) predicts that of all: chosen on records, and checked on others.

S(t) of a compiler is the geometric mean of what its samples contribute
(`scores.log_contributions`). A subset predicts it if the mean of its own logarithms is near the
mean of all, for each compiler and t. It is chosen greedily, the next sample always the one that
brings the mean of the chosen nearest to the mean of all. So that it stands for compilers that are
not in the records too, what is known of the graphs alone counts as well: their operators, task, and
time in eager.

Whether that helps a compiler, or graphs, that nobody has measured is another question, so it is
asked: each compiler is left out in turn, and each fifth of the families.
"""

from __future__ import annotations

import dataclasses
import hashlib
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from ..errors import ScoreError
from ..scores import TOLERANCES, as_table, log_contributions, split_arms
from ..scores.run_sets import Duplicates

Floats = npt.NDArray[np.float64]

SCORED_T = tuple(t for t in TOLERANCES if t <= 0)
"""The t at which S is defined."""
NUM_FOLDS = 5
NUM_WAVES = 256
WIDTH = 1.0
"""Distance of samples, in spreads of all, below which they count as alike."""
NUM_TRIES = 10
SHARE_TRIED = 0.75
"""The choice for a compiler that is left out is made this often, out of such shares of the samples.

One choice may be lucky. Where a share is hardly more than what is chosen, all are taken, once."""
NUM_RANDOM = 200
"""Random subsets whose mean error the chosen one is held against."""


@dataclasses.dataclass(frozen=True)
class Error:
    """How far S(t) of a subset is from that of all, as ratios less 1 (0.05: 5 % off).

    The mean over left-out compilers, or folds and compilers, and t; `random` is that of subsets
    drawn at random.
    """

    count: int
    of_compilers: float | None
    of_compilers_random: float | None
    of_graphs: float | None
    of_graphs_random: float | None


@dataclasses.dataclass(frozen=True)
class Prediction:
    """The samples that were chosen, in order, S(t) of theirs and of all, and how it was checked.

    `predicted` and `actual` have S by compiler at each t of `SCORED_T`.
    """

    ids: tuple[str, ...]
    predicted: Mapping[str, tuple[float, ...]]
    actual: Mapping[str, tuple[float, ...]]
    errors: tuple[Error, ...]
    num_samples: int

    def __str__(self) -> str:
        lines = [
            f"{len(self.ids)} of {self.num_samples} samples, under {', '.join(self.actual)}:",
            "compiler      S(-3) of the subset    of all",
        ]
        place = SCORED_T.index(-3)
        for name, scores in self.actual.items():
            lines.append(f"{name:<14}{self.predicted[name][place]:<23.4g}{scores[place]:.4g}")
        lines.append("")
        lines.append("error of S(t) on what was left out   a compiler (random)   graphs (random)")
        for error in self.errors:
            compilers = _pair(error.of_compilers, error.of_compilers_random)
            graphs = _pair(error.of_graphs, error.of_graphs_random)
            lines.append(f"{f'{error.count} samples':<37}{compilers:<22}{graphs}")
        return "\n".join(lines)


def predict(
    runs: Any,
    count: int,
    *,
    counts: Sequence[int] = (10, 30, 100),
    duplicates: Duplicates = "newest",
) -> Prediction:
    """Choose the samples whose S(t) is nearest to that of all samples of some run records.

    Only samples that count for every compiler of the records are chosen from. `counts` are the
    sizes of subset for which the error is stated: on a compiler that was left out of the choice,
    and on families of graphs that were (five folds by the family's hash).

    Raises:
        ScoreError: no sample counts for every compiler, or `count` is below 1.
        SchemaError, DatasetNotFoundError: the records cannot be read.

    >>> rows = [
    ...     {"sample_id": f"{place}", "family": f"{place}", "compiler": name, "status": "ok",
    ...      "speedup": 1.0 + place, "min_t": -9.0}
    ...     for place in range(5) for name in ("one", "other")]
    >>> found = predict(rows, 1, counts=(1,))
    >>> found.ids, round(found.predicted["one"][-1], 2), round(found.actual["one"][-1], 2)
    (('2',), 3.0, 2.61)
    """
    if count < 1:
        raise ScoreError(f"{count} samples cannot be chosen; choose at least 1.")
    names, ids, families, logs, known = _matrix(runs, duplicates)
    chosen = herd(_features(logs, known), count)
    errors = tuple(_error(logs, known, families, each) for each in counts if each <= len(ids))
    return Prediction(
        ids=tuple(ids[place] for place in chosen),
        predicted=_scores(names, logs[:, :, chosen]),
        actual=_scores(names, logs),
        errors=errors,
        num_samples=len(ids),
    )


def herd(features: Floats, count: int) -> list[int]:
    """Return the rows, in order, whose mean comes near the mean of all rows, one after the other.

    Features are (samples, features). Of rows that do as well the first is taken.

    >>> herd(np.array([[0.0], [1.0], [2.0], [7.0]]), 2)
    [2, 1]
    """
    target = features.mean(axis=0)
    is_left = np.ones(len(features), dtype=bool)
    total = np.zeros(features.shape[1])
    squares = (features**2).sum(axis=1)
    chosen: list[int] = []
    for size in range(1, min(count, len(features)) + 1):
        rest = total - size * target
        # |total + x - size * target|^2 without its part that is the same for all
        distance = np.round(2 * features @ rest + squares, 9)
        place = int(np.argmin(np.where(is_left, distance, np.inf)))
        is_left[place] = False
        total += features[place]
        chosen.append(place)
    return chosen


def _matrix(
    runs: Any, duplicates: Duplicates
) -> tuple[list[str], list[str], list[str], Floats, Floats]:
    """Return compilers, ids, families, logarithms (compilers, t, samples), and what is known."""
    table = as_table(runs)
    of_arms = {
        name: log_contributions(arm, duplicates=duplicates)
        for name, arm in sorted(split_arms(table).items())
    }
    if not of_arms:
        raise ScoreError("There are no run records to predict from. Make some with `graphnet run`.")
    common = set.intersection(*(set(ids) for ids, _ in of_arms.values()))
    if not common:
        raise ScoreError(
            f"No sample counts for each of {', '.join(of_arms)}. Run the same samples under all "
            "compilers, or choose one with a filter."
        )
    ids = sorted(common)
    rows = len(SCORED_T)
    logs = np.stack(
        [
            found[:rows, [place[each] for each in ids]]
            for own, found in of_arms.values()
            for place in [{each: index for index, each in enumerate(own)}]
        ]
    )
    rows_of = {row["sample_id"]: row for row in _columns(table)}
    families = [rows_of[each].get("family") or each for each in ids]
    return list(of_arms), ids, families, logs, _describe([rows_of[each] for each in ids])


def _columns(table: Any) -> list[dict[str, Any]]:
    wanted = ("sample_id", "family", "task", "num_ops", "baseline_latency_ms")
    return table.select([name for name in wanted if name in table.column_names]).to_pylist()


def _describe(rows: Sequence[Mapping[str, Any]]) -> Floats:
    """Return what is known of samples without any compiler, a row each: sizes, time and task."""
    sizes = np.array([_log(row.get("num_ops")) for row in rows])
    times = np.array([_log(row.get("baseline_latency_ms")) for row in rows])
    found = [(each - each.mean()) / each.std() for each in (sizes, times) if each.std() > 1e-9]
    tasks = sorted({str(row.get("task")) for row in rows})
    found += [np.array([float(str(row.get("task")) == task) for row in rows]) for task in tasks]
    return np.stack(found, axis=1)


def _log(value: Any) -> float:
    number = float(np.mean(value)) if value else 0.0
    return math.log(number) if number > 0 else 0.0


def _features(logs: Floats, known: Floats) -> Floats:
    """Return a row a sample: its logarithms, each of one spread, and waves of them and `known`.

    Means of the logarithms are what S is made of. The waves (random Fourier features: Rahimi and
    Recht, "Random features for large-scale kernel machines", 2007) stand for their distribution, so
    that failures and fast graphs are there in their shares and do not merely make up for each
    other, which a compiler that nobody has measured would not repeat.
    """
    flat = logs.reshape(-1, logs.shape[-1]).T
    spread = flat.std(axis=0)
    plain = flat[:, spread > 1e-9] / spread[spread > 1e-9]
    plain /= np.sqrt(max(plain.shape[1], 1))  # a sample is one away from the mean
    told = np.hstack([plain, known])
    waves = told @ np.random.default_rng(0).normal(size=(told.shape[1], NUM_WAVES)) / WIDTH
    return np.hstack(
        [plain, np.cos(waves) / np.sqrt(NUM_WAVES), np.sin(waves) / np.sqrt(NUM_WAVES)]
    )


def _scores(names: Sequence[str], logs: Floats) -> dict[str, tuple[float, ...]]:
    means = np.exp(logs.mean(axis=-1))
    return {name: tuple(row) for name, row in zip(names, means.tolist(), strict=True)}


def _error(logs: Floats, known: Floats, families: Sequence[str], count: int) -> Error:
    random = np.random.default_rng(0)
    num_compilers = len(logs)
    of_compilers: list[float] = []
    of_compilers_random: list[float] = []
    if num_compilers > 1:
        for left_out in range(num_compilers):
            for some in _shares(logs.shape[-1], count, random):
                own, others = logs[left_out][:, some], np.delete(logs, left_out, axis=0)[:, :, some]
                chosen = herd(_features(others, known[some]), count)
                of_compilers.append(_distance(own, chosen, own))
                of_compilers_random += _random_distances(own, count, own, random)
    fold_of = np.array([_fold(family) for family in families])
    of_graphs: list[float] = []
    of_graphs_random: list[float] = []
    for fold in range(NUM_FOLDS):
        seen, unseen = np.flatnonzero(fold_of != fold), np.flatnonzero(fold_of == fold)
        if len(unseen) == 0 or len(seen) < count:
            continue
        chosen = herd(_features(logs[:, :, seen], known[seen]), count)
        for each in logs:
            of_graphs.append(_distance(each[:, seen], chosen, each[:, unseen]))
            of_graphs_random += _random_distances(each[:, seen], count, each[:, unseen], random)
    return Error(
        count,
        *(
            float(np.mean(found)) if found else None
            for found in (of_compilers, of_compilers_random, of_graphs, of_graphs_random)
        ),
    )


def _shares(
    num_samples: int, count: int, random: np.random.Generator
) -> Iterator[npt.NDArray[np.int64]]:
    """Yield samples to choose from: several times a share of them, or once all."""
    size = int(SHARE_TRIED * num_samples)
    if size < 2 * count:
        yield np.arange(num_samples)
        return
    for _ in range(NUM_TRIES):
        yield np.sort(random.choice(num_samples, size, replace=False))


def _fold(family: str) -> int:
    return int.from_bytes(hashlib.blake2b(family.encode(), digest_size=4).digest()) % NUM_FOLDS


def _distance(logs: Floats, chosen: Sequence[int] | npt.NDArray[np.int64], of_all: Floats) -> float:
    """Return how far S(t) of some samples is from S(t) of others, as a ratio less 1."""
    difference = logs[:, chosen].mean(axis=1) - of_all.mean(axis=1)
    return float(np.expm1(np.abs(difference)).mean())


def _random_distances(
    logs: Floats, count: int, of_all: Floats, random: np.random.Generator
) -> list[float]:
    return [
        _distance(logs, random.choice(logs.shape[1], count, replace=False), of_all)
        for _ in range(NUM_RANDOM // NUM_FOLDS)
    ]


def _pair(one: float | None, other: float | None) -> str:
    if one is None or other is None:
        return "-"
    return f"{100 * one:.1f} % ({100 * other:.1f} %)"
