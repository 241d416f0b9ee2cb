"""Scientific computing in plain paddle: operators over fields, physics networks, graphs."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import paddle
import paddle.geometric
import paddle.nn.functional as F  # noqa: N812
from paddle import Tensor, nn

from .blocks import mlp


class SpectralLayer(nn.Layer):
    """The Fourier layer of Li et al. 2021 in two dimensions; weights as pairs of reals."""

    def __init__(self, width: int, modes: int) -> None:
        super().__init__()
        self.modes = modes
        self.weights = nn.ParameterList(
            [self.create_parameter([width, width, modes, modes]) for _ in range(2)]
        )
        self.local = nn.Conv2D(width, width, 1)

    def forward(self, x: Tensor) -> Tensor:
        modes = self.modes
        spectrum = paddle.fft.rfft2(x)[:, :, :modes, :modes]
        weight = paddle.complex(self.weights[0], self.weights[1])
        mixed = paddle.sum(spectrum.unsqueeze(2) * weight.unsqueeze(0), 1)
        real, imaginary = paddle.real(mixed), paddle.imag(mixed)
        pad = [0, x.shape[3] // 2 + 1 - modes, 0, x.shape[2] - modes]
        field = paddle.fft.irfft2(paddle.complex(F.pad(real, pad), F.pad(imaginary, pad)))
        return F.gelu(field + self.local(x))


class FourierOperator(nn.Layer):
    """Fourier layers between two pointwise networks."""

    def __init__(self, width: int = 20, modes: int = 12, depth: int = 4) -> None:
        super().__init__()
        self.lift = nn.Conv2D(1, width, 1)
        self.layers = nn.LayerList([SpectralLayer(width, modes) for _ in range(depth)])
        self.project = nn.Sequential(nn.Conv2D(width, 128, 1), nn.GELU(), nn.Conv2D(128, 1, 1))

    def forward(self, field: Tensor) -> Tensor:
        x = self.lift(field)
        for layer in self.layers:
            x = layer(x)
        return self.project(x)


class BranchAndTrunk(nn.Layer):
    """A product of a net over sensors and a net over points (Lu et al. 2021)."""

    def __init__(
        self, sensors: int = 100, points: int = 2, width: int = 128, basis: int = 64
    ) -> None:
        super().__init__()
        self.branch = mlp(sensors, width, width, basis)
        self.trunk = mlp(points, width, width, basis)
        self.bias = self.create_parameter([1], is_bias=True)

    def forward(self, sensors: Tensor, points: Tensor) -> Tensor:
        return paddle.matmul(self.branch(sensors), self.trunk(points), transpose_y=True) + self.bias


class PhysicsNet(nn.Layer):
    """A net of smooth activations over coordinates (Raissi et al. 2019); sine after Sitzmann."""

    def __init__(
        self, inputs: int = 3, width: int = 50, depth: int = 5, outputs: int = 3, kind: str = "tanh"
    ) -> None:
        super().__init__()
        sizes = [inputs, *[width] * depth]
        self.layers = nn.LayerList([nn.Linear(a, b) for a, b in itertools.pairwise(sizes)])
        self.head, self.kind = nn.Linear(width, outputs), kind

    def forward(self, points: Tensor) -> Tensor:
        x = points
        for layer in self.layers:
            x = paddle.sin(30.0 * layer(x)) if self.kind == "sine" else paddle.tanh(layer(x))
        return self.head(x)


class GraphConvolutions(nn.Layer):
    """Messages along edges with `paddle.geometric` (Hamilton et al. 2017)."""

    def __init__(
        self, features: int = 1433, width: int = 64, classes: int = 7, reduce: Any = "mean"
    ) -> None:
        super().__init__()
        self.own = nn.LayerList([nn.Linear(features, width), nn.Linear(width, classes)])
        self.near = nn.LayerList([nn.Linear(features, width), nn.Linear(width, classes)])
        self.reduce = reduce

    def forward(self, x: Tensor, sources: Tensor, targets: Tensor) -> Tensor:
        for level, (own, near) in enumerate(zip(self.own, self.near)):  # noqa: B905
            gathered = paddle.geometric.send_u_recv(x, sources, targets, self.reduce)
            x = own(x) + near(gathered)
            x = x if level else F.relu(x)
        return F.log_softmax(x)


class ConvolutionalMemory(nn.Layer):
    """An LSTM whose gates are convolutions, over frames (Shi et al. 2015)."""

    def __init__(self, width: int = 16, kernel: int = 3) -> None:
        super().__init__()
        self.width = width
        self.gates = nn.Conv2D(1 + width, 4 * width, kernel, padding=kernel // 2)
        self.head = nn.Conv2D(width, 1, 1)

    def forward(self, frames: Tensor) -> Tensor:
        batch, steps, _, rows, columns = frames.shape
        hidden = paddle.zeros([batch, self.width, rows, columns])
        cell = paddle.zeros([batch, self.width, rows, columns])
        for step in range(steps):
            mixed = self.gates(paddle.concat([frames[:, step], hidden], 1))
            take, forget, give, new = paddle.chunk(mixed, 4, 1)
            cell = F.sigmoid(forget) * cell + F.sigmoid(take) * paddle.tanh(new)
            hidden = F.sigmoid(give) * paddle.tanh(cell)
        return self.head(hidden)


class PointCloud(nn.Layer):
    """Shared networks over points and a maximum over them (Qi et al. 2017)."""

    def __init__(self, widths: Sequence[int] = (64, 128, 1024), classes: int = 40) -> None:
        super().__init__()
        layers: list[nn.Layer] = []
        for before, after in zip((3, *widths), widths, strict=False):
            layers += [nn.Conv1D(before, after, 1), nn.BatchNorm1D(after), nn.ReLU()]
        self.points = nn.Sequential(*layers)
        self.head = mlp(widths[-1], 256, classes)

    def forward(self, points: Tensor) -> Tensor:
        return self.head(self.points(points).max(-1))


ARCHITECTURES: Mapping[str, Callable[..., nn.Layer]] = {
    "fourier_operator": FourierOperator,
    "branch_and_trunk": BranchAndTrunk,
    "physics_net": PhysicsNet,
    "graph_convolutions": GraphConvolutions,
    "convolutional_memory": ConvolutionalMemory,
    "point_cloud": PointCloud,
}
