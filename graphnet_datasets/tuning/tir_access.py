"""Where the loads and stores of a lowered program go: strides, distinct elements, lines of cache.

It imports nothing of TVM: it walks the objects that it is given, by the names of their classes.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

MAX_PROBES = 32
"""Values of a loop's variable that are tried."""
LINE_BYTES = 64


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class Access:
    """What an expression does while one loop after another runs; arrays [loops], outermost first.

    `strides` is by how much it changes from a loop's first to its second iteration, `distinct` how
    many values it takes in all of them, `spans` the difference of the largest and the least.
    """

    strides: np.ndarray
    distinct: np.ndarray
    spans: np.ndarray

    def touched(self, element_bytes: float, num_elements: int) -> tuple[np.ndarray, np.ndarray]:
        """Return the bytes and the lines of cache that all of a loop touches, [loops] each.

        An estimate: loops are taken as independent of each other, and lines as full where the
        elements fill the span that they lie in.
        """
        inner = np.minimum(np.cumprod(self.distinct[::-1])[::-1], max(num_elements, 1))
        spans = np.minimum(1 + np.cumsum(self.spans[::-1])[::-1], max(num_elements, 1))
        lines = np.minimum(inner, np.ceil(spans * element_bytes / LINE_BYTES))
        return inner * element_bytes, np.maximum(lines, 1)


def access_of(value: Any, loops: Sequence[tuple[int, int]]) -> Access:
    """Return how an index expression changes with the loops: hash of the variable and extent."""
    counts = [min(extent, MAX_PROBES) for _, extent in loops]
    ends = np.cumsum([1, *counts])
    probes: dict[int, np.ndarray] = {}
    for (variable, _), start, stop in zip(loops, ends[:-1], ends[1:], strict=True):
        probes[variable] = np.zeros(ends[-1], np.int64)
        probes[variable][start:stop] = np.arange(stop - start)
    found = np.broadcast_to(np.asarray(evaluate(value, probes), np.int64), (int(ends[-1]),))
    strides, distinct, spans = (np.zeros(len(loops)) for _ in range(3))
    for index, ((_, extent), start, stop) in enumerate(
        zip(loops, ends[:-1], ends[1:], strict=True)
    ):
        own = found[start:stop]
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
    """Return an index expression's value, int64; variables that are not given are 0.

    What no index of a dense program holds (a load, a call) is 0 as well.
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
    """Return how many elements a buffer has; what is not constant counts as one."""
    return math.prod(max(int(evaluate(each, {})), 1) for each in buffer.shape)


def bytes_of(dtype: str) -> float:
    """Return the bytes of an element.

    >>> bytes_of("float32"), bytes_of("bfloat16"), bytes_of("bool")
    (4.0, 2.0, 1.0)
    """
    digits = "".join(each for each in dtype if each.isdigit())
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
