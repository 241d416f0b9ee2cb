"""Statistics of initialisers, computed from their arguments."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Mapping
from typing import Any

import torch

from ....sample import Statistics
from ...moments import round_significant
from ..statistics import measure

_INITIAL = "_graphnet_initial_statistics"
"""Attribute of a parameter without elements that stores its initialiser's statistics."""

_SPREAD_OF_CONSTANTS = 0.02
"""Relative standard deviation assigned to a parameter that is initialised to a constant. Trained
norm scales and biases vary, and a compiler must not pass by dropping them. Transformers usually
initialise weights with this standard deviation."""


def initial_statistics(parameter: torch.Tensor) -> Statistics | None:
    """Return the statistics of a parameter's initialiser, or None if unknown."""
    return getattr(parameter, _INITIAL, None)


def set_initial(parameter: torch.Tensor, statistics: Statistics) -> None:
    """Store the statistics of a parameter's initialiser; a constant gets a small spread."""
    if statistics.std == 0.0 and parameter.is_floating_point():
        constant = statistics.mean or 0.0
        spread = _SPREAD_OF_CONSTANTS * (abs(constant) or 1.0)
        statistics = Statistics(constant, round_significant(spread), is_measured=False)
    setattr(parameter, _INITIAL, statistics)


def figures(
    mean: float, std: float, low: float | None = None, high: float | None = None
) -> Statistics:
    """Return rounded statistics of a distribution with known parameters."""
    bounds = (None if bound is None else round_significant(bound) for bound in (low, high))
    return Statistics(round_significant(mean), round_significant(std), *bounds, is_measured=False)


def _on_normal(
    tensor: torch.Tensor, mean: float = 0.0, std: float = 1.0, *_: Any, **__: Any
) -> None:
    set_initial(tensor, figures(float(mean), float(std)))


def _on_uniform(tensor: torch.Tensor, *args: Any, **kwargs: Any) -> None:
    low = float(kwargs.get("from", kwargs.get("a", args[0] if args else 0.0)))
    high = float(kwargs.get("to", kwargs.get("b", args[1] if len(args) > 1 else 1.0)))
    set_initial(tensor, figures((low + high) / 2, (high - low) / math.sqrt(12), low, high))


def kaiming_std(
    tensor: torch.Tensor,
    a: float = 0.0,
    mode: str = "fan_in",
    nonlinearity: str = "leaky_relu",
    **_: Any,
) -> float:
    """Return the standard deviation of He initialisation (arXiv:1502.01852) for a weight."""
    kernel = math.prod(tensor.shape[2:])
    fan = (tensor.shape[1] if mode == "fan_in" else tensor.shape[0]) * kernel
    gain = torch.nn.init.calculate_gain(nonlinearity, a)  # pyright: ignore[reportArgumentType]
    return gain / math.sqrt(max(1, fan))


def _on_kaiming_uniform(tensor: torch.Tensor, *args: Any, **kwargs: Any) -> None:
    bound = math.sqrt(3) * kaiming_std(tensor, *args, **kwargs)
    _on_uniform(tensor, -bound, bound)


def _on_kaiming_normal(tensor: torch.Tensor, *args: Any, **kwargs: Any) -> None:
    _on_normal(tensor, 0.0, kaiming_std(tensor, *args, **kwargs))


def _on_fill(tensor: torch.Tensor, value: Any = 0.0, *_: Any, **kwargs: Any) -> None:
    value = kwargs.get("val", kwargs.get("value", value))
    if isinstance(value, torch.Tensor):
        value = value.item() if value.numel() == 1 and not value.is_meta else 0.0
    set_initial(tensor, Statistics(float(value), 0.0, is_measured=False))


def _on_zero(tensor: torch.Tensor, *_: Any, **__: Any) -> None:
    _on_fill(tensor, 0.0)


def _on_copy(tensor: torch.Tensor, source: Any, *_: Any, **__: Any) -> None:
    if isinstance(source, torch.Tensor):
        measured = initial_statistics(source) if source.is_meta else measure(source)
        if measured is not None:
            set_initial(tensor, dataclasses.replace(measured, is_measured=False))


INITIALISERS: Mapping[str, Callable[..., None]] = {
    "normal_": _on_normal,
    "uniform_": _on_uniform,
    "fill_": _on_fill,
    "constant_": _on_fill,
    "kaiming_uniform_": _on_kaiming_uniform,
    "kaiming_normal_": _on_kaiming_normal,
    "zero_": _on_zero,
    "copy_": _on_copy,
}
"""Functions that store an initialiser's statistics, by name; the weight is the first argument."""
