"""Walks over the shapes of torch's operators, under test (see `walks`).

All operators are walked, checked or not: a row of an unchecked one is written and read as well.
"""

import functools

from graphnet_datasets.frameworks.torch.shapes import measure_footprint

from . import walks
from .torch_target import mutated, names, set_up
from .walks import is_checked

__all__ = ["attempt", "is_checked", "names", "set_up"]

attempt = functools.partial(
    walks.attempt,
    "torch",
    mutated,
    functools.partial(
        measure_footprint, limit_bytes=walks.LIMIT_BYTES, time_limit_s=walks.TIME_LIMIT_S
    ),
)
