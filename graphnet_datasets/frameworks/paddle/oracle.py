"""The float64 oracle for Paddle: the same graph and inputs, computed in float64."""

from __future__ import annotations

import dataclasses
from typing import Any

import paddle

from ...sample import Sample
from ...sample.arguments import Arg, DictArg, ListArg, Named
from ..protocols import Workload
from .operators import draws_random_numbers
from .plan import Plan
from .tensors import dtype_of

_WIDE = {
    "float16": "float64", "bfloat16": "float64", "float32": "float64", "complex64": "complex128",
    "float8_e4m3fn": "float64", "float8_e5m2": "float64",
}  # fmt: skip


def float64_outputs(workload: Workload, sample: Sample) -> Any:
    """Compute the equivalent of `Arm.results` on input set 0 in float64.

    Returns None for graphs that draw random numbers. The workload is unusable afterwards: its input
    sets are released to make room for the float64 tensors.

    Raises:
        Exception: any Paddle exception, if an operator does not support float64 or memory runs out.
    """
    if any(map(draws_random_numbers, sample.ops)):
        return None
    arguments = workload.arguments(0)
    weights = workload.runtime.tensors_of(workload.module)
    workload.forget_inputs()
    wide = {
        name: _widened(arguments.pop(name) if name in arguments else weights.pop(name))
        for name in sample.input_names
    }
    plan = Plan(widen(sample), workload.runtime.device, is_guarded=False)
    before = paddle.get_default_dtype()
    # For tensors that the graph creates without an explicit dtype.
    paddle.set_default_dtype("float64")
    try:
        outputs = plan.run([wide[name] for name in sample.input_names])
    finally:
        paddle.set_default_dtype(before)
    effects = [wide[name] for name in (*workload.written, *workload.state)]
    return (outputs, effects) if effects else outputs


def widen(sample: Sample) -> Sample:
    """Return the sample with the dtypes named in its operators widened to float64 and complex128.

    >>> from graphnet_datasets.sample.arguments import Ref
    >>> from graphnet_datasets.sample import Input, Op, Value
    >>> cast = Op("paddle._C_ops.cast", (Ref(0), Named("dtype", "bfloat16")))
    >>> tensor = Input("input", Value("float32", (2,)))
    >>> widen(Sample("example/cast", "paddle", "other", (tensor,), (cast,), Ref(1))).ops[0].args[1]
    Named(kind='dtype', name='float64')
    """
    ops = (
        dataclasses.replace(
            op,
            args=tuple(map(_wide_arg, op.args)),
            kwargs=tuple((name, _wide_arg(arg)) for name, arg in op.kwargs),
        )
        for op in sample.ops
    )
    return dataclasses.replace(sample, ops=tuple(ops))


def _wide_arg(arg: Arg) -> Arg:
    if isinstance(arg, Named) and arg.kind == "dtype":
        return Named("dtype", _WIDE.get(arg.name, arg.name))
    if isinstance(arg, tuple):
        return tuple(map(_wide_arg, arg))
    if isinstance(arg, ListArg):
        return ListArg(tuple(map(_wide_arg, arg.items)))
    if isinstance(arg, DictArg):
        return DictArg(tuple((key, _wide_arg(item)) for key, item in arg.items))
    return arg


def _widened(value: Any) -> Any:
    if not isinstance(value, paddle.Tensor):
        return value
    wanted = _WIDE.get(str(value.dtype).rpartition(".")[2])
    return value if wanted is None else value.astype(dtype_of(wanted))
