"""Memory access patterns of a lowered program: strides, distinct elements and cache lines.

This module does not import TVM; it identifies the nodes of the syntax tree by their class names.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

MAX_PROBES = 32
"""Number of values of a loop variable that are evaluated."""
LINE_BYTES = 64


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class Access:
    """The values of an index expression over its loops; arrays are [loops], outermost first.

    `strides` is the change from a loop's first to its second iteration, `distinct` the number of
    distinct values over all iterations, `spans` the difference between maximum and minimum.
    """

    strides: np.ndarray
    distinct: np.ndarray
    spans: np.ndarray

    def touched(self, element_bytes: float, num_elements: int) -> tuple[np.ndarray, np.ndarray]:
        """Return the bytes and cache lines touched by all iterations of each loop, both [loops].

        This is an estimate: it assumes that loops are independent, and that cache lines are full if
        the elements fill their span.
        """
        inner = np.minimum(np.cumprod(self.distinct[::-1])[::-1], max(num_elements, 1))
        spans = np.minimum(1 + np.cumsum(self.spans[::-1])[::-1], max(num_elements, 1))
        lines = np.minimum(inner, np.ceil(spans * element_bytes / LINE_BYTES))
        return inner * element_bytes, np.maximum(lines, 1)


def access_of(value: Any, loops: Sequence[tuple[int, int]]) -> Access:
    """Return how an index expression varies over loops, pairs of variable hash and extent."""
    counts = [min(extent, MAX_PROBES) for _, extent in loops]
    ends = np.cumsum([1, *counts])
    probes: dict[int, np.ndarray] = {}
    for (variable, _), start, stop in zip(loops, ends[:-1], ends[1:], strict=True):
        probes[variable] = np.zeros(ends[-1], np.int64)
        probes[variable][start:stop] = np.arange(stop - start)
    values = np.broadcast_to(np.asarray(evaluate(value, probes), np.int64), (int(ends[-1]),))
    strides, distinct, spans = (np.zeros(len(loops)) for _ in range(3))
    for index, ((_, extent), start, stop) in enumerate(
        zip(loops, ends[:-1], ends[1:], strict=True)
    ):
        own = values[start:stop]
        if len(own) < 2:
            distinct[index] = 1
            continue
        scale = extent / len(own)
        strides[index] = abs(int(own[1]) - int(own[0]))
        different = len(np.unique(own))
        distinct[index] = 1 if different == 1 else different * scale
        spans[index] = float(own.max() - own.min()) * scale
    return Access(strides, distinct, spans)


def evaluate(node: Any, variables: Mapping[int, Any]) -> Any:
    """Evaluate an index expression to int64; variables without a value are 0.

    Nodes that do not occur in indices of dense programs (loads, calls) also evaluate to 0.
    """
    name = type(node).__name__
    if isinstance(node, int):
        return node
    if name == "IntImm":
        return int(node.value)
    if name in ("Var", "SizeVar"):
        return variables.get(hash(node), 0)
    if name == "Cast":
        return evaluate(node.value, variables)
    if name == "Not":
        return np.equal(evaluate(node.a, variables), 0).astype(np.int64)
    operation = _OPERATIONS.get(name)
    if operation is None:
        return 0
    return operation(evaluate(node.a, variables), evaluate(node.b, variables))


def elements_of(buffer: Any) -> int:
    """Return the number of elements of a buffer; dynamic dimensions count as 1."""
    return math.prod(max(int(evaluate(size, {})), 1) for size in buffer.shape)


def bytes_of(dtype: str) -> float:
    """Return the size of an element in bytes.

    >>> bytes_of("float32"), bytes_of("bfloat16"), bytes_of("bool")
    (4.0, 2.0, 1.0)
    """
    digits = "".join(character for character in dtype if character.isdigit())
    return max(int(digits) / 8, 1.0) if digits else 1.0


def _divided(a: Any, b: Any) -> Any:
    return np.floor_divide(a, np.where(np.equal(b, 0), 1, b))


def _rest(a: Any, b: Any) -> Any:
    return np.mod(a, np.where(np.equal(b, 0), 1, b))


def _as_numbers(operation: Any) -> Any:
    return lambda a, b: operation(a, b).astype(np.int64)


_OPERATIONS: dict[str, Any] = {
    "Add": lambda a, b: a + b,
    "Sub": lambda a, b: a - b,
    "Mul": lambda a, b: a * b,
    "FloorDiv": _divided,
    "FloorMod": _rest,
    "Div": _divided,
    "Mod": _rest,
    "Min": np.minimum,
    "Max": np.maximum,
    "LT": _as_numbers(np.less),
    "LE": _as_numbers(np.less_equal),
    "GT": _as_numbers(np.greater),
    "GE": _as_numbers(np.greater_equal),
    "EQ": _as_numbers(np.equal),
    "NE": _as_numbers(np.not_equal),
    "And": _as_numbers(np.logical_and),
    "Or": _as_numbers(np.logical_or),
}
