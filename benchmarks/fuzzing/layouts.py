"""How operands lie in memory."""

from __future__ import annotations

import random

SMALLEST = (
    "offset", "strided", "expanded", "point", "rows", "columns", "sparse", "overlapping",
    "transposed",
)  # fmt: skip
"""Layouts whose storage ends at the last element that the strides reach. `expanded` repeats along
the first axis, `point` along all, `rows` along all but the last, `columns` along all but the first,
`sparse` along axes chosen by chance."""


def strides_of(shape: tuple[int, ...], layout: str, chance: random.Random) -> tuple[int, ...]:
    """Return the strides, in elements, that a layout has for a shape.

    >>> strides_of((2, 3, 4), "rows", random.Random(0))
    (0, 0, 1)
    """
    plain, rank = contiguous_strides(shape), len(shape)
    if layout == "strided":
        return tuple(2 * step for step in plain)
    if layout == "transposed" and rank > 1:
        swapped = contiguous_strides((shape[-1], *shape[1:-1], shape[0]))
        return (swapped[-1], *swapped[1:-1], swapped[0])
    if layout == "overlapping":
        return (1,) * rank
    repeated = {
        "expanded": {0},
        "point": set(range(rank)),
        "rows": set(range(rank - 1)),
        "columns": set(range(1, rank)),
        "sparse": {axis for axis in range(rank) if chance.random() < 0.5},
    }.get(layout, set())
    kept = contiguous_strides(
        tuple(1 if axis in repeated else size for axis, size in enumerate(shape))
    )
    return tuple(0 if axis in repeated else step for axis, step in enumerate(kept))


def contiguous_strides(shape: tuple[int, ...]) -> tuple[int, ...]:
    """Return the strides of a contiguous tensor."""
    strides = [1]
    for size in reversed(shape[1:]):
        strides.insert(0, strides[0] * size)
    return tuple(strides[: len(shape)])
