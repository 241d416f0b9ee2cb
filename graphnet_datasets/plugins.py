"""Objects that installed packages register under entry points: tables, commands and others.

Entry points are read from the metadata of packages that the user installed, never from data.
"""

from __future__ import annotations

import importlib.metadata
import warnings
from collections.abc import Callable, Iterator, Mapping, MutableMapping
from typing import Any, TypeVar

_Value = TypeVar("_Value")


def entry_points(group: str) -> tuple[importlib.metadata.EntryPoint, ...]:
    """Return the entry points of a group in the order of their names, without importing them.

    >>> [point.name for point in entry_points("graphnet_datasets.commands")]
    ['tc', 'tuning']
    """
    points = importlib.metadata.entry_points(group=group)
    return tuple(sorted(points, key=lambda point: point.name))


def load_all(group: str) -> Iterator[Any]:
    """Yield the objects of a group. Warn about an entry point that cannot be imported.

    >>> [len(configs) for configs in load_all("graphnet_datasets.configs")]
    [1, 2]
    """
    for point in entry_points(group):
        try:
            plugin = point.load()
        except Exception as error:  # any package may be installed
            package = point.dist.name if point.dist else point.value
            warnings.warn(
                f"The entry point `{point.name}` of the group `{group}` is ignored, because it "
                f"cannot be imported: {error}. Update or uninstall the package `{package}`.",
                stacklevel=2,
            )
        else:
            yield plugin


class Registry(MutableMapping[str, _Value]):
    """A mapping that adds the entries of plugins when a name is missing or names are listed.

    Names of the library itself are found without importing a plugin, and cannot be replaced by one.
    `find_more()` returns the entries of plugins.

    >>> registry = Registry({"a": 1}, lambda: {"a": 2, "b": 3})
    >>> registry["a"], registry["b"], list(registry)
    (1, 3, ['a', 'b'])
    """

    def __init__(
        self, entries: Mapping[str, _Value], find_more: Callable[[], Mapping[str, _Value]]
    ) -> None:
        self._entries = dict(entries)
        self._find_more: Callable[[], Mapping[str, _Value]] | None = find_more

    def _complete(self) -> dict[str, _Value]:
        if self._find_more is not None:
            find_more, self._find_more = self._find_more, None
            self._entries |= {
                name: value for name, value in find_more().items() if name not in self._entries
            }
        return self._entries

    def __getitem__(self, name: str) -> _Value:
        return self._entries[name] if name in self._entries else self._complete()[name]

    def __setitem__(self, name: str, value: _Value) -> None:
        self._entries[name] = value

    def __delitem__(self, name: str) -> None:
        del self._entries[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._complete())

    def __len__(self) -> int:
        return len(self._complete())
