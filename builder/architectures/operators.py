"""Scientific computing: neural operators, physics networks, solvers, weather."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence

import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor, nn


class SpectralConv(nn.Module):
    """The Fourier layer of Li et al. 2021, in one or two dimensions; weights as real pairs."""

    def __init__(self, width: int, modes: Sequence[int]) -> None:
        super().__init__()
        self.modes = tuple(modes)
        corners = 2 ** (len(self.modes) - 1)
        self.weight = nn.Parameter(torch.randn(corners, width, width, *self.modes, 2) / width)

    def forward(self, x: Tensor) -> Tensor:
        dims = tuple(range(2, x.ndim))
        spectrum = torch.fft.rfftn(x, dim=dims)
        weight = torch.view_as_complex(self.weight)
        out = torch.zeros_like(spectrum)
        if len(self.modes) == 1:
            (modes,) = self.modes
            out[:, :, :modes] = torch.einsum("bil,iol->bol", spectrum[:, :, :modes], weight[0])
        else:
            rows, columns = self.modes
            for corner, part in enumerate((slice(0, rows), slice(-rows, None))):
                out[:, :, part, :columns] = torch.einsum(
                    "bixy,ioxy->boxy", spectrum[:, :, part, :columns], weight[corner]
                )
        return torch.fft.irfftn(out, s=x.shape[2:], dim=dims)


class FourierOperator(nn.Module):
    """Fourier neural operator over a regular grid, with the coordinates as channels."""

    def __init__(
        self,
        channels: int = 1,
        width: int = 32,
        modes: Sequence[int] = (12, 12),
        depth: int = 4,
        outputs: int = 1,
    ) -> None:
        super().__init__()
        conv = {1: nn.Conv1d, 2: nn.Conv2d}[len(modes)]
        self.lift = conv(channels + len(modes), width, 1)
        self.spectral = nn.ModuleList(SpectralConv(width, modes) for _ in range(depth))
        self.local = nn.ModuleList(conv(width, width, 1) for _ in range(depth))
        self.project = nn.Sequential(conv(width, 128, 1), nn.GELU(), conv(128, outputs, 1))

    def forward(self, field: Tensor) -> Tensor:
        axes = [torch.linspace(0, 1, size, device=field.device) for size in field.shape[2:]]
        grid = torch.stack(torch.meshgrid(*axes, indexing="ij"))
        grid = grid[None].expand(field.shape[0], *grid.shape)
        x = self.lift(torch.cat([field, grid], 1))
        for index, (spectral, local) in enumerate(zip(self.spectral, self.local, strict=True)):
            x = spectral(x) + local(x)
            x = F.gelu(x) if index + 1 < len(self.local) else x
        return self.project(x)


def _mlp(sizes: Sequence[int], activation: Callable[[], nn.Module]) -> nn.Sequential:
    layers: list[nn.Module] = []
    for a, b in itertools.pairwise(sizes):
        layers += [nn.Linear(a, b), activation()]
    return nn.Sequential(*layers[:-1])


class DeepONet(nn.Module):
    """Lu et al. 2021: a branch over sensors and a trunk over coordinates."""

    def __init__(
        self, sensors: int = 100, dims: int = 2, width: int = 128, depth: int = 4, basis: int = 64
    ) -> None:
        super().__init__()
        self.branch = _mlp([sensors, *[width] * depth, basis], nn.GELU)
        self.trunk = _mlp([dims, *[width] * depth, basis], nn.Tanh)
        self.bias = nn.Parameter(torch.zeros(()))

    def forward(self, sensors: Tensor, points: Tensor) -> Tensor:
        return torch.einsum("bk,nk->bn", self.branch(sensors), self.trunk(points)) + self.bias


class PhysicsNet(nn.Module):
    """A physics-informed network (Raissi et al. 2019) and the residual of the heat equation.

    The second derivative comes from central differences, so that the graph is one of tensors.
    """

    def __init__(self, width: int = 64, depth: int = 5, diffusivity: float = 0.1) -> None:
        super().__init__()
        self.body, self.diffusivity = _mlp([2, *[width] * depth, 1], nn.Tanh), diffusivity

    def forward(self, points: Tensor) -> tuple[Tensor, Tensor]:
        step = 1e-2
        shift_x = points.new_tensor([step, 0.0])
        shift_t = points.new_tensor([0.0, step])
        here = self.body(points)
        curvature = self.body(points + shift_x) - 2 * here + self.body(points - shift_x)
        rate = self.body(points + shift_t) - self.body(points - shift_t)
        return here, rate / (2 * step) - self.diffusivity * curvature / step**2


class Sine(nn.Module):
    def __init__(self, frequency: float = 30.0) -> None:
        super().__init__()
        self.frequency = frequency

    def forward(self, x: Tensor) -> Tensor:
        return torch.sin(self.frequency * x)


def siren(dims: int = 2, width: int = 256, depth: int = 4, outputs: int = 3) -> nn.Module:
    """Sitzmann et al. 2020."""
    return _mlp([dims, *[width] * depth, outputs], Sine)


class NeuralODE(nn.Module):
    """Chen et al. 2018: a learned field, integrated by Runge and Kutta's fourth-order rule."""

    def __init__(self, dims: int = 4, width: int = 64, steps: int = 10) -> None:
        super().__init__()
        self.field, self.steps = _mlp([dims + 1, width, width, dims], nn.Tanh), steps

    def _slope(self, state: Tensor, time: float) -> Tensor:
        clock = torch.full_like(state[:, :1], time)
        return self.field(torch.cat([state, clock], 1))

    def forward(self, state: Tensor) -> Tensor:
        step, path = 1.0 / self.steps, [state]
        for index in range(self.steps):
            time = index * step
            k1 = self._slope(state, time)
            k2 = self._slope(state + 0.5 * step * k1, time + 0.5 * step)
            k3 = self._slope(state + 0.5 * step * k2, time + 0.5 * step)
            k4 = self._slope(state + step * k3, time + step)
            state = state + step / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
            path.append(state)
        return torch.stack(path, 1)


