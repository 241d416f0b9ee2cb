"""Rules for views, concatenation, padding and indexing."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from .block import Subscripts, UnsupportedError, Value
from .registry import Lowering, argument, dtype_of, rule, shape_of
from .subscripts import Subscript

MAX_PIECES = 8
"""Maximum number of tensors that a concatenation may join."""


@rule(
    *("aten.view.default", "aten._unsafe_view.default", "aten.reshape.default"),
    *("aten.unsqueeze.default", "aten.squeeze.dim", "aten.squeeze.dims", "aten.squeeze.default"),
    is_view=True,
)
def reshape(lowering: Lowering, node: torch.fx.Node) -> Value:
    """Lower reshapes."""
    return lowering.value(node.args[0]).reshaped(shape_of(node))


@rule(
    *("aten.clone.default", "aten.alias.default", "aten.detach.default"),
    *("aten.lift_fresh_copy.default", "aten.contiguous.default"),
    is_view=True,
)
def same(lowering: Lowering, node: torch.fx.Node) -> Value:
    """Lower copies and aliases."""
    return lowering.value(node.args[0])


@rule("aten.permute.default", "aten.transpose.int", "aten.t.default", is_view=True)
def permute(lowering: Lowering, node: torch.fx.Node) -> Value:
    """Lower permutations of dimensions."""
    source = lowering.value(node.args[0])
    rank = len(source.shape)
    order = list(range(rank))
    if str(node.target) == "aten.permute.default":
        order = [int(dimension) % rank for dimension in node.args[1]]  # type: ignore[union-attr]
    elif rank > 1:
        first, second = node.args[1:3] if "transpose" in str(node.target) else (0, 1)
        first, second = int(first) % rank, int(second) % rank  # type: ignore[arg-type]
        order[first], order[second] = order[second], order[first]

    def mapped(subscripts: Subscripts) -> Subscripts:
        permuted = [Subscript.constant(0)] * rank
        for place, dimension in enumerate(order):
            permuted[dimension] = subscripts[place]
        return permuted

    return source.viewed(shape_of(node), mapped)


@rule("aten.expand.default", is_view=True)
def expand(lowering: Lowering, node: torch.fx.Node) -> Value:
    """Lower broadcasting along dimensions of size 1."""
    source = lowering.value(node.args[0])
    return Value(shape_of(node), source.dtype, source.at, source.cost)


@rule("aten.slice.Tensor", is_view=True)
def slice_(lowering: Lowering, node: torch.fx.Node) -> Value:
    """Lower a slice of a dimension."""
    source = lowering.value(node.args[0])
    dimension = int(argument(node, 1, "dim", 0)) % len(source.shape)
    start, step = argument(node, 2, "start", 0) or 0, argument(node, 4, "step", 1)
    size = source.shape[dimension]
    if not isinstance(start, int) or not isinstance(step, int):
        raise UnsupportedError("Its bounds are symbolic.")
    start = min(max(start + size if start < 0 else start, 0), size)
    return _along(source, shape_of(node), dimension, start, step)


@rule("aten.select.int", is_view=True)
def select(lowering: Lowering, node: torch.fx.Node) -> Value:
    """Lower the selection of an index, which removes the dimension."""
    source = lowering.value(node.args[0])
    dimension = int(node.args[1]) % len(source.shape)  # type: ignore[arg-type]
    place = node.args[2]
    if not isinstance(place, int):
        raise UnsupportedError("Its index is symbolic.")
    fixed = Subscript.constant(place % source.shape[dimension])

    def mapped(subscripts: Subscripts) -> Subscripts:
        return [*subscripts[:dimension], fixed, *subscripts[dimension:]]

    return source.viewed(shape_of(node), mapped)


@rule(
    "aten.split.Tensor",
    "aten.split_with_sizes.default",
    "aten.chunk.default",
    "aten.unbind.int",
    is_view=True,
)
def split(lowering: Lowering, node: torch.fx.Node) -> tuple[Value, ...]:
    """Lower splits of a dimension into several parts."""
    source = lowering.value(node.args[0])
    name = str(node.target)
    place = 1 if "unbind" in name else 2
    dimension = int(argument(node, place, "dim", 0)) % len(source.shape)
    shapes = [tuple(part.shape) for part in node.meta["val"]]
    parts, start = [], 0
    for shape in shapes:
        if "unbind" in name:
            fixed = Subscript.constant(start)

            def mapped(s: Subscripts, fixed: Subscript = fixed) -> Subscripts:
                return [*s[:dimension], fixed, *s[dimension:]]

            parts.append(source.viewed(shape, mapped))
            start += 1
            continue
        parts.append(_along(source, shape, dimension, start, 1))
        start += shape[dimension]
    return tuple(parts)


@rule("aten.flip.default")
def flip(lowering: Lowering, node: torch.fx.Node) -> Value:
    """Lower reversals of dimensions."""
    source = lowering.value(node.args[0])
    result = source
    for axis in node.args[1]:  # type: ignore[union-attr]
        dimension = int(axis) % len(source.shape)
        result = _along(result, source.shape, dimension, source.shape[dimension] - 1, -1)
    return result


def _along(source: Value, shape: Sequence[int], dimension: int, start: int, step: int) -> Value:
    def mapped(subscripts: Subscripts) -> Subscripts:
        moved = list(subscripts)
        moved[dimension] = moved[dimension].times(step).shifted(start)
        return moved

    return source.viewed(shape, mapped)


@rule("aten.cat.default", "aten.stack.default")
def join(lowering: Lowering, node: torch.fx.Node) -> Value:
    """Lower the concatenation of tensors along a dimension."""
    pieces: list[Any] = list(node.args[0])  # type: ignore[arg-type]
    if len(pieces) > MAX_PIECES:
        raise UnsupportedError(f"It joins more than {MAX_PIECES} tensors.")
    values = [lowering.value(piece) for piece in pieces]
    shape, dtype = shape_of(node), dtype_of(node)
    dimension = int(argument(node, 1, "dim", 0)) % len(shape)
    if str(node.target) == "aten.stack.default":
        values = [
            value.reshaped((*value.shape[:dimension], 1, *value.shape[dimension:]))
            for value in values
        ]
    if any(len(value.shape) != len(shape) for value in values):
        raise UnsupportedError("It joins tensors of different ranks.")

    def element(subscripts: list[Subscript], _: list[Subscript]) -> str:
        subscript = subscripts[dimension]
        text, start = "", 0
        for number, value in enumerate(values):
            moved = list(subscripts)
            moved[dimension] = subscript.shifted(-start)
            if value.shape[dimension] == 1:
                moved[dimension] = Subscript.constant(0)
            start += value.shape[dimension]
            branch = value.as_type(dtype, moved)
            is_last = number == len(values) - 1
            text += branch if is_last else f"({subscript.text} < {start} ? {branch} : "
        return text + ")" * (len(values) - 1)

    if len(values) == 1:
        return values[0]
    return lowering.block.store(node.name, shape, dtype, element)


@rule("aten.constant_pad_nd.default")
def pad(lowering: Lowering, node: torch.fx.Node) -> Value:
    """Lower padding with a constant."""
    source = lowering.value(node.args[0])
    amounts = [int(amount) for amount in node.args[1]]  # type: ignore[union-attr]
    filler = lowering.operand(argument(node, 2, "value", 0))
    rank = len(source.shape)
    before = [0] * rank
    for number in range(len(amounts) // 2):
        before[rank - 1 - number] = amounts[2 * number]
    return padded(lowering, node.name, source, shape_of(node), before, filler)


def padded(
    lowering: Lowering,
    name: str,
    source: Value,
    shape: Sequence[int],
    before: Sequence[int],
    filler: Value,
) -> Value:
    """Return a stored tensor that contains `source` surrounded by `filler`."""

    def element(subscripts: list[Subscript], _: list[Subscript]) -> str:
        conditions, moved = [], []
        for subscript, size, start, old in zip(
            subscripts, shape, before, source.shape, strict=True
        ):
            shifted = subscript.shifted(-start)
            moved.append(shifted)
            if start > 0:
                conditions.append(f"{shifted.text} >= 0")
            if size - start > old:
                conditions.append(f"{shifted.text} < {old}")
        inner = source.at(moved) if conditions else source.element(moved)
        if not conditions:
            return inner
        # `at` would read dimensions of size 1 at 0; only the condition keeps the subscript in
        # range.
        inner = source.element(moved)
        return f"({' && '.join(conditions)} ? {inner} : {filler.as_type(source.dtype, ())})"

    return lowering.block.store(name, shape, source.dtype, element)


@rule("aten.repeat.default")
def repeat(lowering: Lowering, node: torch.fx.Node) -> Value:
    """Lower repetition of a tensor along its dimensions."""
    source, shape = lowering.value(node.args[0]), shape_of(node)
    lead = len(shape) - len(source.shape)

    def mapped(s: Subscripts) -> Subscripts:
        return [
            subscript.modulo(size) for subscript, size in zip(s[lead:], source.shape, strict=True)
        ]

    view = source.viewed(shape, mapped)
    return Value(shape, view.dtype, view.element, view.cost + 1)


@rule("aten.embedding.default")
def embedding(lowering: Lowering, node: torch.fx.Node) -> Value:
    """Lower embedding lookups."""
    table = lowering.block.stored(lowering.value(node.args[0]))
    rows = lowering.value(node.args[1])
    rank = len(rows.shape)
    if rows.dtype not in ("int64", "int32"):
        raise UnsupportedError("Its indices are not integers.")

    def element(s: Subscripts) -> str:
        return gathered(table, [rows.at(s[:rank])], [s[rank]], 0)

    return Value(shape_of(node), table.dtype, element, 2 + rows.cost)


def gathered(table: Value, indices: list[str], rest: list[Subscript], place: int) -> str:
    """Return an element of a table at subscripts computed from other tensors."""
    marks = [Subscript(None, text, 0, 1 << 31, ()) for text in indices]
    return table.element([*rest[:place], *marks, *rest[place:]])


@rule("aten.index_select.default", "aten.gather.default")
def index_along(lowering: Lowering, node: torch.fx.Node) -> Value:
    """Lower indexing along a single dimension."""
    table = lowering.block.stored(lowering.value(node.args[0]))
    rows = lowering.value(node.args[2])
    if not table.shape or not rows.shape:
        raise UnsupportedError("Its operand is a scalar.")
    dimension = int(node.args[1]) % len(table.shape)  # type: ignore[arg-type]
    is_gather = str(node.target) == "aten.gather.default"
    if not table.buffer or rows.cost:
        raise UnsupportedError("Its table is a view.")

    def element(s: Subscripts) -> str:
        subscripts = list(s)
        row = rows.element(subscripts if is_gather else [subscripts[dimension]])
        return gathered(
            table, [row], subscripts[:dimension] + subscripts[dimension + 1 :], dimension
        )

    return Value(shape_of(node), table.dtype, element, 2)


@rule("aten.index.Tensor")
def index(lowering: Lowering, node: torch.fx.Node) -> Value:
    """Lower indexing along adjacent dimensions; negative indices count from the end."""
    table = lowering.block.stored(lowering.value(node.args[0]))
    indices: list[Any] = list(node.args[1])  # type: ignore[arg-type]
    places = [place for place, tensor in enumerate(indices) if tensor is not None]
    if not table.buffer or places != list(range(places[0], places[0] + len(places))):
        raise UnsupportedError("Its indexed dimensions are not adjacent.")
    rows = [lowering.value(indices[place]) for place in places]
    if any(row.dtype not in ("int64", "int32") for row in rows):
        raise UnsupportedError("Its indices are not integers.")
    rows = [lowering.block.once(row) for row in rows]
    shape = shape_of(node)
    rank = len(shape) - (len(table.shape) - len(places))
    first = places[0]

    def element(s: Subscripts) -> str:
        inner = s[first : first + rank]
        texts = []
        for row, place in zip(rows, places, strict=True):
            text = row.at(inner)
            texts.append(f"({text} < 0 ? {text} + {table.shape[place]} : {text})")
        return gathered(table, texts, [*s[:first], *s[first + rank :]], first)

    return Value(shape, table.dtype, element, 6)
