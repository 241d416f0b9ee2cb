"""Row to sample: the inverse of `to_row`, for rows that anybody may have written."""

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
"""Libraries in whose types `datasets` can give rows; here they are plain Python."""

_INTEGERS = frozenset({int})
_MOMENTS = frozenset({float, type(None)})

_NAMES = {int: "an integer", str: "text", float: "a number", bool: "true or false", bytes: "bytes"}


@raises_only(SchemaError)
def sample_from_row(row: Mapping[str, Any]) -> Sample:
    """Return the sample that a row of the `graphs` table holds.

    Columns that are not part of the sample may be missing, and columns of one's own are ignored.

    Raises:
        FormatVersionError: the row was written in another format version.
        SchemaError: a column is missing or has another type; the message says which.
        SampleError: the row holds a sample that breaks an invariant.

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
        ops = _each(row, "ops", _OpReader().read)
        if num_ops is not None and num_ops != len(ops):
            raise SchemaError(f"it says `num_ops` is {num_ops} and holds {len(ops)} operators")
        # The Sample itself checks the words of its closed vocabularies.
        return Sample(
            id=_get(row, "id", str),
            framework=_get(row, "framework", str),  # pyright: ignore[reportArgumentType]
            task=_get(row, "task", str),  # pyright: ignore[reportArgumentType]
            inputs=_inputs_from_row(row),
            ops=ops,
            outputs=_outputs_from_row(_get(row, "outputs", dict)),
            symbols=_each(row, "symbols", _symbol_from_row),
            constraints=_each(row, "constraints", _constraint_from_row),
            kind=_get(row, "kind", str),  # pyright: ignore[reportArgumentType]
            provenance=_provenance_from_row(row),
            # Null in tables that were written before there was such a column.
            custom_operators=()
            if row.get("custom_operators") is None
            else _each(row, "custom_operators", _custom_operator_from_row),
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
        raise SchemaError(f"`{name}` holds something other than {_NAMES[kind]}")
    return items


def _wrong_type(row: Mapping[str, Any], name: str, kind: type) -> SchemaError:
    if name not in row:
        return SchemaError(f"there is no column `{name}`, which every sample needs")
    found = type(row[name])
    expected = _NAMES.get(kind, f"a {kind.__name__}")
    problem = f"`{name}` is of type `{found.__name__}` where {expected} is expected"
    if found.__module__.partition(".")[0] in _FORMATS:
        problem += "; take rows of `dataset.with_format(None)`"
    return SchemaError(problem)


def _each(
    row: Mapping[str, Any], name: str, decode: Callable[[dict[str, Any]], T]
) -> tuple[T, ...]:
    items: list[T] = []
    try:
        for item in _get(row, name, list):
            if type(item) is not dict:
                raise SchemaError(f"it is of type `{type(item).__name__}` where a dict is expected")
            items.append(decode(item))
    except SchemaError as error:
        if type(row.get(name)) is not list:
            raise
        raise SchemaError(f"`{name}[{len(items)}]`: {error}") from error
    return tuple(items)


def _inputs_from_row(row: Mapping[str, Any]) -> tuple[Input, ...]:
    inputs = list(_each(row, "inputs", _input_from_row))
    # Null where there is nothing in it, and missing in older tables.
    decimals = _get_optional(row, "decimal_elements", dict)
    if decimals is not None:
        for index, data in unpack_decimals(decimals).items():
            if index >= len(inputs):
                raise SchemaError(f"`decimal_elements` names the input {index}, which is not there")
            each = inputs[index]
            if each.data is not None or each.value.dtype != "float32":
                raise SchemaError(
                    f"`decimal_elements` holds elements of the input {index}, which has others or "
                    "is not of float32"
                )
            inputs[index] = dataclasses.replace(each, data=data)
    if row.get("repeated_elements") is not None:
        repeats = _get(row, "repeated_elements", list)
        for index, data in unpack_repeats(repeats, [each.data for each in inputs]):
            inputs[index] = dataclasses.replace(inputs[index], data=data)
    # Null in tables that were written before there was such a column.
    if row.get("calibrated_inputs") is not None:
        for index, statistics in _each(row, "calibrated_inputs", _calibrated_from_row):
            if not 0 <= index < len(inputs):
                raise SchemaError(
                    f"`calibrated_inputs` names the input {index}, which is not there"
                )
            each = inputs[index]
            inputs[index] = make_input(
                *(each.role, each.value, each.source_name, each.device, each.statistics, each.data),
                calibrated=statistics,
            )
    return tuple(inputs)


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
    """Return an input; what is not as in nearly all of them is read column by column."""
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
    """Reads the operators of one row; results that are alike become one `Value`.

    A graph has few different results, and what is one object is looked at once (`invariants`).
    """

    def __init__(self) -> None:
        self._values: dict[Any, tuple[Value]] = {}

    def read(self, row: dict[str, Any]) -> Op:
        """Return an operator; what is not as in nearly all of them is read column by column."""
        try:
            target, args, kwargs, module, given, results = _OP(row)
        except KeyError:
            target, args, kwargs, module, given, results = map(row.get, _OP_NAMES)
        if not type(target) is type(args) is type(kwargs) is type(module) is str:
            for name in ("target", "args", "kwargs", "module"):
                _get(row, name, str)
        if type(given) is not list or (given and set(map(type, given)) != _INTEGERS):
            _get_list(row, "operands", int)
        if kwargs == "{}" and (plain := decode_plain(args, given)) is not None:  # pyright: ignore[reportArgumentType]
            found = None if results is None else self._results(row, results)
            return make_op(target, plain, (), found, module)
        operands = iter(given)  # pyright: ignore[reportCallIssue, reportArgumentType] - a list
        try:
            op = make_op(
                target,
                decode_args(args, operands),  # pyright: ignore[reportArgumentType]
                () if kwargs == "{}" else decode_kwargs(kwargs, operands),  # pyright: ignore[reportArgumentType]
                None if results is None else self._results(row, results),
                module,
            )
        except StopIteration:
            raise SchemaError("its templates have more holes than it has operands") from None
        if next(operands, None) is not None:
            raise SchemaError("it has more operands than its templates have holes")
        return op

    def _results(self, row: dict[str, Any], results: Any) -> tuple[Value, ...]:
        if type(results) is list and len(results) == 1 and type(results[0]) is dict:
            get = results[0].get
            dtype, shape, stride = get("dtype"), get("shape"), get("stride")
            # Equal is not enough where `True` and `1.0` equal 1.
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
                found = self._values.get(key)
                if found is None:
                    strides = None if stride is None else tuple(stride)
                    found = self._values[key] = (Value(dtype, tuple(shape), strides),)
                return found
        return _each(row, "results", _value_from_row)


def _outputs_from_row(row: dict[str, Any]) -> Arg:
    operands = iter(_get_list(row, "operands", int))
    try:
        arguments = decode_args(_get(row, "structure", str), operands)
    except StopIteration:
        raise SchemaError("`outputs` has more holes than operands") from None
    if len(arguments) != 1 or next(operands, None) is not None:
        raise SchemaError("`outputs` is not one structure filled with all its operands")
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
        # Files that were written before parts were cut out lack these two.
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
