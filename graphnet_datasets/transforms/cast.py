"""Conversion of graphs to another floating-point format, and to autocast."""

from __future__ import annotations

import dataclasses
import functools
import math
from typing import Any

import numpy as np

from ..errors import GraphNetError, SampleError, TransformError, raises_only
from ..frameworks import find_results
from ..frameworks.results import Result
from ..frameworks.stepping import find_not_finite
from ..inputs.encoding import encode, finite_range, from_bfloat16
from ..operators import OperatorNames
from ..sample import Input, Op, Sample, Statistics, Value
from ..sample.arguments import DictArg, ListArg, Named, Ref, iterate_refs, map_refs
from ..sample.targets import base_name
from .bodies import check_no_bodies
from .operator_kinds import kind_of

DTYPES = ("bfloat16", "float16", "float32", "float64")
"""Formats that a graph can be cast to."""

_METHODS = {"float": "float32", "double": "float64", "half": "float16", "bfloat16": "bfloat16"}
_METHOD_OF = {dtype: method for method, dtype in _METHODS.items()}

_WIDE_STATISTICS = OperatorNames("wide_statistics")

EMULATED = "emulated"
"""Tag of graphs without CPU kernels in their format, checked with operators in float32."""

DOES_NOT_RUN = "it does not run"
RUNS_NOWHERE = "the graph itself does not run on a CPU"
"""Reason of a rejection that is not caused by the format."""

_UNINITIALISED = ("empty", "new_empty")
"""Operators with arbitrary elements."""

_AUTOCAST = "torch.amp.autocast_mode"


@raises_only(TransformError)
def cast(
    sample: Sample,
    dtype: str,
    *,
    check: bool = True,
    emulate: bool = False,
    allow_unchecked_operators: bool = False,
) -> Sample:
    """Return the graph with its floating-point tensors in another format.

    Converted are: floating-point inputs, weights and stored elements; the formats that operators
    create or convert to; literals above the largest number of the format (the smallest numbers of
    masks), which become the largest; and literals that would underflow (epsilons), which become the
    smallest normal number. Unchanged are: integers and booleans, complex numbers, 8-bit formats,
    and the float32 statistics and weights of batch and instance norms, as their kernels require.
    The id ends with `/DTYPE`.

    With `check`, the result runs once on the CPU in this process; `allow_unchecked_operators` is
    passed to `materialize`. With `emulate`, operators without a CPU kernel for the format are
    computed in float32 and rounded for that run; a result that needs this has the tag `emulated`.

    Raises:
        SampleError: the format is unknown.
        TransformError: an operator of the result does not run, or returns non-finite elements where
            the original does not; the message names the operator.
        UnknownOperatorError, MaterializeError: the sample cannot be walked without running it.
        MissingExtraError: the sample's framework is not installed.

    >>> from graphnet_datasets.sample import Input, Op, Value
    >>> from graphnet_datasets.sample.arguments import Ref
    >>> sample = Sample("example/masked", "torch", "other",
    ...     (Input("input", Value("float32", (4,))),),
    ...     (Op("torch.add", (Ref(0), -3.4e38)), Op("torch.Tensor.float", (Ref(1),))), Ref(2))
    >>> half = cast(sample, "float16")
    >>> half.id, half.inputs[0].value.dtype, half.ops[0].args[1], half.ops[1].target
    ('example/masked/float16', 'float16', -65504.0, 'torch.Tensor.half')
    """
    check_no_bodies(sample)
    if dtype not in DTYPES:
        raise SampleError(f"Graphs cannot be cast to {dtype!r}. Choose one of {', '.join(DTYPES)}.")
    result = _Casting(sample, dtype).run()
    if check:
        options = {"allow_unchecked_operators": allow_unchecked_operators}
        try:
            _check(result, sample, **options)
        except TransformError as error:
            if not emulate or error.reason != DOES_NOT_RUN:
                raise
            _check(result, sample, **options, emulates=True)
            tags = (*result.provenance.tags, EMULATED)
            provenance = dataclasses.replace(result.provenance, tags=tags)
            result = dataclasses.replace(result, provenance=provenance)
    return result


