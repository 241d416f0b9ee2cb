"""What is compared before a checked operator of paddle is called: kinds, numbers, shapes, divisors.

The same guards stand before kernels that run and before rules that infer shapes, since both end the
process on operands that they do not expect. They cost microseconds, and are left out where a sample
runs in a process of its own.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable, Sequence
from typing import Any

import paddle
import paddle.pir

from ...errors import MaterializeError, MemoryLimitError
from .checked import KINDS
from .operator_names import words
from .operators import CORE, GETITEM
from .signatures import argument_names
from .single_guards import CHECKS, MAX_ELEMENTS, MAX_PADDING, is_tensor, shape_of
from .sizes import check_size

MAX_RANK = 9
MAX_PARTS = 100_000
MAX_INTEGER = 2**31 - 1
_STEPS = words("strides dilations kernel_size ksize")
_SIZES = words("shape repeat_times")
_AXES = frozenset(
    {
        "axis", "axes", "dim", "dims", "axis1", "axis2", "start_axis", "stop_axis",
        "decrease_axis", "perm", "begin_norm_axis",
    }
)  # fmt: skip
_ANY_INTEGER = frozenset(
    {"starts", "ends", "padding_idx", "ignore_index", "value", "seed", "shape"}
)
_BROADCASTING = words(
    """
    add atan2 bitwise_and bitwise_or bitwise_xor complex copysign divide elementwise_pow equal
    floor_divide fmax fmin gammaincc greater_equal greater_than heaviside lerp less_equal less_than
    logical_and logical_or logical_xor maximum minimum multiply not_equal remainder subtract
    trunc_divide where
    """
)
_DIVIDING = frozenset(
    {
        f"{CORE}remainder", f"{CORE}floor_divide", f"{CORE}trunc_divide", "operator.mod",
        "operator.floordiv",
    }
)  # fmt: skip
Call = Callable[..., Any]


class Guarded:
    """Calls an operator after comparing its operands; see the module's text.

    Raises, when it is called:
        MaterializeError: an operand is of another kind, or does not fit the others.
        MemoryLimitError: numbers would be built that no graph needs.
    """

    __slots__ = ("call", "check", "limit_bytes", "name")

    def __init__(self, name: str, call: Call, limit_bytes: int = 2**40) -> None:
        self.name = name
        self.call = call
        self.check = _check_of(name)
        self.limit_bytes = limit_bytes

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        try:
            self.check((*args, *kwargs.values()))
            check_size(self.name, args, self.limit_bytes, kwargs)
        except MemoryLimitError as error:
            raise MemoryLimitError(f"`{self.name}` {error}") from error
        except MaterializeError as error:
            raise MaterializeError(f"`{self.name}` {error}") from error
        return self.call(*args, **kwargs)


@functools.cache
def _check_of(name: str) -> Callable[[Sequence[Any]], None]:
    plain = name.removesuffix("_") if name.removesuffix("_") in KINDS else name
    special = CHECKS.get(plain)
    is_broadcasting, is_dividing = plain.removeprefix(CORE) in _BROADCASTING, plain in _DIVIDING
    if name not in KINDS:

        def check_other(args: Sequence[Any]) -> None:
            _check_python(name, args)
            if is_dividing:
                _check_divisor(args)

        return check_other
    lowest = -1 if plain in (f"{CORE}reshape", f"{CORE}expand") else 0
    kinds, names = KINDS[name], argument_names(name.removeprefix(CORE))

    def check(args: Sequence[Any]) -> None:
        if len(args) != len(kinds):
            raise MaterializeError(f"has {len(args)} arguments where it takes {len(kinds)}.")
        for position, (arg, kind) in enumerate(zip(args, kinds, strict=True)):
            _check_kind(arg, kind, names[position], position)
        rank = _rank(args[0])
        for argument, arg in zip(names, args, strict=True):
            _check_integers(argument, arg, rank)
        _check_counts(names, args, lowest)
        if is_broadcasting:
            _check_broadcast(args)
        if is_dividing:
            _check_divisor(args)
        if special is not None:
            special(args)

    return check


# Kinds


def kind_of(value: Any) -> str:
    """Return the letters that a value is an instance of (see `checked`).

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
        found = [kind_of(item) for item in value]
        if not found:
            return "EIFT"
        if any(letters in ("", "E", "EIFT") for letters in found):
            return ""
        shared = set(found[0]).intersection(*found[1:])
        return "".join(letter.upper() for letter in "ift" if letter in shared)
    if isinstance(value, paddle.dtype):
        return "d"
    return "p" if isinstance(value, paddle.base.core.Place | paddle.CPUPlace) else ""


def _check_kind(arg: Any, kind: str, name: str, position: int) -> None:
    accepted = set(kind)
    if position:
        accepted |= {"n"} if "t" in kind else set()
        accepted |= {"t", "T"} if kind == "n" else set()
    letters = kind_of(arg)
    if not accepted & set(letters):
        raise MaterializeError(f"has an argument `{name}` of a kind that it does not take.")
    if letters == "t" and not (isinstance(arg, paddle.Tensor) or arg.initialized()):
        raise MaterializeError(f"has an argument `{name}` that does not exist.")


