"""Conversion of rows to samples: the inverse of `to_row`, for untrusted rows."""

from __future__ import annotations

import dataclasses
import operator
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from ..errors import FormatVersionError, SchemaError, raises_only
from ..sample import (
    Constraint,
    CustomOperator,
    Input,
    Op,
    Provenance,
    Sample,
    Statistics,
    Symbol,
    Value,
)
from ..sample.arguments import Arg
from ..sample.symbols import Dim
from .decimal_elements import unpack_decimals
from .frozen import make_input, make_op, make_statistics, make_value
from .graphs import PROVENANCE_SCALARS
from .repeated_elements import unpack_repeats
from .templates import decode_args, decode_kwargs, decode_plain
from .version import SCHEMA_VERSION

T = TypeVar("T")

_FORMATS = frozenset({"numpy", "torch", "jax", "jaxlib", "pandas", "pyarrow", "polars"})
"""Libraries whose types `datasets` may return in rows; samples need plain Python types."""

_INTEGERS = frozenset({int})
_MOMENTS = frozenset({float, type(None)})

_NAMES = {int: "an integer", str: "text", float: "a number", bool: "true or false", bytes: "bytes"}


@raises_only(SchemaError)
def sample_from_row(row: Mapping[str, Any]) -> Sample:
    """Return the sample of a row of the `graphs` table.

    Columns that are not part of the sample may be missing, and unknown columns are ignored.

    Raises:
        FormatVersionError: the row has another format version.
        SchemaError: a column is missing or has another type; the message names it.
        SampleError: the sample of the row violates an invariant.

    >>> from graphnet_datasets.schema import sample_to_row
    >>> add = Sample(
    ...     id="example/add", framework="torch", task="other",
    ...     inputs=(Input("input", Value("float32", (2, "s0"))),), symbols=(Symbol("s0", 3),),
    ...     ops=(Op("torch.add", (), (("alpha", -0.0),)),), outputs=None)
    >>> sample_from_row(sample_to_row(add)) == add
    True
    """
    version = row.get("schema_version", SCHEMA_VERSION)
    if version != SCHEMA_VERSION:
        raise FormatVersionError(
            f"This row has format version {version}; this library reads {SCHEMA_VERSION}. "
            f"Install the release of `graphnet-datasets` that reads version {version}, or load the "
            f'branch `v{SCHEMA_VERSION}` of the dataset (`revision="v{SCHEMA_VERSION}"`).'
        )
    sample_id = row.get("id")
    where = f"row `{str(sample_id)[:80]}`"
    try:
        num_ops = row.get("num_ops")
        ops = _decode_list(row, "ops", _OpReader().read)
        if num_ops is not None and num_ops != len(ops):
            raise SchemaError(f"`num_ops` is {num_ops}, but `ops` has {len(ops)} items")
        # `Sample` checks the values of its closed vocabularies.
        return Sample(
            id=_get(row, "id", str),
            framework=_get(row, "framework", str),  # pyright: ignore[reportArgumentType]
            task=_get(row, "task", str),  # pyright: ignore[reportArgumentType]
            inputs=_inputs_from_row(row),
            ops=ops,
            outputs=_outputs_from_row(_get(row, "outputs", dict)),
            symbols=_decode_list(row, "symbols", _symbol_from_row),
            constraints=_decode_list(row, "constraints", _constraint_from_row),
            kind=_get(row, "kind", str),  # pyright: ignore[reportArgumentType]
            provenance=_provenance_from_row(row),
            # Null in tables written before the column was added.
            custom_operators=()
            if row.get("custom_operators") is None
            else _decode_list(row, "custom_operators", _custom_operator_from_row),
            calibration=_get_optional(row, "calibration", str) or "",  # pyright: ignore[reportArgumentType]
        )
    except SchemaError as error:
        raise SchemaError(f"In {where}: {str(error).rstrip('.')}.") from error