@raises_only(TransformError)
def autocast(
    sample: Sample,
    dtype: str = "bfloat16",
    *,
    check: bool = True,
    allow_unchecked_operators: bool = False,
) -> Sample:
    """Return a torch graph that runs under autocast on the CPU; weights are unchanged.

    Raises:
        SampleError: the sample is not a torch graph, or the format does not have 16 bits.
        TransformError: as `cast`.

    >>> from graphnet_datasets.sample import Input, Op, Value
    >>> from graphnet_datasets.sample.arguments import Ref
    >>> matrix = Input("input", Value("float32", (4, 4)))
    >>> product = Sample("example/product", "torch", "other", (matrix,),
    ...     (Op("torch.matmul", (Ref(0), Ref(0))),), Ref(1))
    >>> [op.target.rpartition(".")[2] for op in autocast(product).ops]
    ['_enter_autocast', 'matmul', '_exit_autocast']
    """
    check_no_bodies(sample)
    if sample.framework != "torch":
        raise SampleError(
            f"`{sample.id}` is a graph of {sample.framework}, which has no autocast. Choose "
            "a torch graph, or use `cast`."
        )
    if dtype not in ("bfloat16", "float16"):
        raise SampleError(
            f"Autocast computes in bfloat16 or float16, not in {dtype!r}. Choose one of these."
        )
    num_inputs = len(sample.inputs)

    def shift(ref: int) -> Ref:
        return Ref(ref if ref < num_inputs else ref + 1)

    opens = Op(f"{_AUTOCAST}._enter_autocast", ("cpu", Named("dtype", dtype), True, None))
    closes = Op(f"{_AUTOCAST}._exit_autocast", (Ref(num_inputs),))
    ops = tuple(
        dataclasses.replace(
            op, args=map_refs(op.args, shift), kwargs=map_refs(op.kwargs, shift), results=None
        )
        for op in sample.ops
    )
    result = dataclasses.replace(
        sample,
        id=f"{sample.id}/autocast-{dtype}",
        ops=(opens, *ops, closes),
        outputs=map_refs(sample.outputs, shift),
        provenance=dataclasses.replace(sample.provenance, parent_id=sample.id),
    )
    if check:
        _check(result, sample, 1, allow_unchecked_operators=allow_unchecked_operators)
    return result


