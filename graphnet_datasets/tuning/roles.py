"""The roles of a workload's arguments, from which the inputs of a check are drawn.

An integer that is used as an index is below the size of each axis that it indexes, also by way of
integer buffers that are computed from it. A value that is compared with a constant, such as a mask
or a padding of minus infinity, takes values on both sides of the comparison.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

USEFUL_INTEGERS = 128
"""Integers that are not indices are below this number."""

_LEAST_INPUT, _GREATEST_INPUT = 0.1, 1.0
"""Floats are positive, so that roots and logarithms are defined and sums do not cancel."""

_COMPARISONS = {"prim.EQ", "prim.NE", "prim.LT", "prim.LE", "prim.GT", "prim.GE"}


@dataclasses.dataclass(frozen=True, slots=True)
class Role:
    """The values of an argument: integers from 0 to below `bound`, and its `specials`.

    Rows along the last axis consist of specials, of other values, or of both.
    """

    bound: int = USEFUL_INTEGERS
    specials: tuple[float, ...] = ()

    def draw(self, shape: Sequence[int], kind: Any, random: np.random.Generator) -> np.ndarray:
        """Return an array of a NumPy dtype.

        >>> random = np.random.default_rng(0)
        >>> sorted(set(Role(4, (0.0,)).draw((64,), np.dtype("int8"), random).tolist()))
        [0, 1, 2, 3]
        """
        if kind == np.dtype(bool):
            return self._mixed(np.ones(shape), (0.0,), random).astype(bool)
        if np.issubdtype(kind, np.integer):
            greatest = min(self.bound - 1, int(np.iinfo(kind).max))
            drawn = random.integers(0, greatest, shape, endpoint=True).astype(kind)
            specials = [value for value in self.specials if 0 <= value <= greatest]
        else:
            drawn = np.asarray(random.uniform(_LEAST_INPUT, _GREATEST_INPUT, shape)).astype(kind)
            specials = list(self.specials)
        return self._mixed(drawn, specials, random)

    def _mixed(
        self, array: np.ndarray, specials: Sequence[float], random: np.random.Generator
    ) -> np.ndarray:
        if not specials:
            return np.asarray(array)
        array = np.array(array)
        rows = (*array.shape[:-1], 1) if array.ndim > 1 else array.shape
        share = random.choice((0.0, 0.5, 1.0), rows)
        is_special = random.random(array.shape) < share
        values = random.choice(np.array(specials, np.float64), array.shape)
        with np.errstate(over="ignore"):  # a constant may be infinite in a smaller dtype
            array[is_special] = values[is_special].astype(array.dtype)
        return array


def find_roles(nodes: Sequence[Mapping[str, Any]], parameters: Sequence[int]) -> list[Role]:
    """Return the role of each parameter of a workload's verified nodes, in order."""
    finder = _Finder(nodes)
    bounds = finder.bounds()
    roles = []
    for parameter in parameters:
        specials = dict.fromkeys(finder.specials.get(parameter, ()))
        bound = bounds.get(parameter)
        if bound is None and finder.is_integral(parameter):
            specials.setdefault(0.0)  # any integer may be a mask
        roles.append(Role(USEFUL_INTEGERS if bound is None else bound, tuple(specials)))
    return roles


class _Finder:
    def __init__(self, nodes: Sequence[Mapping[str, Any]]) -> None:
        self.nodes = nodes
        self.specials: dict[int, list[float]] = {}
        self._loads: dict[int, frozenset[int]] = {}
        self._bound: dict[int, int] = {}
        self._sources: dict[int, set[int]] = {}
        for index, node in enumerate(nodes):  # nodes refer only to earlier nodes
            data = node.get("data")
            if isinstance(data, dict):
                self._visit(index, node["type"], data)

    def is_integral(self, buffer: int) -> bool:
        """Return whether a buffer has integers or bools."""
        dtype = self._data(self._data(self._data(buffer)["ty"])["dtype"])["dtype"]
        return "int" in dtype or dtype == "bool"

    def bounds(self) -> dict[int, int]:
        """Return for each buffer of indices the smallest size of an axis that they index."""
        bounds = dict(self._bound)
        waiting = list(bounds)
        while waiting:
            buffer = waiting.pop()
            for source in self._sources.get(buffer, ()):
                if bounds[buffer] < bounds.get(source, math.inf):
                    bounds[source] = bounds[buffer]
                    waiting.append(source)
        return bounds

    def _visit(self, index: int, kind: str, data: Mapping[str, Any]) -> None:
        if kind in ("ir.TensorLoad", "tirx.BufferStore"):
            buffer = data["source" if kind == "ir.TensorLoad" else "buffer"]
            for position, size in zip(
                self._items(data["indices"]), self._shape(buffer), strict=False
            ):
                for source in self._loads.get(position, ()):
                    self._bound[source] = min(size, self._bound.get(source, size))
            if kind == "ir.TensorLoad":
                self._loads[index] = frozenset([buffer])
                return
            self._sources.setdefault(buffer, set()).update(self._loads.get(data["value"], ()))
            return
        if kind in _COMPARISONS:
            for left, right in ((data["a"], data["b"]), (data["b"], data["a"])):
                self._compare(kind, left, right)
        children = [*self._children(kind, data)]
        loads = frozenset().union(*(self._loads.get(child, ()) for child in children))
        if kind == "tirx.Bind":
            self._loads[data["var"]] = loads
        elif loads:
            self._loads[index] = loads

    def _children(self, kind: str, data: Mapping[str, Any]) -> Iterator[int]:
        if kind.startswith("prim.") or kind == "tirx.Bind":
            names = ("a", "b", "value", "condition", "true_value", "false_value")
            yield from (data[name] for name in names if name in data)
        elif kind == "ir.Call":
            yield from self._items(data["args"])

    def _compare(self, kind: str, left: int, right: int) -> None:
        value = self._constant(right)
        while self.nodes[left]["type"] == "prim.Cast":
            left = self._data(left)["value"]
        if value is None or self.nodes[left]["type"] != "ir.TensorLoad":
            return
        is_ordered = kind not in ("prim.EQ", "prim.NE") and math.isfinite(value)
        around = (value - 1, value, value + 1) if is_ordered else (value,)
        self.specials.setdefault(self._data(left)["source"], []).extend(around)

    def _constant(self, index: int) -> float | None:
        node = self.nodes[index]
        if node["type"] == "ir.FloatImm":
            return float(node["data"]["value"])
        if node["type"] == "ir.IntImm":
            return float(self._data(node["data"]["value"]))
        return None

    def _data(self, index: int) -> Any:
        return self.nodes[index]["data"]

    def _items(self, index: int) -> list[int]:
        return self._data(index)

    def _shape(self, buffer: int) -> list[int]:
        sizes = self._items(self._data(self._data(buffer)["ty"])["shape"])
        return [int(self._constant(size) or 1) for size in sizes]
