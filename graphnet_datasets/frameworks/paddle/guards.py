"""Checks of operands before a checked Paddle operator is called.

Both Paddle's kernels and its shape inference rules crash the process on unexpected operands, so the
same guards protect both. Properties of dtypes, shapes and literals are checked once per call form.
Elements are checked on every call, but only for the few operators that depend on them. Samples that
run in a separate process are not guarded.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable, Sequence
from typing import Any

import paddle

from ...errors import MaterializeError, MemoryLimitError
from .argument_kinds import (
    MAX_INTEGER,
    MAX_RANK,
    check_elements,
    check_kind,
    check_python,
    is_tensor,
    read_numbers,
    shape_of,
)
from .axis_guards import AXES, check_axes, num_axes
from .checked import KINDS
from .operator_names import words
from .operators import CORE
from .signatures import argument_names
from .single_guards import CHECKS, MAX_PARTS
from .sizes import BROADCASTING, RANGES, check_size, has_size
from .text_guards import check_texts
from .value_guards import DIVIDING, VALUE_CHECKS, check_divisor
from .window_guards import MAX_PADDING

_UNSEEN = object()
_STEPS = words("strides dilations kernel_size ksize")
_SIZES = words("shape repeat_times")
_NUMBERS = frozenset("iIfF")
_ANY_INTEGER = frozenset(
    {"starts", "ends", "padding_idx", "ignore_index", "value", "seed", "shape"}
)
Call = Callable[..., Any]
Check = Callable[[Sequence[Any]], None]


class Guarded:
    """Callable that checks an operator's operands before it calls the operator.

    Raises, when it is called:
        MaterializeError: an operand has an unsupported kind or is inconsistent with the others.
        MemoryLimitError: the result would be larger than any graph needs.
    """

    __slots__ = (
        "_check_form", "_check_values", "_forms", "_literals", "_num_data", "_numbers", "call",
        "limit_bytes", "name",
    )  # fmt: skip

    def __init__(self, name: str, call: Call, limit_bytes: int = 2**40) -> None:
        self.name = name
        self.call = call
        self.limit_bytes = limit_bytes
        self._check_form = _check_of(name)
        self._check_values: tuple[Check, ...] = ()
        self._num_data = int(name in KINDS and name not in RANGES)
        self._numbers = _numbers_of(name)
        self._forms: list[Any] | None = None
        self._literals: list[Any] = []

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        operands = (*args, *kwargs.values()) if kwargs else args
        try:
            if self._numbers:
                operands = self._read(operands)
            if not self._is_known(operands):
                self._forms = None
                self._check_form(operands)
                self._check_size(tuple(kwargs), operands)
                self._check_values = _value_checks(self.name)
                if has_size(self.name) and _holds_tensor(operands[self._num_data :]):
                    self._check_values += (functools.partial(self._check_size, tuple(kwargs)),)
                self._forms = [_form(arg) for arg in operands]
                self._literals = [_UNSEEN if _holds_any(arg) else arg for arg in operands]
            for check in self._check_values:
                check(operands)
        except MemoryLimitError as error:
            raise MemoryLimitError(f"`{self.name}` cannot run: {error}") from error
        except MaterializeError as error:
            raise MaterializeError(f"`{self.name}` cannot run: {error}") from error
        return self.call(*args, **kwargs)

    def _is_known(self, operands: Sequence[Any]) -> bool:
        """Return whether the previous call had the same form. The literals of a plan do not
        change."""
        if self._forms is None or len(operands) != len(self._forms):
            return False
        return all(
            arg is literal or _form(arg) == form
            for arg, literal, form in zip(operands, self._literals, self._forms, strict=True)
        )

    def _read(self, operands: tuple[Any, ...]) -> tuple[Any, ...]:
        """Return the arguments with tensors replaced by numbers where the operator expects
        literals."""
        numbers = self._numbers
        if not any(_holds_tensor(operands[at]) for at in numbers if at < len(operands)):
            return operands
        return tuple(
            read_numbers(arg, numbers[at]) if at in numbers else arg
            for at, arg in enumerate(operands)
        )

    def _check_size(self, names: tuple[str, ...], operands: Sequence[Any]) -> None:
        at = len(operands) - len(names)
        keywords = dict(zip(names, operands[at:], strict=True))
        check_size(self.name, operands[:at], self.limit_bytes, keywords)


def _form(arg: Any) -> Any:
    """Return a key for the checks of an argument; arguments with equal keys are checked only
    once."""
    if isinstance(arg, paddle.Tensor):
        return arg.dtype, arg.shape
    if isinstance(arg, (list, tuple)):
        return [_form(item) for item in arg]
    if is_tensor(arg):
        return object()  # a program value never compares equal
    if isinstance(arg, slice):
        return [_form(bound) for bound in (arg.start, arg.stop, arg.step)]
    return arg.__class__, arg


def _holds_any(arg: Any) -> bool:
    """Return whether the argument is or contains a tensor or a program value."""
    if isinstance(arg, slice):
        arg = (arg.start, arg.stop, arg.step)
    return any(map(_holds_any, arg)) if isinstance(arg, (list, tuple)) else is_tensor(arg)


def _holds_tensor(arg: Any) -> bool:
    if isinstance(arg, (list, tuple)):
        return any(map(_holds_tensor, arg))
    return isinstance(arg, paddle.Tensor)


def _plain(name: str) -> str:
    return name.removesuffix("_") if name.removesuffix("_") in KINDS else name


@functools.cache
def _numbers_of(name: str) -> dict[int, str]:
    """Return the kinds, by position, of arguments that accept numbers or tensors of numbers."""
    kinds = enumerate(KINDS.get(name, ()))
    return {at: kind for at, kind in kinds if "t" in kind and set(kind) & _NUMBERS}


@functools.cache
def _value_checks(name: str) -> tuple[Check, ...]:
    """Return the checks that read the elements of an operator's arguments."""
    plain, checks = _plain(name), []
    if plain in VALUE_CHECKS:
        checks.append(VALUE_CHECKS[plain])
    if plain in DIVIDING:
        checks.append(check_divisor)
    return tuple(checks)