class _Casting:
    def __init__(self, sample: Sample, dtype: str) -> None:
        self.sample = sample
        self.dtype = dtype
        self.num_inputs = len(sample.inputs)
        self.wide = self._find_wide() if dtype in ("bfloat16", "float16") else frozenset()

    @functools.cached_property
    def results(self) -> tuple[Result, ...]:
        """Results of the operators; few graphs have to be walked for them."""
        return find_results(self.sample)

    def run(self) -> Sample:
        sample = self.sample
        return dataclasses.replace(
            sample,
            id=f"{sample.id}/{self.dtype}",
            inputs=tuple(
                value_input if index in self.wide else self._input(value_input)
                for index, value_input in enumerate(sample.inputs)
            ),
            ops=tuple(self._op(position, op) for position, op in enumerate(sample.ops)),
            provenance=dataclasses.replace(sample.provenance, parent_id=sample.id),
        )

    def _find_wide(self) -> frozenset[int]:
        """Return the inputs that are used only as statistics and weights of norms."""
        norm_refs: set[int] = set()
        others: set[int] = set()
        for op in self.sample.ops:
            is_norm = base_name(op.target) in _WIDE_STATISTICS
            data = set(iterate_refs(op.args[:1])) if is_norm else set()
            for ref in iterate_refs((op.args, op.kwargs)):
                (norm_refs if is_norm and ref not in data else others).add(ref)
        return frozenset(ref for ref in norm_refs - others if ref < self.num_inputs)

    def _input(self, value_input: Input) -> Input:
        if value_input.role in ("symbol", "scalar") or value_input.value.dtype not in DTYPES:
            return value_input
        value = dataclasses.replace(value_input.value, dtype=self.dtype)
        return dataclasses.replace(
            value_input,
            value=value,
            statistics=self._statistics(value_input.statistics),
            calibrated=self._statistics(value_input.calibrated),
            data=None
            if value_input.data is None
            else self._data(value_input.data, value_input.value.dtype),
        )

    def _statistics(self, statistics: Statistics | None) -> Statistics | None:
        if statistics is None:
            return None
        return dataclasses.replace(
            statistics,
            min=None if statistics.min is None else self._within(statistics.min),
            max=None if statistics.max is None else self._within(statistics.max),
        )

    def _data(self, data: bytes, dtype: str | None) -> bytes:
        if dtype == "bfloat16":
            values = from_bfloat16(np.frombuffer(data, "<u2"))
        else:
            values = np.frombuffer(data, np.dtype(dtype).newbyteorder("<"))
        _, largest = finite_range(self.dtype)
        clipped = np.clip(values, -largest, largest)
        finite = np.where(np.isfinite(values), clipped, values)  # preserve infinities of masks
        if self.dtype != "bfloat16":
            return finite.astype(np.dtype(self.dtype).newbyteorder("<")).tobytes()
        bits = encode(np.nan_to_num(finite, posinf=0, neginf=0).astype(np.float32), "bfloat16")
        for special, pattern in ((np.inf, 0x7F80), (-np.inf, 0xFF80)):
            bits[values == special] = pattern
        bits[np.isnan(values)] = 0x7FC0
        return bits.astype("<u2").tobytes()

    def _op(self, position: int, op: Op) -> Op:
        target = op.target
        owner, _, name = target.rpartition(".")
        if owner == "torch.Tensor" and name in _METHODS:
            target = f"{owner}.{_METHOD_OF[self.dtype]}"
        args, kwargs = self._argument(op.args), self._argument(op.kwargs)
        if self._makes_default(position, op):
            others = tuple(pair for pair in kwargs if pair[0] != "dtype")  # None is the default
            kwargs = (*others, ("dtype", Named("dtype", self.dtype)))
        return dataclasses.replace(op, target=target, args=args, kwargs=kwargs, results=None)

    def _makes_default(self, position: int, op: Op) -> bool:
        """Return whether torch's default dtype determines the dtype of a created tensor."""
        if self.sample.framework != "torch" or kind_of(op.target) != "source":
            return False
        names = list(_named_dtypes((op.args, op.kwargs)))
        takes = [ref for ref in iterate_refs((op.args, op.kwargs)) if self._is_tensor(ref)]
        return not names and not takes and self._value(position).dtype in DTYPES

    def _value(self, position: int) -> Value:
        """Return the recorded value of the first result of an operator.

        Only a graph without recorded values is walked.
        """
        recorded = self.sample.ops[position].results
        if recorded is None:
            return self.results[position].value
        return recorded[0] if recorded else Value()

    def _is_tensor(self, ref: int) -> bool:
        if ref < self.num_inputs:
            return self.sample.inputs[ref].role not in ("symbol", "scalar")
        return self._value(ref - self.num_inputs).dtype is not None

    def _argument(self, arg: Any) -> Any:
        if isinstance(arg, Named):
            is_float = arg.kind == "dtype" and arg.name in DTYPES
            return Named("dtype", self.dtype) if is_float else arg
        if type(arg) is float:
            return self._within(arg)
        if isinstance(arg, tuple):
            return tuple(map(self._argument, arg))
        if isinstance(arg, ListArg | DictArg):
            return type(arg)(self._argument(arg.items))
        return arg

    def _within(self, number: float) -> float:
        if not math.isfinite(number) or number == 0:
            return number
        smallest, largest = finite_range(self.dtype)
        return math.copysign(min(max(abs(number), smallest), largest), number)


def _named_dtypes(arg: Any) -> Any:
    if isinstance(arg, Named):
        if arg.kind == "dtype":
            yield arg.name
    elif isinstance(arg, tuple):
        for item in arg:
            yield from _named_dtypes(item)
    elif isinstance(arg, ListArg | DictArg):
        yield from _named_dtypes(arg.items)


def _check(result: Sample, original: Sample, offset: int = 0, **options: Any) -> None:
    """Run the result; accept non-finite elements only if the original has them too.

    If the result does not run, the original runs as well: a failure in any format is not caused
    by this format.
    """
    try:
        not_finite = find_not_finite(result, **options)
    except GraphNetError as error:
        operator = getattr(error, "operator", "")
        try:
            find_not_finite(original, **options)
        except GraphNetError as other:
            raise TransformError(
                f"`{original.id}` itself does not run on the CPU: {other}",
                operator=operator,
                reason=RUNS_NOWHERE,
            ) from other
        raise TransformError(
            f"`{result.id}` does not run: {error}", operator=operator, reason=DOES_NOT_RUN
        ) from error
    if not not_finite:
        return
    allowed = find_not_finite(original, **options)
    bad = [
        position
        for position in not_finite
        if position - offset not in allowed
        and not base_name(result.ops[position].target).startswith(_UNINITIALISED)
    ]
    if bad:
        target = result.ops[bad[0]].target
        raise TransformError(
            f"`{result.id}` overflows: operator {bad[0]} (`{target}`) returns non-finite elements, "
            f"unlike in `{original.id}`. Cast to a wider format.",
            operator=target,
            reason="it overflows",
        )
