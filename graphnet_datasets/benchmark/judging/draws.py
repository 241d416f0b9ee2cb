"""Judging of random outputs by their distribution over repeated draws.

Eager and the candidate are called many times on the same inputs with different seeds. Each draw of
an output is summarized by statistics of all its elements. The signs of the differences between the
arms test each statistic (`sign_flips`). Additional draws of eager, in neither sample, show which
values an element can take if these are few, such as 0 and v after a dropout.
"""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from ...scores.formats import decode_wide
from ...scores.tolerance import required_t, tolerances
from .calls import DECIDED_T
from .correctness import Output
from .sign_flips import Floats, normal_scores, repetition_p, sign_flip_p

LEVEL = 1e-6
"""The maximum probability of rejecting a correct candidate, over all outputs of a record."""
NOISE_T = -4.0
"""The tolerance below which rounding alone may move an element."""
MAX_VALUES = 3
"""The number of distinct values of an element in eager's additional draws up to which other values
count as missed."""
MAX_PAIRS_OF_OUTPUTS = 45
_THRESHOLDS = (-2.1, -1.1, -0.43, 0.43, 1.1, 2.1)
"""In standard deviations; no common distribution over few values has a value close to them."""
_MOST = 50.0
"""The clipping limit of standardized elements, so that one element of a heavy tail cannot hide
others."""
_MOST_LAG = 2**11
_SURE = 4.5
"""The number of standard errors by which the arms must differ in an element to select it."""
_INFINITE, _NAN = 1e300, 2e300
"""Finite substitutes for infinity and NaN in comparisons of values."""

_Statistics = dict[str, tuple[Floats, float]]
"""By name: a value per draw, and the smallest difference that rounding does not explain."""


@dataclasses.dataclass(frozen=True)
class Draws:
    """One output in repeated draws on the same inputs.

    `eager` and `candidate`, (draws, elements), are paired draws. `further`, (draws, elements),
    contains additional draws of eager. The elements are every `step`-th element of an output of
    shape `shape`.
    """

    dtype: str
    shape: tuple[int, ...]
    eager: npt.NDArray
    candidate: npt.NDArray
    further: npt.NDArray
    step: int = 1


@dataclasses.dataclass(frozen=True)
class DrawVerdict:
    """The result of the tests of one output.

    `p_value` is the smallest p-value of all tests, multiplied by the number of tests, and `test`
    names that test. `min_t` is the smallest t at which the candidate's elements agree with the
    values of the same elements in eager's draws, or -inf if no element takes few values.
    """

    p_value: float
    test: str
    min_t: float = -math.inf


def judge_draws(outputs: Sequence[Draws]) -> list[DrawVerdict]:
    """Return a verdict for each output of a graph.

    >>> generator = np.random.default_rng(0)
    >>> def dropout(probability):
    ...     is_kept = generator.random((96, 256)) >= probability
    ...     return (is_kept / (1 - probability)).astype(np.float32)
    >>> eager, further, right, wrong = map(dropout, (0.5, 0.5, 0.5, 0.4))
    >>> (verdict,) = judge_draws([Draws("float32", (256,), eager, right, further)])
    >>> verdict.p_value > LEVEL
    True
    >>> (verdict,) = judge_draws([Draws("float32", (256,), eager, wrong, further)])
    >>> verdict.p_value > LEVEL, verdict.test
    (False, 'values')
    """
    scaled = [_Scaled(draws) for draws in outputs]
    tests = [_tests_of_output(*pair) for pair in zip(outputs, scaled, strict=True)]
    pairs = list(itertools.combinations(range(len(outputs)), 2))
    if len(pairs) > MAX_PAIRS_OF_OUTPUTS:
        pairs = list(itertools.pairwise(range(len(outputs))))
    for first, second in pairs:
        left, right = scaled[first], scaled[second]
        size = min(left.z.shape[1], right.z.shape[1])
        if size and len(left.z) == len(right.z):
            products = (left.z[:, :size] * right.z[:, :size]).mean(axis=1)
            noise = left.noise + right.noise
            tests[second][f"products with output {first}"] = _test(products, noise)
    return [
        _verdict(own_tests, own_scaled.min_t(draws))
        for own_tests, own_scaled, draws in zip(tests, scaled, outputs, strict=True)
    ]


def judge_calls(calls: Sequence[tuple[Output, Output]]) -> DrawVerdict:
    """Return a verdict for one output in calls with different inputs.

    `calls` contains the outputs of eager and of the candidate in each call. The statistics of a
    call use elements standardized by the mean and deviation of both arms together.
    """
    summaries: list[_Statistics] = []
    for pair in calls:
        dtype = pair[0].dtype
        numbers = np.stack([_numbers(output.elements[None], dtype)[0] for output in pair])
        z, noise = _standardise(numbers.reshape(-1, 1), dtype)
        summaries.append(_statistics(numbers, z.reshape(numbers.shape), noise, dtype))
    tests = {}
    for name in summaries[0] if summaries else ():
        # An output with a data-dependent shape may be too small for a statistic in some calls.
        of_calls = [statistics[name] for statistics in summaries if name in statistics]
        values = np.array([values for values, _ in of_calls])
        tests[f"{name} of timed calls"] = _test(
            values.T.reshape(-1), max(grid for _, grid in of_calls)
        )
    return _verdict(tests)