def _lowest(plain: str) -> int:
    return -1 if plain in (f"{CORE}reshape", f"{CORE}expand") else 0


@functools.cache
def _check_of(name: str) -> Check:
    plain = _plain(name)
    special = CHECKS.get(plain)
    is_broadcasting = plain.removeprefix(CORE) in BROADCASTING
    if name not in KINDS:

        def check_other(args: Sequence[Any]) -> None:
            check_python(name, args)
            if special is not None:
                special(args)

        return check_other
    lowest = _lowest(plain)
    kinds, names = KINDS[name], argument_names(name.removeprefix(CORE))

    def check(args: Sequence[Any]) -> None:
        if len(args) != len(kinds):
            raise MaterializeError(f"Expected {len(kinds)} arguments, got {len(args)}.")
        for position, (arg, kind) in enumerate(zip(args, kinds, strict=True)):
            check_kind(arg, kind, names[position], position)
        _check_operands(args)
        axes = num_axes(plain.removeprefix(CORE), args)
        for argument, arg in zip(names, args, strict=True):
            if argument in AXES:
                check_axes(plain.removeprefix(CORE), argument, arg, axes)
            else:
                _check_integers(argument, arg)
        check_texts(plain.removeprefix(CORE), names, args)
        _check_counts(names, args, lowest)
        if is_broadcasting:
            _check_broadcast(args)
            if name != plain:
                _check_one_dtype(args[1:] if plain == f"{CORE}where" else args)
        if special is not None:
            special(args)

    return check


# Numbers


def _check_operands(args: Sequence[Any]) -> None:
    """Raise if a tensor has too many elements for kernels with 32-bit indices."""
    for arg in args:
        for item in arg if isinstance(arg, (list, tuple)) else (arg,):
            if is_tensor(item):
                check_elements(item.shape)


def _check_integers(name: str, arg: Any) -> None:
    if name in _ANY_INTEGER:
        return
    for number in arg if isinstance(arg, (list, tuple)) else (arg,):
        if type(number) is not int:
            continue
        limit = MAX_PADDING if "padding" in name else MAX_INTEGER
        if "padding" in name and number > limit:
            raise MemoryLimitError(
                f"Expected a padding of at most {limit} elements, got {number}. Skip the sample."
            )
        if abs(number) > limit:
            raise MaterializeError(f"Expected `{name}` to be in [-{limit}, {limit}], got {number}.")


def _check_counts(names: Sequence[str], args: Sequence[Any], lowest: int) -> None:
    """Check windows, strides and sizes against the tensor's rank and global limits."""
    rank = _rank(args[0]) or 0
    for name, arg in zip(names, args, strict=True):
        if name in _STEPS and isinstance(arg, (list, tuple)):
            if len(arg) not in (1, rank - 2) or any(type(n) is not int or n < 1 for n in arg):
                raise MaterializeError(
                    f"Expected `{name}` to be one positive integer, or one per spatial axis, got "
                    f"{list(arg)}."
                )
        elif name in _SIZES:
            _check_sizes(name, arg, lowest)
        elif name in ("num", "groups") and type(arg) is int and not 1 <= arg <= MAX_PARTS:
            raise MaterializeError(f"Expected `{name}` to be in [1, {MAX_PARTS}], got {arg}.")


def _check_sizes(name: str, arg: Any, lowest: int) -> None:
    if not isinstance(arg, (list, tuple)):
        return
    sizes = [size for size in arg if isinstance(size, int | float)]
    if len(sizes) > MAX_RANK or any(size < lowest for size in sizes):
        raise MaterializeError(
            f"Expected `{name}` to be at most {MAX_RANK} sizes of at least {lowest}, got "
            f"{sizes[:12]}."
        )
    if math.prod(max(1, size) for size in sizes) > MAX_INTEGER:
        raise MemoryLimitError(f"The result has more than {MAX_INTEGER} elements. Skip the sample.")


def _rank(tensor: Any) -> int | None:
    return len(tensor.shape) if is_tensor(tensor) else None


def _check_one_dtype(args: Sequence[Any]) -> None:
    """Raise if the dtypes of an in-place call differ: casting the operand would crash the
    process."""
    dtypes = {str(arg.dtype) for arg in args if is_tensor(arg)}
    if len(dtypes) > 1:
        raise MaterializeError(
            "Expected the operands of an in-place call to have the same dtype, got "
            f"{', '.join(sorted(dtypes))}."
        )


def _check_broadcast(args: Sequence[Any]) -> None:
    shapes = [shape_of(arg) for arg in args if is_tensor(arg)]
    known_shapes = [shape for shape in shapes if shape is not None]
    if any(0 in shape for shape in known_shapes) and len(set(known_shapes)) > 1:
        raise MaterializeError("Expected no operand or all operands to be empty.")
    for sizes in itertools.zip_longest(*map(reversed, known_shapes), fillvalue=1):
        if len(set(sizes) - {1}) > 1:
            raise MaterializeError(
                "Expected operands of broadcastable shapes, got "
                f"{', '.join(str(list(shape)) for shape in known_shapes)}."
            )
