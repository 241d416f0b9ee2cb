"""Recommendation and click models: wide sparse inputs, small dense networks."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence

import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor, nn


def mlp(sizes: Sequence[int], is_open: bool = True) -> nn.Sequential:
    """Return linear layers with ReLU between them, and after the last one unless it is open."""
    layers: list[nn.Module] = []
    for a, b in itertools.pairwise(sizes):
        layers += [nn.Linear(a, b), nn.ReLU()]
    return nn.Sequential(*(layers[:-1] if is_open else layers))


class FieldEmbedding(nn.Module):
    """One table for all fields, with an offset per field."""

    offsets: Tensor

    def __init__(self, sizes: Sequence[int], width: int) -> None:
        super().__init__()
        self.table = nn.Embedding(sum(sizes), width)
        offsets = torch.tensor([0, *sizes[:-1]]).cumsum(0)
        self.register_buffer("offsets", offsets)

    def forward(self, fields: Tensor) -> Tensor:
        return self.table(fields + self.offsets)


class DLRM(nn.Module):
    """Naumov et al. 2019: bags of categories, dense features, and their dot products."""

    pairs: Tensor

    def __init__(
        self,
        tables: int = 26,
        rows: int = 10_000,
        width: int = 64,
        dense: int = 13,
        bottom: Sequence[int] = (512, 256),
        top: Sequence[int] = (512, 256),
    ) -> None:
        super().__init__()
        self.tables = nn.ModuleList(nn.EmbeddingBag(rows, width, mode="sum") for _ in range(tables))
        self.bottom = mlp([dense, *bottom, width], is_open=False)
        pairs = (tables + 1) * tables // 2
        self.top = mlp([pairs + width, *top, 1])
        self.register_buffer("pairs", torch.tril_indices(tables + 1, tables + 1, -1))

    def forward(self, dense: Tensor, categories: Tensor) -> Tensor:
        x = self.bottom(dense)
        vectors = [x, *(table(categories[:, i]) for i, table in enumerate(self.tables))]
        stacked = torch.stack(vectors, 1)
        products = torch.bmm(stacked, stacked.transpose(1, 2))
        flat = products[:, self.pairs[0], self.pairs[1]]
        return self.top(torch.cat([x, flat], 1)).sigmoid()


class FactorizationNet(nn.Module):
    """DeepFM (Guo et al. 2017), Wide & Deep (Cheng et al. 2016) or a cross network."""

    def __init__(
        self,
        kind: str = "deepfm",
        fields: int = 39,
        rows: int = 1_000,
        width: int = 16,
        hidden: Sequence[int] = (400, 400, 400),
        crosses: int = 3,
    ) -> None:
        super().__init__()
        self.kind, size = kind, fields * width
        self.vectors = FieldEmbedding([rows] * fields, width)
        self.weights = FieldEmbedding([rows] * fields, 1)
        self.deep = mlp([size, *hidden, 1])
        self.crosses = nn.ModuleList(nn.Linear(size, size) for _ in range(crosses))
        self.cross_head = nn.Linear(size, 1)

    def forward(self, fields: Tensor) -> Tensor:
        vectors = self.vectors(fields)
        score = self.weights(fields).sum(1) + self.deep(vectors.flatten(1))
        if self.kind == "deepfm":
            score = score + 0.5 * (vectors.sum(1).square() - vectors.square().sum(1)).sum(
                1, keepdim=True
            )
        elif self.kind == "cross":
            first = x = vectors.flatten(1)
            for cross in self.crosses:
                x = first * cross(x) + x
            score = score + self.cross_head(x)
        return score.sigmoid()


class InterestNet(nn.Module):
    """DIN (Zhou et al. 2018): a user's history, weighted by the candidate."""

    def __init__(
        self, items: int = 20_000, width: int = 64, hidden: Sequence[int] = (200, 80)
    ) -> None:
        super().__init__()
        self.items = nn.Embedding(items, width)
        self.score, self.head = mlp([4 * width, 80, 40, 1]), mlp([3 * width, *hidden, 1])

    def forward(self, history: Tensor, candidate: Tensor) -> Tensor:
        past, item = self.items(history), self.items(candidate)
        repeated = item[:, None].expand_as(past)
        pair = torch.cat([past, repeated, past - repeated, past * repeated], -1)
        mask = (history > 0)[..., None]
        interest = (self.score(pair).sigmoid() * past * mask).sum(1)
        return self.head(torch.cat([interest, item, interest * item], -1)).sigmoid()


class TwoTowers(nn.Module):
    """Retrieval by the product of a user and an item tower, softmax over the batch."""

    def __init__(
        self, users: int = 50_000, items: int = 50_000, width: int = 64, hidden: int = 256
    ) -> None:
        super().__init__()
        self.users, self.items = nn.Embedding(users, width), nn.Embedding(items, width)
        self.user_tower, self.item_tower = mlp([width, hidden, width]), mlp([width, hidden, width])

    def forward(self, users: Tensor, items: Tensor) -> Tensor:
        left = F.normalize(self.user_tower(self.users(users)), dim=-1)
        right = F.normalize(self.item_tower(self.items(items)), dim=-1)
        return (left @ right.t() / 0.05).log_softmax(-1)


class NeuralFactorization(nn.Module):
    """NCF (He et al. 2017): a product and a network, side by side."""

    def __init__(self, users: int = 6_040, items: int = 3_706, width: int = 32) -> None:
        super().__init__()
        self.tables = nn.ModuleList(nn.Embedding(rows, width) for rows in (users, items) * 2)
        self.deep = mlp([2 * width, 64, 32, 16], is_open=False)
        self.head = nn.Linear(width + 16, 1)

    def forward(self, users: Tensor, items: Tensor) -> Tensor:
        product = self.tables[0](users) * self.tables[1](items)
        deep = self.deep(torch.cat([self.tables[2](users), self.tables[3](items)], -1))
        return self.head(torch.cat([product, deep], -1)).sigmoid()


class SequenceRecommender(nn.Module):
    """SASRec (Kang and McAuley 2018): causal self-attention over a user's history."""

    def __init__(
        self, items: int = 12_000, width: int = 64, length: int = 50, depth: int = 2
    ) -> None:
        super().__init__()
        self.items = nn.Embedding(items, width)
        self.places = nn.Parameter(torch.randn(1, length, width) * 0.02)
        self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(2 * depth))
        self.attention = nn.ModuleList(
            nn.MultiheadAttention(width, 2, batch_first=True) for _ in range(depth)
        )
        self.mlps = nn.ModuleList(mlp([width, width, width]) for _ in range(depth))

    def forward(self, history: Tensor) -> Tensor:
        length = history.shape[1]
        mask = torch.ones(length, length, dtype=torch.bool, device=history.device).triu(1)
        x = (self.items(history) + self.places[:, :length]) * (history > 0)[..., None]
        for index, (attention, dense) in enumerate(zip(self.attention, self.mlps, strict=True)):
            y = self.norms[2 * index](x)
            x = x + attention(y, y, y, attn_mask=mask, need_weights=False)[0]
            x = x + dense(self.norms[2 * index + 1](x))
        return x[:, -1] @ self.items.weight.t()


ARCHITECTURES: Mapping[str, Callable[..., nn.Module]] = {
    "dlrm": DLRM,
    "factorization_net": FactorizationNet,
    "interest_net": InterestNet,
    "two_towers": TwoTowers,
    "neural_factorization": NeuralFactorization,
    "sequence_recommender": SequenceRecommender,
}
