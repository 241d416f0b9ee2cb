"""Text models in plain paddle."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import paddle
import paddle.nn.functional as F  # noqa: N812
from paddle import Tensor, nn

from .blocks import Attention, Block, causal_mask


class DecoderLanguageModel(nn.Layer):
    """A decoder with learned positions (Radford et al. 2019)."""

    def __init__(
        self,
        vocabulary: int = 50_257,
        width: int = 768,
        heads: int = 12,
        depth: int = 12,
        length: int = 1024,
    ) -> None:
        super().__init__()
        self.tokens, self.positions = nn.Embedding(vocabulary, width), nn.Embedding(length, width)
        self.blocks = nn.LayerList([Block(width, heads) for _ in range(depth)])
        self.norm = nn.LayerNorm(width)

    def forward(self, ids: Tensor) -> Tensor:
        length = ids.shape[1]
        x = self.tokens(ids) + self.positions(paddle.arange(length))
        for block in self.blocks:
            x = block(x, mask=causal_mask(length))
        return paddle.matmul(self.norm(x), self.tokens.weight, transpose_y=True)


class EncoderModel(nn.Layer):
    """A bidirectional encoder with segments and a pooled vector (Devlin et al. 2019).

    With `num_tasks` each position also gets the vector of its task (Sun et al. 2020).
    """

    def __init__(
        self,
        vocabulary: int = 30_522,
        width: int = 768,
        heads: int = 12,
        depth: int = 12,
        length: int = 512,
        num_tasks: int = 0,
    ) -> None:
        super().__init__()
        self.tokens, self.positions = nn.Embedding(vocabulary, width), nn.Embedding(length, width)
        self.segments = nn.Embedding(2, width)
        self.tasks = nn.Embedding(num_tasks, width) if num_tasks else None
        self.norm = nn.LayerNorm(width)
        layer = nn.TransformerEncoderLayer(width, heads, 4 * width, activation="gelu")
        self.body = nn.TransformerEncoder(layer, depth)
        self.pooler = nn.Linear(width, width)

    def forward(self, ids: Tensor, segments: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
        x = self.tokens(ids) + self.positions(paddle.arange(ids.shape[1])) + self.segments(segments)
        if self.tasks is not None:
            x = x + self.tasks(paddle.zeros_like(ids))
        bias = (1.0 - mask.astype("float32")).unsqueeze([1, 2]) * -1e4
        x = self.body(self.norm(x), bias)
        return x, paddle.tanh(self.pooler(x[:, 0]))


class RotaryLayer(nn.Layer):
    """Grouped attention with rotary positions and a gated MLP (Touvron et al. 2023)."""

    def __init__(self, width: int, heads: int, groups: int, hidden: int) -> None:
        super().__init__()
        self.heads, self.groups, self.size = heads, groups, width // heads
        self.norms = nn.ParameterList([self.create_parameter([width]) for _ in range(2)])
        self.query = nn.Linear(width, width, bias_attr=False)
        self.key = nn.Linear(width, groups * self.size, bias_attr=False)
        self.value = nn.Linear(width, groups * self.size, bias_attr=False)
        self.out = nn.Linear(width, width, bias_attr=False)
        self.gate = nn.Linear(width, hidden, bias_attr=False)
        self.up = nn.Linear(width, hidden, bias_attr=False)
        self.down = nn.Linear(hidden, width, bias_attr=False)

    @staticmethod
    def _rotate(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
        left, right = paddle.chunk(x, 2, axis=-1)
        return x * cos + paddle.concat([-right, left], -1) * sin

    def forward(self, x: Tensor, cos: Tensor, sin: Tensor, mask: Tensor) -> Tensor:
        y = root_mean_square(x, self.norms[0])
        query = self.query(y).reshape([0, 0, self.heads, self.size]).transpose([0, 2, 1, 3])
        key = self.key(y).reshape([0, 0, self.groups, self.size]).transpose([0, 2, 1, 3])
        value = self.value(y).reshape([0, 0, self.groups, self.size]).transpose([0, 2, 1, 3])
        key = self._rotate(key, cos, sin).repeat_interleave(self.heads // self.groups, 1)
        value = value.repeat_interleave(self.heads // self.groups, 1)
        query = self._rotate(query, cos, sin) * self.size**-0.5
        weights = F.softmax(paddle.matmul(query, key, transpose_y=True) + mask)
        mixed = paddle.matmul(weights, value).transpose([0, 2, 1, 3])
        x = x + self.out(mixed.reshape([0, 0, self.heads * self.size]))
        y = root_mean_square(x, self.norms[1])
        return x + self.down(F.silu(self.gate(y)) * self.up(y))


class RotaryLanguageModel(nn.Layer):
    """A decoder of rotary layers (Touvron et al. 2023)."""

    def __init__(
        self,
        vocabulary: int = 32_000,
        width: int = 512,
        heads: int = 8,
        groups: int = 8,
        depth: int = 8,
        hidden: int = 1376,
    ) -> None:
        super().__init__()
        self.tokens = nn.Embedding(vocabulary, width)
        self.layers = nn.LayerList(
            [RotaryLayer(width, heads, groups, hidden) for _ in range(depth)]
        )
        self.norm = self.create_parameter([width])
        self.head = nn.Linear(width, vocabulary, bias_attr=False)
        size = width // heads
        self.register_buffer("rates", 10_000.0 ** (-paddle.arange(0, size, 2) / size))

    def forward(self, ids: Tensor) -> Tensor:
        x = self.tokens(ids)
        angles = paddle.outer(paddle.arange(ids.shape[1], dtype="float32"), self.rates)
        angles = paddle.concat([angles, angles], -1)
        mask = causal_mask(ids.shape[1])
        for layer in self.layers:
            x = layer(x, paddle.cos(angles), paddle.sin(angles), mask)
        return self.head(root_mean_square(x, self.norm))


def root_mean_square(x: Tensor, weight: Tensor) -> Tensor:
    """Return `x` over its root mean square, times `weight`."""
    return x * paddle.rsqrt(x.square().mean(-1, keepdim=True) + 1e-6) * weight


class TextConvolutions(nn.Layer):
    """Kim 2014."""

    def __init__(
        self,
        vocabulary: int = 20_000,
        width: int = 128,
        filters: int = 100,
        kernels: Sequence[int] = (3, 4, 5),
        classes: int = 2,
    ) -> None:
        super().__init__()
        self.embedding = nn.Embedding(vocabulary, width)
        self.convolutions = nn.LayerList([nn.Conv1D(width, filters, size) for size in kernels])
        self.head = nn.Linear(filters * len(kernels), classes)

    def forward(self, ids: Tensor) -> Tensor:
        x = self.embedding(ids).transpose([0, 2, 1])
        return self.head(
            paddle.concat([F.relu(convolution(x)).max(-1) for convolution in self.convolutions], 1)
        )


class Tagger(nn.Layer):
    """A bidirectional GRU with emission scores and the partition of a CRF (Lample et al. 2016)."""

    def __init__(
        self, vocabulary: int = 20_000, width: int = 128, hidden: int = 128, tags: int = 57
    ) -> None:
        super().__init__()
        self.embedding = nn.Embedding(vocabulary, width)
        self.body = nn.GRU(width, hidden, 2, direction="bidirect")
        self.head = nn.Linear(2 * hidden, tags)
        self.transitions = self.create_parameter([tags, tags])

    def forward(self, ids: Tensor) -> tuple[Tensor, Tensor]:
        scores = self.head(self.body(self.embedding(ids))[0])
        total = scores[:, 0]
        for step in range(1, ids.shape[1]):
            total = paddle.logsumexp(total.unsqueeze(-1) + self.transitions, 1) + scores[:, step]
        return scores, paddle.logsumexp(total, -1)


class SentencePair(nn.Layer):
    """Two sentences that attend to each other, then a decision (Parikh et al. 2016)."""

    def __init__(self, vocabulary: int = 20_000, width: int = 200, classes: int = 3) -> None:
        super().__init__()
        self.embedding = nn.Embedding(vocabulary, width)
        self.attend = nn.Sequential(nn.Linear(width, width), nn.ReLU(), nn.Linear(width, width))
        self.compare = nn.Sequential(nn.Linear(2 * width, width), nn.ReLU())
        self.head = nn.Linear(2 * width, classes)

    def forward(self, left: Tensor, right: Tensor) -> Tensor:
        a, b = self.embedding(left), self.embedding(right)
        scores = paddle.matmul(self.attend(a), self.attend(b), transpose_y=True)
        of_a = paddle.matmul(F.softmax(scores), b)
        of_b = paddle.matmul(F.softmax(scores, 1), a, transpose_x=True)
        first = self.compare(paddle.concat([a, of_a], -1)).sum(1)
        second = self.compare(paddle.concat([b, of_b], -1)).sum(1)
        return self.head(paddle.concat([first, second], -1))


class AttentionTranslator(nn.Layer):
    """A GRU encoder and a GRU decoder with attention over it (Luong et al. 2015)."""

    def __init__(self, vocabulary: int = 8_000, width: int = 256) -> None:
        super().__init__()
        self.source, self.target = nn.Embedding(vocabulary, width), nn.Embedding(vocabulary, width)
        self.encoder = nn.GRU(width, width)
        self.decoder = nn.GRU(width, width)
        self.attention = Attention(width, 1)
        self.head = nn.Linear(2 * width, vocabulary)

    def forward(self, source: Tensor, target: Tensor) -> Tensor:
        memory, state = self.encoder(self.source(source))
        hidden, _ = self.decoder(self.target(target), state)
        return self.head(paddle.concat([hidden, self.attention(hidden, memory)], -1))


ARCHITECTURES: Mapping[str, Callable[..., nn.Layer]] = {
    "decoder_language_model": DecoderLanguageModel,
    "encoder_model": EncoderModel,
    "rotary_language_model": RotaryLanguageModel,
    "text_convolutions": TextConvolutions,
    "tagger": Tagger,
    "sentence_pair": SentencePair,
    "attention_translator": AttentionTranslator,
}
