"""Statistics that a capture records for a tensor, and the rules for storing its elements.

Each framework computes figures for chunks of its tensors. Combining chunks, rounding, and the
choice of tensors stored in full are implemented here, so that all frameworks record the same data.
"""

from __future__ import annotations

import dataclasses
import math
import zlib
from collections.abc import Callable, Iterable

from ..sample import Statistics
from ..sample.vocabulary import Role

MAX_STORED_ELEMENTS = 1024
"""Integers, booleans and masks up to this size are stored; the limit is GraphNet's."""

MAX_CONSTANT_ELEMENTS = 2**16
"""Constants of the traced program up to this size are always stored."""

MAX_STRUCTURED_ELEMENTS = 2**20
"""Larger tensors are not checked for structure."""

STRUCTURED_RATIO = 0.1
"""A tensor is structured (a range, a mask, an index table) if deflate compresses it to this
ratio."""

MASK_MAGNITUDE = 1e4
"""A float tensor with a larger absolute value is an attention mask, added before a softmax."""

CHUNK = 2**22
"""Number of elements converted to float64 at a time (32 MiB), independent of the tensor's size."""


@dataclasses.dataclass(slots=True)
class Moments:
    """Mean, variance and range of elements that are added in chunks.

    >>> moments = Moments()
    >>> moments.add(2, mean=2.0, squares=2.0, low=1.0, high=3.0)
    >>> moments.add(1, mean=8.0, squares=0.0, low=8.0, high=8.0)
    >>> moments.statistics(limit=100.0)
    Statistics(mean=4.0, std=2.944, min=1.0, max=8.0, is_measured=True)
    """

    count: int = 0
    mean: float = 0.0
    squares: float = 0.0
    low: float = math.inf
    high: float = -math.inf

    def add(self, count: int, *, mean: float, squares: float, low: float, high: float) -> None:
        """Add a chunk of `count` elements; `squares` is the sum of squared deviations from `mean`.

        Chan's parallel update: Chan, Golub and LeVeque, "Updating formulae and a pairwise algorithm
        for computing sample variances", 1979.
        """
        delta, total = mean - self.mean, self.count + count
        self.squares += squares
        self.squares += delta * delta * self.count * count / total
        self.mean += delta * count / total
        self.count = total
        self.low, self.high = min(self.low, low), max(self.high, high)

    def statistics(self, limit: float | None) -> Statistics | None:
        """Return the statistics with four significant digits, or None if no element was added.

        `limit` is the largest finite number of a floating-point dtype; rounding does not exceed it.
        With None the range stays exact, since the range of integers bounds indices.
        """
        if not self.count:
            return None
        if self.low == self.high:  # a rounding error of the mean would give a nonzero std
            self.mean, self.squares = self.low, 0.0
        low, high = self.low, self.high
        if limit is not None:
            low, high = max(round_significant(low), -limit), min(round_significant(high), limit)
        spread = math.sqrt(self.squares / self.count)
        return Statistics(round_significant(self.mean), round_significant(spread), low, high)


def round_significant(value: float, digits: int = 4) -> float:
    """Round to `digits` significant digits, to hide differences in summation order.

    >>> round_significant(0.0199963), round_significant(-12345.6)
    (0.02, -12350.0)
    """
    rounded = float(f"{value:.{digits - 1}e}")
    return rounded if math.isfinite(rounded) else value


def must_store(
    role: Role,
    count: int,
    *,
    is_inexact: bool,
    is_mask: Callable[[], bool],
    is_uniform: Callable[[], bool],
    is_structured: Callable[[], bool],
) -> bool:
    """Return whether a tensor drawn from its statistics would change the behavior of its graph.

    Stored are constants of the traced program; small or structured integers and booleans, which may
    be indices, positions or masks; and float masks, which contain infinities or very large negative
    numbers. Parameters are never stored. `is_inexact` means floating-point or complex elements, and
    `is_uniform` that all elements are equal.

    >>> asked = dict(is_mask=lambda: False, is_uniform=lambda: False, is_structured=lambda: False)
    >>> must_store("input", 100, is_inexact=False, **asked)
    True
    >>> must_store("input", 100, is_inexact=True, **asked)
    False
    """
    if role == "parameter" or count == 0:
        return False
    if role == "constant" and count <= MAX_CONSTANT_ELEMENTS:
        return True
    if count > MAX_STRUCTURED_ELEMENTS:
        return False
    if is_inexact and role != "constant" and not is_mask():
        return False
    if count <= MAX_STORED_ELEMENTS and not (is_inexact and role == "constant"):
        return True
    if not is_inexact and is_uniform():
        return False  # the range is sufficient
    return is_structured()


def is_structured(encodings: Iterable[bytes]) -> bool:
    """Return whether at least one encoding of the elements compresses well.

    >>> is_structured([bytes(1000)]), is_structured([bytes(range(256))])
    (True, False)
    """
    return any(
        len(zlib.compress(encoding, 1)) <= STRUCTURED_RATIO * len(encoding)
        for encoding in encodings
    )
