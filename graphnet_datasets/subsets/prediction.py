"""Subsets of samples whose S(t) predicts that of all samples, with a check on held-out data.

S(t) of a compiler is the geometric mean of the contributions of its samples
(`scores.log_contributions`). A subset predicts it well if its mean logarithm is close to the mean
of all samples, for each compiler and t. The choice is greedy: the next sample is the one that
brings the mean of the chosen samples closest to the mean of all. Features of the graphs themselves
(number of operators, task, time in eager) are matched as well, so that the subset also represents
compilers without records.

Whether the prediction holds for unmeasured compilers and graphs is estimated by leaving out each
compiler in turn, and each fifth of the families.
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
"""The values of t at which S is defined."""
NUM_FOLDS = 5
NUM_WAVES = 256
WIDTH = 1.0
"""Distance, in overall standard deviations, below which samples count as similar."""
NUM_TRIES = 10
SHARE_TRIED = 0.75
"""For a held-out compiler, the choice is repeated `NUM_TRIES` times on random shares of this size.

A single choice may be lucky. If a share is hardly larger than the choice, all samples are used
once."""
NUM_RANDOM = 200
"""Number of random subsets whose mean error is the baseline."""


@dataclasses.dataclass(frozen=True)
class Error:
    """The error of S(t) of a subset against all samples, as a ratio minus 1 (0.05 is 5 %).

    Means are over held-out compilers, or over folds and compilers, and over t. `random` refers to
    random subsets.
    """

    count: int
    of_compilers: float | None
    of_compilers_random: float | None
    of_graphs: float | None
    of_graphs_random: float | None


@dataclasses.dataclass(frozen=True)
class Prediction:
    """The chosen samples in order, S(t) of the subset and of all samples, and held-out errors.

    `predicted` and `actual` contain S by compiler at each t of `SCORED_T`.
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
        lines.append("error of S(t) on held-out data       a compiler (random)   graphs (random)")
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
    """Choose samples whose S(t) is closest to that of all samples of run records.

    Only samples that count for every compiler of the records are candidates. `counts` are the
    sizes of subsets for which errors are estimated: on a compiler that was held out of the choice,
    and on held-out families of graphs (five folds by the family's hash).

    Raises:
        ScoreError: no sample counts for every compiler, or `count` is below 1.
        SchemaError, DatasetNotFoundError: the records cannot be read.

    >>> rows = [
    ...     {"sample_id": f"{place}", "family": f"{place}", "compiler": name, "status": "ok",
    ...      "speedup": 1.0 + place, "min_t": -9.0}
    ...     for place in range(5) for name in ("one", "other")]
    >>> result = predict(rows, 1, counts=(1,))
    >>> result.ids, round(result.predicted["one"][-1], 2), round(result.actual["one"][-1], 2)
    (('2',), 3.0, 2.61)
    """
    if count < 1:
        raise ScoreError(f"`count` must be at least 1, got {count}.")
    names, ids, families, logs, descriptions = _matrix(runs, duplicates)
    chosen = herd(_features(logs, descriptions), count)
    errors = tuple(
        _error(logs, descriptions, families, size) for size in counts if size <= len(ids)
    )
    return Prediction(
        ids=tuple(ids[place] for place in chosen),
        predicted=_scores(names, logs[:, :, chosen]),
        actual=_scores(names, logs),
        errors=errors,
        num_samples=len(ids),
    )


