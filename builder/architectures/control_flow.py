"""Models with branches and loops that depend on data: `cond`, `while_loop` and `scan`.

Branches and loops are operators of the graph, whose bodies are graphs.
"""
# ruff: noqa: ARG001 - the condition and the body of a loop take all of its state

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping

import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor, nn
from torch._higher_order_ops.scan import scan
from torch._higher_order_ops.while_loop import while_loop
from torch.utils.checkpoint import checkpoint


class ScannedRecurrence(nn.Module):
    """A language model whose recurrent layer is a scan over the tokens.

    `kind` is `gru` (Cho et al. 2014), `min_gru`, whose gates do not depend on the state (Feng et
    al. 2024), or `lru`, a diagonal linear recurrence (Orvieto et al. 2023).
    """

    def __init__(
        self, vocabulary: int = 10_000, width: int = 256, depth: int = 1, kind: str = "gru"
    ) -> None:
        super().__init__()
        self.kind = kind
        self.embedding = nn.Embedding(vocabulary, width)
        self.inputs = nn.ModuleList(nn.Linear(width, 3 * width) for _ in range(depth))
        self.states = nn.ModuleList(nn.Linear(width, 3 * width) for _ in range(depth))
        self.decay = nn.Parameter(torch.randn(depth, width))
        self.head = nn.Linear(width, vocabulary)

    def forward(self, ids: Tensor) -> Tensor:
        x = self.embedding(ids).transpose(0, 1)
        for layer, inputs in enumerate(self.inputs):
            step = getattr(self, f"_{self.kind}")(layer)
            _, x = scan(step, torch.zeros_like(x[0]), inputs(x))
        return self.head(x.transpose(0, 1))

    def _gru(self, layer: int) -> Callable[[Tensor, Tensor], tuple[Tensor, Tensor]]:
        def step(state: Tensor, inputs: Tensor) -> tuple[Tensor, Tensor]:
            reset, update, new = inputs.chunk(3, -1)
            state_reset, state_update, state_new = self.states[layer](state).chunk(3, -1)
            gate = torch.sigmoid(update + state_update)
            candidate = torch.tanh(new + torch.sigmoid(reset + state_reset) * state_new)
            state = gate * state + (1 - gate) * candidate
            return state, state.clone()

        return step

    def _min_gru(self, layer: int) -> Callable[[Tensor, Tensor], tuple[Tensor, Tensor]]:
        del layer

        def step(state: Tensor, inputs: Tensor) -> tuple[Tensor, Tensor]:
            gate, candidate, output = inputs.chunk(3, -1)
            state = torch.lerp(state, candidate, torch.sigmoid(gate))
            return state, state * torch.sigmoid(output)

        return step

    def _lru(self, layer: int) -> Callable[[Tensor, Tensor], tuple[Tensor, Tensor]]:
        def step(state: Tensor, inputs: Tensor) -> tuple[Tensor, Tensor]:
            x, gate, skip = inputs.chunk(3, -1)
            decay = torch.sigmoid(self.decay[layer])
            state = decay * state + torch.sqrt(1 - decay**2) * x
            return state, F.silu(gate) * state + skip

        return step


