"""Reduction of a failing part's inputs: smaller sizes, and elements drawn from statistics."""

from __future__ import annotations

import collections
import contextlib
import dataclasses
import functools
import logging
import math
from collections.abc import Callable, Iterator, Mapping, Sequence

from ..errors import GraphNetError
from ..frameworks import find_results
from ..frameworks.results import Observed, Result
from ..operators import OperatorNames
from ..sample import Input, Op, Sample, Value
from ..sample.arguments import Arg, DictArg, ListArg, Ref, SliceArg, iterate_refs
from ..sample.targets import base_name
from .elements import beginning_of
from .trials import Piece

SIZED = OperatorNames("sized")
_KEEPING = frozenset({"view", "reshape", "_unsafe_view"})
"""Operators that preserve the number of elements, which the shape walk does not verify."""
SMALLEST = (1, 2, 3)
"""Sizes to try before halves."""


def shrink_sizes(
    piece: Piece, fails: Callable[[Piece], bool], on_smaller: Callable[[Piece], None]
) -> Piece:
    """Reduce the sizes of a piece while it still fails.

    First all axes of one size change together with the equal numbers in operators that take sizes,
    then each axis changes alone. Combinations that the shape walk rejects are not tried. `fails`
    must return False for pieces that do not run. `on_smaller` is called with each smaller failing
    piece.
    """
    weight: collections.Counter[int] = collections.Counter()
    for shape in _shapes(piece.sample).values():
        for size in set(shape) - {0, 1}:
            weight[size] += math.prod(shape)
    changes = [
        functools.partial(_smaller_together, size=size)
        for size, _ in sorted(weight.items(), key=lambda candidate: (-candidate[1], -candidate[0]))
    ]
    changes += [
        functools.partial(_smaller_alone, place=place, axis=axis)
        for place, shape in _shapes(piece.sample).items()
        for axis in range(len(shape))
    ]
    for change in changes:
        smaller = next((candidate for candidate in change(piece) if fails(candidate)), None)
        if smaller is not None:
            piece = smaller
            on_smaller(piece)
    return piece


def drop_elements(
    piece: Piece,
    seen: Mapping[int, Observed],
    fails: Callable[[Piece], bool],
    on_smaller: Callable[[Piece], None],
) -> Piece:
    """Draw inputs from their statistics instead of using observed values, if the piece still fails.

    All inputs change at once first, then one after another.
    """
    held_places = [place for place, value in enumerate(piece.values) if value is not None]
    for places in (
        (held_places, *([place] for place in held_places))
        if len(held_places) > 1
        else [held_places]
    ):
        if not places:
            continue
        inputs, values = list(piece.sample.inputs), list(piece.values)
        for place in places:
            inputs[place] = _measured(inputs[place], seen.get(values[place] or 0))
            values[place] = None
        candidate = Piece(dataclasses.replace(piece.sample, inputs=tuple(inputs)), tuple(values))
        if fails(candidate):
            piece = candidate
            on_smaller(piece)
            if places == held_places:
                break
    return piece


def resize(
    sample: Sample, shapes: Mapping[int, tuple[int, ...]], numbers: Mapping[int, int]
) -> Sample | None:
    """Return a sample with other shapes for some inputs, or None if the shapes are incompatible.

    `numbers` maps numbers in operators that take sizes to their replacements. In views, one more
    number is changed if that makes the shapes compatible. Recorded results are updated.

    >>> from graphnet_datasets.sample.arguments import Ref
    >>> flat = Sample("example/flat", "torch", "other", (Input("input", Value("float32", (8, 6))),),
    ...     (Op("torch.Tensor.reshape", (Ref(0), 4, 12)),), Ref(1))
    >>> resize(flat, {0: (4, 6)}, {}).ops[0].args
    (Ref(index=0), 4, 6)
    >>> resize(flat, {0: (1, 1)}, {}) is None
    True
    """
    inputs = tuple(
        graph_input if place not in shapes else _resized(graph_input, shapes[place])
        for place, graph_input in enumerate(sample.inputs)
    )
    ops = tuple(_renumbered(op, numbers) for op in sample.ops)
    try:
        with _quietly():
            before = find_results(sample)
            smaller = dataclasses.replace(sample, inputs=inputs, ops=ops)
            results, repaired = find_results(smaller), None
            while (repaired := _repair(smaller, results)) not in (None, smaller.ops):
                smaller = dataclasses.replace(smaller, ops=repaired)
                results = find_results(smaller)
    except GraphNetError:
        return None
    if repaired is None or [result.kind for result in results] != [
        result.kind for result in before
    ]:
        return None  # or a result that was a tensor no longer is
    return dataclasses.replace(
        smaller,
        ops=tuple(
            dataclasses.replace(op, results=(result.value,) if result.kind == "tensor" else None)
            for op, result in zip(smaller.ops, results, strict=True)
        ),
    )


def _repair(sample: Sample, results: Sequence[Result]) -> tuple[Op, ...] | None:
    """Change one number of the first incompatible view; return None if that is impossible."""
    values = (*(item.value for item in sample.inputs), *(item.value for item in results))
    sizes = [None if shape is None else math.prod(shape) for shape in map(sample.shape_of, values)]
    ops = list(sample.ops)
    for place, op in enumerate(ops):
        if base_name(op.target) not in _KEEPING or not isinstance(next(iter(op.args), None), Ref):
            continue
        numbers: list[int] = []
        _map_numbers(op, lambda number: numbers.append(number) or number)  # noqa: B023
        has_numbers = bool(numbers) and min(numbers) >= 0 and len(list(iterate_refs(op.args))) == 1
        old_size = sizes[op.args[0].index]  # type: ignore[union-attr]
        new_size = math.prod(numbers) if has_numbers else sizes[len(sample.inputs) + place]
        if old_size is None or new_size is None or old_size == new_size:
            continue
        fitting = [
            number
            for number in numbers
            if number > 1 and new_size and number * old_size % new_size == 0
        ]
        if not fitting or not old_size:
            return None
        wrong = [max(fitting)]  # change the first number of this size, once

        def scale(
            number: int,
            wrong: list[int] = wrong,
            old_size: int = old_size,
            new_size: int = new_size,
        ) -> int:
            return (
                number * old_size // new_size
                if wrong and number == wrong[0] and wrong.pop()
                else number
            )

        ops[place] = _map_numbers(op, scale)
        return tuple(ops)
    return sample.ops