def _get(row: Mapping[str, Any], name: str, kind: type[T]) -> T:
    value = row.get(name)
    if type(value) is not kind:
        raise _wrong_type(row, name, kind)
    return value


def _get_optional(row: Mapping[str, Any], name: str, kind: type[T]) -> T | None:
    value = row.get(name)
    if value is not None and type(value) is not kind:
        raise _wrong_type(row, name, kind)
    return value


def _get_list(row: Mapping[str, Any], name: str, kind: type[T]) -> list[T]:
    """Return a list whose items all have type `kind`."""
    items = _get(row, name, list)
    if items and set(map(type, items)) != {kind}:
        raise SchemaError(f"`{name}` contains values other than {_NAMES[kind]}")
    return items


def _wrong_type(row: Mapping[str, Any], name: str, kind: type) -> SchemaError:
    if name not in row:
        return SchemaError(f"the required column `{name}` is missing")
    actual = type(row[name])
    expected = _NAMES.get(kind, f"a {kind.__name__}")
    problem = f"`{name}` is of type `{actual.__name__}` where {expected} is expected"
    if actual.__module__.partition(".")[0] in _FORMATS:
        problem += "; take rows of `dataset.with_format(None)`"
    return SchemaError(problem)


def _decode_list(
    row: Mapping[str, Any], name: str, decode: Callable[[dict[str, Any]], T]
) -> tuple[T, ...]:
    items: list[T] = []
    try:
        for item in _get(row, name, list):
            if type(item) is not dict:
                raise SchemaError(f"Expected a dict, got a `{type(item).__name__}`")
            items.append(decode(item))
    except SchemaError as error:
        if type(row.get(name)) is not list:
            raise
        raise SchemaError(f"`{name}[{len(items)}]`: {error}") from error
    return tuple(items)


def _inputs_from_row(row: Mapping[str, Any]) -> tuple[Input, ...]:
    inputs = list(_decode_list(row, "inputs", _input_from_row))
    # Null if empty, and missing in older tables.
    decimals = _get_optional(row, "decimal_elements", dict)
    if decimals is not None:
        for index, data in unpack_decimals(decimals).items():
            if index >= len(inputs):
                raise SchemaError(
                    f"`decimal_elements` refers to the input {index}, which does not exist"
                )
            argument = inputs[index]
            if argument.data is not None or argument.value.dtype != "float32":
                raise SchemaError(
                    f"`decimal_elements` contains elements of the input {index}, which also has "
                    "elements in `inputs` or is not float32"
                )
            inputs[index] = dataclasses.replace(argument, data=data)
    if row.get("repeated_elements") is not None:
        repeats = _get(row, "repeated_elements", list)
        for index, data in unpack_repeats(repeats, [argument.data for argument in inputs]):
            inputs[index] = dataclasses.replace(inputs[index], data=data)
    # Null in tables written before the column was added.
    if row.get("calibrated_inputs") is not None:
        for index, statistics in _decode_list(row, "calibrated_inputs", _calibrated_from_row):
            if not 0 <= index < len(inputs):
                raise SchemaError(
                    f"`calibrated_inputs` refers to the input {index}, which does not exist"
                )
            argument = inputs[index]
            inputs[index] = make_input(
                *(
                    argument.role,
                    argument.value,
                    argument.source_name,
                    argument.device,
                    argument.statistics,
                    argument.data,
                ),
                calibrated=statistics,
            )
    # Null in tables written before the column was added.
    if row.get("signals") is not None:
        for index, signal in _decode_list(row, "signals", _signal_from_row):
            if not 0 <= index < len(inputs):
                raise SchemaError(f"`signals` refers to the input {index}, which does not exist")
            inputs[index] = dataclasses.replace(inputs[index], signal=signal)  # pyright: ignore[reportArgumentType] - Sample checks it
    return tuple(inputs)


def _signal_from_row(row: dict[str, Any]) -> tuple[int, str]:
    return _get(row, "input", int), _get(row, "kind", str)


