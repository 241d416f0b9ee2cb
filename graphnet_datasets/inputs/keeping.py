"""Caching of analysis results on samples."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import TypeVar

from ..sample import Sample

T = TypeVar("T")


def once_per_sample(find: Callable[[Sample], T]) -> Callable[[Sample], T]:
    """Cache the result of a function on its sample.

    The result is stored in the sample's `__dict__`, like that of `functools.cached_property`.
    Copies made with `dataclasses.replace` start without cached results.

    >>> asked = []
    >>> @once_per_sample
    ... def count_inputs(sample):
    ...     asked.append(sample.id)
    ...     return len(sample.inputs)
    >>> sample = Sample("example/empty", "torch", "other", (), (), ())
    >>> count_inputs(sample), count_inputs(sample), asked
    (0, 0, ['example/empty'])
    """
    name = f"_{find.__name__}"

    @functools.wraps(find)
    def kept(sample: Sample) -> T:
        cache = vars(sample)
        if name not in cache:
            cache[name] = find(sample)
        return cache[name]

    return kept