class NavierStokesStep(nn.Module):
    """A learned correction around steps of a finite-difference solver (Um et al. 2020)."""

    def __init__(self, width: int = 32, steps: int = 4, viscosity: float = 1e-2) -> None:
        super().__init__()
        self.correct = nn.Sequential(
            nn.Conv2d(2, width, 5, padding=2, padding_mode="circular"), nn.LeakyReLU(),
            nn.Conv2d(width, width, 5, padding=2, padding_mode="circular"), nn.LeakyReLU(),
            nn.Conv2d(width, 2, 5, padding=2, padding_mode="circular"),
        )  # fmt: skip
        self.steps, self.viscosity = steps, viscosity

    def forward(self, velocity: Tensor) -> Tensor:
        dt = 1e-2
        for _ in range(self.steps):
            gradient_x = (torch.roll(velocity, -1, 3) - torch.roll(velocity, 1, 3)) * 0.5
            gradient_y = (torch.roll(velocity, -1, 2) - torch.roll(velocity, 1, 2)) * 0.5
            laplacian = -4 * velocity
            for axis in (2, 3):
                laplacian = (
                    laplacian + torch.roll(velocity, 1, axis) + torch.roll(velocity, -1, axis)
                )
            advected = velocity[:, :1] * gradient_x + velocity[:, 1:] * gradient_y
            velocity = velocity + dt * (self.viscosity * laplacian - advected)
            velocity = velocity + dt * self.correct(velocity)
        return velocity


