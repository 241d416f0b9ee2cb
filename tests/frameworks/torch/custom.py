"""Models that call operators of `torch.library`, some of which stand on their own."""

from __future__ import annotations

import math
from functools import cache

import torch
from torch import Tensor

FACTOR = 1.5
DTYPE = torch.float32


def _shifted(x: Tensor, by: float) -> Tensor:
    """Return what the operator below needs: a function of its own file."""
    return x.to(DTYPE) + by * math.pi


@torch.library.custom_op("graphnet_tests::scale_and_shift", mutates_args=())
def scale_and_shift(x: Tensor, by: float, parts: int = 2) -> list[Tensor]:
    """Return the parts of a tensor, scaled and shifted."""
    scaled = _shifted(x * FACTOR, by)
    return [part.clone() for part in scaled.chunk(parts)]


@scale_and_shift.register_fake
def _(x, by, parts=2):  # noqa: ARG001
    return [torch.empty_like(part) for part in x.chunk(parts)]


@torch.library.custom_op("graphnet_tests::clip", mutates_args=())
def clip(x: Tensor, low: float) -> Tensor:
    """Return a tensor without what is below `low`."""
    return x.clamp_min(low)


@clip.register_fake
def _(x: Tensor, low: float) -> Tensor:  # noqa: ARG001
    return torch.empty_like(x)


class Model(torch.nn.Module):
    """Operators of the table around two that it lacks."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = torch.nn.Linear(4, 4)

    def forward(self, x: Tensor) -> Tensor:
        first, second = scale_and_shift(self.linear(x), 0.25)
        return clip(first, -0.5) * clip(second, 0.0)


@cache
def _cached() -> float:
    return 2.0


@torch.library.custom_op("graphnet_tests::decorated", mutates_args=())
def decorated(x: Tensor) -> Tensor:
    """Return twice the tensor, by a helper that cannot be written down."""
    return x * _cached()


@decorated.register_fake
def _(x: Tensor) -> Tensor:
    return torch.empty_like(x)


class NotAlone(torch.nn.Module):
    """Calls an operator whose source does not stand on its own."""

    def forward(self, x: Tensor) -> Tensor:
        return decorated(x)
