"""Number of draws by which the outputs of a graph that draws random numbers are judged."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

BASE_DRAWS = 128
"""Draws of each arm, however many elements the outputs have."""
MIN_DRAWS = 64
"""Draws of each arm below which no verdict is possible: half as many pairs of successive draws have
a p-value of 2^-30 at best, which is then multiplied by the number of tests."""
FURTHER_DRAWS = 32
"""Draws of eager that are in neither sample."""
SCALAR_DRAWS = 4096
"""Draws, besides those of every output, of an output of one element; of n elements, an n-th. A sum
after a dropout with a probability of 0.4 in place of 0.5 has 2/3 of the variance, which so many
draws tell apart."""
OP_WORK = 1e5
"""Floating-point operations in the time in which one operator is called."""
BYTE_WORK = 4.0
MOST_WORK = 1e12
"""Work of all draws of one arm up to which there are as many as every output gets."""
MOST_SMALL_WORK = 5e10
"""Work of all draws of one arm up to which there are more of them for small outputs."""
MAX_ELEMENTS = 2**20
"""Elements of one arm in all draws and outputs together."""
MAX_PER_DRAW = 2**13


@dataclasses.dataclass(frozen=True)
class DrawPlan:
    """The work of one call in floating-point operations, and which outputs are random.

    >>> DrawPlan(1e6, (True, False)).count([4096, 1])
    128
    >>> DrawPlan(1e6, (True,)).count([1]), DrawPlan(1e11, (True,)).count([1])
    (4224, 0)
    """

    work: float
    outputs: tuple[bool, ...]

    def count(self, sizes: Sequence[int]) -> int:
        """Return the number of draws for outputs of `sizes` elements: 0, or even and `MIN_DRAWS`.

        Outputs that the graph does not list, such as inputs that it writes to, count as random.
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
    """Return the plan of a sample with the columns of `row`.

    >>> plan_draws({"flops": 1000, "bytes_moved": None, "num_ops": 1}, [True]).work
    101000.0
    """
    flops, num_bytes, num_ops = (row.get(name) for name in ("flops", "bytes_moved", "num_ops"))
    work = (flops or 0) + BYTE_WORK * (num_bytes or 0) + OP_WORK * max(num_ops or 0, 1)
    return DrawPlan(float(work), tuple(outputs))


def elements_per_draw(count: int) -> int:
    """Return how many elements of one draw are kept, of all outputs together.

    >>> elements_per_draw(128), elements_per_draw(4224)
    (8192, 248)
    """
    return min(MAX_PER_DRAW, MAX_ELEMENTS // max(1, count))