def herd(features: Floats, count: int) -> list[int]:
    """Return row indices chosen greedily so that their mean approaches the mean of all rows.

    `features` is [samples, features]. Ties go to the first row.

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
        # |total + x - size * target|^2 without the terms that do not depend on x
        distance = np.round(2 * features @ rest + squares, 9)
        place = int(np.argmin(np.where(is_left, distance, np.inf)))
        is_left[place] = False
        total += features[place]
        chosen.append(place)
    return chosen


def _matrix(
    runs: Any, duplicates: Duplicates
) -> tuple[list[str], list[str], list[str], Floats, Floats]:
    """Return compilers, ids, families, logs [compilers, t, samples], and descriptions."""
    table = as_table(runs)
    logs_by_arm = {
        name: log_contributions(arm, duplicates=duplicates)
        for name, arm in sorted(split_arms(table).items())
    }
    if not logs_by_arm:
        raise ScoreError(
            "There are no run records to predict from. Create some with `graphnet run`."
        )
    common = set.intersection(*(set(ids) for ids, _ in logs_by_arm.values()))
    if not common:
        raise ScoreError(
            f"No sample has a counted record for each of {', '.join(logs_by_arm)}. Run the same "
            "samples under all compilers, or select one compiler with a filter."
        )
    ids = sorted(common)
    rows = len(SCORED_T)
    logs = np.stack(
        [
            arm_logs[:rows, [place[sample_id] for sample_id in ids]]
            for arm_ids, arm_logs in logs_by_arm.values()
            for place in [{sample_id: index for index, sample_id in enumerate(arm_ids)}]
        ]
    )
    rows_of = {row["sample_id"]: row for row in _columns(table)}
    families = [rows_of[sample_id].get("family") or sample_id for sample_id in ids]
    return (
        list(logs_by_arm),
        ids,
        families,
        logs,
        _describe([rows_of[sample_id] for sample_id in ids]),
    )


def _columns(table: Any) -> list[dict[str, Any]]:
    selected = ("sample_id", "family", "task", "num_ops", "baseline_latency_ms")
    return table.select([name for name in selected if name in table.column_names]).to_pylist()


def _describe(rows: Sequence[Mapping[str, Any]]) -> Floats:
    """Return features of samples without any compiler, a row each: sizes, times and tasks."""
    sizes = np.array([_log(row.get("num_ops")) for row in rows])
    times = np.array([_log(row.get("baseline_latency_ms")) for row in rows])
    features = [
        (values - values.mean()) / values.std() for values in (sizes, times) if values.std() > 1e-9
    ]
    tasks = sorted({str(row.get("task")) for row in rows})
    features += [np.array([float(str(row.get("task")) == task) for row in rows]) for task in tasks]
    return np.stack(features, axis=1)


def _log(value: Any) -> float:
    number = float(np.mean(value)) if value else 0.0
    return math.log(number) if number > 0 else 0.0


def _features(logs: Floats, descriptions: Floats) -> Floats:
    """Return features of samples, a row each: scaled logs, and waves of logs and descriptions.

    S depends on the means of the logs. The waves (random Fourier features: Rahimi and Recht,
    "Random features for large-scale kernel machines", 2007) represent the distribution, so that the
    subset has failures and fast graphs in their shares. Otherwise they might merely cancel out,
    which an unmeasured compiler would not reproduce.
    """
    flat = logs.reshape(-1, logs.shape[-1]).T
    spread = flat.std(axis=0)
    plain = flat[:, spread > 1e-9] / spread[spread > 1e-9]
    plain /= np.sqrt(max(plain.shape[1], 1))  # typical distance of a sample from the mean: one
    features = np.hstack([plain, descriptions])
    waves = features @ np.random.default_rng(0).normal(size=(features.shape[1], NUM_WAVES)) / WIDTH
    return np.hstack(
        [plain, np.cos(waves) / np.sqrt(NUM_WAVES), np.sin(waves) / np.sqrt(NUM_WAVES)]
    )


def _scores(names: Sequence[str], logs: Floats) -> dict[str, tuple[float, ...]]:
    means = np.exp(logs.mean(axis=-1))
    return {name: tuple(row) for name, row in zip(names, means.tolist(), strict=True)}


def _error(logs: Floats, descriptions: Floats, families: Sequence[str], count: int) -> Error:
    random = np.random.default_rng(0)
    num_compilers = len(logs)
    of_compilers: list[float] = []
    of_compilers_random: list[float] = []
    if num_compilers > 1:
        for left_out in range(num_compilers):
            for pool in _shares(logs.shape[-1], count, random):
                held_out, others = (
                    logs[left_out][:, pool],
                    np.delete(logs, left_out, axis=0)[:, :, pool],
                )
                chosen = herd(_features(others, descriptions[pool]), count)
                of_compilers.append(_distance(held_out, chosen, held_out))
                of_compilers_random += _random_distances(held_out, count, held_out, random)
    fold_of = np.array([_fold(family) for family in families])
    of_graphs: list[float] = []
    of_graphs_random: list[float] = []
    for fold in range(NUM_FOLDS):
        seen, unseen = np.flatnonzero(fold_of != fold), np.flatnonzero(fold_of == fold)
        if len(unseen) == 0 or len(seen) < count:
            continue
        chosen = herd(_features(logs[:, :, seen], descriptions[seen]), count)
        for compiler_logs in logs:
            of_graphs.append(_distance(compiler_logs[:, seen], chosen, compiler_logs[:, unseen]))
            of_graphs_random += _random_distances(
                compiler_logs[:, seen], count, compiler_logs[:, unseen], random
            )
    return Error(
        count,
        *(
            float(np.mean(distances)) if distances else None
            for distances in (of_compilers, of_compilers_random, of_graphs, of_graphs_random)
        ),
    )


def _shares(
    num_samples: int, count: int, random: np.random.Generator
) -> Iterator[npt.NDArray[np.int64]]:
    """Yield the samples to choose from: `NUM_TRIES` random shares, or all samples once."""
    size = int(SHARE_TRIED * num_samples)
    if size < 2 * count:
        yield np.arange(num_samples)
        return
    for _ in range(NUM_TRIES):
        yield np.sort(random.choice(num_samples, size, replace=False))


def _fold(family: str) -> int:
    return int.from_bytes(hashlib.blake2b(family.encode(), digest_size=4).digest()) % NUM_FOLDS


def _distance(logs: Floats, chosen: Sequence[int] | npt.NDArray[np.int64], of_all: Floats) -> float:
    """Return the deviation of S(t) of a subset from that of `of_all`, as a ratio minus 1."""
    difference = logs[:, chosen].mean(axis=1) - of_all.mean(axis=1)
    return float(np.expm1(np.abs(difference)).mean())


def _random_distances(
    logs: Floats, count: int, of_all: Floats, random: np.random.Generator
) -> list[float]:
    return [
        _distance(logs, random.choice(logs.shape[1], count, replace=False), of_all)
        for _ in range(NUM_RANDOM // NUM_FOLDS)
    ]


def _pair(compiler_error: float | None, random_error: float | None) -> str:
    if compiler_error is None or random_error is None:
        return "-"
    return f"{100 * compiler_error:.1f} % ({100 * random_error:.1f} %)"
