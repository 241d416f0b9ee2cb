"""Fast construction of the parts of a sample.

A frozen dataclass sets each field by `object.__setattr__`, which looks up the name. A row has
thousands of fields, so these functions set the slots directly.
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
_role, _value, _source_name, _device, _statistics, _data, _calibrated, _signal = _setters(
    Input, "role", "value", "source_name", "device", "statistics", "data", "calibrated", "signal"
)


def make_op(target: Any, args: Any, kwargs: Any, results: Any, module: Any) -> Op:
    """Return `Op(target, args, kwargs, results, module)`.

    >>> make_op("torch.relu", (), (), None, "") == Op("torch.relu")
    True
    """
    op = _new(Op)
    _target(op, target)
    _args(op, args)
    _kwargs(op, kwargs)
    _results(op, results)
    _module(op, module)
    return op


def make_value(dtype: Any, shape: Any, stride: Any) -> Value:
    """Return `Value(dtype, shape, stride)`.

    >>> make_value("int8", (2,), None) == Value("int8", (2,))
    True
    """
    result = _new(Value)
    _dtype(result, dtype)
    _shape(result, shape)
    _stride(result, stride)
    return result


def make_statistics(moments: Any, is_measured: Any) -> Statistics:
    """Return `Statistics(*moments, is_measured)`.

    >>> make_statistics((0.0, 1.0, None, None), True) == Statistics(0.0, 1.0)
    True
    """
    statistics = _new(Statistics)
    mean, std, low, high = moments
    _mean(statistics, mean)
    _std(statistics, std)
    _min(statistics, low)
    _max(statistics, high)
    _is_measured(statistics, is_measured)
    return statistics


def make_input(
    role: Any,
    value: Any,
    source_name: Any,
    device: Any,
    statistics: Any,
    data: Any,
    calibrated: Any = None,
) -> Input:
    """Return `Input(role, value, source_name, device, statistics, data, calibrated)`, without
    signal.

    >>> make_input("input", Value(), "x", "cpu", None, None) == Input("input", Value(), "x")
    True
    """
    result = _new(Input)
    _role(result, role)
    _value(result, value)
    _source_name(result, source_name)
    _device(result, device)
    _statistics(result, statistics)
    _data(result, data)
    _calibrated(result, calibrated)
    _signal(result, "")
    return result
