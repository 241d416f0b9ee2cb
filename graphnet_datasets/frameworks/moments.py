"""What both frameworks' captures record of a tensor's elements, and by which rules.

Each framework takes its tensors apart in its own way and hands pieces over as figures; how pieces
add up, how figures are rounded and what is stored in full is decided here, so that they record
alike.
"""

from __future__ import annotations

import dataclasses
import math
import zlib
from collections.abc import Callable, Iterable

from ..sample import Statistics
from ..sample.vocabulary import Role

MAX_STORED_ELEMENTS = 1024
"""Integers, booleans and masks up to this size are stored; the value is GraphNet's."""

MAX_CONSTANT_ELEMENTS = 2**16
"""Constants of the traced program up to this size are always stored."""

MAX_STRUCTURED_ELEMENTS = 2**20
"""Larger tensors are never looked at for structure."""

STRUCTURED_RATIO = 0.1
"""A tensor is structured (a range, a mask, an index table) if deflate makes it this small."""

MASK_MAGNITUDE = 1e4
"""Floats beyond it are a mask's: scores that a softmax is to forget."""

CHUNK = 2**22
"""Elements that are converted to float64 at a time: 32 MiB, whatever the tensor's size."""


@dataclasses.dataclass(slots=True)
class Moments:
    """Mean, spread and range of elements that come in chunks.

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
        """Add a chunk of `count` elements; `squares` sums their squared deviations from `mean`.

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
        """Return the figures with four significant digits; None where there was no element.

        `limit` is the largest number of a floating-point dtype, which rounding away from zero may
        not leave. With None the range stays exact: that of integers bounds indices.
        """
        if not self.count:
            return None
        if self.low == self.high:  # rounding in the mean must not make a constant look like noise
            self.mean, self.squares = self.low, 0.0
        low, high = self.low, self.high
        if limit is not None:
            low, high = max(round_significant(low), -limit), min(round_significant(high), limit)
        spread = math.sqrt(self.squares / self.count)
        return Statistics(round_significant(self.mean), round_significant(spread), low, high)


def round_significant(value: float, digits: int = 4) -> float:
    """Round to `digits` significant digits, so that sums taken in another order agree.

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
    """Tell whether drawing a tensor from its statistics would change what its graph does.

    Stored are the constants of the traced program; integers and booleans that may be indices,
    positions or masks, if they are few or have structure; and so masks among floats, which hold
    infinities or the smallest number of their type. Parameters never are. `is_inexact` says that
    the elements are floating-point or complex numbers, and `is_uniform` that all are the same.

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
        return False  # the range says it all
    return is_structured()


def is_structured(encodings: Iterable[bytes]) -> bool:
    """Tell whether one of the ways to write elements down repeats itself.

    >>> is_structured([bytes(1000)]), is_structured([bytes(range(256))])
    (True, False)
    """
    return any(len(zlib.compress(each, 1)) <= STRUCTURED_RATIO * len(each) for each in encodings)
