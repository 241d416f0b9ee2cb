"""Detection of candidates that replace parts of the harness that times and reports them.

A candidate runs in the process that times it. It can reach every function of the harness by name
and every object through the garbage collector. The harness after the run is therefore compared with
the harness before the candidate was imported and before its first call.
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
"""The library functions that the harness uses between a call and the report of its time."""

_Place = tuple[str, str]
_Parts = tuple[int, ...]


_BEFORE: dict[_Place, _Parts] = {}
_MODULES: set[str] = set()


def prepare_snapshots() -> None:
    """Record the harness modules present now, for the processes that this process forks.

    Snapshots in the forks then inspect only modules imported since. Inspecting all of them takes
    some ten milliseconds, and three times as long in a newly forked process.
    """
    _BEFORE.update(_definitions(_MODULES))
    _MODULES.update(sys.modules)


class HeldObjects:
    """Record the attributes of harness objects.

    The class has slots, so that a candidate cannot add methods to an instance.
    """

    __slots__ = ("_held",)

    def __init__(self) -> None:
        self._held: list[tuple[object, type, dict[str, _Parts]]] = []

    def hold(self, *objects: object) -> None:
        """Record the attributes of harness objects as they are now.

        Attributes named in `CHANGING` of their class may change.
        """
        self._held += [(instance, type(instance), _attributes(instance)) for instance in objects]

    def find_changed(self) -> str | None:
        """Return the name of a recorded attribute that has changed, or None.

        Takes some tens of microseconds, so it can run around each call.
        """
        for instance, kind, before in self._held:
            if type(instance) is not kind:
                return f"{kind.__name__}.__class__"
            attributes = _attributes(instance)
            for name in sorted(before.keys() | attributes.keys()):
                if before.get(name) != attributes.get(name):
                    return f"{kind.__name__}.{name}"
        return None


class HarnessSnapshot(HeldObjects):
    """Record functions and constants of the harness in addition to objects.

    >>> snapshot = HarnessSnapshot()
    >>> snapshot.find_replaced() is None
    True
    """

    __slots__ = ("_before",)

    def __init__(self) -> None:
        super().__init__()
        self._before = {**_BEFORE, **dict(_definitions(_MODULES))}

    def find_replaced(self) -> str | None:
        """Return the name of a function, constant or attribute that has been replaced, or None."""
        now = dict(_definitions())
        for place, function in self._before.items():
            if now.get(place) != function:
                return ".".join(place)
        return self.find_changed()


def _attributes(owner: object) -> dict[str, _Parts]:
    """Return identity fingerprints of an object's attributes and of their items."""
    changing = getattr(type(owner), "CHANGING", frozenset())
    return {
        name: (id(value), *map(id, _items(value)))
        for name, value in vars(owner).items()
        if name not in changing
    }


def _items(value: Any) -> Iterable[Any]:
    if isinstance(value, dict):
        return itertools.chain.from_iterable(value.items())
    return value if isinstance(value, list | tuple) else ()


def _definitions(known_places: Container[str] = ()) -> Iterator[tuple[_Place, _Parts]]:
    """Yield fingerprints of harness definitions that are not in `known_places`, and of `_LENT`."""
    for name, module in list(sys.modules.items()):
        if (
            name not in known_places
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
    """Yield identity fingerprints of a function, or of a class and its methods."""
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
    """Return an identity fingerprint with the code object, which can be replaced in place."""
    parts = (function, getattr(function, "__code__", None), getattr(function, "__defaults__", None))
    return tuple(map(id, parts))
