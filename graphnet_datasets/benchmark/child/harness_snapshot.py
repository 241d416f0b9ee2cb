"""Whether a candidate has replaced a part of the harness that times and reports it.

The candidate runs in the process that times it, so it can reach every function of the harness by
its name. What is there after its run is compared with what was there before it was imported.
"""

from __future__ import annotations

import json
import math
import os
import random
import statistics
import sys
import types
from collections.abc import Iterator, Mapping
from typing import Any

_HARNESS = __name__.partition(".")[0]
_LENT: Mapping[Any, tuple[str, ...]] = {
    json: ("dumps",),
    math: ("log",),
    os: ("write", "urandom"),
    random: ("Random",),
    statistics: ("median",),
}
"""What the harness uses of Python's library between a call and the report of its time."""

_Place = tuple[str, str]


class HarnessSnapshot:
    """Remembers the functions of the harness as they were when it was made.

    >>> snapshot = HarnessSnapshot()
    >>> snapshot.find_replaced() is None
    True
    """

    def __init__(self) -> None:
        self._before = dict(_functions())

    def find_replaced(self) -> str | None:
        """Return the name of a function that is another one now, or None."""
        now = dict(_functions())
        for place, function in self._before.items():
            if now.get(place) != function:
                return ".".join(place)
        return None


def _functions() -> Iterator[tuple[_Place, tuple[int, ...]]]:
    for name, module in list(sys.modules.items()):
        if name.partition(".")[0] == _HARNESS and isinstance(module, types.ModuleType):
            for attribute, value in vars(module).items():
                yield from _of(name, attribute, value)
    for module, attributes in _LENT.items():
        for attribute in attributes:
            yield from _of(module.__name__, attribute, getattr(module, attribute))


def _of(module: str, attribute: str, value: Any) -> Iterator[tuple[_Place, tuple[int, ...]]]:
    """Yield what identifies a function, or a class and its methods, of a module."""
    if isinstance(value, type):
        yield (module, attribute), (id(value),)
        if value.__module__ == module:
            for name, member in vars(value).items():
                if isinstance(member, property):
                    member = member.fget
                if callable(member):
                    yield (module, f"{attribute}.{name}"), _identity(member)
    elif callable(value):
        yield (module, attribute), _identity(value)


def _identity(function: Any) -> tuple[int, ...]:
    """The code as well: a function's can be exchanged in place."""
    parts = (function, getattr(function, "__code__", None), getattr(function, "__defaults__", None))
    return tuple(map(id, parts))