class SelectiveStateSpace(nn.Module):
    """A block of Mamba (Gu and Dao 2023), whose selective scan is a scan over the tokens."""

    def __init__(self, width: int = 128, states: int = 16, rank: int = 8, kernel: int = 4) -> None:
        super().__init__()
        self.states, self.rank, inner = states, rank, 2 * width
        self.norm, self.project = nn.LayerNorm(width), nn.Linear(width, 2 * inner, bias=False)
        self.convolution = nn.Conv1d(inner, inner, kernel, padding=kernel - 1, groups=inner)
        self.select = nn.Linear(inner, rank + 2 * states, bias=False)
        self.step = nn.Linear(rank, inner)
        self.log_decay = nn.Parameter(torch.arange(1.0, states + 1).log().repeat(inner, 1))
        self.skip = nn.Parameter(torch.ones(inner))
        self.out = nn.Linear(inner, width, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        hidden, gate = self.project(self.norm(x)).chunk(2, -1)
        hidden = self.convolution(hidden.transpose(1, 2))[..., : x.shape[1]].transpose(1, 2)
        hidden = F.silu(hidden)
        steps, keys, queries = self.select(hidden).split([self.rank, self.states, self.states], -1)
        steps = F.softplus(self.step(steps))
        decay = -self.log_decay.exp()

        def update(state: Tensor, token: tuple[Tensor, ...]) -> tuple[Tensor, Tensor]:
            value, step, key, query = token
            state = state * (step[..., None] * decay).exp()
            state = state + (step * value)[..., None] * key[:, None]
            return state, (state * query[:, None]).sum(-1)

        start = torch.zeros_like(hidden[:, 0, :, None] * decay)
        tokens = tuple(part.transpose(0, 1) for part in (hidden, steps, keys, queries))
        _, outputs = scan(update, start, tokens)
        outputs = outputs.transpose(0, 1) + hidden * self.skip
        return x + self.out(outputs * F.silu(gate))


class LinearAttention(nn.Module):
    """Causal linear attention with decay (Katharopoulos et al. 2020; Sun et al. 2023) by a scan."""

    def __init__(self, width: int = 128, heads: int = 4) -> None:
        super().__init__()
        self.heads = heads
        self.project, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)

    def forward(self, x: Tensor) -> Tensor:
        batch, length, width = x.shape
        parts = self.project(x).view(batch, length, 3, self.heads, -1).permute(2, 1, 0, 3, 4)
        queries, keys, values = (F.elu(parts[0]) + 1, F.elu(parts[1]) + 1, parts[2])
        decay = 1 - 2.0 ** (-5 - torch.arange(self.heads, device=x.device, dtype=x.dtype))

        def update(state: Tensor, token: tuple[Tensor, ...]) -> tuple[Tensor, Tensor]:
            query, key, value = token
            state = state * decay[:, None, None] + key[..., None] * value[..., None, :]
            return state, (query[..., None, :] @ state).squeeze(-2)

        start = torch.zeros_like(keys[0, ..., None] * values[0, ..., None, :])
        _, outputs = scan(update, start, (queries, keys, values))
        return self.out(outputs.transpose(0, 1).reshape(batch, length, width))


class KalmanFilter(nn.Module):
    """A linear Gaussian filter with learned dynamics (Kalman 1960); predictions of each step."""

    def __init__(self, states: int = 8, observed: int = 4) -> None:
        super().__init__()
        self.dynamics = nn.Parameter(0.1 * torch.randn(states, states) + torch.eye(states))
        self.observation = nn.Parameter(torch.randn(observed, states) * 0.3)
        self.noise = nn.Parameter(torch.zeros(states))
        self.observed_noise = nn.Parameter(torch.zeros(observed))

    def forward(self, observations: Tensor) -> Tensor:
        noise, observed_noise = self.noise.exp().diag(), self.observed_noise.exp().diag()
        dynamics, observation = self.dynamics, self.observation

        def step(belief: tuple[Tensor, Tensor], seen: Tensor) -> tuple[tuple[Tensor, ...], Tensor]:
            mean, covariance = belief
            mean = F.linear(mean, dynamics)
            covariance = F.linear(dynamics @ covariance, dynamics) + noise
            predicted = F.linear(mean, observation)
            spread = F.linear(observation @ covariance, observation) + observed_noise
            gain = torch.linalg.solve(spread, observation @ covariance).T
            mean = mean + (seen - predicted) @ gain.T
            covariance = covariance - gain @ observation @ covariance
            return (mean, covariance), predicted

        mean = torch.zeros_like(observations[:, 0, :1] * self.noise)
        start = (mean, torch.eye(len(self.noise), dtype=mean.dtype, device=mean.device))
        _, predictions = scan(step, start, observations.transpose(0, 1))
        return predictions.transpose(0, 1)


