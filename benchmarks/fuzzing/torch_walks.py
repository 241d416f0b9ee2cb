"""What writing and inspecting a row of torch computes, under test: the walk over its shapes.

Each call becomes a sample of one operator, whose numbers and single elements are stored in it. All
operators are walked, checked or not: a row of an unchecked one is written and read all the same.
"""

from __future__ import annotations

import functools
import random
from collections.abc import Callable

from graphnet_datasets.analysis.columns import cost_columns
from graphnet_datasets.errors import GraphNetError
from graphnet_datasets.frameworks.torch.shapes import measure_footprint

from .samples import sample_of
from .specs import Call
from .torch_target import mutated, names, set_up

__all__ = ["attempt", "is_checked", "names", "set_up"]
_LIMIT_BYTES = 10**9
_TIME_LIMIT_S = 2.0


def attempt(name: str, seed: str) -> tuple[Call, Callable[[], bool]]:
    """Return a call by chance, and what walks a sample of it."""
    chance = random.Random(seed)  # noqa: S311 - no secret
    call = mutated(name, chance)
    return call, functools.partial(_walk, call, chance)


def _walk(call: Call, chance: random.Random) -> bool:
    sample = sample_of(call, chance, "torch")
    cost_columns(sample)
    try:
        footprint = measure_footprint(sample, None, _LIMIT_BYTES, time_limit_s=_TIME_LIMIT_S)
    except GraphNetError:
        return False
    return footprint.results[0] is not None


def is_checked(_name: str) -> bool:
    """Tell whether a death counts: every walk runs unasked."""
    return True
