"""Smaller inputs for a failing part: sizes, and elements that need not be what they were."""

from __future__ import annotations

import collections
import dataclasses
import functools
import math
from collections.abc import Callable, Iterator, Mapping

from ..errors import GraphNetError
from ..frameworks import find_results
from ..frameworks.results import Observed
from ..sample import Input, Op, Sample, Value
from ..sample.arguments import Arg, DictArg, ListArg, SliceArg
from ..sample.targets import base_name
from .elements import beginning_of
from .trials import Piece

SIZED = frozenset(
    {
        *("view", "reshape", "expand", "repeat", "unflatten", "split", "split_with_sizes"),
        *("narrow", "arange", "zeros", "ones", "full", "empty", "new_zeros", "new_ones"),
        *("new_full", "new_empty", "broadcast_to", "getitem", "layer_norm", "rms_norm", "_to_copy"),
        *("interpolate", "adaptive_avg_pool2d", "native_layer_norm", "_unsafe_view", "resize"),
        *("tile", "slice", "select", "as_strided", "unfold", "fold", "rand", "randn", "linspace"),
    }
)
"""Operators among whose numbers there are sizes of tensors."""
SMALLEST = (1, 2, 3)
"""Sizes that are tried before halves."""


def shrink_sizes(
    piece: Piece, fails: Callable[[Piece], bool], on_smaller: Callable[[Piece], None]
) -> Piece:
    """Make the sizes of a piece smaller, one after the other, while it fails.

    All axes of one size change together, with the numbers of that size in operators that are told
    sizes; then each axis alone. What does not fit together is found by walking over the shapes and
    never tried. `fails` decides; `on_smaller` is told each smaller piece that fails.
    """
    weight: collections.Counter[int] = collections.Counter()
    for shape in _shapes(piece.sample).values():
        for size in set(shape) - {0, 1}:
            weight[size] += math.prod(shape)
    changes = [
        functools.partial(_smaller_together, size=size)
        for size, _ in sorted(weight.items(), key=lambda each: (-each[1], -each[0]))
    ]
    changes += [
        functools.partial(_smaller_alone, place=place, axis=axis)
        for place, shape in _shapes(piece.sample).items()
        for axis in range(len(shape))
    ]
    for change in changes:
        smaller = next((each for each in change(piece) if fails(each)), None)
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
    """Draw inputs from their statistics instead of taking the values that were met, if it fails.

    All inputs at once first, then one after the other.
    """
    held = [place for place, value in enumerate(piece.values) if value is not None]
    for places in (held, *([place] for place in held)) if len(held) > 1 else [held]:
        if not places:
            continue
        inputs, values = list(piece.sample.inputs), list(piece.values)
        for place in places:
            inputs[place] = _measured(inputs[place], seen.get(values[place] or 0))
            values[place] = None
        drawn = Piece(dataclasses.replace(piece.sample, inputs=tuple(inputs)), tuple(values))
        if fails(drawn):
            piece = drawn
            on_smaller(piece)
            if places == held:
                break
    return piece


def resize(
    sample: Sample, shapes: Mapping[int, tuple[int, ...]], numbers: Mapping[int, int]
) -> Sample | None:
    """Return a sample with other shapes of some inputs, or None where they do not fit together.

    `numbers` says which numbers take the place of which in operators that are told sizes.
    Recorded results are those of the new sizes.

    >>> from graphnet_datasets.sample.arguments import Ref
    >>> flat = Sample("example/flat", "torch", "other", (Input("input", Value("float32", (8, 6))),),
    ...     (Op("torch.Tensor.reshape", (Ref(0), 4, 12)),), Ref(1))
    >>> resize(flat, {0: (4, 6)}, {4: 2}).ops[0].args
    (Ref(index=0), 2, 12)
    >>> resize(flat, {0: (4, 6)}, {}) is None
    True
    """
    inputs = tuple(
        each if place not in shapes else _resized(each, shapes[place])
        for place, each in enumerate(sample.inputs)
    )
    ops = tuple(_renumbered(op, numbers) for op in sample.ops)
    try:
        smaller = dataclasses.replace(sample, inputs=inputs, ops=ops)
        found = find_results(smaller)
    except GraphNetError:
        return None
    return dataclasses.replace(
        smaller,
        ops=tuple(
            dataclasses.replace(op, results=(result.value,) if result.kind == "tensor" else None)
            for op, result in zip(ops, found, strict=True)
        ),
    )


