"""Layers that several architectures share."""

from __future__ import annotations

import itertools

import paddle
import paddle.nn.functional as F  # noqa: N812
from paddle import Tensor, nn


class Attention(nn.Layer):
    """Attention of several heads over `memory`, or over `x` itself; `mask` is added to scores."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads, self.size = heads, width // heads
        self.query, self.key = nn.Linear(width, width), nn.Linear(width, width)
        self.value, self.out = nn.Linear(width, width), nn.Linear(width, width)

    def _split(self, x: Tensor) -> Tensor:
        return x.reshape([0, 0, self.heads, self.size]).transpose([0, 2, 1, 3])

    def forward(self, x: Tensor, memory: Tensor | None = None, mask: Tensor | None = None):
        source = x if memory is None else memory
        scores = paddle.matmul(
            self._split(self.query(x)) * self.size**-0.5,
            self._split(self.key(source)),
            transpose_y=True,
        )
        weights = F.softmax(scores if mask is None else scores + mask)
        mixed = paddle.matmul(weights, self._split(self.value(source)))
        return self.out(mixed.transpose([0, 2, 1, 3]).reshape([0, 0, self.heads * self.size]))


class Block(nn.Layer):
    """A pre-norm transformer layer, with cross attention if it receives a memory."""

    def __init__(self, width: int, heads: int, *, has_memory: bool = False) -> None:
        super().__init__()
        self.norm, self.attention = nn.LayerNorm(width), Attention(width, heads)
        self.has_memory = has_memory
        if has_memory:
            self.cross_norm, self.cross = nn.LayerNorm(width), Attention(width, heads)
        self.mlp = nn.Sequential(
            nn.LayerNorm(width), nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width)
        )

    def forward(self, x: Tensor, memory: Tensor | None = None, mask: Tensor | None = None):
        x = x + self.attention(self.norm(x), mask=mask)
        if self.has_memory:
            x = x + self.cross(self.cross_norm(x), memory)
        return x + self.mlp(x)


def causal_mask(length: int) -> Tensor:
    """Return a mask of shape (length, length) to add to scores: -1e9 above the diagonal."""
    return paddle.triu(paddle.full([length, length], -1e9), 1)


def mlp(*sizes: int) -> nn.Sequential:
    """Return linear layers of these widths with ReLU between them."""
    layers: list[nn.Layer] = []
    for i, (before, after) in enumerate(itertools.pairwise(sizes)):
        layers += [nn.ReLU()] * bool(i) + [nn.Linear(before, after)]
    return nn.Sequential(*layers)