def stored_draw(draws: Draws) -> Draws:
    """Return the draws of a candidate that always repeats one draw of eager.

    >>> eager = np.eye(4, dtype=np.float32)
    >>> stored_draw(Draws("float32", (4,), eager, eager, eager[2:])).candidate[:, 2].tolist()
    [1.0, 1.0, 1.0, 1.0]
    """
    repeated = np.repeat(draws.further[:1], len(draws.candidate), axis=0)
    return dataclasses.replace(draws, candidate=repeated)


class _Scaled:
    """The draws of an output as numbers, and standardized per element.

    Everything except the values of `further` is symmetric in the two arms.
    """

    def __init__(self, draws: Draws) -> None:
        dtype = draws.dtype
        self.count = len(draws.eager)
        self.numbers = np.concatenate(
            [_numbers(draws.eager, dtype), _numbers(draws.candidate, dtype)]
        )
        self.z, self.noise = _standardise(self.numbers, dtype)
        further = _comparable(_numbers(draws.further, dtype))
        self._allowed = _allowed(further, dtype, DECIDED_T)
        ordered = np.sort(further, axis=0)
        steps = np.diff(ordered, axis=0, prepend=ordered[:1])
        values = np.cumsum(steps > self._allowed, axis=0)
        self._has_few = values[-1] < MAX_VALUES
        # Draws of a continuous distribution are close to each other, but not equal.
        self._is_exact = self._has_few & ((steps > 0).sum(axis=0) == values[-1])
        self._ranges = [
            (
                np.where(values == place, ordered, np.inf).min(axis=0),
                np.where(values == place, ordered, -np.inf).max(axis=0),
            )
            for place in range(MAX_VALUES)
        ]

    def missed(self) -> Floats:
        """Return the fraction of elements of each draw whose values never occur in `further`."""
        numbers = _comparable(self.numbers)
        is_missed = np.broadcast_to(self._has_few, numbers.shape).copy()
        for low, high in self._ranges:
            is_missed &= ~((numbers >= low - self._allowed) & (numbers <= high + self._allowed))
        return is_missed.mean(axis=1)

    def min_t(self, draws: Draws) -> float:
        """Return the smallest t at which the candidate's elements agree with eager's values."""
        candidate = _comparable(self.numbers[self.count :])
        t = -math.inf
        for low, _ in self._ranges:
            is_value = self._is_exact & (np.abs(low) < _INFINITE)
            value = np.where(is_value, low, 0.0)
            differences = np.abs(candidate - value)
            is_near = is_value & (differences <= self._allowed)
            worst = np.where(is_near, differences, 0.0).max(axis=0, initial=0.0)
            t = max(t, required_t(worst, np.abs(value), draws.dtype))
        return min(t, DECIDED_T)


def _tests_of_output(draws: Draws, scaled: _Scaled) -> dict[str, float]:
    z, noise, count = scaled.z, scaled.noise, scaled.count
    lags = _lags(draws.shape, draws.step, z.shape[1])
    # This test comes first because it is the most informative, and the first of equal p-values
    # wins.
    statistics: _Statistics = {"values": (scaled.missed(), 0.0)}
    statistics |= _statistics(scaled.numbers, z, noise, draws.dtype, lags)
    tests = {name: _test(values, grid) for name, (values, grid) in statistics.items()}
    if count > 1:
        # Pairs of draws of one arm are exchanged with the same pairs of the other arm.
        arms = (z[:count], z[count:])
        ends = count // 2 * 2
        products = [(arm[0:ends:2] * arm[1:ends:2]).mean(axis=1) for arm in arms]
        tests["successive draws"] = _test(np.concatenate(products), 2 * noise)
    hashes = ([draw.tobytes() for draw in arm] for arm in (draws.eager, draws.candidate))
    tests["repeated draws"] = repetition_p(*hashes)
    tests["means of elements"] = _test_selected(z, scaled)
    tests["squares of elements"] = _test_selected(z**2, scaled)
    return tests


def _statistics(
    numbers: Floats, z: Floats, noise: float, dtype: str, lags: Sequence[int] = (1,)
) -> _Statistics:
    """Return statistics of each draw, computed from raw and standardized (`z`) elements."""
    is_finite = np.isfinite(numbers)
    atol, _ = tolerances(NOISE_T, dtype)
    statistics: _Statistics = {
        "mean": (z.mean(axis=1), noise),
        "mean square": ((z**2).mean(axis=1), 2 * noise),
        "share of zeros": ((np.abs(numbers) <= atol).mean(axis=1), 0.0),
        "share of NaN": (np.isnan(numbers).mean(axis=1), 0.0),
        "share of infinities": ((~is_finite & ~np.isnan(numbers)).mean(axis=1), 0.0),
    }
    for threshold in _THRESHOLDS:
        statistics[f"share above {threshold}"] = ((z > threshold).mean(axis=1), noise)
    if atol == 0:
        ordered = np.sort(numbers, axis=1)
        changes = (np.diff(ordered, axis=1) != 0).sum(axis=1)
        statistics["number of values"] = (changes.astype(np.float64), 0.0)
    for lag in lags:
        if lag < z.shape[1]:
            products = (z[:, :-lag] * z[:, lag:]).mean(axis=1)
            statistics[f"products at distance {lag}"] = (products, 2 * noise)
    return statistics


