"""Conversion of samples to rows."""

from __future__ import annotations

import collections
import dataclasses
import math
from collections.abc import Mapping, Sequence
from typing import Any

from ..errors import SchemaError, SymbolError, raises_only
from ..sample import Input, Op, Sample, Statistics, Value
from ..sample.symbols import Dim, evaluate
from .decimal_elements import pack_decimals
from .graphs import DERIVED_COLUMNS, GRAPH_COLUMNS, PROVENANCE_FIELDS
from .repeated_elements import with_repeats
from .templates import encode_args, encode_kwargs
from .version import SCHEMA_VERSION

_NO_STATISTICS = Statistics()


@raises_only(SchemaError)
def sample_to_row(sample: Sample, derived: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """Return the row of the `graphs` table for a sample.

    `derived` contains columns that are computed from the sample (`DERIVED_COLUMNS`); missing
    columns are null.

    Raises:
        SchemaError: `derived` has an unknown column, or the sample has invalid Unicode.

    >>> from graphnet_datasets.sample.arguments import Ref
    >>> relu = Sample(
    ...     id="example/relu", framework="torch", task="other",
    ...     inputs=(Input("input", Value("float32", (2, 3))),),
    ...     ops=(Op("torch.relu", (Ref(0),)),), outputs=(Ref(1),))
    >>> row = sample_to_row(relu)
    >>> row["num_ops"], row["ops"][0]["operands"], row["ops"][0]["args"]
    (1, [0], '[{}]')
    """
    derived = derived or {}
    for name in derived:
        if name not in DERIVED_COLUMNS:
            raise SchemaError(
                f"`{name}` is not a derived column. Choose from {', '.join(DERIVED_COLUMNS)}."
            )
    operands: list[int] = []
    structure = encode_args((sample.outputs,), operands)
    decimals, packed = pack_decimals(
        [(argument.value.dtype, argument.data) for argument in sample.inputs]
    )
    row: dict[str, Any] = {
        column.name: column.value(sample) if column.value else derived.get(column.name)
        for column in GRAPH_COLUMNS
    }
    row |= {
        "schema_version": SCHEMA_VERSION,
        "dtype": _main_dtype(sample),
        "num_outputs": len(operands),
        "symbols": [_fields(symbol) for symbol in sample.symbols],
        "constraints": [_fields(constraint) for constraint in sample.constraints],
        "inputs": [
            _input_to_row(sample, argument, None if number in packed else argument.data)
            for number, argument in enumerate(sample.inputs)
        ],
        "decimal_elements": decimals,
        "calibrated_inputs": _calibrated_to_row(sample),
        "signals": signals_to_row(sample.inputs),
        "ops": [_op_to_row(sample, op) for op in sample.ops],
        "outputs": {"operands": operands, "structure": structure},
        "custom_operators": [_fields(operator) for operator in sample.custom_operators],
        "provenance": {
            field.name: list(value) if type(value) is tuple else value
            for field in PROVENANCE_FIELDS
            for value in (getattr(sample.provenance, field.name),)
        },
    }
    return with_repeats(row)


def _fields(record: Any) -> dict[str, Any]:
    return {field.name: getattr(record, field.name) for field in dataclasses.fields(record)}


def _main_dtype(sample: Sample) -> str | None:
    """Return the dtype with the most elements over all input tensors."""
    num_elements: collections.Counter[str] = collections.Counter()
    for argument in sample.inputs:
        if argument.role not in ("symbol", "scalar") and argument.value.dtype is not None:
            num_elements[argument.value.dtype] += math.prod(sample.shape_of(argument.value) or ())
    return max(num_elements, key=num_elements.__getitem__, default=None)


def _input_to_row(sample: Sample, argument: Input, data: bytes | None) -> dict[str, Any]:
    statistics = argument.statistics or _NO_STATISTICS
    return {
        "role": argument.role,
        **_value_to_row(sample, argument.value),
        "source_name": argument.source_name,
        "device": argument.device,
        "mean": statistics.mean,
        "std": statistics.std,
        "min": statistics.min,
        "max": statistics.max,
        "is_measured": None if argument.statistics is None else statistics.is_measured,
        "data": data,
    }


def _calibrated_to_row(sample: Sample) -> list[dict[str, Any]] | None:
    """Return the calibrated statistics, or None without any, as in older files."""
    return [
        {
            "input": index,
            "mean": statistics.mean,
            "std": statistics.std,
            "min": statistics.min,
            "max": statistics.max,
        }
        for index, statistics in enumerate(argument.calibrated for argument in sample.inputs)
        if statistics is not None
    ] or None


def signals_to_row(inputs: Sequence[Input]) -> list[dict[str, Any]] | None:
    """Return the signals of inputs, or None without any, as in older files.

    >>> signals_to_row([Input("input", Value("float32", (4, 3, 8, 8)), signal="image")])
    [{'input': 0, 'kind': 'image'}]
    """
    return [
        {"input": index, "kind": argument.signal}
        for index, argument in enumerate(inputs)
        if argument.signal
    ] or None


def _op_to_row(sample: Sample, op: Op) -> dict[str, Any]:
    operands: list[int] = []
    results = op.results
    return {
        "target": op.target,
        "operands": operands,
        "args": encode_args(op.args, operands),
        "kwargs": encode_kwargs(op.kwargs, operands),
        "results": None if results is None else [_value_to_row(sample, value) for value in results],
        "module": op.module,
    }


def _value_to_row(sample: Sample, value: Value) -> dict[str, Any]:
    shape, symbolic_shape = _dims_to_row(sample, value.shape)
    stride, symbolic_stride = _dims_to_row(sample, value.stride)
    return {
        "dtype": value.dtype,
        "shape": shape,
        "symbolic_shape": symbolic_shape,
        "stride": stride,
        "symbolic_stride": symbolic_stride,
    }


def _dims_to_row(
    sample: Sample, dims: tuple[Dim, ...] | None
) -> tuple[list[int | None] | None, list[str | None] | None]:
    if dims is None:
        return None, None
    if str not in map(type, dims):
        return list(dims), None  # pyright: ignore[reportReturnType] - no text among them
    return (
        [_size(sample, dim) for dim in dims],
        [dim if isinstance(dim, str) else None for dim in dims],
    )


def _size(sample: Sample, dim: Dim) -> int | None:
    """Return a dimension at the sizes of the capture, or None if it cannot be evaluated."""
    try:
        return evaluate(dim, sample.hints)
    except SymbolError:
        return None
