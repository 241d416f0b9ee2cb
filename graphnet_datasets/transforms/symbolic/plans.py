"""Trial sizes of a dimension, from arbitrary sizes to multiples of the size of the capture."""

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
"""Relative changes of the size of the capture, chosen so that no two sizes are multiples of the
same number, and quotients by the strides of common networks differ."""


_STYLES: tuple[Style, ...] = ("around", "below", "above")


@dataclasses.dataclass(frozen=True)
class Plan:
    """Sizes of one dimension that differ from the size of the capture by multiples of `step`."""

    hint: int
    step: int
    sizes: tuple[int, ...]


def make_plan(hint: int, step: int, style: Style, smallest: int) -> Plan | None:
    """Return a plan of sizes near the hint, or None if there are fewer than two.

    >>> make_plan(224, 1, "around", 2).sizes, make_plan(224, 32, "below", 2).sizes
    ((293, 159, 388, 195), (192, 160, 128, 96))
    >>> make_plan(1, 1, "around", 1).sizes
    (2, 3, 4, 5)
    """
    sizes: dict[int, None] = {}
    for share in _SHARES[style]:
        sign = 1 if share > 0 else -1
        count = max(1, round(abs(share) * hint / step))
        size = hint + sign * step * count
        while size in sizes or size == hint:
            size += sign * step
        if size >= smallest:
            sizes[size] = None
    if style == "around":
        size = hint
        while len(sizes) < len(_SHARES[style]):
            size += step
            sizes.setdefault(size, None)
    return Plan(hint, step, tuple(sizes)) if len(sizes) >= 2 else None


def first_plans(hint: int, smallest: int) -> Iterator[Plan]:
    """Yield the plans to try in order: arbitrary sizes, then multiples of a large step."""
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
    """Yield the plans of the next smaller steps, smallest first."""
    steps = sorted({plan.step // prime for prime in _primes(plan.step)})
    for step in steps:
        for style in _STYLES:
            finer = make_plan(plan.hint, step, style, smallest)
            if finer is not None:
                yield finer


def _share(hint: int) -> int:
    """Return the largest step that divides a size into about four parts."""
    return next((hint // parts for parts in (4, 3, 5, 7, 2) if not hint % parts), 1)


def _primes(number: int) -> list[int]:
    primes = []
    prime = 2
    while number > 1 and prime * prime <= number:
        if not number % prime:
            primes.append(prime)
            while not number % prime:
                number //= prime
        prime += 1
    return [*primes, number] if number > 1 else primes
