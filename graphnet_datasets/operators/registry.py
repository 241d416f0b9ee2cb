"""The entries of operators, and the tables that are derived from them."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Iterator, Mapping, Set
from typing import Any

from .vocabulary import FACTS, NAMESPACES

_FORMS = {"*": ("", "_"), "_": ("_",)}


@dataclasses.dataclass(frozen=True, slots=True)
class OperatorEntry:
    """The facts about one operator, under all of its names.

    `facts` maps a fact, as written in the family's file, to its value ("" without a value).
    """

    name: str
    family: str
    facts: Mapping[str, str]

    @property
    def spellings(self) -> tuple[str, ...]:
        """The names under which a sample may call the operator, without overloads.

        >>> entry("gelu").spellings[:2]
        ('torch.ops.aten.gelu', 'torch.ops.aten.gelu_')
        """
        return tuple(
            NAMESPACES[plain] + self.name + form
            for fact in self.facts
            if (plain := fact.rstrip("*_")) in NAMESPACES
            for form in _FORMS.get(fact[-1], ("",))
        )


def entry(name: str) -> OperatorEntry:
    """Return the entry of an operator by its name without namespace, overload and final `_`.

    Raises:
        KeyError: there is no such entry.

    >>> entry("embedding").facts["torch_index"]
    '0.input/table:1.weight'
    """
    return entries()[name]


@functools.cache
def entries() -> Mapping[str, OperatorEntry]:
    """Return all entries by name."""
    return {
        name: OperatorEntry(
            name, family, {key: value for key, _, value in (f.partition("=") for f in facts)}
        )
        for family, names, facts in _declarations()
        for name in names
    }


class OperatorNames(Set[str]):
    """The names of the operators with a fact, loaded on first use.

    >>> "relu" in OperatorNames("checked"), "embedding_dense_backward" in OperatorNames("checked")
    (True, False)
    """

    def __init__(self, fact: str) -> None:
        self._fact = fact

    @functools.cached_property
    def _names(self) -> frozenset[str]:
        return frozenset(_tables()[self._fact])

    def __contains__(self, name: object) -> bool:
        return name in self._names

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)

    @classmethod
    def _from_iterable(cls, iterable: Any) -> Any:
        return frozenset(iterable)


class OperatorValues(Mapping[str, str]):
    """The values of a fact by the names of operators, loaded on first use.

    >>> OperatorValues("kind")["gelu"]
    'pointwise'
    """

    def __init__(self, fact: str) -> None:
        self._fact = fact

    @functools.cached_property
    def _values(self) -> Mapping[str, str]:
        return _tables()[self._fact]

    def __getitem__(self, name: str) -> str:
        return self._values[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)


@functools.cache
def _tables() -> Mapping[str, Mapping[str, str]]:
    """Return the values of each fact by operator name, with namespaces for facts that depend on
    them."""
    tables: dict[str, dict[str, str]] = {fact: {} for fact in FACTS}
    for _, names, facts in _declarations():
        for fact in facts:
            plain, value, affixes = _parsed(fact)
            for before, after in affixes:
                spelled = [before + n + after for n in names] if before or after else names
                tables[plain].update(dict.fromkeys(spelled, value))
    return tables


@functools.cache
def _parsed(fact: str) -> tuple[str, str, list[tuple[str, str]]]:
    """Return a fact's name and value, and the prefix and suffix of each name with the fact."""
    key, _, value = fact.partition("=")
    key, _, places = key.partition("@")
    affixes = [
        (NAMESPACES[place.rstrip("*_")] if places else "", form)
        for place in (places or key).split(",")
        for form in _FORMS.get(place[-1], ("",))
    ]
    return key.rstrip("*_"), value, affixes


def _declarations() -> Iterator[tuple[str, list[str], list[str]]]:
    """Yield the family, the names and the facts of each declaration."""
    from .families import FAMILIES  # imported late, because most programs need no table

    for family in FAMILIES:
        name = family.__name__.rpartition(".")[2]
        for line in family.ENTRIES.replace("\n    ", " ").splitlines():
            names, _, facts = line.partition(": ")
            if names:
                yield name, names.split(), facts.split()
