"""Constant folding of integers computed from shapes and literals, during shape inference.

A model captured with a symbolic batch computes sizes at run time: `shape64`, `slice` and `stack`
precede a `reshape`. Paddle's shape inference reads sizes only from constants. Without folding, the
result and all later values would have no shape and would be missing from the costs and the memory
footprint.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import paddle
import paddle.pir

from ...errors import MaterializeError
from ...sample import Sample
from ...sample.arguments import ListArg, Ref, iterate_refs
from .calls import in_order
from .operators import CORE

Elements = np.ndarray[Any, np.dtype[np.int64]]

MAX_ELEMENTS = 16
"""Larger than the rank of any shape."""
_LARGEST = 2**31 - 1
_WHOLE = ("int32", "int64")
_NOT_KNOWN = (KeyError, TypeError, ValueError, IndexError, AttributeError, OverflowError)


class Folding:
    """Tracks known integer values through the operators of a sample and replaces them with
    constants."""

    def __init__(self, sample: Sample, inputs: Sequence[Any]) -> None:
        self._sample = sample
        self._values = [*inputs, *([None] * sample.num_ops)]
        self._known: dict[int, Elements] = {}
        self._written = {
            ref
            for op in sample.ops
            if op.target.startswith(CORE) and op.target.endswith("_")
            for ref in iterate_refs((op.args, op.kwargs))
        }
        """Values that an operator modifies in place. Their contents change during the run, so
        they are not folded."""

    def fold(self, position: int, result: Any) -> Any:
        """Return a constant that replaces an operator's result, or the result itself.

        Only vectors that can be a shape (every element positive or -1) become constants.
        """
        index = len(self._sample.inputs) + position
        self._values[index] = result
        op = self._sample.ops[position]
        rule = _RULES.get(op.target.removeprefix(CORE)) if op.target.startswith(CORE) else None
        if (
            rule is None
            or index in self._written
            or not isinstance(result, vars(paddle.pir)["Value"])
        ):
            return result
        # The factor of `scale` has a float dtype even when it is an integer.
        if str(result.dtype).rpartition(".")[2] not in _WHOLE and op.target not in _CONSTANTS:
            return result
        try:
            elements = rule(self, *in_order(op))
        except (*_NOT_KNOWN, MaterializeError):
            return result  # depends on data, or the call form has no rule
        if (
            tuple(result.shape) != elements.shape
            or elements.size > MAX_ELEMENTS
            or np.abs(elements).max(initial=0) > _LARGEST
        ):
            return result
        self._known[index] = elements
        is_size = bool(((elements > 0) | (elements == -1)).all())
        if is_size and op.target not in _CONSTANTS and elements.ndim <= 1 and elements.size:
            self._values[index] = _constant(elements, result.dtype)
        return self._values[index]

    def elements(self, arg: Any) -> Elements:
        """Return the elements of an argument. Raises KeyError if they are unknown."""
        if isinstance(arg, Ref):
            return self._known[arg.index]
        return np.asarray(_plain(arg), np.int64)

    def shape(self, arg: Any) -> Elements:
        """Return the shape of a value. Raises ValueError if it is unknown."""
        shape = np.asarray(self._values[arg.index].shape, np.int64)
        if (shape < 0).any():
            raise ValueError
        return shape


def _constant(elements: Elements, dtype: Any) -> Any:
    if elements.ndim == 0:
        return paddle.full([], int(elements), dtype=dtype)
    place = paddle.base.core.CPUPlace()
    return vars(paddle)["_C_ops"].full_int_array(elements.tolist(), dtype, place)


def _plain(arg: Any) -> Any:
    """Return a literal integer, or a nested list of integers."""
    if isinstance(arg, ListArg | tuple):
        return [_plain(item) for item in (arg.items if isinstance(arg, ListArg) else arg)]
    if isinstance(arg, bool) or not isinstance(arg, int | float) or arg != int(arg):
        raise TypeError
    if abs(arg) > _LARGEST:  # so that the product of two numbers fits in int64
        raise ValueError
    return int(arg)


def _full(_: Folding, shape: Any, value: Any, *__: Any) -> Elements:
    sizes = _plain(shape)
    if len(sizes) > 1 or any(size > MAX_ELEMENTS for size in sizes):
        raise ValueError
    return np.full(sizes, _plain(value), np.int64)


def _assigned(_: Folding, __: Any, shape: Any, ___: Any, values: Any, *____: Any) -> Elements:
    return np.asarray(_plain(values), np.int64).reshape(_plain(shape))


def _slice(
    folding: Folding, x: Any, axes: Any, starts: Any, ends: Any, _: Any, decreased: Any
) -> Elements:
    if _plain(axes) != [0]:
        raise ValueError
    (start,), (end,) = folding.elements(starts).ravel(), folding.elements(ends).ravel()
    part = folding.elements(x)[int(start) : int(end)]
    if _plain(decreased):
        (part,) = part
    return np.asarray(part, np.int64)


def _joined(join: Callable[..., Elements]) -> Callable[..., Elements]:
    def rule(folding: Folding, parts: Any, axis: Any) -> Elements:
        return join([folding.elements(part) for part in parts.items], axis=_plain(axis))

    return rule


def _of_two(compute: Callable[..., Elements]) -> Callable[..., Elements]:
    def rule(folding: Folding, left: Any, right: Any) -> Elements:
        return compute(folding.elements(left), folding.elements(right))

    return rule


def _scale(folding: Folding, x: Any, factor: Any, bias: Any, is_bias_last: Any) -> Elements:
    elements, bias = folding.elements(x), _plain(bias)
    (factor,) = folding.elements(factor).ravel()
    return elements * factor + bias if is_bias_last else (elements + bias) * factor


def _reshaped(folding: Folding, x: Any, *_: Any) -> Elements:
    # Only reshapes between a scalar and a vector of one element, which are used to join sizes.
    elements = folding.elements(x)
    if elements.size != 1:
        raise ValueError
    return elements.reshape(() if elements.ndim else (1,))


_RULES: Mapping[str, Callable[..., Elements]] = {
    "shape": lambda folding, x: folding.shape(x),
    "shape64": lambda folding, x: folding.shape(x),
    "full": _full,
    "full_int_array": lambda folding, values, *_: folding.elements(values),
    "assign_value_": _assigned,
    "slice": _slice,
    "stack": _joined(np.stack),
    "concat": _joined(np.concatenate),
    "cast": lambda folding, x, _: folding.elements(x),
    "squeeze": _reshaped,
    "unsqueeze": _reshaped,
    "scale": _scale,
    "add": _of_two(np.add),
    "subtract": _of_two(np.subtract),
    "multiply": _of_two(np.multiply),
    "maximum": _of_two(np.maximum),
    "minimum": _of_two(np.minimum),
}
_CONSTANTS = frozenset({f"{CORE}full", f"{CORE}full_int_array"})
