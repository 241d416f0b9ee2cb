"""Walks over the shapes of paddle's operators, under test (see `walks`).

Paddle's rules infer the shapes in a program; those of unchecked operators are not asked unless a
run allows them.
"""

import functools

from graphnet_datasets.frameworks.paddle.shapes import Limits, measure_footprint

from . import walks
from .paddle_target import mutated, names, set_up
from .walks import is_checked

__all__ = ["attempt", "is_checked", "names", "set_up"]

_LIMITS = Limits(
    memory_bytes=walks.LIMIT_BYTES, time_s=walks.TIME_LIMIT_S, allow_unchecked_operators=False
)
attempt = functools.partial(
    walks.attempt, "paddle", mutated, functools.partial(measure_footprint, limits=_LIMITS)
)
