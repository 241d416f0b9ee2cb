"""Shape inference for a Paddle sample through Paddle's program IR, without running the sample.

Each operator is added to a program that is never executed, which needs no memory for tensors. Sizes
that depend on tensor values are unknown there, except for integers computed from shapes
(`folding`). The shape recorded in the sample is used for them instead.
"""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Callable, Mapping
from typing import Any

import paddle
import paddle.pir
import psutil
from paddle.base.dygraph.base import switch_to_static_graph

from ...errors import MemoryLimitError
from ...inputs import make_array
from ...sample import Sample, Value
from ...sample.vocabulary import ITEM_SIZE_BYTES
from ..deadline import Deadline
from .argument_kinds import check_elements
from .checked import is_checked
from .folding import Folding
from .operators import CORE, lookup
from .plan import Plan
from .tensors import dtype_of

Results = tuple["tuple[Value, ...] | None", ...]


WITHOUT_RULES = frozenset({f"{CORE}unique"})
"""Operators whose shape inference rule crashes the process for any input."""


@dataclasses.dataclass(frozen=True)
class Footprint:
    """Memory footprint of a sample according to shape inference.

    `results` has one `Value` per tensor for each operator, or None where unknown. `input_bytes` is
    the memory of all inputs. `peak_bytes` is the maximum memory of inputs and live values, with
    each value freed at its last use. `total_bytes` is the memory of all results. Every result,
    including views, counts as separate memory; unknown results count as 0 bytes.
    """

    results: Results
    input_bytes: int
    peak_bytes: int
    total_bytes: int


@dataclasses.dataclass(frozen=True)
class Limits:
    """Limits for shape inference; None means no limit.

    Like kernels, shape inference rules crash the process on unexpected operands. They are therefore
    guarded, and the rules of unchecked operators are skipped unless `allow_unchecked_operators` is
    set.
    """

    memory_bytes: int | None = None
    time_s: float | None = None
    allow_unchecked_operators: bool = False


def propagate(
    sample: Sample, sizes: Mapping[str, int] | None = None, limits: Limits | None = None
) -> Results:
    """Return the results of each operator: one `Value` per tensor, or None where unknown.

    `sizes` maps the sample's symbols to integers (default: the sizes of the capture). A result
    whose size depends on data has shape None. A result that is not a tensor also has dtype None.

    >>> from graphnet_datasets.sample.arguments import Ref
    >>> from graphnet_datasets.sample import Input, Op
    >>> tensor = Input("input", Value("float32", (2, 3)))
    >>> sample = Sample("example/abs", "paddle", "other", (tensor,),
    ...     (Op("paddle._C_ops.abs", (Ref(0),)),), Ref(1))
    >>> propagate(sample)
    ((Value(dtype='float32', shape=(2, 3), stride=None),),)
    """
    values: list[tuple[Value, ...] | None] = [None] * sample.num_ops

    def note(position: int, result: Any) -> None:
        if isinstance(result, list | tuple):
            values[position] = tuple(map(describe, result))
        elif not isinstance(result, Unknown):
            values[position] = (describe(result),)

    walk(sample, note, sizes, limits)
    return tuple(values)


def walk(
    sample: Sample,
    note: Callable[[int, Any], None],
    sizes: Mapping[str, int] | None = None,
    limits: Limits | None = None,
) -> None:
    """Add the operators to a program that is never executed, and report each result to `note`.

    `note(position, result)` receives a value of the program, a list or tuple of values, a Python
    number or an `Unknown`. The result of an unchecked operator, whose shape inference may crash the
    process, is an `Unknown` unless `limits` allows unchecked operators.

    Raises:
        UnknownOperatorError, MaterializeError: as `Plan`.
        MemoryLimitError: a result would exceed the limit in `limits`, or any size that a graph
            needs.
        TimeLimitError: shape inference exceeds the time limit in `limits`.
    """
    limits = limits or Limits()
    deadline = Deadline(limits.time_s)
    plan = Plan(
        sample,
        memory_limit_bytes=limits.memory_bytes,
        is_guarded=not limits.allow_unchecked_operators,
        deadline=deadline,
    )
    skipped = frozenset(
        position
        for position, op in enumerate(sample.ops)
        if op.target in WITHOUT_RULES
        or not (limits.allow_unchecked_operators or is_checked(lookup(op.target)))
    )

    def observe(folding: Folding, position: int, result: Any) -> Any:
        deadline.check(f"Finding the shapes of `{sample.id}`")
        if not limits.allow_unchecked_operators:
            result = too_large(result) or result
        if isinstance(result, MemoryLimitError) and limits.memory_bytes is not None:
            op = sample.ops[position]
            raise MemoryLimitError(
                f"Op {position} (`{op.target}`) of `{sample.id}`: {result}"
            ) from result
        if isinstance(result, Exception):
            result = Unknown()
        note(position, result)
        return result if isinstance(result, Unknown) else folding.fold(position, result)

    @switch_to_static_graph
    def infer() -> None:
        main = paddle.static.Program()
        with paddle.static.program_guard(main, paddle.static.Program()):
            inputs = [_argument(sample, index, sizes) for index in range(plan.num_inputs)]
            folding = Folding(sample, inputs)
            plan.observe(inputs, functools.partial(observe, folding), skipped)

    infer()


