"""The graphs that every compiler has to handle, small enough to compile in seconds."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import torch
from torch.nn import functional


@dataclasses.dataclass(frozen=True)
class Case:
    """A module and what makes its inputs; `grown` makes inputs of another size."""

    module: Callable[[], torch.nn.Module]
    inputs: Callable[[], dict[str, Any]]
    grown: Callable[[], dict[str, Any]] | None = None


class ConvNet(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv = torch.nn.Conv2d(3, 4, 3, padding=1)
        self.norm = torch.nn.BatchNorm2d(4)
        self.head = torch.nn.Linear(4, 5)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = functional.max_pool2d(functional.relu(self.norm(self.conv(x))), 2)
        return self.head(y.mean((2, 3)))


class Transformer(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.query, self.key, self.value, self.out = (torch.nn.Linear(8, 8) for _ in range(4))
        self.norm = torch.nn.LayerNorm(8)

    def forward(self, x: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        heads = [
            layer(x).reshape(2, 6, 2, 4).transpose(1, 2)
            for layer in (self.query, self.key, self.value)
        ]
        mixed = functional.scaled_dot_product_attention(*heads, attn_mask=mask)
        return self.norm(x + self.out(functional.gelu(mixed.transpose(1, 2).reshape(2, 6, 8))))


class AnyBatch(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.softmax(x * 2 + 1, -1).sum(0)


class ManyOutputs(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> dict[str, Any]:
        left, right = x.chunk(2, -1)
        return {"left": left + 1, "rest": (None, [right * 2, x.sum()]), "count": 3}


class Embedding(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.table = torch.nn.Embedding(10, 4)

    def forward(self, ids: torch.Tensor, scale: int) -> torch.Tensor:
        positions = torch.arange(ids.shape[1])
        return self.table(ids) * scale + self.table(positions), ids + 1


class InPlace(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = x + 1
        y.select(1, 0).fill_(0)
        return torch.relu_(y.mul_(2)), y.sum()


class WritesToInput(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x.add_(1)
        return x * 2


class WritesToBuffer(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("count", torch.zeros(4))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.count.add_(1)
        return x * self.count


def _x(*shape: int) -> dict[str, Any]:
    return {"x": torch.linspace(-1, 1, int(torch.Size(shape).numel())).reshape(shape)}


CASES = {
    "conv_net": Case(ConvNet, lambda: _x(2, 3, 8, 8)),
    "transformer": Case(
        Transformer,
        lambda: {**_x(2, 6, 8), "mask": torch.ones(6, 6, dtype=torch.bool).tril()},
    ),
    "dynamic_shape": Case(AnyBatch, lambda: _x(4, 6), lambda: _x(7, 6)),
    "multiple_outputs": Case(ManyOutputs, lambda: _x(2, 6)),
    "integer_inputs": Case(
        Embedding, lambda: {"ids": torch.tensor([[1, 2, 9], [0, 0, 3]]), "scale": 2}
    ),
    "in_place": Case(InPlace, lambda: _x(3, 4)),
    "writes_to_input": Case(WritesToInput, lambda: _x(3, 4)),
    "writes_to_buffer": Case(WritesToBuffer, lambda: _x(3, 4)),
}
