"""The many parts of a sample, made without a call of Python's for each of their fields.

A frozen dataclass sets each field through `object.__setattr__`, which looks the name up. A row has
thousands of fields; the slots that they go to are known.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..sample import Input, Op, Statistics, Value

_new = object.__new__


def _setters(kind: type, *names: str) -> tuple[Callable[[Any, Any], None], ...]:
    return tuple(getattr(kind, name).__set__ for name in names)


_target, _args, _kwargs, _results, _module = _setters(
    Op, "target", "args", "kwargs", "results", "module"
)
_dtype, _shape, _stride = _setters(Value, "dtype", "shape", "stride")
_mean, _std, _min, _max, _is_measured = _setters(
    Statistics, "mean", "std", "min", "max", "is_measured"
)
_role, _value, _source_name, _device, _statistics, _data, _calibrated = _setters(
    Input, "role", "value", "source_name", "device", "statistics", "data", "calibrated"
)


def make_op(target: Any, args: Any, kwargs: Any, results: Any, module: Any) -> Op:
    """Return `Op(target, args, kwargs, results, module)`.

    >>> make_op("torch.relu", (), (), None, "") == Op("torch.relu")
    True
    """
    made = _new(Op)
    _target(made, target)
    _args(made, args)
    _kwargs(made, kwargs)
    _results(made, results)
    _module(made, module)
    return made


def make_value(dtype: Any, shape: Any, stride: Any) -> Value:
    """Return `Value(dtype, shape, stride)`.

    >>> make_value("int8", (2,), None) == Value("int8", (2,))
    True
    """
    made = _new(Value)
    _dtype(made, dtype)
    _shape(made, shape)
    _stride(made, stride)
    return made


def make_statistics(moments: Any, is_measured: Any) -> Statistics:
    """Return `Statistics(*moments, is_measured)` of four moments.

    >>> make_statistics((0.0, 1.0, None, None), True) == Statistics(0.0, 1.0)
    True
    """
    made = _new(Statistics)
    mean, std, low, high = moments
    _mean(made, mean)
    _std(made, std)
    _min(made, low)
    _max(made, high)
    _is_measured(made, is_measured)
    return made


def make_input(
    role: Any,
    value: Any,
    source_name: Any,
    device: Any,
    statistics: Any,
    data: Any,
    calibrated: Any = None,
) -> Input:
    """Return `Input(role, value, source_name, device, statistics, data, calibrated)`.

    >>> make_input("input", Value(), "x", "cpu", None, None) == Input("input", Value(), "x")
    True
    """
    made = _new(Input)
    _role(made, role)
    _value(made, value)
    _source_name(made, source_name)
    _device(made, device)
    _statistics(made, statistics)
    _data(made, data)
    _calibrated(made, calibrated)
    return made
