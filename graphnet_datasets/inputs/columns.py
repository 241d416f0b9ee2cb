"""Column selection by indexing and slicing operators, for tracking the columns of an input."""

from __future__ import annotations

from typing import NamedTuple

from ..sample import Op
from ..sample.arguments import Arg, ListArg, Ref, SliceArg
from .consumers import iterate_parts, operand
from .rules import InputRules


class Columns(NamedTuple):
    """A value that holds columns `first` to `first + width - 1` of some inputs.

    The columns are along its last axis, unless it is a single column with `is_apart`. `rank` is the
    number of axes, if known.
    """

    sources: frozenset[int]
    first: int
    width: int
    rank: int | None
    is_apart: bool = False


class Cut(NamedTuple):
    """The selected columns as (start, stop, whether the axis is removed), or None for all columns.

    `rank` is the rank of the result, if known.
    """

    columns: tuple[int, int, bool] | None
    rank: int | None


END = 2**31 - 1
"""Larger than any column index."""


def cut_of(name: str, op: Op, whole: Columns, rules: InputRules) -> Cut | None:
    """Return the columns that an operator selects from an operand, or None for other operators."""
    if name == "getitem" and len(op.args) > 1:
        return _by_key(op.args[1], whole.rank)
    if name == "select":
        axis, place = operand(op, (1, "dim")), operand(op, (2, "index"))
        if type(axis) is not int or type(place) is not int:
            return None
        rank = None if whole.rank is None else whole.rank - 1
        return Cut((place, place + 1 or END, True) if _is_last(axis, whole) else None, rank)
    if name == "narrow":
        axis, start, size = (operand(op, (place, word)) for place, word in
                             ((1, "dim"), (2, "start"), (3, "length")))  # fmt: skip
        if type(axis) is int and type(start) is int and type(size) is int:
            is_last = _is_last(axis, whole)
            return Cut((start, start + size, False) if is_last else None, whole.rank)
        return None
    if name not in ("slice", "strided_slice"):
        return None
    axes, starts, ends, steps = (
        [*iterate_parts(operand(op, (place, word)))]
        for place, word in enumerate(rules.slice_names, 1)
    )
    rank = whole.rank
    if name == "slice" and not rules.has_single_slices:
        dropped = [*iterate_parts(operand(op, (5, "decrease_axis")))]
        steps, rank = [1], None if rank is None or dropped == [None] else rank - len(dropped)
    else:
        dropped = []
    if len(axes) != 1 or not _is_last(axes[0], whole):
        return Cut(None, rank)
    start, end = starts[0] if starts else 0, ends[0] if ends else None
    columns = _columns(SliceArg(start, end, steps[0] if steps else None))
    if columns is None:
        return None
    return Cut((*columns[:2], bool(dropped) and axes[0] in dropped), rank)


def _is_last(axis: Arg, whole: Columns) -> bool:
    return axis == -1 or (whole.rank is not None and axis == whole.rank - 1)


def _by_key(key: Arg, rank: int | None) -> Cut | None:
    keys = [*iterate_parts(key)] if isinstance(key, tuple | ListArg) else [key]
    parts = [part for part in keys if part is not None]
    num_dropped = sum(type(part) is int for part in parts)
    after = None if rank is None else rank - num_dropped + len(keys) - len(parts)
    reaches_last = Ellipsis in parts or (rank is not None and len(parts) == rank)
    if not reaches_last or not parts or parts[-1] is Ellipsis or isinstance(parts[-1], Ref):
        return Cut(None, after)
    columns = _columns(parts[-1])
    return None if columns is None else Cut(columns, after)


def _columns(part: Arg) -> tuple[int, int, bool] | None:
    """Return the columns that an index or slice selects, and whether the axis is removed."""
    if type(part) is int:
        return part, part + 1 or END, True
    if not isinstance(part, SliceArg) or part.step not in (None, 1):
        return None
    start = 0 if part.start is None else part.start
    stop = END if part.stop is None else part.stop
    return (start, stop, False) if type(start) is int and type(stop) is int else None