class HiddenMarkovModel(nn.Module):
    """Log likelihoods of sequences of symbols, by the forward algorithm (Rabiner 1989)."""

    def __init__(self, states: int = 64, symbols: int = 128) -> None:
        super().__init__()
        self.start = nn.Parameter(torch.randn(states))
        self.transitions = nn.Parameter(torch.randn(states, states))
        self.emissions = nn.Parameter(torch.randn(states, symbols))

    def forward(self, symbols: Tensor) -> Tensor:
        transitions = self.transitions.log_softmax(-1)
        scores = self.emissions.log_softmax(-1).T[symbols].transpose(0, 1)

        def step(alpha: Tensor, score: Tensor) -> tuple[Tensor, Tensor]:
            alpha = torch.logsumexp(alpha[..., None] + transitions, -2) + score
            return alpha, alpha.logsumexp(-1)

        _, totals = scan(step, self.start.log_softmax(-1) + scores[0], scores[1:])
        return totals[-1]


class NeuralFlow(nn.Module):
    """A neural differential equation (Chen et al. 2018), by Runge-Kutta steps in a scan."""

    def __init__(self, width: int = 64, hidden: int = 128, steps: int = 32) -> None:
        super().__init__()
        self.steps = steps
        self.field = nn.Sequential(nn.Linear(width, hidden), nn.Tanh(), nn.Linear(hidden, width))

    def forward(self, x: Tensor) -> Tensor:
        def step(state: Tensor, size: Tensor) -> tuple[Tensor, Tensor]:
            first = self.field(state)
            second = self.field(state + size / 2 * first)
            third = self.field(state + size / 2 * second)
            fourth = self.field(state + size * third)
            state = state + size / 6 * (first + 2 * second + 2 * third + fourth)
            return state, state.clone()

        sizes = torch.full((self.steps, 1, 1), 1 / self.steps, dtype=x.dtype, device=x.device)
        return scan(step, x, sizes)[1]


class DenoisingSampler(nn.Module):
    """All steps of a deterministic sampler of a diffusion model (Song et al. 2021) in a scan."""

    def __init__(self, channels: int = 16, steps: int = 20) -> None:
        super().__init__()
        self.net = nn.Sequential(
            nn.Conv2d(4, channels, 3, padding=1), nn.SiLU(),
            nn.Conv2d(channels, channels, 3, padding=1), nn.SiLU(),
            nn.Conv2d(channels, 3, 3, padding=1),
        )  # fmt: skip
        self.register_buffer("kept", torch.linspace(0.02, 0.999, steps + 1))

    def forward(self, noise: Tensor) -> Tensor:
        def step(x: Tensor, level: Tensor) -> tuple[Tensor, Tensor]:
            signal, following = level[0], level[1]
            predicted = self.net(torch.cat([x, signal.expand_as(x[:, :1])], 1))
            clean = ((x - (1 - signal).sqrt() * predicted) / signal.sqrt()).clamp(-3, 3)
            x = following.sqrt() * clean + (1 - following).sqrt() * predicted
            return x, clean.mean((1, 2, 3))

        levels = self.get_buffer("kept")
        return scan(step, noise, torch.stack([levels[:-1], levels[1:]], 1))[0]


class Equilibrium(nn.Module):
    """A deep equilibrium model (Bai et al. 2019): a layer repeated until its output settles."""

    def __init__(self, width: int = 128, tolerance: float = 1e-3, limit: int = 50) -> None:
        super().__init__()
        self.tolerance, self.limit = tolerance, limit
        self.inputs, self.layer = nn.Linear(width, width), nn.Linear(width, width)
        self.head = nn.Linear(width, 10)

    def forward(self, x: Tensor) -> Tensor:
        inputs = self.inputs(x)

        def unsettled(step: Tensor, state: Tensor, change: Tensor) -> Tensor:
            return (step < self.limit) & (change > self.tolerance)

        def update(step: Tensor, state: Tensor, change: Tensor) -> tuple[Tensor, ...]:
            new = torch.tanh(self.layer(state) / 2 + inputs)
            return step + 1, new, (new - state).abs().amax()

        start = (
            torch.zeros((), dtype=torch.int64),
            torch.zeros_like(inputs),
            inputs.abs().amax() + 1,
        )
        return self.head(while_loop(unsettled, update, start)[1])