def _calibrated_from_row(row: dict[str, Any]) -> tuple[int, Statistics]:
    mean, std, low, high = (
        _get_optional(row, name, float) for name in ("mean", "std", "min", "max")
    )
    return _get(row, "input", int), Statistics(mean, std, low, high)


_INPUT = operator.itemgetter(
    *("dtype", "shape", "is_measured", "role", "source_name", "device", "data"),
    *("stride", "symbolic_shape"),
)
_STATISTICS = operator.itemgetter("mean", "std", "min", "max")
_OP_NAMES = ("target", "args", "kwargs", "module", "operands", "results")
_OP = operator.itemgetter(*_OP_NAMES)


def _input_from_row(row: dict[str, Any]) -> Input:
    """Return an input: by a fast path in the common case, otherwise column by column."""
    try:
        dtype, shape, is_measured, role, source_name, device, data, stride, symbols = _INPUT(row)
        moments = _STATISTICS(row)
    except KeyError:
        return _unusual_input_from_row(row)
    if (
        type(dtype) is type(role) is type(source_name) is type(device) is str
        and type(shape) is list
        and type(is_measured) is bool
        and stride is symbols is None
        and (data is None or type(data) is bytes)
        and _MOMENTS.issuperset(map(type, moments))
    ):
        statistics = make_statistics(moments, is_measured)
        value = make_value(dtype, tuple(shape), None)
        return make_input(role, value, source_name, device, statistics, data)
    return _unusual_input_from_row(row)


def _unusual_input_from_row(row: dict[str, Any]) -> Input:
    is_measured = _get_optional(row, "is_measured", bool)
    statistics = None
    if is_measured is not None:
        statistics = Statistics(
            _get_optional(row, "mean", float),
            _get_optional(row, "std", float),
            _get_optional(row, "min", float),
            _get_optional(row, "max", float),
            is_measured,
        )
    return Input(
        role=_get(row, "role", str),  # pyright: ignore[reportArgumentType] - Sample checks it
        value=_value_from_row(row),
        source_name=_get(row, "source_name", str),
        device=_get(row, "device", str),
        statistics=statistics,
        data=_get_optional(row, "data", bytes),
    )


class _OpReader:
    """A reader of the operators of one row that shares a `Value` among equal results.

    A graph has few distinct results, and shared objects are checked only once (`invariants`).
    """

    def __init__(self) -> None:
        self._values: dict[Any, tuple[Value]] = {}

    def read(self, row: dict[str, Any]) -> Op:
        """Return an operator: by a fast path in the common case, otherwise column by column."""
        try:
            target, args, kwargs, module, indices, results = _OP(row)
        except KeyError:
            target, args, kwargs, module, indices, results = map(row.get, _OP_NAMES)
        if not type(target) is type(args) is type(kwargs) is type(module) is str:
            for name in ("target", "args", "kwargs", "module"):
                _get(row, name, str)
        if type(indices) is not list or (indices and set(map(type, indices)) != _INTEGERS):
            _get_list(row, "operands", int)
        if kwargs == "{}" and (plain := decode_plain(args, indices)) is not None:  # pyright: ignore[reportArgumentType]
            values = None if results is None else self._results(row, results)
            return make_op(target, plain, (), values, module)
        operands = iter(indices)  # pyright: ignore[reportCallIssue, reportArgumentType] - a list
        try:
            op = make_op(
                target,
                decode_args(args, operands),  # pyright: ignore[reportArgumentType]
                () if kwargs == "{}" else decode_kwargs(kwargs, operands),  # pyright: ignore[reportArgumentType]
                None if results is None else self._results(row, results),
                module,
            )
        except StopIteration:
            raise SchemaError("The templates have more holes than there are operands") from None
        if next(operands, None) is not None:
            raise SchemaError("The templates have fewer holes than there are operands")
        return op

    def _results(self, row: dict[str, Any], results: Any) -> tuple[Value, ...]:
        if type(results) is list and len(results) == 1 and type(results[0]) is dict:
            get = results[0].get
            dtype, shape, stride = get("dtype"), get("shape"), get("stride")
            # Types are checked too, because `True` and `1.0` equal 1.
            if (
                type(dtype) is str
                and type(shape) is list
                and get("symbolic_shape") is get("symbolic_stride") is None
                and _INTEGERS.issuperset(map(type, shape))
                and (
                    stride is None
                    or (type(stride) is list and _INTEGERS.issuperset(map(type, stride)))
                )
            ):
                key = dtype, *shape, None, *(stride or ()), stride is None
                values = self._values.get(key)
                if values is None:
                    strides = None if stride is None else tuple(stride)
                    values = self._values[key] = (Value(dtype, tuple(shape), strides),)
                return values
        return _decode_list(row, "results", _value_from_row)