def _argument(sample: Sample, index: int, sizes: Mapping[str, int] | None) -> Any:
    sample_input = sample.inputs[index]
    if sample_input.role in ("symbol", "scalar"):
        return make_array(sample, index, sizes=sizes).item()
    shape = sample.shape_of(sample_input.value, sizes)
    return paddle.static.data(
        sample.input_names[index], list(shape or ()), dtype_of(str(sample_input.value.dtype))
    )


def too_large(result: Any) -> MemoryLimitError | None:
    """Return the error for a result that is too large for 32-bit indices, or None."""
    for item in result if isinstance(result, list | tuple) else (result,):
        if is_tensor(item) and item.is_dense_tensor_type():
            try:
                check_elements(item.shape)
            except MemoryLimitError as error:
                return error
    return None


class Unknown:
    """Placeholder for the result of an operator whose shape cannot be inferred."""


def is_tensor(result: Any) -> bool:
    """Return whether a result is an initialized value of the program."""
    return isinstance(result, vars(paddle.pir)["Value"]) and result.initialized()


def describe(result: Any) -> Value:
    """Return the dtype and shape of a program value, or an empty `Value` for anything else."""
    if not isinstance(result, vars(paddle.pir)["Value"]) or not result.is_dense_tensor_type():
        return Value()
    shape = tuple(result.shape)
    dtype = str(result.dtype).rpartition(".")[2]
    return Value(
        dtype if dtype in ITEM_SIZE_BYTES else None, None if min(shape, default=0) < 0 else shape
    )


def measure_footprint(
    sample: Sample, sizes: Mapping[str, int] | None = None, limits: Limits | None = None
) -> Footprint:
    """Return the shapes and memory of a sample for the given sizes of its symbols.

    Recorded shapes are used where Paddle cannot infer a shape.
    """
    results = tuple(
        values if values is not None and _is_known(values) else op.results
        for values, op in zip(propagate(sample, sizes, limits), sample.ops, strict=True)
    )
    bytes_of = [sum(map(_bytes, values or ())) for values in results]
    num_inputs = len(sample.inputs)
    alive = peak = 0
    for size, dying in zip(bytes_of, sample.dying_values, strict=True):
        alive += size
        peak = max(peak, alive)
        alive -= sum(bytes_of[value - num_inputs] for value in dying if value >= num_inputs)
    return Footprint(results, sample.input_bytes, sample.input_bytes + peak, sum(bytes_of))


def check_memory(
    sample: Sample,
    memory_limit_bytes: int | None = None,
    time_limit_s: float | None = None,
    *,
    allow_unchecked_operators: bool = False,
) -> None:
    """Raise if the sample would exceed the memory limit. Nothing is allocated.

    Raises:
        MemoryLimitError: the sample needs more than the limit (default: the memory of this
            machine).
        TimeLimitError: shape inference takes longer than `time_limit_s`.
    """
    limit = psutil.virtual_memory().total if memory_limit_bytes is None else memory_limit_bytes
    needed = sample.input_bytes
    if needed <= limit:
        limits = Limits(limit, time_limit_s, allow_unchecked_operators)
        needed = measure_footprint(sample, limits=limits).peak_bytes
    if needed > limit:
        raise MemoryLimitError(
            f"`{sample.id}` needs about {needed / 2**30:.3g} GiB for its tensors, more than the "
            f"limit of {limit / 2**30:.3g} GiB. Raise `memory_limit_bytes` or leave the sample out."
        )


def _is_known(values: tuple[Value, ...]) -> bool:
    return all(value.shape is not None for value in values)


def _bytes(value: Value) -> int:
    dims = [dim for dim in value.shape or () if type(dim) is int]
    if value.dtype is None or value.shape is None or len(dims) < len(value.shape):
        return 0
    return math.prod(dims) * ITEM_SIZE_BYTES[value.dtype]