class ConvLSTM(nn.Module):
    """Shi et al. 2015: precipitation from radar frames."""

    def __init__(self, channels: int = 1, width: int = 64, kernel: int = 3) -> None:
        super().__init__()
        self.width = width
        self.gates = nn.Conv2d(channels + width, 4 * width, kernel, padding=kernel // 2)
        self.head = nn.Conv2d(width, channels, 1)

    def forward(self, frames: Tensor) -> Tensor:
        batch, _, _, height, length = frames.shape
        hidden = cell = frames.new_zeros(batch, self.width, height, length)
        outputs = []
        for frame in frames.unbind(1):
            parts = self.gates(torch.cat([frame, hidden], 1)).chunk(4, 1)
            keep, write, show = (part.sigmoid() for part in parts[:3])
            cell = keep * cell + write * parts[3].tanh()
            hidden = show * cell.tanh()
            outputs.append(self.head(hidden))
        return torch.stack(outputs, 1)


class WeatherMixer(nn.Module):
    """Patches of a global grid, mixed in Fourier space (FourCastNet, Pathak et al. 2022)."""

    def __init__(
        self,
        channels: int = 20,
        size: Sequence[int] = (90, 180),
        patch: int = 6,
        width: int = 256,
        depth: int = 4,
        blocks: int = 8,
    ) -> None:
        super().__init__()
        self.patch, self.blocks, part = patch, blocks, width // blocks
        self.grid = (size[0] // patch, size[1] // patch)
        self.embed = nn.Conv2d(channels, width, patch, patch)
        self.position = nn.Parameter(torch.randn(1, *self.grid, width) * 0.02)
        self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(2 * depth))
        self.mix = nn.ParameterList(
            nn.Parameter(torch.randn(2, blocks, part, part) * 0.02) for _ in range(2 * depth)
        )
        self.mlp = nn.ModuleList(
            nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))
            for _ in range(depth)
        )
        self.head = nn.Linear(width, channels * patch**2)

    def _filter(self, x: Tensor, first: Tensor, second: Tensor) -> Tensor:
        spectrum = torch.fft.rfft2(x, dim=(1, 2), norm="ortho")
        z = spectrum.unflatten(-1, (self.blocks, -1))
        real, imaginary = z.real, z.imag
        for weight in (first, second):
            new_real = torch.einsum("...ki,kio->...ko", real, weight[0]) - torch.einsum(
                "...ki,kio->...ko", imaginary, weight[1]
            )
            imaginary = torch.einsum("...ki,kio->...ko", imaginary, weight[0]) + torch.einsum(
                "...ki,kio->...ko", real, weight[1]
            )
            real = F.softshrink(new_real, 0.01)
        z = torch.complex(real, imaginary).flatten(-2)
        return torch.fft.irfft2(z, s=x.shape[1:3], dim=(1, 2), norm="ortho")

    def forward(self, state: Tensor) -> Tensor:
        x = self.embed(state).permute(0, 2, 3, 1) + self.position
        for index, mlp in enumerate(self.mlp):
            y = self.norms[2 * index](x)
            x = x + self._filter(y, self.mix[2 * index], self.mix[2 * index + 1])
            x = x + mlp(self.norms[2 * index + 1](x))
        x = self.head(x).unflatten(-1, (self.patch, self.patch, -1))
        return torch.einsum("bhwpqc->bchpwq", x).reshape(state.shape)


class KolmogorovArnold(nn.Module):
    """A network of learned one-dimensional functions (Liu et al. 2024), on radial bases."""

    centers: Tensor

    def __init__(self, sizes: Sequence[int] = (4, 32, 32, 1), basis: int = 8) -> None:
        super().__init__()
        self.register_buffer("centers", torch.linspace(-2, 2, basis))
        pairs = list(itertools.pairwise(sizes))
        self.splines = nn.ParameterList(
            nn.Parameter(torch.randn(b, a, basis) * 0.1) for a, b in pairs
        )
        self.linear = nn.ModuleList(nn.Linear(a, b) for a, b in pairs)

    def forward(self, x: Tensor) -> Tensor:
        for spline, linear in zip(self.splines, self.linear, strict=True):
            bumps = torch.exp(-((x[..., None] - self.centers) ** 2) * 2.0)
            x = linear(F.silu(x)) + torch.einsum("nik,oik->no", bumps, spline)
        return x


ARCHITECTURES: Mapping[str, Callable[..., nn.Module]] = {
    "fourier_operator": FourierOperator,
    "deeponet": DeepONet,
    "physics_net": PhysicsNet,
    "siren": siren,
    "neural_ode": NeuralODE,
    "navier_stokes_step": NavierStokesStep,
    "conv_lstm": ConvLSTM,
    "weather_mixer": WeatherMixer,
    "kolmogorov_arnold": KolmogorovArnold,
}
