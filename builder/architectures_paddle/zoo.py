"""Paddle's own models and layers: `paddle.vision.models`, transformers and recurrent networks."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from paddle import Tensor, nn
from paddle.vision import models

from .blocks import causal_mask


class Encoder(nn.Layer):
    """`paddle.nn.TransformerEncoder` on features."""

    def __init__(self, width: int = 256, heads: int = 4, depth: int = 4, **options: Any) -> None:
        super().__init__()
        layer = nn.TransformerEncoderLayer(width, heads, 4 * width, **options)
        self.body = nn.TransformerEncoder(layer, depth, nn.LayerNorm(width))

    def forward(self, x: Tensor) -> Tensor:
        return self.body(x)


class Decoder(nn.Layer):
    """`paddle.nn.TransformerDecoder` on features, with a causal mask."""

    def __init__(self, width: int = 256, heads: int = 4, depth: int = 4, **options: Any) -> None:
        super().__init__()
        layer = nn.TransformerDecoderLayer(width, heads, 4 * width, **options)
        self.body = nn.TransformerDecoder(layer, depth, nn.LayerNorm(width))

    def forward(self, x: Tensor, memory: Tensor) -> Tensor:
        return self.body(x, memory, tgt_mask=causal_mask(x.shape[1]))


class Translator(nn.Layer):
    """`paddle.nn.Transformer` between embeddings of two languages."""

    def __init__(
        self, vocabulary: int = 32_000, width: int = 512, heads: int = 8, depth: int = 6
    ) -> None:
        super().__init__()
        self.source = nn.Embedding(vocabulary, width)
        self.target = nn.Embedding(vocabulary, width)
        self.position = nn.Embedding(256, width)
        self.body = nn.Transformer(width, heads, depth, depth, 4 * width)
        self.head = nn.Linear(width, vocabulary)

    def forward(self, source: Tensor, target: Tensor, source_at: Tensor, target_at: Tensor) -> Any:
        hidden = self.body(
            self.source(source) + self.position(source_at),
            self.target(target) + self.position(target_at),
            tgt_mask=causal_mask(target.shape[1]),
        )
        return self.head(hidden)


class Recurrent(nn.Layer):
    """A language model around `paddle.nn.LSTM`, `GRU` or `SimpleRNN`."""

    def __init__(
        self,
        vocabulary: int = 10_000,
        width: int = 256,
        depth: int = 2,
        kind: str = "lstm",
        direction: str = "forward",
    ) -> None:
        super().__init__()
        cell = {"lstm": nn.LSTM, "gru": nn.GRU, "rnn": nn.SimpleRNN}[kind]
        self.embedding = nn.Embedding(vocabulary, width)
        self.body = cell(width, width, depth, direction=direction)
        self.head = nn.Linear(width * (1 + (direction == "bidirect")), vocabulary)

    def forward(self, ids: Tensor) -> Tensor:
        return self.head(self.body(self.embedding(ids))[0])


VISION: Mapping[str, Callable[..., nn.Layer]] = {
    "lenet": models.LeNet,
    "alexnet": models.alexnet,
    "vgg11": models.vgg11,
    "vgg16": models.vgg16,
    "vgg19": models.vgg19,
    "resnet18": models.resnet18,
    "resnet34": models.resnet34,
    "resnet50": models.resnet50,
    "resnet101": models.resnet101,
    "resnext50_32x4d": models.resnext50_32x4d,
    "resnext50_64x4d": models.resnext50_64x4d,
    "wide_resnet50_2": models.wide_resnet50_2,
    "densenet121": models.densenet121,
    "densenet169": models.densenet169,
    "googlenet": models.googlenet,
    "inception_v3": models.inception_v3,
    "mobilenet_v1": models.mobilenet_v1,
    "mobilenet_v2": models.mobilenet_v2,
    "mobilenet_v3_small": models.mobilenet_v3_small,
    "mobilenet_v3_large": models.mobilenet_v3_large,
    "shufflenet_v2_x0_25": models.shufflenet_v2_x0_25,
    "shufflenet_v2_x1_0": models.shufflenet_v2_x1_0,
    "shufflenet_v2_swish": models.shufflenet_v2_swish,
    "squeezenet1_0": models.squeezenet1_0,
    "squeezenet1_1": models.squeezenet1_1,
}
"""Models of `paddle.vision.models`, under paddle's names."""

ARCHITECTURES: Mapping[str, Callable[..., nn.Layer]] = {
    **VISION,
    "encoder": Encoder,
    "decoder": Decoder,
    "translator": Translator,
    "recurrent": Recurrent,
}
