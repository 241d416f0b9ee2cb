"""What writing, inspecting and materializing a row of paddle computes: the walk over its shapes.

Each call becomes a sample of one operator, whose shapes paddle's rules infer in a program. Rules of
unchecked operators are not asked unless a run allows them.
"""

from __future__ import annotations

import functools
import random
from collections.abc import Callable

from graphnet_datasets.analysis.columns import cost_columns
from graphnet_datasets.errors import GraphNetError
from graphnet_datasets.frameworks.paddle.shapes import Limits, measure_footprint

from .paddle_target import mutated, names, set_up
from .samples import sample_of
from .specs import Call

__all__ = ["attempt", "is_checked", "names", "set_up"]
_LIMITS = Limits(memory_bytes=10**9, time_s=2.0, allow_unchecked_operators=False)


def attempt(name: str, seed: str) -> tuple[Call, Callable[[], bool]]:
    """Return a call by chance, and what walks a sample of it."""
    chance = random.Random(seed)  # noqa: S311 - no secret
    call = mutated(name, chance)
    return call, functools.partial(_walk, call, chance)


def _walk(call: Call, chance: random.Random) -> bool:
    sample = sample_of(call, chance, "paddle")
    cost_columns(sample)
    try:
        footprint = measure_footprint(sample, limits=_LIMITS)
    except GraphNetError:
        return False
    return footprint.results[0] is not None


def is_checked(_name: str) -> bool:
    """Tell whether a death counts: every walk runs unasked."""
    return True