def _test(values: Floats, grid: float) -> float:
    """Return the p-value of a statistic, for its location and its spread, corrected for both tests.

    `values`, (2 m,), contains eager's values before the candidate's.
    """
    if grid > 0:
        values = np.round((values - np.median(values)) / grid)
    scores = normal_scores(values)
    half = len(scores) // 2
    place = sign_flip_p(scores[:half], scores[half:])
    spread = sign_flip_p(scores[:half] ** 2, scores[half:] ** 2)
    return min(1.0, 2 * min(place, spread))


def _test_selected(powers: Floats, scaled: _Scaled) -> float:
    """Return the p-value of the elements at which the arms differ in the first half of the draws.

    The test uses the second half, which does not affect the selection.
    """
    count = scaled.count
    half = count // 2
    if half < 2:
        return 1.0
    eager, candidate = powers[:count], powers[count:]
    difference = eager[:half].mean(axis=0) - candidate[:half].mean(axis=0)
    variance = eager[:half].var(axis=0, ddof=1) + candidate[:half].var(axis=0, ddof=1)
    is_sure = np.abs(difference) > np.maximum(_SURE * np.sqrt(variance / half), scaled.noise)
    weights = np.where(is_sure, difference, 0.0)
    if not is_sure.any():
        return 1.0
    values = np.concatenate([eager[half:] @ weights, candidate[half:] @ weights])
    return _test(values / np.abs(weights).sum(), scaled.noise)


def _verdict(tests: dict[str, float], min_t: float = -math.inf) -> DrawVerdict:
    if not tests:
        return DrawVerdict(1.0, "")
    name = min(tests, key=lambda test: tests[test])
    return DrawVerdict(min(1.0, len(tests) * tests[name]), name, min_t)


def _standardise(numbers: Floats, dtype: str) -> tuple[Floats, float]:
    """Return standardized columns and the noise in units of their deviation.

    Columns whose values all agree at `DECIDED_T` become 0, since they are not random.
    """
    is_finite = np.isfinite(numbers)
    count = np.maximum(is_finite.sum(axis=0), 1)
    filled = np.where(is_finite, numbers, 0.0)
    center = filled.sum(axis=0) / count
    deviations = np.where(is_finite, filled - center, 0.0)
    spread = np.sqrt((deviations**2).sum(axis=0) / count)
    reach = deviations.max(axis=0, initial=0.0) - deviations.min(axis=0, initial=0.0)
    is_random = (reach > _allowed(filled, dtype, DECIDED_T)) & (spread > 0) & np.isfinite(spread)
    divisor = np.where(is_random, spread, 1.0)
    z = np.where(is_random, np.clip(deviations / divisor, -_MOST, _MOST), 0.0)
    noise = _allowed(filled, dtype, NOISE_T) / divisor
    return z, float(noise[is_random].mean()) if is_random.any() else 0.0


def _allowed(numbers: Floats, dtype: str, t: float) -> Floats:
    """Return the allowed difference between values of each column at t."""
    atol, rtol = tolerances(t, dtype)
    size = np.where(np.abs(numbers) < _INFINITE, np.abs(numbers), 0.0).max(axis=0, initial=0.0)
    return atol + rtol * size


def _lags(shape: tuple[int, ...], step: int, size: int) -> list[int]:
    """Return the distances in the excerpt at which elements are compared with each other.

    These are powers of two and, for each axis, the smallest distance that is a multiple of its
    stride.
    """
    lags = {2**power for power in range(12) if 2**power <= min(_MOST_LAG, size // 2)}
    for axis in range(len(shape)):
        stride = math.prod(shape[axis + 1 :])
        if stride and (lag := stride // math.gcd(stride, step)) < size:
            lags.add(lag)
    return sorted(lags)


def _numbers(elements: npt.NDArray, dtype: str) -> Floats:
    """Return elements, (draws, …), as float64, (draws, n); complex elements become two numbers."""
    flat = np.ascontiguousarray(elements).reshape(len(elements), -1)
    decoded = np.ascontiguousarray(decode_wide(flat, dtype))
    if decoded.dtype.kind == "c":
        decoded = decoded.view(np.float64)
    return decoded.astype(np.float64, copy=False)


def _comparable(numbers: Floats) -> Floats:
    return np.nan_to_num(numbers, nan=_NAN, posinf=_INFINITE, neginf=-_INFINITE)
