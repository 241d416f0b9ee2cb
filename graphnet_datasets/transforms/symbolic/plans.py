"""At which sizes a dimension is tried, from any size to multiples of the size of the capture."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import Literal, TypeAlias

Style: TypeAlias = Literal["around", "below", "above"]

_SHARES = {
    "around": (0.31, -0.29, 0.73, -0.13),
    "below": (-0.17, -0.29, -0.43, -0.57),
    "above": (0.31, 0.73, 1.17, 1.71),
}
"""What is added to the size of the capture, as shares of it: no two sizes are multiples of one
number, and quotients by the strides of common networks differ."""


_STYLES: tuple[Style, ...] = ("around", "below", "above")


@dataclasses.dataclass(frozen=True)
class Plan:
    """Sizes of one dimension, which differ from that of the capture by multiples of `step`."""

    hint: int
    step: int
    sizes: tuple[int, ...]


def make_plan(hint: int, step: int, style: Style, smallest: int) -> Plan | None:
    """Return a plan, or None where there are fewer than two such sizes.

    >>> make_plan(224, 1, "around", 2).sizes, make_plan(224, 32, "below", 2).sizes
    ((293, 159, 388, 195), (192, 160, 128, 96))
    >>> make_plan(1, 1, "around", 1).sizes
    (2, 3, 4, 5)
    """
    found: dict[int, None] = {}
    for share in _SHARES[style]:
        sign = 1 if share > 0 else -1
        count = max(1, round(abs(share) * hint / step))
        size = hint + sign * step * count
        while size in found or size == hint:
            size += sign * step
        if size >= smallest:
            found[size] = None
    if style == "around":
        size = hint
        while len(found) < len(_SHARES[style]):
            size += step
            found.setdefault(size, None)
    return Plan(hint, step, tuple(found)) if len(found) >= 2 else None


def first_plans(hint: int, smallest: int) -> Iterator[Plan]:
    """Yield the plans to try one after the other: any size, then multiples of a large step."""
    for style in _STYLES:
        plan = make_plan(hint, 1, style, smallest)
        if plan is not None:
            yield plan
    if hint > 2:
        coarse: tuple[tuple[int, Style], ...] = ((hint, "above"), (_share(hint), "below"))
        for step, style in coarse:
            plan = make_plan(hint, step, style, smallest) if step > 1 else None
            if plan is not None:
                yield plan


def finer_plans(plan: Plan, smallest: int) -> Iterator[Plan]:
    """Yield the plans of the next smaller steps, the smallest of them first."""
    steps = sorted({plan.step // prime for prime in _primes(plan.step)})
    for step in steps:
        for style in _STYLES:
            finer = make_plan(plan.hint, step, style, smallest)
            if finer is not None:
                yield finer


def _share(hint: int) -> int:
    """Return the largest step of which there are four in a size."""
    return next((hint // parts for parts in (4, 3, 5, 7, 2) if not hint % parts), 1)


def _primes(number: int) -> list[int]:
    found = []
    prime = 2
    while number > 1 and prime * prime <= number:
        if not number % prime:
            found.append(prime)
            while not number % prime:
                number //= prime
        prime += 1
    return [*found, number] if number > 1 else found
