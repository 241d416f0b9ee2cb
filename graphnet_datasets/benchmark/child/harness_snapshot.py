"""Whether a candidate has replaced a part of the harness that times and reports it.

The candidate runs in the process that times it, so it can reach every function of the harness by
its name, and every object of it through the garbage collector. What is there after its run is
compared with what was there before it was imported, and before it was first called.
"""

from __future__ import annotations

import itertools
import json
import math
import os
import random
import statistics
import sys
import types
from collections.abc import Container, Iterable, Iterator, Mapping
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
_Parts = tuple[int, ...]


_BEFORE: dict[_Place, _Parts] = {}
_MODULES: set[str] = set()


def prepare_snapshots() -> None:
    """Remember the modules of the harness that are there, for the processes that this one forks.

    Their snapshots then look at those alone that were imported since. To look through all takes
    some ten milliseconds, and in a process that was just forked three times as long.
    """
    _BEFORE.update(_definitions(_MODULES))
    _MODULES.update(sys.modules)


class HeldObjects:
    """Remembers what objects of the harness are made of.

    It has slots, so that nobody can give it methods of its own.
    """

    __slots__ = ("_held",)

    def __init__(self) -> None:
        self._held: list[tuple[object, type, dict[str, _Parts]]] = []

    def hold(self, *objects: object) -> None:
        """Remember what objects of the harness are made of from now on.

        What their class names in `CHANGING` may become something else.
        """
        self._held += [(each, type(each), _attributes(each)) for each in objects]

    def find_changed(self) -> str | None:
        """Return the name of an attribute of what is held that is another one now, or None.

        It takes some tens of microseconds: time for a look around each call.
        """
        for each, kind, before in self._held:
            if type(each) is not kind:
                return f"{kind.__name__}.__class__"
            attributes = _attributes(each)
            for name in sorted(before.keys() | attributes.keys()):
                if before.get(name) != attributes.get(name):
                    return f"{kind.__name__}.{name}"
        return None


class HarnessSnapshot(HeldObjects):
    """Remembers functions and constants of the harness as well, as they were when it was made.

    >>> snapshot = HarnessSnapshot()
    >>> snapshot.find_replaced() is None
    True
    """

    __slots__ = ("_before",)

    def __init__(self) -> None:
        super().__init__()
        self._before = {**_BEFORE, **dict(_definitions(_MODULES))}

    def find_replaced(self) -> str | None:
        """Return the name of a function, constant or attribute that is another one now, or None."""
        now = dict(_definitions())
        for place, function in self._before.items():
            if now.get(place) != function:
                return ".".join(place)
        return self.find_changed()


def _attributes(held: object) -> dict[str, _Parts]:
    """Return what identifies the attributes of an object, and those of what it has them in."""
    changing = getattr(type(held), "CHANGING", frozenset())
    return {
        name: (id(value), *map(id, _items(value)))
        for name, value in vars(held).items()
        if name not in changing
    }


def _items(value: Any) -> Iterable[Any]:
    if isinstance(value, dict):
        return itertools.chain.from_iterable(value.items())
    return value if isinstance(value, list | tuple) else ()


def _definitions(known: Container[str] = ()) -> Iterator[tuple[_Place, _Parts]]:
    """Yield what the modules of the harness define that are not `known`, and what it is lent."""
    for name, module in list(sys.modules.items()):
        if (
            name not in known
            and name.partition(".")[0] == _HARNESS
            and isinstance(module, types.ModuleType)
        ):
            for attribute, value in vars(module).items():
                if attribute.isupper():
                    yield (name, attribute), (id(value),)
                else:
                    yield from _of(name, attribute, value)
    for module, attributes in _LENT.items():
        for attribute in attributes:
            yield from _of(module.__name__, attribute, getattr(module, attribute))


def _of(module: str, attribute: str, value: Any) -> Iterator[tuple[_Place, _Parts]]:
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


def _identity(function: Any) -> _Parts:
    """The code as well: a function's can be exchanged in place."""
    parts = (function, getattr(function, "__code__", None), getattr(function, "__defaults__", None))
    return tuple(map(id, parts))