class ConjugateGradients(nn.Module):
    """Solutions of a positive definite system by conjugate gradients (Hestenes and Stiefel 1952).

    The matrix is that of a kernel between points, as in Gaussian processes.
    """

    def __init__(self, tolerance: float = 1e-4, limit: int = 100) -> None:
        super().__init__()
        self.tolerance, self.limit = tolerance, limit
        self.scale, self.noise = nn.Parameter(torch.ones(())), nn.Parameter(torch.ones(()))

    def forward(self, points: Tensor, targets: Tensor) -> Tensor:
        distances = (points[:, None] - points[None]).square().sum(-1)
        kernel = (-distances * self.scale).exp()
        kernel = kernel + self.noise.square() * torch.eye(len(points), dtype=points.dtype)

        def unsettled(step: Tensor, x: Tensor, residual: Tensor, direction: Tensor) -> Tensor:
            return (step < self.limit) & (residual.square().sum() > self.tolerance)

        def update(
            step: Tensor, x: Tensor, residual: Tensor, direction: Tensor
        ) -> tuple[Tensor, ...]:
            image = kernel @ direction
            norm = residual.square().sum()
            size = norm / (direction * image).sum()
            rest = residual - size * image
            following = rest + rest.square().sum() / norm * direction
            return step + 1, x + size * direction, rest, following

        start = (
            torch.zeros((), dtype=torch.int64),
            torch.zeros_like(targets),
            targets.clone(),
            targets.clone(),
        )
        return while_loop(unsettled, update, start)[1]


class Sinkhorn(nn.Module):
    """Entropic optimal transport between two sets of features (Cuturi 2013)."""

    def __init__(self, width: int = 64, strength: float = 0.5, limit: int = 100) -> None:
        super().__init__()
        self.strength, self.limit, self.features = strength, limit, nn.Linear(width, width)

    def forward(self, first: Tensor, second: Tensor) -> Tensor:
        costs = torch.cdist(self.features(first), self.features(second)) / self.strength

        def unsettled(step: Tensor, rows: Tensor, columns: Tensor, change: Tensor) -> Tensor:
            return (step < self.limit) & (change > 1e-3)

        def update(
            step: Tensor, rows: Tensor, columns: Tensor, change: Tensor
        ) -> tuple[Tensor, ...]:
            new_rows = -torch.logsumexp(columns[None] - costs, 1)
            new_columns = -torch.logsumexp(new_rows[:, None] - costs, 0)
            return step + 1, new_rows, new_columns, (new_rows - rows).abs().amax()

        start = (
            torch.zeros((), dtype=torch.int64), costs.new_zeros(costs.shape[0]),
            costs.new_zeros(costs.shape[1]), costs.new_ones(()),
        )  # fmt: skip
        _, rows, columns, _ = while_loop(unsettled, update, start)
        return (rows[:, None] + columns[None] - costs).exp()


class LeadingDirections(nn.Module):
    """Leading singular vectors of features by power iteration, with a bound on the steps."""

    def __init__(self, width: int = 64, limit: int = 200) -> None:
        super().__init__()
        self.limit, self.features = limit, nn.Linear(width, width)

    def forward(self, x: Tensor) -> Tensor:
        features = self.features(x)
        moments = features.T @ features / len(x)

        def unsettled(step: Tensor, vector: Tensor, change: Tensor) -> Tensor:
            return (step < self.limit) & (change > 1e-3)

        def update(step: Tensor, vector: Tensor, change: Tensor) -> tuple[Tensor, ...]:
            new = F.normalize(moments @ vector, dim=0)
            return step + 1, new, (new - vector).norm()

        start = (
            torch.zeros((), dtype=torch.int64),
            F.normalize(moments[0], dim=0),
            moments.new_ones(()),
        )
        return features @ while_loop(unsettled, update, start)[1]


