"""Models in plain paddle over several kinds of inputs: image and text, tables, series, states."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence

import paddle
import paddle.nn.functional as F  # noqa: N812
from paddle import Tensor, nn

from .blocks import Attention, Block, causal_mask, mlp


class ImageTextContrast(nn.Layer):
    """Two transformers whose vectors are compared (Radford et al. 2021)."""

    def __init__(
        self,
        image: int = 64,
        patch: int = 16,
        vocabulary: int = 1000,
        width: int = 64,
        heads: int = 4,
        depth: int = 2,
        length: int = 77,
    ) -> None:
        super().__init__()
        self.patches = nn.Conv2D(3, width, patch, patch)
        self.places = self.create_parameter([1, (image // patch) ** 2, width])
        self.tokens, self.positions = nn.Embedding(vocabulary, width), nn.Embedding(length, width)
        self.image = nn.LayerList([Block(width, heads) for _ in range(depth)])
        self.text = nn.LayerList([Block(width, heads) for _ in range(depth)])
        self.scale = self.create_parameter([1])

    def forward(self, pixels: Tensor, ids: Tensor) -> Tensor:
        x = self.patches(pixels).flatten(2).transpose([0, 2, 1]) + self.places
        y = self.tokens(ids) + self.positions(paddle.arange(ids.shape[1]))
        for image, text in zip(self.image, self.text):  # noqa: B905
            x, y = image(x), text(y, mask=causal_mask(ids.shape[1]))
        x, y = F.normalize(x.mean(1)), F.normalize(y[:, -1])
        return paddle.exp(self.scale) * paddle.matmul(x, y, transpose_y=True)


class Captioner(nn.Layer):
    """A decoder of text that attends to a grid of image features (Xu et al. 2015)."""

    def __init__(
        self, vocabulary: int = 1000, width: int = 64, heads: int = 4, depth: int = 2
    ) -> None:
        super().__init__()
        self.grid = nn.Sequential(
            nn.Conv2D(3, width // 2, 3, 2, 1), nn.BatchNorm2D(width // 2), nn.ReLU(),
            nn.Conv2D(width // 2, width, 3, 2, 1), nn.BatchNorm2D(width), nn.ReLU(),
            nn.AdaptiveAvgPool2D(7),
        )  # fmt: skip
        self.tokens = nn.Embedding(vocabulary, width)
        self.blocks = nn.LayerList([Block(width, heads, has_memory=True) for _ in range(depth)])
        self.head = nn.Linear(width, vocabulary)

    def forward(self, pixels: Tensor, ids: Tensor) -> Tensor:
        memory = self.grid(pixels).flatten(2).transpose([0, 2, 1])
        x = self.tokens(ids)
        for block in self.blocks:
            x = block(x, memory, causal_mask(ids.shape[1]))
        return self.head(x)


class QuestionAnswerer(nn.Layer):
    """A question that attends to regions of an image (Anderson et al. 2018)."""

    def __init__(
        self, regions: int = 2048, vocabulary: int = 10_000, width: int = 512, answers: int = 3000
    ) -> None:
        super().__init__()
        self.tokens, self.read = nn.Embedding(vocabulary, 300), nn.GRU(300, width)
        self.regions = nn.Linear(regions, width)
        self.attention = Attention(width, 1)
        self.head = mlp(width, 2 * width, answers)

    def forward(self, regions: Tensor, ids: Tensor) -> Tensor:
        _, state = self.read(self.tokens(ids))
        question = state[0].unsqueeze(1)
        seen = self.attention(question, self.regions(regions))
        return self.head((seen * question).squeeze(1))


class Recommender(nn.Layer):
    """Dense features and embedded categories with products of pairs (Naumov et al. 2019)."""

    def __init__(self, tables: int = 8, rows: int = 1000, width: int = 16, dense: int = 13) -> None:
        super().__init__()
        self.tables = nn.LayerList([nn.Embedding(rows, width) for _ in range(tables)])
        self.bottom = mlp(dense, 64, width)
        self.top = mlp(width + (tables + 1) ** 2, 64, 1)

    def forward(self, dense: Tensor, categories: Tensor) -> Tensor:
        x = self.bottom(dense)
        vectors = [table(categories[:, i]) for i, table in enumerate(self.tables)]
        stacked = paddle.stack([x, *vectors], 1)
        pairs = paddle.bmm(stacked, stacked.transpose([0, 2, 1])).flatten(1)
        return F.sigmoid(self.top(paddle.concat([x, pairs], 1)))


class Factorization(nn.Layer):
    """Factorization machine beside a deep network (Guo et al. 2017)."""

    def __init__(self, fields: int = 39, rows: int = 10_000, width: int = 9) -> None:
        super().__init__()
        self.linear, self.vectors = nn.Embedding(rows, 1), nn.Embedding(rows, width)
        self.deep = mlp(fields * width, 128, 64, 1)

    def forward(self, fields: Tensor) -> Tensor:
        v = self.vectors(fields)
        pairs = 0.5 * (v.sum(1).square() - v.square().sum(1)).sum(-1, keepdim=True)
        return F.sigmoid(self.linear(fields).sum(1) + pairs + self.deep(v.flatten(1)))


class Interest(nn.Layer):
    """Attention of a candidate over a history (Zhou et al. 2018)."""

    def __init__(self, items: int = 20_000, width: int = 32) -> None:
        super().__init__()
        self.items = nn.Embedding(items, width)
        self.weigh, self.head = mlp(4 * width, 64, 1), mlp(2 * width, 64, 1)

    def forward(self, history: Tensor, candidate: Tensor) -> Tensor:
        past, now = self.items(history), self.items(candidate).unsqueeze(1)
        wide = now.expand_as(past)
        weights = self.weigh(paddle.concat([past, wide, past - wide, past * wide], -1))
        seen = (F.sigmoid(weights) * past).sum(1)
        return F.sigmoid(self.head(paddle.concat([seen, now.squeeze(1)], -1)))


class BasisExpansion(nn.Layer):
    """N-BEATS (Oreshkin et al. 2020): each block explains a part of the residual."""

    def __init__(
        self, length: int = 96, horizon: int = 24, width: int = 128, depth: int = 4
    ) -> None:
        super().__init__()
        self.blocks = nn.LayerList(
            [mlp(length, width, width, length + horizon) for _ in range(depth)]
        )
        self.length = length

    def forward(self, series: Tensor) -> Tensor:
        rest, forecast = series, paddle.zeros([1])
        for block in self.blocks:
            out = block(F.relu(rest))
            rest = rest - out[:, : self.length]
            forecast = forecast + out[:, self.length :]
        return forecast


class TemporalConvolutions(nn.Layer):
    """Causal convolutions with growing dilation (Bai et al. 2018)."""

    def __init__(self, channels: int = 7, width: int = 32, depth: int = 4) -> None:
        super().__init__()
        sizes = [channels, *[width] * depth]
        self.layers = nn.LayerList(
            [
                nn.Conv1D(a, b, 3, dilation=2**level)
                for level, (a, b) in enumerate(itertools.pairwise(sizes))
            ]
        )
        self.head = nn.Linear(width, channels)

    def forward(self, series: Tensor) -> Tensor:
        x = series.transpose([0, 2, 1])
        for level, layer in enumerate(self.layers):
            y = F.relu(layer(F.pad(x, [2 * 2**level, 0], data_format="NCL")))
            x = y if level == 0 else x + y
        return self.head(x[:, :, -1])


class Perceptron(nn.Layer):
    """Linear layers with an activation, and dropout that a run leaves out."""

    def __init__(self, sizes: Sequence[int] = (784, 256, 10)) -> None:
        super().__init__()
        self.body, self.dropout = mlp(*sizes[:-1]), nn.Dropout(0.2)
        self.head = nn.Linear(sizes[-2], sizes[-1])

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.dropout(F.relu(self.body(x))))


class Agent(nn.Layer):
    """Value and advantages of actions from game frames (Wang et al. 2016)."""

    def __init__(self, actions: int = 18) -> None:
        super().__init__()
        self.eye = nn.Sequential(
            nn.Conv2D(4, 32, 8, 4), nn.ReLU(), nn.Conv2D(32, 64, 4, 2), nn.ReLU(),
            nn.Conv2D(64, 64, 3), nn.ReLU(), nn.Flatten(),
        )  # fmt: skip
        self.value, self.advantage = mlp(3136, 256, 1), mlp(3136, 256, actions)

    def forward(self, frames: Tensor) -> Tensor:
        x = self.eye(frames / 255.0)
        advantage = self.advantage(x)
        return self.value(x) + advantage - advantage.mean(1, keepdim=True)


ARCHITECTURES: Mapping[str, Callable[..., nn.Layer]] = {
    "image_text_contrast": ImageTextContrast,
    "captioner": Captioner,
    "question_answerer": QuestionAnswerer,
    "recommender": Recommender,
    "factorization": Factorization,
    "interest": Interest,
    "basis_expansion": BasisExpansion,
    "temporal_convolutions": TemporalConvolutions,
    "perceptron": Perceptron,
    "agent": Agent,
}
