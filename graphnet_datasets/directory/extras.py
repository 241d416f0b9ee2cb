"""The file `graphnet_datasets.json`: data that GraphNet's own files cannot represent.

Id, task, kind and provenance are stored completely, so that a directory can be moved and renamed.
Other data are stored only if GraphNet's own files do not contain them.
"""

from __future__ import annotations

import base64
import binascii
import contextlib
import dataclasses
import itertools
import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from ..decoding import load_json
from ..errors import SampleError, SourceError
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
from ..sample.arguments import Graph

FILE_NAME = "graphnet_datasets.json"
VERSION = 1

_PROVENANCE_FIELDS = {field.name for field in dataclasses.fields(Provenance)}


def print_extras(base: Sample, sample: Sample) -> str:
    """Return the contents of the file that turns `base`, read from other files, into `sample`.

    Raises:
        SampleError: the other files describe different operators or another number of inputs.
    """
    extras: dict[str, Any] = {
        "version": VERSION,
        "id": sample.id,
        "task": sample.task,
        "kind": sample.kind,
        "provenance": dataclasses.asdict(sample.provenance),
    }
    if base.symbols != sample.symbols:
        extras["symbols"] = [list(dataclasses.astuple(symbol)) for symbol in sample.symbols]
    if base.constraints != sample.constraints:
        extras["constraints"] = [
            list(dataclasses.astuple(constraint)) for constraint in sample.constraints
        ]
    if sample.custom_operators:
        extras["custom_operators"] = [
            dataclasses.asdict(operator) for operator in sample.custom_operators
        ]
    if len(base.inputs) != len(sample.inputs) or _graph(base) != _graph(sample):
        raise _cannot_write(sample)
    if sample.calibration:
        extras["calibration"] = sample.calibration
    inputs = {
        str(index): _print_input(argument)
        for index, (argument, base_argument) in enumerate(
            zip(sample.inputs, base.inputs, strict=True)
        )
        if repr(argument) != repr(base_argument) or argument.data != base_argument.data
    }
    if inputs:
        extras["inputs"] = inputs
    if any(op.results != base_op.results for op, base_op in zip(sample.ops, base.ops, strict=True)):
        extras["results"] = [
            None if op.results is None else [_print_value(value) for value in op.results]
            for op in sample.ops
        ]
    modules = list(_modules(sample.ops))
    if modules != list(_modules(base.ops)):
        extras["modules"] = modules
    return json.dumps(extras, indent=1) + "\n"


def _graph(sample: Sample) -> str:
    """Return operators and outputs as a string: NaN equals NaN, and -0.0 differs from 0.0."""
    ops = _with_modules(sample.ops, itertools.repeat(""))
    return repr([(op.target, op.args, op.kwargs) for op in ops] + [sample.outputs])


def _modules(ops: Iterable[Op]) -> Iterator[str]:
    """Yield the module of each operator, followed by those of the operators of its bodies."""
    for op in ops:
        yield op.module
        for arg in op.args:
            if isinstance(arg, Graph):
                yield from _modules(arg.ops)


def _with_modules(ops: Iterable[Op], modules: Iterator[str]) -> tuple[Op, ...]:
    """Return operators with other modules, in the order of `_modules`."""
    return tuple(
        dataclasses.replace(
            op,
            module=next(modules),
            args=tuple(
                dataclasses.replace(arg, ops=_with_modules(arg.ops, modules))
                if isinstance(arg, Graph)
                else arg
                for arg in op.args
            ),
        )
        for op in ops
    )


def apply_extras(base: Sample, text: str, file: str) -> Sample:
    """Return the sample described by the other files and this file together.

    Raises:
        SourceError: the text was not printed by `print_extras` for a sample with these operators.
    """
    with _errors_of(file):
        return _apply(base, _load(text))


def read_custom_operators(text: str, file: str) -> tuple[CustomOperator, ...]:
    """Return the custom operators declared in the contents of this file.

    Raises:
        SourceError: as `apply_extras`.
    """
    with _errors_of(file):
        return _read_custom_operators(_load(text))


def _load(text: str) -> dict[str, Any]:
    extras = load_json(text, "the extras of a sample")
    if not isinstance(extras, dict) or extras.get("version") != VERSION:
        raise ValueError(f"It must be an object of version {VERSION}.")
    return extras


@contextlib.contextmanager
def _errors_of(file: str) -> Iterator[None]:
    try:
        yield
    except (KeyError, IndexError, TypeError, ValueError, RecursionError, binascii.Error) as error:
        reason = f"{type(error).__name__}: {str(error).rstrip('.')[:300]}"
        raise SourceError(
            f"`{file}` does not match the other files of its directory ({reason}). Delete it to "
            "read only the other files, or write the directory again."
        ) from error