@contextlib.contextmanager
def _quietly() -> Iterator[None]:
    """Silence torch's shape-mismatch logs; mismatches are expected while shrinking."""
    was_disabled = logging.root.manager.disable
    logging.disable(logging.ERROR)
    try:
        yield
    finally:
        logging.disable(was_disabled)


def _smaller_together(piece: Piece, size: int) -> Iterator[Piece]:
    """Yield pieces in which all axes of one size are smaller."""
    shapes = _shapes(piece.sample)
    sizes = {length for shape in shapes.values() for length in shape}
    multiples = {length for length in sizes if length > size and length % size == 0}
    for target in _targets(size):
        only = {size: target}
        # Splitting or joining an axis yields multiples of its size.
        along = only | {length: length // size * target for length in multiples}
        # Numbers of this size may belong to this axis or to another.
        for lengths, numbers in [
            (only, only),
            (only, {}),
            *([(along, along)] if multiples else []),
        ]:
            changed = {
                place: tuple(lengths.get(length, length) for length in shape)
                for place, shape in shapes.items()
                if not lengths.keys().isdisjoint(shape)
            }
            smaller = resize(piece.sample, changed, numbers) if changed else None
            if smaller is not None:
                yield Piece(smaller, piece.values)


def _smaller_alone(piece: Piece, place: int, axis: int) -> Iterator[Piece]:
    """Yield pieces in which one axis of one input is smaller."""
    shape = _shapes(piece.sample)[place]
    for target in _targets(shape[axis]):
        changed = {place: (*shape[:axis], target, *shape[axis + 1 :])}
        smaller = resize(piece.sample, changed, {})
        if smaller is not None:
            yield Piece(smaller, piece.values)


def _targets(size: int) -> list[int]:
    """Return smaller sizes to try: the smallest, then halves.

    >>> _targets(64), _targets(2)
    ([1, 2, 3, 8, 16, 32], [1])
    """
    halves, half = [], size // 2
    while half > SMALLEST[-1] and len(halves) < 3:
        halves.append(half)
        half //= 2
    return [*(smallest for smallest in SMALLEST if smallest < size), *reversed(halves)]


def _shapes(sample: Sample) -> dict[int, tuple[int, ...]]:
    """Return the shapes of tensor inputs that have axes and no stored elements."""
    shapes = {}
    for place, graph_input in enumerate(sample.inputs):
        shape = sample.shape_of(graph_input.value)
        if graph_input.role not in ("symbol", "scalar") and shape:
            shapes[place] = shape
    return shapes


def _resized(graph_input: Input, shape: tuple[int, ...]) -> Input:
    old = graph_input.value.shape or ()
    stride = graph_input.value.stride and _resized_stride(old, graph_input.value.stride, shape)
    data = graph_input.data
    if data is not None:  # stored elements are cut to the beginning of each axis
        data = beginning_of(data, graph_input.value.dtype or "", [int(size) for size in old], shape)
    return dataclasses.replace(
        graph_input, value=Value(graph_input.value.dtype, shape, stride), data=data
    )


def _resized_stride(
    old: tuple[int | str, ...], stride: tuple[int | str, ...], shape: tuple[int, ...]
) -> tuple[int, ...]:
    """Return dense strides with the axes in the old order; strides of 0 remain 0."""
    order = sorted(range(len(shape)), key=lambda axis: (-int(stride[axis]), axis))
    strides, step = [0] * len(shape), 1
    for axis in reversed(order):
        if int(stride[axis]) == 0 and int(old[axis]) > 1:
            continue
        strides[axis] = step
        step *= max(shape[axis], 1)
    return tuple(strides)


def _measured(graph_input: Input, seen: Observed | None) -> Input:
    if graph_input.statistics is not None or seen is None or seen.statistics is None:
        return graph_input
    return dataclasses.replace(graph_input, statistics=seen.statistics)


def _renumbered(op: Op, numbers: Mapping[int, int]) -> Op:
    if not numbers or base_name(op.target) not in SIZED:
        return op
    return _map_numbers(op, lambda number: numbers.get(number, number))


def _map_numbers(op: Op, replace: Callable[[int], int]) -> Op:
    return dataclasses.replace(
        op,
        args=tuple(_replaced(arg, replace) for arg in op.args),
        kwargs=tuple((name, _replaced(arg, replace)) for name, arg in op.kwargs),
    )


def _replaced(arg: Arg, replace: Callable[[int], int]) -> Arg:
    """Return an argument with its integers replaced."""
    if isinstance(arg, bool):
        return arg
    if isinstance(arg, int):
        return replace(arg)
    if isinstance(arg, tuple):
        return tuple(_replaced(item, replace) for item in arg)
    if isinstance(arg, ListArg):
        return ListArg(tuple(_replaced(item, replace) for item in arg.items))
    if isinstance(arg, SliceArg):
        return SliceArg(*(_replaced(item, replace) for item in (arg.start, arg.stop, arg.step)))
    if isinstance(arg, DictArg):
        return DictArg(tuple((name, _replaced(item, replace)) for name, item in arg.items))
    return arg