def _outputs_from_row(row: dict[str, Any]) -> Arg:
    operands = iter(_get_list(row, "operands", int))
    try:
        arguments = decode_args(_get(row, "structure", str), operands)
    except StopIteration:
        raise SchemaError("`outputs` has more holes than operands") from None
    if len(arguments) != 1 or next(operands, None) is not None:
        raise SchemaError("`outputs` has more operands than holes")
    return arguments[0]


def _value_from_row(row: dict[str, Any]) -> Value:
    return Value(
        _get_optional(row, "dtype", str),
        _dims_from_row(row, "shape"),
        _dims_from_row(row, "stride"),
    )


def _dims_from_row(row: dict[str, Any], name: str) -> tuple[Dim, ...] | None:
    sizes = _get_optional(row, name, list)
    if sizes is None:
        return None
    expressions = _get_optional(row, f"symbolic_{name}", list)
    if expressions is None:
        return tuple(sizes)
    if len(expressions) != len(sizes):
        raise SchemaError(f"`{name}` and `symbolic_{name}` have different lengths")
    return tuple(
        size if expression is None else expression
        for size, expression in zip(sizes, expressions, strict=True)
    )


def _symbol_from_row(row: dict[str, Any]) -> Symbol:
    return Symbol(
        _get(row, "name", str),
        _get(row, "hint", int),
        _get_optional(row, "lower", int),
        _get_optional(row, "upper", int),
    )


def _constraint_from_row(row: dict[str, Any]) -> Constraint:
    return Constraint(
        _get(row, "left", str),
        _get(row, "relation", str),  # pyright: ignore[reportArgumentType] - Sample checks it
        _get(row, "right", str),
    )


def _custom_operator_from_row(row: dict[str, Any]) -> CustomOperator:
    return CustomOperator(
        _get(row, "name", str),
        _get(row, "schema", str),
        _get(row, "source", str),
        _get(row, "source_hash", str),
    )


def _provenance_from_row(row: Mapping[str, Any]) -> Provenance:
    record = _get(row, "provenance", dict)
    return Provenance(
        **{name: _get(row, name, str) for name in PROVENANCE_SCALARS},
        tags=tuple(_get_list(row, "tags", str)),
        is_model_name_certain=_get(record, "is_model_name_certain", bool),
        capture=_get(record, "capture", str),
        framework_version=_get(record, "framework_version", str),
        library_version=_get(record, "library_version", str),
        # Missing in files written before parts of graphs were supported.
        parent_ops=tuple(_get_list(row, "parent_ops", int)) if row.get("parent_ops") else (),
        num_occurrences=1
        if (count := _get_optional(row, "num_occurrences", int)) is None
        else count,
        graph_index=_get(record, "graph_index", int),
        graph_count=_get(record, "graph_count", int),
        break_reason=_get(record, "break_reason", str),
        source_hash=_get(record, "source_hash", str),
        faults=tuple(_get_list(record, "faults", str)),
        metadata=_get(record, "metadata", str),
    )
