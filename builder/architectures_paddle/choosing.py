"""Models in plain paddle with discrete choices: experts, boxes by score, buckets of distances."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import cast

import paddle
import paddle.nn.functional as F  # noqa: N812
from paddle import Tensor, nn

from .blocks import Block


class RelativeEncoder(nn.Layer):
    """An encoder whose attention is biased by buckets of distances (Raffel et al. 2020).

    Tokens with the padding id are masked.
    """

    def __init__(
        self,
        vocabulary: int = 32_128,
        width: int = 512,
        heads: int = 8,
        depth: int = 6,
        buckets: int = 32,
        farthest: int = 128,
    ) -> None:
        super().__init__()
        self.tokens = nn.Embedding(vocabulary, width)
        self.biases = nn.Embedding(buckets, heads)
        self.blocks = nn.LayerList([Block(width, heads) for _ in range(depth)])
        self.norm = nn.LayerNorm(width)
        self.buckets, self.farthest = buckets, farthest

    def _bucket(self, length: int) -> Tensor:
        places = paddle.arange(length)
        distance = places.unsqueeze(0) - places.unsqueeze(1)
        half = self.buckets // 2
        side = paddle.greater_than(distance, paddle.zeros_like(distance)).astype("int64") * half
        distance = paddle.abs(distance)
        near = half // 2
        far = near + (
            paddle.log(distance.astype("float32") / near + 1e-6)
            / math.log(self.farthest / near)
            * (half - near)
        ).astype("int64")
        far = paddle.minimum(far, paddle.full_like(far, half - 1))
        return side + paddle.where(distance < near, distance, far)

    def forward(self, ids: Tensor) -> Tensor:
        bias = self.biases(self._bucket(ids.shape[1])).transpose([2, 0, 1]).unsqueeze(0)
        is_token = paddle.not_equal(ids, paddle.zeros_like(ids))
        mask = bias + (1.0 - is_token.astype("float32")).unsqueeze(1).unsqueeze(1) * -1e9
        x = self.tokens(ids)
        for block in self.blocks:
            x = block(x, mask=mask)
        return self.norm(x)


class ExpertLanguageModel(nn.Layer):
    """A transformer with a mixture of experts, the best few for each token (Fedus et al. 2022)."""

    def __init__(
        self,
        vocabulary: int = 32_000,
        width: int = 256,
        heads: int = 4,
        depth: int = 4,
        experts: int = 8,
        chosen: int = 2,
    ) -> None:
        super().__init__()
        self.tokens = nn.Embedding(vocabulary, width)
        self.blocks = nn.LayerList([Block(width, heads) for _ in range(depth)])
        self.routers = nn.LayerList([nn.Linear(width, experts) for _ in range(depth)])
        self.rise = nn.ParameterList(
            [self.create_parameter([experts, width, 2 * width]) for _ in range(depth)]
        )
        self.fall = nn.ParameterList(
            [self.create_parameter([experts, 2 * width, width]) for _ in range(depth)]
        )
        self.experts, self.chosen = experts, chosen

    def forward(self, ids: Tensor) -> Tensor:
        x = self.tokens(ids)
        for block, router, rise, fall in zip(  # noqa: B905
            self.blocks, self.routers, self.rise, self.fall
        ):
            x = block(x)
            values, indices = paddle.topk(F.softmax(router(x)), self.chosen)
            weights = (F.one_hot(indices, self.experts) * values.unsqueeze(-1)).sum(2)
            hidden = F.gelu(cast(Tensor, paddle.einsum("bsw,ewh->besh", x, rise)))
            mixed = cast(Tensor, paddle.einsum("besh,ehw->besw", hidden, fall))
            x = x + (mixed * weights.transpose([0, 2, 1]).unsqueeze(-1)).sum(1)
        return paddle.matmul(x, self.tokens.weight, transpose_y=True)


class BoxDecoder(nn.Layer):
    """A detector without anchors that returns its best boxes (Tian et al. 2019, Xu et al. 2022)."""

    def __init__(
        self,
        width: int = 64,
        classes: int = 80,
        depth: int = 3,
        best: int = 100,
        least: float = 0.01,
    ) -> None:
        super().__init__()
        layers: list[nn.Layer] = []
        for index in range(depth):
            inner = 3 if index == 0 else width
            layers += [nn.Conv2D(inner, width, 3, 2, 1), nn.BatchNorm2D(width), nn.Silu()]
        self.body = nn.Sequential(*layers)
        self.scores, self.sides = nn.Conv2D(width, classes, 1), nn.Conv2D(width, 4, 1)
        self.stride, self.best, self.least = 2**depth, best, least

    def forward(self, pixels: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        x = self.body(pixels)
        rows, columns = x.shape[2], x.shape[3]
        scores = F.sigmoid(self.scores(x)).flatten(2).transpose([0, 2, 1])
        sides = F.relu(self.sides(x)).flatten(2).transpose([0, 2, 1]) * self.stride
        ys, xs = paddle.meshgrid(paddle.arange(rows), paddle.arange(columns))
        centres = paddle.stack([xs.flatten(), ys.flatten()], -1).astype("float32")
        centres = paddle.tile((centres + 0.5).unsqueeze(0) * self.stride, [x.shape[0], 1, 1])
        boxes = paddle.concat([centres - sides[:, :, :2], centres + sides[:, :, 2:]], -1)
        values, indices = paddle.topk(scores.max(-1), self.best)
        labels = paddle.argmax(scores, -1)
        best = paddle.stack([paddle.gather(boxes[0], indices[0])], 0)
        classes = paddle.stack([paddle.gather(labels[0], indices[0])], 0)
        is_sure = paddle.greater_than(values[:1], paddle.full_like(values[:1], self.least))
        classes = paddle.where(is_sure, classes, paddle.full_like(classes, -1))
        is_first = paddle.equal(classes, paddle.zeros_like(classes))
        return best, classes, paddle.where(is_first, values[:1], values[:1] * 0.5)


ARCHITECTURES: Mapping[str, Callable[..., nn.Layer]] = {
    "relative_encoder": RelativeEncoder,
    "expert_language_model": ExpertLanguageModel,
    "box_decoder": BoxDecoder,
}
