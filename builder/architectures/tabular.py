"""Tables, control and plain networks."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor, nn

from .recommenders import FieldEmbedding, mlp


class FeatureTransformer(nn.Module):
    """FT-Transformer (Gorishniy et al. 2021): a token per column."""

    def __init__(
        self,
        numbers: int = 8,
        categories: Sequence[int] = (10, 7, 16, 5),
        width: int = 64,
        heads: int = 8,
        depth: int = 3,
    ) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.randn(numbers, width) * 0.1)
        self.bias = nn.Parameter(torch.randn(numbers, width) * 0.1)
        self.fields = FieldEmbedding(categories, width)
        self.summary = nn.Parameter(torch.randn(1, 1, width) * 0.1)
        layer = nn.TransformerEncoderLayer(
            width, heads, 2 * width, activation="gelu", batch_first=True, norm_first=True
        )
        self.body = nn.TransformerEncoder(layer, depth, enable_nested_tensor=False)
        self.head = nn.Linear(width, 1)

    def forward(self, numbers: Tensor, categories: Tensor) -> Tensor:
        tokens = torch.cat(
            [
                self.summary.expand(numbers.shape[0], -1, -1),
                numbers[..., None] * self.weight + self.bias,
                self.fields(categories),
            ],
            1,
        )
        return self.head(self.body(tokens)[:, 0])


class TabularResNet(nn.Module):
    """A residual network over columns (Gorishniy et al. 2021)."""

    def __init__(
        self, columns: int = 54, width: int = 128, depth: int = 4, classes: int = 7
    ) -> None:
        super().__init__()
        self.first = nn.Linear(columns, width)
        self.blocks = nn.ModuleList(
            nn.Sequential(
                nn.BatchNorm1d(width), nn.Linear(width, 2 * width), nn.ReLU(), nn.Dropout(0.2),
                nn.Linear(2 * width, width),
            )
            for _ in range(depth)
        )  # fmt: skip
        self.head = nn.Sequential(nn.BatchNorm1d(width), nn.ReLU(), nn.Linear(width, classes))

    def forward(self, columns: Tensor) -> Tensor:
        x = self.first(columns)
        for block in self.blocks:
            x = x + block(x)
        return self.head(x)


class AttentiveTable(nn.Module):
    """TabNet (Arik and Pfister 2021): a mask over the columns at each step."""

    def __init__(
        self, columns: int = 54, width: int = 32, steps: int = 4, classes: int = 7
    ) -> None:
        super().__init__()
        self.norm = nn.BatchNorm1d(columns)
        self.masks = nn.ModuleList(
            nn.Sequential(nn.Linear(width, columns), nn.BatchNorm1d(columns)) for _ in range(steps)
        )
        self.transforms = nn.ModuleList(
            nn.Sequential(nn.Linear(columns, 4 * width), nn.BatchNorm1d(4 * width), nn.GLU())
            for _ in range(steps + 1)
        )
        self.width, self.head = width, nn.Linear(width, classes)

    def forward(self, columns: Tensor) -> tuple[Tensor, Tensor]:
        x = self.norm(columns)
        prior, total = torch.ones_like(x), x.new_zeros(x.shape[0], self.width)
        attended = self.transforms[0](x)[:, self.width :]
        usage = torch.zeros_like(x)
        for mask, transform in zip(self.masks, self.transforms[1:], strict=True):
            weights = (mask(attended) * prior).softmax(-1)
            prior = prior * (1.5 - weights)
            out, attended = transform(weights * x).split(self.width, -1)
            total, usage = total + F.relu(out), usage + weights
        return self.head(total), usage


class AtariAgent(nn.Module):
    """The dueling value network of Wang et al. 2016, or an actor and a critic."""

    def __init__(self, frames: int = 4, actions: int = 18, is_actor: bool = False) -> None:
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(frames, 32, 8, 4), nn.ReLU(), nn.Conv2d(32, 64, 4, 2), nn.ReLU(),
            nn.Conv2d(64, 64, 3, 1), nn.ReLU(), nn.Flatten(), nn.Linear(3136, 512), nn.ReLU(),
        )  # fmt: skip
        self.value, self.advantage = nn.Linear(512, 1), nn.Linear(512, actions)
        self.is_actor = is_actor

    def forward(self, frames: Tensor) -> tuple[Tensor, Tensor]:
        x = self.body(frames / 255.0)
        value, advantage = self.value(x), self.advantage(x)
        if self.is_actor:
            return advantage.log_softmax(-1), value
        scores = value + advantage - advantage.mean(-1, keepdim=True)
        return scores, scores.argmax(-1)


class SoftActor(nn.Module):
    """A Gaussian policy squashed by tanh, with its log density (Haarnoja et al. 2018)."""

    def __init__(self, states: int = 17, actions: int = 6, width: int = 256) -> None:
        super().__init__()
        self.body = mlp([states, width, width], is_open=False)
        self.mean, self.log_scale = nn.Linear(width, actions), nn.Linear(width, actions)

    def forward(self, states: Tensor) -> tuple[Tensor, Tensor]:
        x = self.body(states)
        mean, log_scale = self.mean(x), self.log_scale(x).clamp(-20, 2)
        noise = torch.randn_like(mean)
        raw = mean + noise * log_scale.exp()
        action = torch.tanh(raw)
        density = -0.5 * noise.square() - log_scale - 0.919 - torch.log(1 - action**2 + 1e-6)
        return action, density.sum(-1)


class WorldModel(nn.Module):
    """A recurrent state-space model (Hafner et al. 2019) rolled out over actions."""

    def __init__(
        self, actions: int = 6, width: int = 200, states: int = 30, pixels: int = 1024
    ) -> None:
        super().__init__()
        self.cell = nn.GRUCell(width, width)
        self.join = mlp([states + actions, width], is_open=False)
        self.prior = mlp([width, width, 2 * states])
        self.reward, self.decode = mlp([width + states, width, 1]), mlp([width + states, pixels])

    def forward(self, hidden: Tensor, state: Tensor, actions: Tensor) -> tuple[Tensor, Tensor]:
        rewards, frames = [], []
        for action in actions.unbind(1):
            hidden = self.cell(self.join(torch.cat([state, action], -1)), hidden)
            mean, scale = self.prior(hidden).chunk(2, -1)
            state = mean + torch.randn_like(mean) * (F.softplus(scale) + 0.1)
            both = torch.cat([hidden, state], -1)
            rewards.append(self.reward(both))
            frames.append(self.decode(both))
        return torch.stack(rewards, 1), torch.stack(frames, 1)


def plain_mlp(sizes: Sequence[int] = (784, 1024, 1024, 10)) -> nn.Module:
    """Linear layers with ReLU between them."""
    return mlp(sizes)


ARCHITECTURES: Mapping[str, Callable[..., nn.Module]] = {
    "feature_transformer": FeatureTransformer,
    "tabular_resnet": TabularResNet,
    "attentive_table": AttentiveTable,
    "atari_agent": AtariAgent,
    "soft_actor": SoftActor,
    "world_model": WorldModel,
    "mlp": plain_mlp,
}