def _apply(base: Sample, extras: Mapping[str, Any]) -> Sample:
    changes: dict[str, Any] = {
        name: _text(extras[name]) for name in ("id", "task", "kind") if name in extras
    }
    if "provenance" in extras:
        changes["provenance"] = _read_provenance(base.provenance, extras["provenance"])
    if "calibration" in extras:
        changes["calibration"] = _text(extras["calibration"])
    if "symbols" in extras:
        changes["symbols"] = tuple(
            Symbol(_text(name), _integer(hint), _optional_integer(low), _optional_integer(high))
            for name, hint, low, high in extras["symbols"]
        )
    if "constraints" in extras:
        changes["constraints"] = tuple(
            Constraint(_text(left), _text(relation), _text(right))  # type: ignore[arg-type]
            for left, relation, right in extras["constraints"]
        )
    if "inputs" in extras:
        inputs = list(base.inputs)
        for index, fields in dict(extras["inputs"]).items():
            inputs[_integer(int(index))] = _read_input(fields)
        changes["inputs"] = tuple(inputs)
    changes["custom_operators"] = _read_custom_operators(extras)
    ops = base.ops
    if "results" in extras:
        ops = tuple(
            dataclasses.replace(op, results=_read_results(results))
            for op, results in zip(ops, extras["results"], strict=True)
        )
    if "modules" in extras:
        modules = [_text(module) for module in _list(extras["modules"])]
        if len(modules) != sum(1 for _ in _modules(ops)):
            raise ValueError("The operators and their modules differ in number.")
        ops = _with_modules(ops, iter(modules))
    return dataclasses.replace(base, ops=ops, **changes)


def _read_custom_operators(extras: Mapping[str, Any]) -> tuple[CustomOperator, ...]:
    return tuple(
        CustomOperator(**{name: _text(text) for name, text in dict(fields).items()})
        for fields in _list(extras.get("custom_operators", []))
    )


def _read_provenance(base: Provenance, fields: Mapping[str, Any]) -> Provenance:
    changes: dict[str, Any] = {}
    for name, value in dict(fields).items():
        if name not in _PROVENANCE_FIELDS:
            raise ValueError(f"Provenance has no field {name[:40]!r}.")
        current = getattr(base, name)
        if name == "parent_ops":
            changes[name] = tuple(_integer(item) for item in _list(value))
        elif isinstance(current, tuple):
            changes[name] = tuple(_text(item) for item in _list(value))
        elif type(value) is type(current):
            changes[name] = value
        else:
            raise TypeError(f"`{name}` has the wrong type.")
    return dataclasses.replace(base, **changes)


def _print_value(value: Value) -> list[Any]:
    shape = None if value.shape is None else list(value.shape)
    stride = None if value.stride is None else list(value.stride)
    return [value.dtype, shape] if stride is None else [value.dtype, shape, stride]


def _read_value(fields: list[Any]) -> Value:
    dtype, shape, stride = [*_list(fields), None, None][:3]
    return Value(None if dtype is None else _text(dtype), _dims(shape), _dims(stride))


def _dims(dims: list[Any] | None) -> tuple[Any, ...] | None:
    if dims is None:
        return None
    if not all(type(dim) in (int, str) for dim in _list(dims)):
        raise TypeError("A dimension is neither an integer nor a string.")
    return tuple(dims)


def _read_results(results: list[Any] | None) -> tuple[Value, ...] | None:
    return None if results is None else tuple(_read_value(value) for value in _list(results))


def _print_input(argument: Input) -> dict[str, Any]:
    statistics = None if argument.statistics is None else dataclasses.astuple(argument.statistics)
    calibrated = None if argument.calibrated is None else dataclasses.astuple(argument.calibrated)
    return {
        **({} if calibrated is None else {"calibrated": calibrated}),
        **({"signal": argument.signal} if argument.signal else {}),
        "role": argument.role,
        "value": _print_value(argument.value),
        "source_name": argument.source_name,
        "device": argument.device,
        "statistics": statistics,
        "data": None if argument.data is None else base64.b64encode(argument.data).decode(),
    }


def _read_input(fields: Mapping[str, Any]) -> Input:
    data = fields["data"]
    return Input(
        _text(fields["role"]),  # type: ignore[arg-type]
        _read_value(fields["value"]),
        _text(fields["source_name"]),
        _text(fields["device"]),
        _read_statistics(fields["statistics"]),
        None if data is None else base64.b64decode(_text(data), validate=True),
        _read_statistics(fields.get("calibrated")),
        _text(fields.get("signal", "")),  # type: ignore[arg-type]
    )


def _read_statistics(numbers: Any) -> Statistics | None:
    if numbers is None:
        return None
    mean, std, low, high, is_measured = _list(numbers)
    moments = (mean, std, low, high)
    for item in moments:
        if item is not None and type(item) is not float:
            _integer(item)
    if type(is_measured) is not bool:
        raise TypeError("`is_measured` is neither true nor false.")
    return Statistics(*moments, is_measured=is_measured)


def _text(value: Any) -> str:
    if type(value) is not str:
        raise TypeError(f"A string is expected, got {type(value).__name__}.")
    return value


def _list(value: Any) -> list[Any]:
    if type(value) is not list:
        raise TypeError(f"A list is expected, got {type(value).__name__}.")
    return value


def _integer(value: Any) -> int:
    if type(value) is not int or not -(2**63) <= value < 2**63:
        raise TypeError("An integer of 64 bits is expected.")
    return value


def _optional_integer(value: Any) -> int | None:
    return None if value is None else _integer(value)


def _cannot_write(sample: Sample) -> SampleError:
    return SampleError(
        f"The sample `{sample.id}` cannot be written as a GraphNet directory: its source would be "
        "read back as another graph. Store it in a Parquet file."
    )
