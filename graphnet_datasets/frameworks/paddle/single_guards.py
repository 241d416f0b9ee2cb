"""Argument checks for individual Paddle operators, such as `einsum` and `pow`."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ...errors import MaterializeError, MemoryLimitError
from ...operators import OperatorNames
from . import detection_guards, index_guards, layer_guards, window_guards
from .argument_kinds import MAX_INTEGER, shape_of
from .operators import CORE

MAX_POWER = 10_000
MAX_PARTS = 100_000
_LETTERS = frozenset("abcdefghijklmnopqrstuvwxyz")
_ALIKE = OperatorNames("paddle_alike")


def _check_einsum(args: Sequence[Any]) -> None:
    """Check that an equation has only lowercase letters, each at most once per term.

    The kernel maps letters to numbers from `a` without checking for other characters (such as dots)
    or for repeated letters in the result.
    """
    operands, equation = args
    left, arrow, right = equation.partition("->")
    terms = left.split(",")
    if not arrow or len(terms) != len(operands) or len(terms) > 2:
        raise MaterializeError(
            "Expected an explicit equation (`terms->result`) of one or two terms, one per operand, "
            f"got {equation[:60]!r} for {len(operands)} operands."
        )
    if not all(
        set(operand_letters) <= _LETTERS and len(set(operand_letters)) == len(operand_letters)
        for operand_letters in (*terms, right)
    ):
        raise MaterializeError(
            f"Expected lowercase letters, each at most once per term, got {equation[:60]!r}."
        )
    if not set(right) <= set(left):
        raise MaterializeError(
            f"Expected the letters of the result {right[:60]!r} to occur in {left[:60]!r}."
        )
    sizes: dict[str, int] = {}
    for term, operand in zip(terms, operands, strict=True):
        shape = tuple(operand.shape)
        if len(shape) != len(term) or 0 in shape:
            raise MaterializeError(
                f"Expected a non-empty operand with one axis per letter of {term[:60]!r}, got "
                f"shape {list(shape)}."
            )
        for letter, size in zip(term, shape, strict=True):
            if sizes.setdefault(letter, size) != size and size >= 0:
                raise MaterializeError(
                    f"Expected `{letter}` in {equation[:60]!r} to have one size, got "
                    f"{sizes[letter]} and {size}."
                )


def _check_repeats(args: Sequence[Any]) -> None:
    tensor, repeats, axis, size = args
    shape = shape_of(tensor)
    if repeats < 0:
        raise MaterializeError(f"Expected a non-negative number of repeats, got {repeats}.")
    if shape is not None and repeats * math.prod(shape) > MAX_INTEGER:
        raise MemoryLimitError(f"The result has more than {MAX_INTEGER} elements. Skip the sample.")
    if shape and size not in (-1, repeats * shape[axis]):
        raise MaterializeError(
            f"Expected an output size of {repeats * shape[axis]} (or -1), got {size}."
        )


def _check_transform(args: Sequence[Any]) -> None:
    tensor, axes = args[0], args[1]
    shape = shape_of(tensor)
    if shape is None:
        return
    if not axes or min(axes) < 0 or 0 in shape:
        raise MaterializeError(
            "Expected a non-empty tensor and non-negative axes, got shape "
            f"{list(shape)} and axes {list(axes)}."
        )
    if len(args) == 5 and type(args[4]) is int:  # output length of fft_c2r
        length, num_frequencies = args[4], shape[axes[-1]]
        if not (length == 0 or 0 < length // 2 + 1 <= num_frequencies):
            raise MaterializeError(
                f"Expected an output length of at most {2 * num_frequencies - 1} for "
                f"{num_frequencies} frequencies, got {length}."
            )


def _check_along_axis(args: Sequence[Any]) -> None:
    shape, picked, axis = shape_of(args[0]), shape_of(args[1]), args[2]
    if shape is None or picked is None:
        return
    rank = len(shape)
    if len(picked) != rank or 0 in shape:
        raise MaterializeError(
            f"Expected a non-empty tensor and indices of the same rank, got shapes {list(shape)} "
            f"and {list(picked)}."
        )
    if any(
        at != axis % rank and num_indices > size
        for at, (num_indices, size) in enumerate(zip(picked, shape, strict=True))
    ):
        raise MaterializeError(
            f"Expected indices no larger than {list(shape)} except along axis {axis}, got shape "
            f"{list(picked)}."
        )


def _check_rows(args: Sequence[Any]) -> None:
    shape = shape_of(args[1])
    if shape is not None and (len(shape) != 2 or 0 in shape):
        raise MaterializeError(f"Expected a non-empty 2-D table, got shape {list(shape)}.")


def _check_diagonal_fill(args: Sequence[Any]) -> None:
    number, step, shape = args[4], args[5], shape_of(args[0])
    if number < 0 or step < 0 or (number and (number - 1) * (step + 1) >= math.prod(shape or ())):
        raise MaterializeError(
            f"Expected non-negative counts and steps within the tensor, got {number} elements at "
            f"steps of {step}."
        )


def _check_assigned(args: Sequence[Any]) -> None:
    if math.prod(args[1]) != len(args[3]) or not args[3]:
        raise MaterializeError(
            f"Expected as many values as shape {args[1][:10]} has elements, and at least one, got "
            f"{len(args[3])}."
        )


def _check_same(args: Sequence[Any]) -> None:
    if args[1] is None:
        return
    left, right = shape_of(args[0]), shape_of(args[1])
    if left is not None and right is not None and left != right:
        raise MaterializeError(
            f"Expected operands of the same shape, got {list(left)} and {list(right)}."
        )


def _check_unbind(args: Sequence[Any]) -> None:
    shape = shape_of(args[0]) or (1,)
    if 0 in shape:
        raise MaterializeError(f"Expected a non-empty tensor, got shape {list(shape)}.")
    if shape[args[1]] > MAX_PARTS:
        raise MemoryLimitError(
            f"Expected at most {MAX_PARTS} results, got {shape[args[1]]}. Skip the sample."
        )


def _check_power(args: Sequence[Any]) -> None:
    """Limit integer exponents, since the kernel multiplies once per unit of the exponent."""
    base, exponent = args
    if not isinstance(exponent, int | float) or 0 <= exponent <= MAX_POWER:
        return
    name = str(base.dtype).lower()
    if "int" in name or "bool" in name:
        raise MaterializeError(
            f"Expected an exponent in [0, {MAX_POWER}] for an integer base, got {exponent}."
        )


def _check_eye(args: Sequence[Any]) -> None:
    if args[0] < 0 or args[1] < -1:
        raise MaterializeError(
            "Expected a non-negative number of rows, and of columns (or -1), got "
            f"{args[0]} and {args[1]}."
        )


def _check_filled(args: Sequence[Any]) -> None:
    if shape_of(args[0]) not in ((), (1,), None):
        raise MaterializeError(
            f"Expected a fill value of one element, got shape {list(args[0].shape)}."
        )


def _check_diagonal(args: Sequence[Any]) -> None:
    shape = shape_of(args[0])
    if shape is None:
        return
    if len(shape) not in (1, 2):
        raise MaterializeError(f"Expected a vector or a matrix, got shape {list(shape)}.")
    side = (shape[0] if len(shape) == 1 else 0) + abs(args[1])
    if side * side > MAX_INTEGER:
        raise MemoryLimitError(f"The result has more than {MAX_INTEGER} elements. Skip the sample.")


def _check_triangular(args: Sequence[Any]) -> None:
    matrix, sides = shape_of(args[0]), shape_of(args[1])
    if matrix is None or sides is None:
        return
    *_, rows, columns = (0, 0, *matrix)
    *_, right_rows, _ = (0, 0, *sides)
    if rows != columns or right_rows != rows or 0 in (*matrix[-2:], *sides, rows):
        raise MaterializeError(
            "Expected a non-empty square matrix and right-hand sides with as many rows, got shapes "
            f"{list(matrix)} and {list(sides)}."
        )


CHECKS: Mapping[str, Callable[[Sequence[Any]], None]] = {
    f"{CORE}embedding": _check_rows,
    f"{CORE}einsum": _check_einsum,
    f"{CORE}repeat_interleave": _check_repeats,
    f"{CORE}fft_c2c": _check_transform,
    f"{CORE}fft_c2r": _check_transform,
    f"{CORE}fft_r2c": _check_transform,
    f"{CORE}take_along_axis": _check_along_axis,
    **dict.fromkeys((CORE + name for name in _ALIKE), _check_same),
    f"{CORE}uniform_inplace": _check_diagonal_fill,
    f"{CORE}uniform_inplace_": _check_diagonal_fill,
    f"{CORE}assign_value_": _check_assigned,
    f"{CORE}unbind": _check_unbind,
    f"{CORE}triangular_solve": _check_triangular,
    f"{CORE}eye": _check_eye,
    f"{CORE}diag": _check_diagonal,
    f"{CORE}full_with_tensor": _check_filled,
    f"{CORE}pow": _check_power,
    "operator.pow": _check_power,
    **index_guards.CHECKS,
    **detection_guards.CHECKS,
    **layer_guards.CHECKS,
    **window_guards.CHECKS,
}