class PageRank(nn.Module):
    """Ranks of the nodes of a graph, iterated until they settle (Page et al. 1999)."""

    def __init__(self, damping: float = 0.85, limit: int = 100) -> None:
        super().__init__()
        self.damping, self.limit = damping, limit

    def forward(self, edges: Tensor, weights: Tensor) -> Tensor:
        count, (sources, targets) = len(weights), (edge.clone() for edge in edges)
        degrees = torch.zeros_like(weights).index_add(0, sources, torch.ones_like(weights[sources]))
        teleport = weights.softmax(0)

        def unsettled(step: Tensor, ranks: Tensor, change: Tensor) -> Tensor:
            return (step < self.limit) & (change > 1e-6)

        def update(step: Tensor, ranks: Tensor, change: Tensor) -> tuple[Tensor, ...]:
            shares = (ranks / degrees.clamp(min=1))[sources]
            arrived = torch.zeros_like(ranks).index_add(0, targets, shares)
            new = (1 - self.damping) * teleport + self.damping * arrived
            return step + 1, new, (new - ranks).abs().sum()

        start = (
            torch.zeros((), dtype=torch.int64),
            torch.full_like(weights, 1 / count),
            weights.new_ones(()),
        )
        return while_loop(unsettled, update, start)[1]


class GreedyDecoder(nn.Module):
    """A GRU that writes tokens until each sequence has ended or the limit is reached."""

    def __init__(self, vocabulary: int = 1000, width: int = 128, limit: int = 32) -> None:
        super().__init__()
        self.limit = limit
        self.embedding, self.cell = nn.Embedding(vocabulary, width), nn.GRUCell(width, width)
        self.head = nn.Linear(width, vocabulary)

    def forward(self, context: Tensor) -> Tensor:
        batch = context.shape[0]

        def unfinished(step: Tensor, state: Tensor, token: Tensor, text: Tensor) -> Tensor:
            return (step < self.limit) & (token != 0).any()

        def update(step: Tensor, state: Tensor, token: Tensor, text: Tensor) -> tuple[Tensor, ...]:
            state = self.cell(self.embedding(token), state)
            token = torch.where(token == 0, token, self.head(state).argmax(-1))
            place = (step == torch.arange(self.limit))[None]
            return step + 1, state, token, torch.where(place, token[:, None], text)

        start = (
            torch.zeros((), dtype=torch.int64), context.clone(),
            torch.ones(batch, dtype=torch.int64),
            torch.zeros(batch, self.limit, dtype=torch.int64),
        )  # fmt: skip
        return while_loop(unfinished, update, start)[3]


