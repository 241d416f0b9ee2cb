"""`min_t`: the smallest tolerance at which an output is correct.

At tolerance t, an element x passes against its reference r if |x - r| <= 10^(a t) + 10^(r t) |r|,
where a and r are the exponents of its dtype (GraphNet technical report, arXiv 2510.24035, appendix
A). An element that passes at t also passes at every greater t, so the smallest such t suffices.

All computations use float64. The dtypes below have at most 53 bits of mantissa, so differences are
exact or rounded once.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import numpy.typing as npt

from .formats import decode, decode_wide

Floats = npt.NDArray[np.float64]

_FLOAT32_EXPONENTS = (1.0, 5.886 / 5)
ATOL_RTOL_EXPONENTS: Mapping[str, tuple[float, float]] = {
    "float16": (1.0, 3 / 5),
    "complex32": (1.0, 3 / 5),
    "bfloat16": (1.0, 1.796 / 5),
    **dict.fromkeys(
        ("float32", "complex64", "quint8", "quint2x4", "quint4x2", "qint8", "qint32"),
        _FLOAT32_EXPONENTS,
    ),
    "float64": (7 / 5, 7 / 5),
    "complex128": (7 / 5, 7 / 5),
}
"""(a, r) of each dtype with a tolerance; elements of other dtypes must be equal."""

_ROUNDING_STEPS: Mapping[str, float] = {
    "float16": 2.0**-10,
    "complex32": 2.0**-10,
    "bfloat16": 2.0**-7,
    "float32": 2.0**-23,
    "complex64": 2.0**-23,
    "float64": 2.0**-52,
    "complex128": 2.0**-52,
}
MAX_UNIFORM_STEPS = 4
"""Maximum difference, in rounding steps, between elements that should be equal."""

_CHUNK = 2**15
"""Number of elements processed together: 256 KiB of float64, which fits the cache."""
_NEWTON_STEPS = 60
_QUIETLY = np.errstate(over="ignore", invalid="ignore")
"""Outputs may contain any values: overflow becomes infinity, and signalling NaNs become NaN."""


def tolerances(t: float, dtype: str) -> tuple[float, float]:
    """Return atol and rtol of a dtype at tolerance t; (0, 0) for a dtype that must be equal.

    >>> tolerances(-2, "float64")
    (0.001584893192461114, 0.001584893192461114)
    """
    if dtype not in ATOL_RTOL_EXPONENTS:
        return 0.0, 0.0
    a, r = ATOL_RTOL_EXPONENTS[dtype]
    return _power_of_ten(a * t), _power_of_ten(r * t)


def rounding_step(dtype: str) -> float:
    """Return the distance from 1 to the next number of a dtype; 0 for an exact dtype.

    >>> rounding_step("float32") == 2**-23, rounding_step("int64")
    (True, 0.0)
    """
    return _ROUNDING_STEPS.get(dtype, 0.0)


@_QUIETLY
def is_uniform(elements: npt.NDArray, dtype: str) -> bool:
    """Return whether all elements are equal up to `MAX_UNIFORM_STEPS` rounding steps.

    The mean of such elements is each element itself, so it is no control. A single element and an
    empty array are uniform.

    >>> is_uniform(np.array([3.5], "f4"), "float32"), is_uniform(np.array([1.0, 2.0]), "float64")
    (True, False)
    """
    if elements.size < 2:
        return True
    first = decode_wide(elements.reshape(-1)[:1], dtype)
    allowed = MAX_UNIFORM_STEPS * rounding_step(dtype) * np.abs(first)
    return all(
        bool((np.abs(decode_wide(chunk, dtype) - first) <= allowed).all())
        for chunk in _chunks(elements)
    )


def largest_magnitude(zeros_t: float, dtype: str) -> float:
    """Return the largest magnitude of elements whose `null_t` is `zeros_t`.

    It inverts |r| = 10^(a t) + 10^(r t) |r|. NaN for a dtype that must be equal.

    >>> zeros_t = null_t(np.array([0.25, -2.0], "f4"), "float32")
    >>> round(largest_magnitude(zeros_t, "float32"), 6)
    2.0
    """
    if dtype not in ATOL_RTOL_EXPONENTS:
        return math.nan
    if zeros_t == -math.inf:
        return 0.0
    atol, rtol = tolerances(zeros_t, dtype)
    return atol / (1 - rtol) if rtol < 1 else math.inf


@_QUIETLY
def passes_at(actual: npt.NDArray, reference: npt.NDArray, dtype: str, t: float) -> bool:
    """Check every element directly at tolerance t and return whether all pass."""
    atol, rtol = tolerances(t, dtype)
    for pairs in _finite_chunks(actual, reference, dtype):
        if pairs is None or (pairs[0] > atol + rtol * pairs[1]).any():
            return False
    return True


@_QUIETLY
def min_t(actual: npt.NDArray, reference: npt.NDArray, dtype: str) -> float:
    """Return the smallest t at which `actual` passes against `reference`.

    The result is -inf if all elements are equal and +inf if no t suffices: only one side is finite
    (NaN equals NaN, and an infinity equals itself), or elements differ in a dtype without a
    tolerance. Both arrays have the same shape and contain elements of `dtype`, with bfloat16,
    float8 and complex32 as bit patterns (see `formats.decode`).

    The result is within 1e-9 of the exact number, and on the correct side of every integer t.

    >>> min_t(np.array([1.5], np.float32), np.array([1.0], np.float32), "float32")
    -0.555616416742445
    """
    if dtype not in ATOL_RTOL_EXPONENTS:
        return -math.inf if _is_equal(actual, reference, dtype) else math.inf
    search = _Search(*ATOL_RTOL_EXPONENTS[dtype])
    for pairs in _finite_chunks(actual, reference, dtype):
        if pairs is None:
            return math.inf
        search.add(*pairs)
    t = search.t
    if math.isfinite(t) and abs(t - round(t)) < 1e-9:
        whole = float(round(t))
        is_passing = passes_at(actual, reference, dtype, whole)
        t = min(t, whole) if is_passing else max(t, math.nextafter(whole, math.inf))
    return t


@_QUIETLY
def oracle_t(actual: npt.NDArray, oracle: npt.NDArray, dtype: str) -> float | None:
    """Return the smallest t at which elements of `dtype` pass against a float64 oracle.

    `oracle` has the shape of `actual` and the dtype float64, complex128 or, if `dtype` has no
    tolerance, `dtype` itself. Returns None if a dtype without a tolerance differs from the
    oracle's: a value rounded to float8, for example, cannot equal it. Equal infinities and NaN
    pass.

    >>> oracle_t(np.array([1.5], np.float32), np.array([1.0]), "float32")
    -0.555616416742445
    """
    if dtype not in ATOL_RTOL_EXPONENTS:
        if actual.dtype != oracle.dtype:
            return None
        return -math.inf if _is_equal(actual, oracle, dtype) else math.inf
    search = _Search(*ATOL_RTOL_EXPONENTS[dtype])
    for x_chunk, r_chunk in zip(_chunks(actual), _chunks(oracle), strict=True):
        x, r = decode_wide(x_chunk, dtype), decode_wide(r_chunk, str(r_chunk.dtype))
        is_finite = np.isfinite(x) & np.isfinite(r)
        if not _is_same(x[~is_finite], r[~is_finite]):
            return math.inf
        x, r = x[is_finite], r[is_finite]
        search.add(np.abs(x - r), np.abs(r))
    return search.t


@_QUIETLY
def null_t(reference: npt.NDArray, dtype: str) -> float:
    """Return the smallest t at which zeros in place of every element pass.

    From this t on, the check is vacuous. Only the largest magnitude matters: |r| <= 10^(a t) +
    10^(r t) |r| is harder to satisfy for larger |r| at every t below 0, and zeros always pass at t
    = 0.
    """
    if dtype not in ATOL_RTOL_EXPONENTS:
        return math.inf if decode(reference, dtype).any() else -math.inf
    largest = 0.0
    for chunk in _chunks(reference):
        magnitude = float(np.abs(decode_wide(chunk, dtype)).max())
        if not math.isfinite(magnitude):
            return math.inf
        largest = max(largest, magnitude)
    return required_t([largest], [largest], dtype)


@_QUIETLY
def null_mean_t(reference: npt.NDArray, dtype: str) -> float:
    """Return the smallest t at which the mean of all elements in place of every element passes.

    For real numbers, it suffices to check four elements: the smallest, the largest, and the closest
    to zero on either side. (For a mean of at least 0, elements between 0 and the mean are harder to
    satisfy the closer they are to 0, and elements above the mean the larger they are. Of negative
    elements, the smallest is hardest if t must be below 0, else the closest to zero. Negative means
    mirror this.)
    """
    if dtype not in ATOL_RTOL_EXPONENTS:
        numbers = decode(reference, dtype).reshape(-1)
        return -math.inf if (numbers == numbers[:1]).all() else math.inf
    total, least, greatest, above, below = 0.0, math.inf, -math.inf, math.inf, -math.inf
    if reference.size == 0:
        return -math.inf
    if "complex" in dtype:
        return _null_mean_t_complex(reference, dtype)
    for chunk in _chunks(reference):
        numbers = decode_wide(chunk, dtype)
        chunk_total = float(numbers.sum())
        if not math.isfinite(chunk_total) and not np.isfinite(numbers).all():
            return math.inf
        total += chunk_total
        least, greatest = min(least, float(numbers.min())), max(greatest, float(numbers.max()))
        above = min(above, float(numbers.min(initial=math.inf, where=numbers >= 0)))
        below = max(below, float(numbers.max(initial=-math.inf, where=numbers <= 0)))
    mean = total / reference.size
    decisive = [value for value in (least, greatest, above, below) if math.isfinite(value)]
    return required_t(
        [abs(value - mean) for value in decisive], [abs(value) for value in decisive], dtype
    )


def required_t(
    differences: Sequence[float] | Floats, magnitudes: Sequence[float] | Floats, dtype: str
) -> float:
    """Return the smallest t at which elements that differ by `differences` pass.

    `magnitudes` are those of the reference. A dtype without a tolerance passes at no t (infinity)
    unless all differences are 0.

    >>> required_t([0.5], [1.0], "float32"), required_t([0.0], [1.0], "int64")
    (-0.555616416742445, -inf)
    """
    if dtype not in ATOL_RTOL_EXPONENTS:
        return math.inf if np.any(differences) else -math.inf
    search = _Search(*ATOL_RTOL_EXPONENTS[dtype])
    search.add(np.array(differences), np.array(magnitudes))
    return search.t


class _Search:
    """Finds the smallest t at which every pair (|x - r|, |r|) so far passes.

    Only pairs that fail at the current t can raise it. The search solves for the worst of them and
    repeats until none fails, so nearly every element takes one comparison.
    """

    def __init__(self, a: float, r: float) -> None:
        self._a, self._r = a, r
        self.t = -math.inf

    def add(self, differences: Floats, magnitudes: Floats) -> None:
        """Add pairs as arrays of shape (n,)."""
        while True:
            allowed = _power_of_ten(self._r * self.t) * magnitudes
            allowed += _power_of_ten(self._a * self.t)
            # Prevent the solved pair from failing again because of rounding.
            allowed *= 1 + 1e-13
            is_failing = differences > allowed
            if not is_failing.any():
                return
            differences, magnitudes = differences[is_failing], magnitudes[is_failing]
            if self.t == -math.inf:
                worst = int((differences / (1 + magnitudes)).argmax())
            else:
                worst = int((differences / allowed[is_failing]).argmax())
            solved = self._solve(float(differences[worst]), float(magnitudes[worst]))
            self.t = max(solved, math.nextafter(self.t, math.inf))

    def _solve(self, difference: float, magnitude: float) -> float:
        """Return the t at which 10^(a t) + m 10^(r t) = d, by Newton's method on its logarithm.

        log10 of the left side is convex and increasing in t, so the steps approach the solution
        from above.
        """
        goal = math.log10(difference) if math.isfinite(difference) else 308.5
        offset = math.log10(magnitude) if magnitude > 0 else -math.inf
        # Start where one of the two terms alone suffices, which is at or above the solution.
        t = min(goal / self._a, (goal - offset) / self._r)
        for _ in range(_NEWTON_STEPS):
            first, second = self._a * t, self._r * t + offset
            largest = max(first, second)
            first, second = 10 ** (first - largest), 10 ** (second - largest)
            excess = largest + math.log10(first + second) - goal
            slope = (self._a * first + self._r * second) / (first + second)
            step = excess / slope
            t -= step
            if abs(step) <= 1e-15 * max(1.0, abs(t)):
                break
        return t


def _null_mean_t_complex(reference: npt.NDArray, dtype: str) -> float:
    total = sum(complex(decode_wide(chunk, dtype).sum()) for chunk in _chunks(reference))
    mean = total / reference.size
    search = _Search(*ATOL_RTOL_EXPONENTS[dtype])
    for chunk in _chunks(reference):
        numbers = decode_wide(chunk, dtype)
        if not np.isfinite(numbers).all():
            return math.inf
        search.add(np.abs(numbers - mean), np.abs(numbers))
    return search.t


def _is_equal(actual: npt.NDArray, reference: npt.NDArray, dtype: str) -> bool:
    actual_numbers, right = decode(actual, dtype), decode(reference, dtype)
    return bool(np.array_equal(actual_numbers, right, equal_nan=actual_numbers.dtype.kind in "fc"))


def _finite_chunks(
    actual: npt.NDArray, reference: npt.NDArray, dtype: str
) -> Iterator[tuple[Floats, Floats] | None]:
    """Yield |x - r| and |r| of the elements that are finite in both, in chunks.

    Yields None if an element is not finite and differs between the arrays.
    """
    for x_chunk, r_chunk in zip(_chunks(actual), _chunks(reference), strict=True):
        if np.array_equal(x_chunk, r_chunk):
            continue
        x, r = decode_wide(x_chunk, dtype), decode_wide(r_chunk, dtype)
        differences, magnitudes = np.abs(x - r), np.abs(r)
        total = float(differences.sum())
        if not math.isfinite(total):
            is_finite = np.isfinite(x) & np.isfinite(r)
            if not _is_same(x[~is_finite], r[~is_finite]):
                yield None
                return
            differences, magnitudes = differences[is_finite], magnitudes[is_finite]
        yield differences, magnitudes


def _is_same(x: npt.NDArray, r: npt.NDArray) -> bool:
    return bool(((x == r) | (np.isnan(x) & np.isnan(r))).all())


def _chunks(array: npt.NDArray) -> Iterator[npt.NDArray]:
    flat = array.reshape(-1)
    for start in range(0, flat.size, _CHUNK):
        yield flat[start : start + _CHUNK]


def _power_of_ten(exponent: float) -> float:
    """Return 10^exponent, 0 or inf beyond float64's range."""
    if exponent > 308:
        return math.inf
    return 0.0 if exponent == -math.inf else 10.0**exponent