def _check_python(name: str, args: Sequence[Any]) -> None:
    if name == GETITEM:
        indices = args[1] if isinstance(args[1], tuple) else (args[1],)
        if len(args) != 2 or not all(map(_is_plain_index, indices)):
            raise MaterializeError("takes an item by something other than integers and slices.")
        return
    if name.startswith("operator."):
        if not all(kind_of(arg) in ("t", "if", "f", "b") for arg in args):
            raise MaterializeError("computes with something other than tensors and numbers.")
        if not any(map(is_tensor, args)):
            raise MemoryLimitError("computes with numbers alone, which no graph needs.")
    elif name == "paddle.arange":
        if not args or not all(set(kind_of(arg)) & set("tifdn") for arg in args):
            raise MaterializeError("takes numbers, tensors of one number, and a dtype.")
    elif not args or not is_tensor(args[0]):
        raise MaterializeError("does not take a tensor first.")


def _is_plain_index(index: Any) -> bool:
    if isinstance(index, slice):
        return all(
            each is None or _is_integer(each) for each in (index.start, index.stop, index.step)
        )
    return index is None or index is Ellipsis or (_is_integer(index) and abs(index) <= MAX_INTEGER)


def _is_integer(value: Any) -> bool:
    return type(value) is int


# Numbers


def _check_integers(name: str, arg: Any, rank: int | None) -> None:
    if name in _ANY_INTEGER:
        return
    for number in arg if isinstance(arg, (list, tuple)) else (arg,):
        if type(number) is not int:
            continue
        limit = MAX_INTEGER
        if name in _AXES:
            limit = MAX_RANK if rank is None else rank + 1
        elif "padding" in name:
            limit = MAX_PADDING
            if number > limit:
                raise MemoryLimitError(
                    f"pads by {number} elements, more than the {limit} that any graph needs. "
                    "Skip the sample."
                )
        if abs(number) > limit or (name == "decrease_axis" and number < 0):
            raise MaterializeError(f"has the number {number} as `{name}`, out of its range.")


def _check_counts(names: Sequence[str], args: Sequence[Any], lowest: int) -> None:
    """Compare windows, steps and sizes with what any tensor has room for."""
    rank = _rank(args[0]) or 0
    for name, arg in zip(names, args, strict=True):
        if name in _STEPS and isinstance(arg, (list, tuple)):
            if len(arg) not in (1, rank - 2) or not all(map(_is_integer, arg)) or min(arg) < 1:
                raise MaterializeError(f"has {list(arg)} as `{name}`.")
        elif name in _SIZES:
            _check_sizes(name, arg, lowest)
        elif name in ("num", "groups") and type(arg) is int and not 1 <= arg <= MAX_PARTS:
            raise MaterializeError(f"has {arg} as `{name}`.")


def _check_sizes(name: str, arg: Any, lowest: int) -> None:
    if isinstance(arg, paddle.Tensor):
        arg = arg.numpy().reshape(-1)[: MAX_RANK + 1].tolist()
    if not isinstance(arg, (list, tuple)):
        return
    sizes = [size for size in arg if isinstance(size, int | float)]
    if len(sizes) > MAX_RANK or any(size < lowest for size in sizes):
        raise MaterializeError(f"has {sizes[:12]} as `{name}`.")
    if math.prod(max(1, size) for size in sizes) > MAX_ELEMENTS:
        raise MemoryLimitError(
            f"gives more than {MAX_ELEMENTS} elements, which no graph needs. Skip the sample."
        )


def _rank(tensor: Any) -> int | None:
    return len(tensor.shape) if is_tensor(tensor) else None


def _check_broadcast(args: Sequence[Any]) -> None:
    shapes = [shape_of(arg) for arg in args if is_tensor(arg)]
    known = [shape for shape in shapes if shape is not None]
    if any(0 in shape for shape in known) and len(set(known)) > 1:
        raise MaterializeError("has operands without elements beside others.")
    for sizes in itertools.zip_longest(*map(reversed, known), fillvalue=1):
        if len(set(sizes) - {1}) > 1:
            raise MaterializeError(
                f"has operands of shapes {', '.join(str(list(each)) for each in known)}, which do "
                "not fit together."
            )


def _check_divisor(args: Sequence[Any]) -> None:
    """Refuse integer divisions on which the processor faults: by zero, and of the least by -1."""
    if len(args) != 2 or not all(isinstance(arg, (paddle.Tensor, int)) for arg in args):
        return
    dividend, divisor = args
    dtype = next((arg.dtype for arg in args if isinstance(arg, paddle.Tensor)), None)
    name = str(dtype).rpartition(".")[2]
    if "int" not in name:
        return
    if _has(divisor, 0):
        raise MaterializeError("divides integers by zero.")
    bits = int(name.removeprefix("u").removeprefix("int"))
    if not name.startswith("u") and _has(divisor, -1) and _has(dividend, -(2 ** (bits - 1))):
        raise MaterializeError("divides the least integer by -1.")


def _has(operand: Any, number: int) -> bool:
    if isinstance(operand, int):
        return operand == number
    return bool((operand.numpy() == number).any())
