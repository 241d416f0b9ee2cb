"""Argument kinds of Paddle operators, and checks that calls match them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import paddle
import paddle.pir

from ...errors import MaterializeError, MemoryLimitError
from .operators import GETITEM
from .value_types import DTYPE_NAMES

MAX_INTEGER = 2**31 - 1
MAX_LITERALS = 100_000
MAX_NUMBERS = 64
MAX_RANK = 9

_QUICK = frozenset({"add", "sub", "mul", "neg", "pos", "abs", "floordiv", "truediv", "mod"})
_LARGEST_NUMBER = 2**31
"""The operators allowed in size arithmetic, and the largest operand (in absolute value) that
they may take."""


def is_tensor(value: Any) -> bool:
    """Return whether the object is a Paddle tensor or a value of a static program."""
    return isinstance(value, (paddle.Tensor, vars(paddle.pir)["Value"]))


def shape_of(tensor: Any) -> tuple[int, ...] | None:
    """Return the shape of a tensor, or None if a size is unknown (in a static program).

    Objects other than tensors have the shape `()`.
    """
    if not is_tensor(tensor):
        return ()
    shape = tuple(tensor.shape)
    return None if any(size < 0 for size in shape) else shape


def check_elements(shape: Sequence[int]) -> None:
    """Raise if a shape has more elements than a 32-bit integer can count.

    Many Paddle kernels index with 32-bit integers and access memory out of bounds beyond that.
    Sizes of 0 and unknown sizes (-1) count as 1.

    Raises:
        MemoryLimitError: the shape has more than `MAX_INTEGER` elements.

    >>> check_elements([-1, 3, 0])
    """
    if math.prod(max(1, size) for size in shape) > MAX_INTEGER:
        raise MemoryLimitError(
            f"A tensor of shape {list(shape)} has more than {MAX_INTEGER} elements, which many of "
            "paddle's kernels cannot index. Pass `allow_unchecked_operators=True` if you trust the "
            "sample, or skip it."
        )


def kind_of(value: Any) -> str:
    """Return the kind letters that match a value, as defined in `checked`.

    >>> kind_of(None), kind_of(2), kind_of([1, 2]), kind_of([]), kind_of("same")
    ('n', 'if', 'IF', 'EIFT', 's')
    """
    if value is None:
        return "n"
    if is_tensor(value):
        return "t"
    for kind, letters in ((bool, "b"), (int, "if"), (float, "f"), (str, "s")):
        if isinstance(value, kind):
            return letters
    if isinstance(value, (list, tuple)):
        item_kinds = [kind_of(item) for item in value]
        if not item_kinds:
            return "EIFT"
        if any(letters in ("", "E", "EIFT") for letters in item_kinds):
            return ""
        shared = set(item_kinds[0]).intersection(*item_kinds[1:])
        return "".join(letter.upper() for letter in "ift" if letter in shared)
    if isinstance(value, paddle.dtype):
        return "d"
    return "p" if isinstance(value, paddle.base.core.Place | paddle.CPUPlace) else ""


def check_kind(arg: Any, kind: str, name: str, position: int) -> None:
    """Raise if the operator does not accept an argument of this kind.

    Raises:
        MaterializeError: the argument has another kind, or is an uninitialized value of a program.
    """
    accepted = set(kind)
    if position:
        accepted |= {"n"} if accepted <= {"t", "n"} else set()
        accepted |= {"t", "T"} if kind == "n" else set()
    letters = kind_of(arg)
    if not accepted & set(letters):
        raise MaterializeError(f"The operator does not accept a {type(arg).__name__} as `{name}`.")
    if letters == "t" and not isinstance(arg, paddle.Tensor):
        if not arg.initialized():
            raise MaterializeError(f"The argument `{name}` is an uninitialized value.")
        if accepted & set("iIfF"):
            _check_unread(arg, name, takes_many="I" in kind)


def _check_unread(value: Any, name: str, *, takes_many: bool) -> None:
    """Raise if a program value is too large to be used as an int, a float or a list of them."""
    shape = shape_of(value)
    if len(value.shape) > takes_many and shape != (1,):
        raise MaterializeError(
            f"Expected `{name}` to be {'a vector' if takes_many else 'a scalar'}, got a tensor of "
            f"shape {list(value.shape)}."
        )
    limit = (MAX_NUMBERS if name == "num_or_sections" else MAX_RANK) if takes_many else 1
    if shape is not None and math.prod(shape) > limit:
        raise MaterializeError(
            f"Expected `{name}` to have at most {limit} elements, got a tensor of shape "
            f"{list(shape)}."
        )


def read_numbers(arg: Any, kind: str) -> Any:
    """Return the Python numbers in a tensor, or in a list of tensors, passed in place of a literal.

    Other arguments, including values of a static program, are returned unchanged.

    Raises:
        MaterializeError: the tensor has too many elements for such an argument, or the wrong dtype.

    >>> read_numbers(paddle.to_tensor([2, 3]), "It"), read_numbers(paddle.to_tensor([2]), "it")
    ([2, 3], 2)
    """
    if isinstance(arg, (list, tuple)):
        if not any(isinstance(item, paddle.Tensor) for item in arg):
            return arg
        if any(isinstance(item, paddle.Tensor) and len(item.shape) for item in arg):
            raise MaterializeError(
                "Expected tensors in a list of numbers to be 0-D; a tensor in the list has axes."
            )
        return [read_numbers(item, "it") for item in arg]
    if not isinstance(arg, paddle.Tensor):
        return arg
    if arg.size > MAX_NUMBERS or ("I" not in kind and arg.size != 1):
        raise MaterializeError(
            f"Expected {f'at most {MAX_NUMBERS} numbers' if 'I' in kind else '1 number'}, got a "
            f"tensor of {arg.size} elements."
        )
    if not arg.size:
        return []
    numbers = arg.numpy()
    if numbers.dtype.kind not in ("iuf" if "f" in kind else "iu"):
        raise MaterializeError(f"Expected a tensor of integers, got dtype {numbers.dtype}.")
    return numbers.reshape(-1).tolist() if "I" in kind else numbers.reshape(-1)[0].item()


def _check_numbers(name: str, args: Sequence[Any]) -> None:
    """Raise if arithmetic on plain numbers could grow without bound; size arithmetic never does."""
    is_quick = name.removeprefix("operator.") in _QUICK
    if not is_quick or not all(abs(arg) <= _LARGEST_NUMBER for arg in args):
        raise MemoryLimitError(
            f"Arithmetic without tensors is limited to {', '.join(sorted(_QUICK))} of numbers up "
            f"to {_LARGEST_NUMBER} in absolute value. Skip the sample."
        )


def check_python(name: str, args: Sequence[Any]) -> None:
    """Raise if the arguments of a Python operator or a public Paddle function cannot occur in a
    graph.

    Raises:
        MaterializeError: an argument has an unsupported kind.
        MemoryLimitError: all operands are numbers, and they are too large or the operator is not
            size arithmetic.
    """
    if name == GETITEM:
        indices = args[1] if isinstance(args[1], tuple) else (args[1],)
        if len(args) != 2 or not all(map(_is_plain_index, indices)):
            raise MaterializeError(
                "Expected indices to be integers, slices, None or Ellipsis, with literal bounds."
            )
        return
    if name.startswith("operator."):
        if not all(kind_of(arg) in ("t", "if", "f", "b") for arg in args):
            raise MaterializeError("Expected all operands to be tensors or numbers.")
        if not any(map(is_tensor, args)):
            _check_numbers(name, args)
    elif name == "paddle.arange":
        if not args or not all(set(kind_of(arg)) & set("tifdn") or _is_dtype(arg) for arg in args):
            raise MaterializeError(
                "Expected the arguments to be numbers, one-element tensors and a dtype."
            )
    elif name == "paddle.to_tensor":
        if not args or len(args) > 2 or not _is_literal(args[0]):
            raise MaterializeError("Expected a nested list of numbers and an optional dtype.")
        if len(args) == 2 and kind_of(args[1]) not in ("d", "n") and not _is_dtype(args[1]):
            raise MaterializeError("Expected the second argument to be a dtype.")
    elif not args or not is_tensor(args[0]):
        raise MaterializeError("Expected the first argument to be a tensor.")


def _is_dtype(arg: Any) -> bool:
    return isinstance(arg, str) and arg in DTYPE_NAMES


def _is_literal(value: Any) -> bool:
    """Return whether the value is a number or a rectangular nested list of numbers."""
    if isinstance(value, (list, tuple)):
        if value and isinstance(value[0], (list, tuple)):
            lengths = {len(item) if isinstance(item, (list, tuple)) else -1 for item in value}
            return len(lengths) == 1 and all(map(_is_literal, value))
        return len(value) <= MAX_LITERALS and all(
            type(item) in (bool, int, float) for item in value
        )
    return type(value) in (bool, int, float)


def _is_plain_index(index: Any) -> bool:
    if isinstance(index, slice):
        return all(
            bound is None or type(bound) is int for bound in (index.start, index.stop, index.step)
        )
    return index is None or index is Ellipsis or (type(index) is int and abs(index) <= MAX_INTEGER)
