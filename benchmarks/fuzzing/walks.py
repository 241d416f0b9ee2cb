"""What writing and inspecting a row computes, under test: the walk over its shapes.

Each call becomes a sample of one operator, whose numbers and single elements are stored in it.
"""

from __future__ import annotations

import functools
import random
from collections.abc import Callable
from typing import Any

from graphnet_datasets.analysis.columns import cost_columns
from graphnet_datasets.errors import GraphNetError
from graphnet_datasets.sample import Sample

from .samples import sample_of
from .specs import Call

LIMIT_BYTES = 10**9
TIME_LIMIT_S = 2.0


def attempt(
    framework: str,
    mutated: Callable[[str, random.Random], Call],
    measure: Callable[[Sample], Any],
    name: str,
    seed: str,
) -> tuple[Call, Callable[[], bool]]:
    """Return a call by chance, and what walks a sample of it: true if shapes were found.

    `measure` is the framework's `measure_footprint` with its limits.
    """
    chance = random.Random(seed)  # noqa: S311 - no secret
    call = mutated(name, chance)
    return call, functools.partial(_walk, framework, measure, call, chance)


def _walk(
    framework: str, measure: Callable[[Sample], Any], call: Call, chance: random.Random
) -> bool:
    sample = sample_of(call, chance, framework)
    cost_columns(sample)
    try:
        footprint = measure(sample)
    except GraphNetError:
        return False
    return footprint.results[0] is not None


def is_checked(_name: str) -> bool:
    """Tell whether a death counts: every walk runs unasked."""
    return True
