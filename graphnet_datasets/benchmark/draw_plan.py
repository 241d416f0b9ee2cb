"""Planning of the number of draws used to judge random outputs."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

BASE_DRAWS = 128
"""The number of draws of each arm, independent of the number of elements."""
MIN_DRAWS = 64
"""The number of draws of each arm below which no verdict is possible. Half as many pairs of
successive draws have a p-value of at least 2^-30, which is then multiplied by the number of
tests."""
FURTHER_DRAWS = 32
"""The number of additional draws of eager that are in neither sample."""
SCALAR_DRAWS = 4096
"""Additional draws for an output of one element; an output of n elements gets an n-th. A sum after
a dropout with a probability of 0.4 instead of 0.5 has 2/3 of the variance, which this number of
draws detects."""
OP_WORK = 1e5
"""The overhead of calling one operator, in floating-point operations."""
BYTE_WORK = 4.0
MOST_WORK = 1e12
"""The maximum work of all draws of one arm for the draws that every output gets."""
MOST_SMALL_WORK = 5e10
"""The maximum work of all draws of one arm for the additional draws of small outputs."""
MAX_ELEMENTS = 2**20
"""The maximum number of stored elements of one arm, over all draws and outputs."""
MAX_PER_DRAW = 2**13


@dataclasses.dataclass(frozen=True)
class DrawPlan:
    """The work of one call in floating-point operations, and flags of the random outputs.

    >>> DrawPlan(1e6, (True, False)).count([4096, 1])
    128
    >>> DrawPlan(1e6, (True,)).count([1]), DrawPlan(1e11, (True,)).count([1])
    (4224, 0)
    """

    work: float
    outputs: tuple[bool, ...]

    def count(self, sizes: Sequence[int]) -> int:
        """Return the number of draws for outputs of `sizes` elements.

        The number is 0, or even and at least `MIN_DRAWS`. Outputs that the graph does not list,
        such as inputs that it writes to, count as random.
        """
        listed = self.outputs if len(self.outputs) <= len(sizes) else ()
        flags = [*listed, *([True] * (len(sizes) - len(listed)))]
        least = min(
            (size for size, flag in zip(sizes, flags, strict=True) if flag and size), default=1
        )
        count = BASE_DRAWS + SCALAR_DRAWS // least
        count = int(min(count, max(BASE_DRAWS, MOST_SMALL_WORK / self.work)))
        count = int(min(count, MOST_WORK / self.work)) // 2 * 2
        return count if count >= MIN_DRAWS else 0


def plan_draws(row: Mapping[str, Any], outputs: Sequence[bool]) -> DrawPlan:
    """Return the draw plan of a sample with the columns of `row`.

    >>> plan_draws({"flops": 1000, "bytes_moved": None, "num_ops": 1}, [True]).work
    101000.0
    """
    flops, num_bytes, num_ops = (row.get(name) for name in ("flops", "bytes_moved", "num_ops"))
    work = (flops or 0) + BYTE_WORK * (num_bytes or 0) + OP_WORK * max(num_ops or 0, 1)
    return DrawPlan(float(work), tuple(outputs))


def elements_per_draw(count: int) -> int:
    """Return the number of stored elements per draw, over all outputs.

    >>> elements_per_draw(128), elements_per_draw(4224)
    (8192, 248)
    """
    return min(MAX_PER_DRAW, MAX_ELEMENTS // max(1, count))