class AdaptiveDepth(nn.Module):
    """A transformer layer repeated until the tokens have halted (Dehghani et al. 2019)."""

    def __init__(self, width: int = 128, heads: int = 4, limit: int = 8) -> None:
        super().__init__()
        self.limit, self.halt = limit, nn.Linear(width, 1)
        self.heads, self.project = heads, nn.Linear(width, 3 * width)
        self.out, self.norm, self.norm_2 = (
            nn.Linear(width, width),
            nn.LayerNorm(width),
            nn.LayerNorm(width),
        )
        self.mlp = nn.Sequential(
            nn.Linear(width, 2 * width), nn.GELU(), nn.Linear(2 * width, width)
        )

    def _layer(self, x: Tensor) -> Tensor:
        batch, length, width = x.shape
        parts = self.project(self.norm(x)).view(batch, length, 3, self.heads, -1)
        mixed = F.scaled_dot_product_attention(*parts.permute(2, 0, 3, 1, 4))
        x = x + self.out(mixed.transpose(1, 2).reshape(batch, length, width))
        return x + self.mlp(self.norm_2(x))

    def forward(self, x: Tensor) -> Tensor:
        def running(step: Tensor, state: Tensor, halted: Tensor, mixed: Tensor) -> Tensor:
            return (step < self.limit) & (halted < 0.99).any()

        def update(
            step: Tensor, state: Tensor, halted: Tensor, mixed: Tensor
        ) -> tuple[Tensor, ...]:
            state = self._layer(state)
            share = torch.minimum(torch.sigmoid(self.halt(state)), 1 - halted)
            return step + 1, state, halted + share, mixed + share * state

        start = (
            torch.zeros((), dtype=torch.int64), x.clone(), torch.zeros_like(x[..., :1]),
            torch.zeros_like(x),
        )  # fmt: skip
        return while_loop(running, update, start)[3]


class Clusters(nn.Module):
    """Centres of clusters of features by Lloyd's algorithm (1982), until no centre moves."""

    def __init__(self, width: int = 32, clusters: int = 8, limit: int = 50) -> None:
        super().__init__()
        self.clusters, self.limit, self.features = clusters, limit, nn.Linear(width, width)

    def forward(self, x: Tensor) -> Tensor:
        points = self.features(x)

        def moving(step: Tensor, centres: Tensor, change: Tensor) -> Tensor:
            return (step < self.limit) & (change > 1e-4)

        def update(step: Tensor, centres: Tensor, change: Tensor) -> tuple[Tensor, ...]:
            nearest = F.one_hot(torch.cdist(points, centres).argmin(1), self.clusters)
            members = nearest.to(points.dtype).T
            new = members @ points / members.sum(1, keepdim=True).clamp(min=1)
            return step + 1, new, (new - centres).abs().amax()

        start = (
            torch.zeros((), dtype=torch.int64),
            points[: self.clusters].clone(),
            points.new_ones(()),
        )
        return while_loop(moving, update, start)[1]


class EarlyExit(nn.Module):
    """A network with a classifier after each stage (Teerapittayanon et al. 2016).

    If a classifier is confident of the whole batch, the remaining stages are skipped.
    """

    def __init__(self, width: int = 32, stages: int = 3, classes: int = 10) -> None:
        super().__init__()
        sizes = [3, *(width * 2**stage for stage in range(stages))]
        self.stages = nn.ModuleList(
            nn.Sequential(
                nn.Conv2d(before, after, 3, 2, 1), nn.BatchNorm2d(after), nn.ReLU(),
                nn.Conv2d(after, after, 3, 1, 1), nn.BatchNorm2d(after), nn.ReLU(),
            )
            for before, after in itertools.pairwise(sizes)
        )  # fmt: skip
        self.heads = nn.ModuleList(nn.Linear(size, classes) for size in sizes[1:])

    def forward(self, x: Tensor) -> Tensor:
        return self._rest(0, x)

    def _rest(self, stage: int, x: Tensor) -> Tensor:
        x = self.stages[stage](x)
        scores = self.heads[stage](x.mean((2, 3)))
        if stage + 1 == len(self.stages):
            return scores
        confidence = scores.softmax(-1).amax(-1).amin()
        return torch.cond(
            confidence > 0.9,
            lambda _, scores: scores.clone(),
            lambda x, _: self._rest(stage + 1, x),
            (x, scores),
        )


