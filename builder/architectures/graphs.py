"""Networks over graphs, molecules and point clouds: gather, compute, scatter."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence

import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor, nn


def scatter_sum(values: Tensor, index: Tensor, count: int) -> Tensor:
    """Return the sums of the rows of `values` that have the same index."""
    return values.new_zeros(count, *values.shape[1:]).index_add(0, index, values)


class GraphConvolutions(nn.Module):
    """GCN (Kipf and Welling 2017), GraphSAGE (Hamilton et al. 2017) or GIN (Xu et al. 2019)."""

    def __init__(
        self, kind: str = "gcn", features: int = 1433, width: int = 64, depth: int = 2,
        classes: int = 7,
    ) -> None:  # fmt: skip
        super().__init__()
        self.kind = kind
        sizes = [features, *[width] * (depth - 1), classes]
        pairs = list(itertools.pairwise(sizes))
        if kind == "gin":
            self.layers = nn.ModuleList(
                nn.Sequential(nn.Linear(a, width), nn.ReLU(), nn.Linear(width, b)) for a, b in pairs
            )
            self.epsilon = nn.Parameter(torch.zeros(depth))
        else:
            self.layers = nn.ModuleList(
                nn.Linear(2 * a if kind == "sage" else a, b) for a, b in pairs
            )

    def forward(self, x: Tensor, edges: Tensor) -> Tensor:
        source, target = edges
        count = x.shape[0]
        degree = scatter_sum(torch.ones_like(source, dtype=x.dtype), target, count)
        for index, layer in enumerate(self.layers):
            if self.kind == "gcn":
                scale = (degree + 1).rsqrt()
                h = layer(x)
                messages = h[source] * (scale[source] * scale[target])[:, None]
                x = scatter_sum(messages, target, count) + h * (scale**2)[:, None]
            elif self.kind == "sage":
                mean = scatter_sum(x[source], target, count) / degree.clamp(min=1)[:, None]
                x = layer(torch.cat([x, mean], 1))
            else:
                x = layer((1 + self.epsilon[index]) * x + scatter_sum(x[source], target, count))
            if index + 1 < len(self.layers):
                x = F.relu(x)
        return x.log_softmax(-1)


class GraphAttention(nn.Module):
    """GAT (Veličković et al. 2018): softmax over the neighbours of each node."""

    def __init__(
        self, features: int = 1433, width: int = 8, heads: int = 8, classes: int = 7
    ) -> None:
        super().__init__()
        self.shapes = ((heads, width), (1, classes))
        inputs = (features, heads * width)
        self.values = nn.ModuleList(
            nn.Linear(a, h * w, bias=False) for a, (h, w) in zip(inputs, self.shapes, strict=True)
        )
        self.scores = nn.ParameterList(
            nn.Parameter(torch.randn(2, h, w) * 0.1) for h, w in self.shapes
        )

    def forward(self, x: Tensor, edges: Tensor) -> Tensor:
        source, target = edges
        count = x.shape[0]
        for index, (heads, width) in enumerate(self.shapes):
            h = self.values[index](x).view(-1, heads, width)
            left, right = ((h * part).sum(-1) for part in self.scores[index])
            score = F.leaky_relu(left[source] + right[target], 0.2)
            largest = score.new_full((count, heads), -1e4).scatter_reduce(
                0, target[:, None].expand(-1, heads), score, "amax"
            )
            weight = (score - largest[target]).exp()
            total = scatter_sum(weight, target, count)
            weight = weight / (total[target] + 1e-9)
            x = scatter_sum(h[source] * weight[..., None], target, count).flatten(1)
            x = F.elu(x) if index == 0 else x
        return x.log_softmax(-1)


class MeshSimulator(nn.Module):
    """Encode, process and decode a mesh (Pfaff et al. 2021)."""

    def __init__(
        self, nodes: int = 12, edges: int = 7, width: int = 128, depth: int = 15, outputs: int = 3
    ) -> None:
        super().__init__()
        self.node_in, self.edge_in = self._mlp(nodes, width), self._mlp(edges, width)
        self.edge_steps = nn.ModuleList(self._mlp(3 * width, width) for _ in range(depth))
        self.node_steps = nn.ModuleList(self._mlp(2 * width, width) for _ in range(depth))
        self.out = nn.Sequential(nn.Linear(width, width), nn.ReLU(), nn.Linear(width, outputs))

    @staticmethod
    def _mlp(inputs: int, width: int) -> nn.Sequential:
        return nn.Sequential(
            nn.Linear(inputs, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU(),
            nn.Linear(width, width), nn.LayerNorm(width),
        )  # fmt: skip

    def forward(self, nodes: Tensor, edge_features: Tensor, edges: Tensor) -> Tensor:
        source, target = edges
        x, e = self.node_in(nodes), self.edge_in(edge_features)
        for edge_step, node_step in zip(self.edge_steps, self.node_steps, strict=True):
            e = e + edge_step(torch.cat([e, x[source], x[target]], -1))
            x = x + node_step(torch.cat([x, scatter_sum(e, target, x.shape[0])], -1))
        return self.out(x)


class AtomPotential(nn.Module):
    """SchNet (Schütt et al. 2017): continuous filters over the distances between atoms."""

    centers: Tensor

    def __init__(
        self, width: int = 64, depth: int = 3, basis: int = 50, cutoff: float = 5.0
    ) -> None:
        super().__init__()
        self.cutoff = cutoff
        self.atoms = nn.Embedding(100, width)
        self.register_buffer("centers", torch.linspace(0, cutoff, basis))
        self.filters = nn.ModuleList(
            nn.Sequential(nn.Linear(basis, width), nn.Softplus(), nn.Linear(width, width))
            for _ in range(depth)
        )
        self.before = nn.ModuleList(nn.Linear(width, width, bias=False) for _ in range(depth))
        self.after = nn.ModuleList(
            nn.Sequential(nn.Linear(width, width), nn.Softplus(), nn.Linear(width, width))
            for _ in range(depth)
        )
        self.energy = nn.Sequential(nn.Linear(width, width // 2), nn.Softplus(),
                                    nn.Linear(width // 2, 1))  # fmt: skip

    def forward(self, numbers: Tensor, positions: Tensor, edges: Tensor) -> Tensor:
        source, target = edges
        distance = (positions[source] - positions[target]).norm(dim=-1)
        basis = torch.exp(-10.0 * (distance[:, None] - self.centers) ** 2)
        window = 0.5 * (torch.cos(distance.clamp(max=self.cutoff) * torch.pi / self.cutoff) + 1)
        x = self.atoms(numbers)
        for make_filter, before, after in zip(self.filters, self.before, self.after, strict=True):
            weight = make_filter(basis) * window[:, None]
            x = x + after(scatter_sum(before(x)[source] * weight, target, x.shape[0]))
        return self.energy(x).sum()


class EquivariantNet(nn.Module):
    """E(n)-equivariant layers (Satorras et al. 2021) over all pairs of a batch of molecules."""

    def __init__(self, features: int = 11, width: int = 64, depth: int = 4) -> None:
        super().__init__()
        self.embed = nn.Linear(features, width)
        self.edge = nn.ModuleList(self._mlp(2 * width + 1, width) for _ in range(depth))
        self.move = nn.ModuleList(
            nn.Sequential(nn.Linear(width, width), nn.SiLU(), nn.Linear(width, 1, bias=False))
            for _ in range(depth)
        )
        self.node = nn.ModuleList(self._mlp(2 * width, width) for _ in range(depth))
        self.head = nn.Linear(width, 1)

    @staticmethod
    def _mlp(inputs: int, width: int) -> nn.Sequential:
        return nn.Sequential(
            nn.Linear(inputs, width), nn.SiLU(), nn.Linear(width, width), nn.SiLU()
        )

    def forward(self, features: Tensor, positions: Tensor) -> tuple[Tensor, Tensor]:
        x, count = self.embed(features), features.shape[1]
        for edge, move, node in zip(self.edge, self.move, self.node, strict=True):
            difference = positions[:, :, None] - positions[:, None]
            squared = difference.square().sum(-1, keepdim=True)
            pair = torch.cat(
                [x[:, :, None].expand(-1, -1, count, -1), x[:, None].expand(-1, count, -1, -1),
                 squared], -1,
            )  # fmt: skip
            message = edge(pair)
            positions = positions + (difference * move(message) / (squared.sqrt() + 1)).mean(2)
            x = x + node(torch.cat([x, message.sum(2)], -1))
        return self.head(x.mean(1)), positions


class PointNet(nn.Module):
    """Qi et al. 2017, with the learned alignment of its input."""

    def __init__(self, widths: Sequence[int] = (64, 128, 1024), classes: int = 40) -> None:
        super().__init__()
        self.align, self.body = self._convs(3, widths), self._convs(3, widths)
        self.matrix = nn.Linear(widths[-1], 9)
        self.head = nn.Sequential(
            nn.Linear(widths[-1], 256), nn.BatchNorm1d(256), nn.ReLU(), nn.Dropout(0.3),
            nn.Linear(256, classes),
        )  # fmt: skip

    @staticmethod
    def _convs(inputs: int, widths: Sequence[int]) -> nn.Sequential:
        layers: list[nn.Module] = []
        for width in widths:
            layers += [nn.Conv1d(inputs, width, 1), nn.BatchNorm1d(width), nn.ReLU()]
            inputs = width
        return nn.Sequential(*layers)

    def forward(self, points: Tensor) -> Tensor:
        matrix = self.matrix(self.align(points).amax(-1)).view(-1, 3, 3)
        matrix = matrix + torch.eye(3, device=points.device, dtype=points.dtype)
        return self.head(self.body(torch.bmm(matrix, points)).amax(-1))


ARCHITECTURES: Mapping[str, Callable[..., nn.Module]] = {
    "graph_convolutions": GraphConvolutions,
    "graph_attention": GraphAttention,
    "mesh_simulator": MeshSimulator,
    "atom_potential": AtomPotential,
    "equivariant_net": EquivariantNet,
    "point_net": PointNet,
}
