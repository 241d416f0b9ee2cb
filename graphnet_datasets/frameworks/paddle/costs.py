"""FLOPs and memory traffic of a Paddle sample, computed from inferred shapes; see `analysis.costs`.

The conventions match those for torch: a multiply-add is two operations, an elementwise operator is
one per element of its result, and a reduction is one per element of its input.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ...errors import GraphNetError, MaterializeError
from ...operators import OperatorNames, OperatorValues
from ...sample import Op, Sample, Value
from ...sample.arguments import iterate_refs
from ...sample.vocabulary import ITEM_SIZE_BYTES
from .operators import CORE, GETITEM
from .shapes import Footprint, measure_footprint

Shape = tuple[int, ...]
Formula = Callable[[Op, Sequence[Shape], Shape], int]
"""Compute FLOPs from an operator, the shapes of its tensor arguments and the shape of its first
result."""

_VIEWS = OperatorNames("paddle_view")

_READS_A_PART = OperatorNames("paddle_reads_part")
_FLOPS = OperatorValues("paddle_flops")


@dataclasses.dataclass(frozen=True)
class Counted:
    """Result of `measure`. `flops_coverage` is the fraction of operators that have a formula."""

    footprint: Footprint
    flops: int
    flops_coverage: float
    bytes_moved: int


def measure(sample: Sample, sizes: Mapping[str, int] | None = None) -> Counted:
    """Return the costs of a sample for the given sizes of its symbols.

    Raises:
        UnknownOperatorError, MaterializeError: as `shapes.measure_footprint`.

    >>> from graphnet_datasets.sample.arguments import Ref
    >>> from graphnet_datasets.sample import Input
    >>> tensor = Input("input", Value("float32", (4, 4)))
    >>> product = Op("paddle._C_ops.matmul", (Ref(0), Ref(0), False, False))
    >>> sample = Sample("example/product", "paddle", "other", (tensor,), (product,), Ref(1))
    >>> counted = measure(sample)
    >>> counted.flops, counted.bytes_moved, counted.footprint.peak_bytes
    (128, 192, 128)
    """
    try:
        footprint = measure_footprint(sample, sizes)
    except GraphNetError:
        raise
    except Exception as error:  # paddle raises arbitrary exception types
        raise MaterializeError(f"The shapes of `{sample.id}` cannot be inferred.") from error
    values: list[tuple[Value, ...]] = [(item.value,) for item in sample.inputs]
    values += [results or () for results in footprint.results]
    flops = bytes_moved = num_known = 0
    for position, op in enumerate(sample.ops):
        read = [value for ref in iterate_refs((op.args, op.kwargs)) for value in values[ref]]
        produced = values[len(sample.inputs) + position]
        try:
            count = _flops(sample, op, read, produced, sizes)
            moved = _bytes_moved(sample, op, read, produced, sizes)
        except (_UnknownError, TypeError, ValueError, IndexError, AttributeError):
            continue  # no formula, or the call has an unexpected form
        num_known += 1
        flops += count
        bytes_moved += moved
    coverage = num_known / sample.num_ops if sample.num_ops else 1.0
    return Counted(footprint, flops, coverage, bytes_moved)


class _UnknownError(Exception):
    """The operator has no formula, or one of its shapes is unknown."""


def _name(op: Op) -> str:
    return op.target.removeprefix(CORE).rpartition(".")[2].removesuffix("_")


def _shape(sample: Sample, value: Value, sizes: Mapping[str, int] | None) -> Shape:
    shape = sample.shape_of(value, sizes)
    if shape is None:
        raise _UnknownError
    return shape


def _flops(
    sample: Sample,
    op: Op,
    read: Sequence[Value],
    operands: Sequence[Value],
    sizes: Mapping[str, int] | None,
) -> int:
    name = _name(op)
    formula = _FLOPS.get(name, "")
    if op.target == GETITEM or name in _VIEWS or formula == "0" or not op.target.startswith(CORE):
        return 0
    shapes = [_shape(sample, value, sizes) for value in read if value.dtype is not None]
    if not operands:
        raise _UnknownError
    result = _shape(sample, operands[0], sizes)
    if formula in _FORMULAS:
        return _FORMULAS[formula](op, shapes, result)
    if formula[:-1].isdigit():  # n FLOPs per element of the first argument
        return int(formula[:-1]) * math.prod(shapes[0])
    if formula.startswith("taps"):
        return 2 * int(formula.removeprefix("taps")) * math.prod(result)
    if formula == "pointwise":
        return math.prod(result)
    raise _UnknownError


def _bytes_moved(
    sample: Sample,
    op: Op,
    read: Sequence[Value],
    operands: Sequence[Value],
    sizes: Mapping[str, int] | None,
) -> int:
    name = _name(op)
    if op.target == GETITEM or name in _VIEWS or name in ("empty", "empty_like", "detach", "dtype"):
        return 0

    def size(values: Sequence[Value]) -> int:
        return sum(
            math.prod(_shape(sample, value, sizes)) * ITEM_SIZE_BYTES[value.dtype]
            for value in values
            if value.dtype is not None
        )

    if name in _READS_A_PART:
        table = 1 if name == "embedding" else 0
        return size([*read[:table], *read[table + 1 :]]) + 2 * size(operands)
    # Results that an operator saves for its gradient have no shape if they are unused.
    return size(read) + size(
        [*operands[:1], *(result for result in operands[1:] if result.shape is not None)]
    )


def _matmul(op: Op, shapes: Sequence[Shape], result: Shape) -> int:
    left = shapes[0]
    is_transposed = len(op.args) > 2 and op.args[2] is True and len(left) > 1
    return 2 * math.prod(result) * left[-2 if is_transposed else -1]


def _product(_: Op, shapes: Sequence[Shape], result: Shape) -> int:
    return 2 * math.prod(result) * shapes[-2 if len(shapes) > 1 else -1][-1]


def _convolution(_: Op, shapes: Sequence[Shape], result: Shape) -> int:
    return 2 * math.prod(result) * math.prod(shapes[1][1:])


def _transposed_convolution(_: Op, shapes: Sequence[Shape], __: Shape) -> int:
    return 2 * math.prod(shapes[0]) * math.prod(shapes[1][1:])


def _pool(op: Op, shapes: Sequence[Shape], result: Shape) -> int:
    if op.args[9] is True:  # adaptive pooling reads each input element in one window
        return math.prod(shapes[0])
    window: Any = op.args[1]
    return math.prod(result) * math.prod(window.items)


def _recurrent(_: Op, shapes: Sequence[Shape], __: Shape) -> int:
    # Each matrix is applied once per step; the gates take about ten operations per state element.
    matrices = [shape for shape in shapes[1:] if len(shape) == 2]
    tokens = math.prod(shapes[0][:-1])
    states = sum(shape[1] for shape in matrices[1::2])
    return 2 * tokens * sum(map(math.prod, matrices)) + 10 * tokens * states


def _messages(_: Op, shapes: Sequence[Shape], __: Shape) -> int:
    return math.prod(shapes[1]) * shapes[0][-1]


def _fourier(op: Op, shapes: Sequence[Shape], result: Shape) -> int:
    """Return 5 n log2 n FLOPs per complex transform of n elements, or half of that per real
    transform."""
    shape = max(shapes[0], result, key=math.prod)
    axes: Any = op.args[1]
    flops = 5 * math.prod(shape) * math.log2(max(math.prod(shape[axis] for axis in axes.items), 2))
    return round(flops if _name(op) == "fft_c2c" else flops / 2)


_FORMULAS: Mapping[str, Formula] = {
    "convolution": _convolution,
    "fourier": _fourier,
    "matmul": _matmul,
    "messages": _messages,
    "pool": _pool,
    "product": _product,
    "recurrent": _recurrent,
    "transposed_convolution": _transposed_convolution,
}