class SkippedLayers(nn.Module):
    """A stack of layers in which a gate decides for each layer whether the batch passes it.

    As in SkipNet (Wang et al. 2018), with one decision for the batch.
    """

    def __init__(self, width: int = 256, depth: int = 6, classes: int = 10) -> None:
        super().__init__()
        self.layers = nn.ModuleList(
            nn.Sequential(
                nn.LayerNorm(width),
                nn.Linear(width, 4 * width),
                nn.GELU(),
                nn.Linear(4 * width, width),
            )
            for _ in range(depth)
        )
        self.gates = nn.ModuleList(nn.Linear(width, 1) for _ in range(depth))
        self.head = nn.Linear(width, classes)

    def forward(self, x: Tensor) -> Tensor:
        for layer, gate in zip(self.layers, self.gates, strict=True):
            x = torch.cond(
                gate(x).mean() > 0, lambda x, layer=layer: x + layer(x), torch.clone, (x,)
            )
        return self.head(x)


class RoutedExperts(nn.Module):
    """A batch passes one of two experts of different size, chosen by a router."""

    def __init__(self, width: int = 128, small: int = 128, large: int = 1024) -> None:
        super().__init__()
        self.router = nn.Linear(width, 1)
        self.small, self.large = (
            nn.Sequential(nn.Linear(width, hidden), nn.SiLU(), nn.Linear(hidden, width))
            for hidden in (small, large)
        )

    def forward(self, x: Tensor) -> Tensor:
        score = torch.sigmoid(self.router(x).mean())
        return torch.cond(
            score > 0.5, lambda x: x + self.large(x), lambda x: x + self.small(x), (x,)
        )


class ScaledUpdate(nn.Module):
    """An update of weights with scaled gradients, skipped if one of them is not finite.

    As for training in float16 (Micikevicius et al. 2018).
    """

    def __init__(self, width: int = 256, rate: float = 0.1) -> None:
        super().__init__()
        self.rate, self.weight = rate, nn.Parameter(torch.randn(width, width) * 0.05)

    def forward(self, x: Tensor, target: Tensor, scale: Tensor) -> tuple[Tensor, Tensor]:
        error = (x @ self.weight - target) * scale
        gradient = x.T @ error / len(x)
        return torch.cond(
            gradient.isfinite().all(),
            lambda weight, gradient, scale: (weight - self.rate * gradient / scale, scale * 1.0),
            lambda weight, _, scale: (weight.clone(), scale * 0.5),
            (self.weight, gradient, scale),
        )


class Checkpointed(nn.Module):
    """An encoder whose layers are recomputed in the backward pass (Chen et al. 2016)."""

    def __init__(
        self, vocabulary: int = 10_000, width: int = 256, heads: int = 4, depth: int = 4
    ) -> None:
        super().__init__()
        self.embedding = nn.Embedding(vocabulary, width)
        self.layers = nn.ModuleList(
            nn.TransformerEncoderLayer(width, heads, 4 * width, 0.0, "gelu", batch_first=True)
            for _ in range(depth)
        )
        self.head = nn.Linear(width, vocabulary)

    def forward(self, ids: Tensor) -> Tensor:
        x = self.embedding(ids)
        for layer in self.layers:
            x = checkpoint(layer, x, use_reentrant=False)
        return self.head(x)


ARCHITECTURES: Mapping[str, Callable[..., nn.Module]] = {
    "scanned_recurrence": ScannedRecurrence,
    "selective_state_space": SelectiveStateSpace,
    "linear_attention_scan": LinearAttention,
    "kalman_filter": KalmanFilter,
    "hidden_markov_model": HiddenMarkovModel,
    "neural_flow": NeuralFlow,
    "denoising_sampler": DenoisingSampler,
    "equilibrium": Equilibrium,
    "conjugate_gradients": ConjugateGradients,
    "sinkhorn": Sinkhorn,
    "leading_directions": LeadingDirections,
    "page_rank": PageRank,
    "greedy_decoder": GreedyDecoder,
    "adaptive_depth": AdaptiveDepth,
    "clusters": Clusters,
    "early_exit": EarlyExit,
    "skipped_layers": SkippedLayers,
    "routed_experts": RoutedExperts,
    "scaled_update": ScaledUpdate,
    "checkpointed_encoder": Checkpointed,
}