def _smaller_together(piece: Piece, size: int) -> Iterator[Piece]:
    """Yield pieces in which all axes of one size are smaller."""
    shapes = _shapes(piece.sample)
    for target in _targets(size):
        changed = {
            place: tuple(target if each == size else each for each in shape)
            for place, shape in shapes.items()
            if size in shape
        }
        # A view may fold the axis into another one, whose size is a multiple then.
        equal = {size: target}
        multiples = {each: each // size * target for each in _multiples(piece.sample, size)} | equal
        for numbers in (equal, multiples) if multiples != equal else (equal,):
            smaller = resize(piece.sample, changed, numbers) if changed else None
            if smaller is not None:
                yield Piece(smaller, piece.values)
                break


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
    return [*(each for each in SMALLEST if each < size), *reversed(halves)]


def _shapes(sample: Sample) -> dict[int, tuple[int, ...]]:
    """Return the shapes of the inputs that are tensors with axes and hold no elements of theirs."""
    found = {}
    for place, each in enumerate(sample.inputs):
        shape = sample.shape_of(each.value)
        if each.role not in ("symbol", "scalar") and shape:
            found[place] = shape
    return found


def _resized(each: Input, shape: tuple[int, ...]) -> Input:
    old = each.value.shape or ()
    stride = each.value.stride and _resized_stride(old, each.value.stride, shape)
    data = each.data
    if data is not None:  # elements of its own: the beginning of each axis
        data = beginning_of(data, each.value.dtype or "", [int(size) for size in old], shape)
    return dataclasses.replace(each, value=Value(each.value.dtype, shape, stride), data=data)


def _resized_stride(
    old: tuple[int | str, ...], stride: tuple[int | str, ...], shape: tuple[int, ...]
) -> tuple[int, ...]:
    """Return dense strides with the axes in the order of the old ones; those of 0 stay 0."""
    order = sorted(range(len(shape)), key=lambda axis: (-int(stride[axis]), axis))
    made, step = [0] * len(shape), 1
    for axis in reversed(order):
        if int(stride[axis]) == 0 and int(old[axis]) > 1:
            continue
        made[axis] = step
        step *= max(shape[axis], 1)
    return tuple(made)


def _measured(each: Input, seen: Observed | None) -> Input:
    if each.statistics is not None or seen is None or seen.statistics is None:
        return each
    return dataclasses.replace(each, statistics=seen.statistics)


def _renumbered(op: Op, numbers: Mapping[int, int]) -> Op:
    if not numbers or base_name(op.target) not in SIZED:
        return op
    return _map_numbers(op, lambda number: numbers.get(number, number))


def _multiples(sample: Sample, size: int) -> set[int]:
    """Return the multiples of a size among the numbers of operators that are told sizes."""
    found: set[int] = set()

    def note(number: int) -> int:
        if number > 1 and number % size == 0:
            found.add(number)
        return number

    for op in sample.ops:
        if base_name(op.target) in SIZED:
            _map_numbers(op, note)
    return found


def _map_numbers(op: Op, replace: Callable[[int], int]) -> Op:
    return dataclasses.replace(
        op,
        args=tuple(_replaced(each, replace) for each in op.args),
        kwargs=tuple((name, _replaced(each, replace)) for name, each in op.kwargs),
    )


def _replaced(arg: Arg, replace: Callable[[int], int]) -> Arg:
    """Return an argument with other whole numbers in it."""
    if isinstance(arg, bool):
        return arg
    if isinstance(arg, int):
        return replace(arg)
    if isinstance(arg, tuple):
        return tuple(_replaced(each, replace) for each in arg)
    if isinstance(arg, ListArg):
        return ListArg(tuple(_replaced(each, replace) for each in arg.items))
    if isinstance(arg, SliceArg):
        return SliceArg(*(_replaced(each, replace) for each in (arg.start, arg.stop, arg.step)))
    if isinstance(arg, DictArg):
        return DictArg(tuple((name, _replaced(each, replace)) for name, each in arg.items))
    return arg
