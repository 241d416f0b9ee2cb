"""Models that draw: diffusion, autoencoders, adversarial generators, flows, radiance fields."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor, nn


def timestep_embedding(steps: Tensor, width: int) -> Tensor:
    """Return sines and cosines of the steps at geometric frequencies."""
    half = width // 2
    frequencies = torch.exp(-math.log(10_000.0) * torch.arange(half, device=steps.device) / half)
    angles = steps[:, None].float() * frequencies[None]
    return torch.cat([angles.cos(), angles.sin()], -1)


class TimeBlock(nn.Module):
    """The residual block of the denoising diffusion U-Net, conditioned on the time step."""

    def __init__(self, inputs: int, outputs: int, time: int) -> None:
        super().__init__()
        self.first_norm, self.second_norm = nn.GroupNorm(8, inputs), nn.GroupNorm(8, outputs)
        self.first = nn.Conv2d(inputs, outputs, 3, padding=1)
        self.second = nn.Conv2d(outputs, outputs, 3, padding=1)
        self.time = nn.Linear(time, outputs)
        self.shortcut = nn.Conv2d(inputs, outputs, 1) if inputs != outputs else nn.Identity()

    def forward(self, x: Tensor, time: Tensor) -> Tensor:
        y = self.first(F.silu(self.first_norm(x)))
        y = y + self.time(F.silu(time))[:, :, None, None]
        return self.shortcut(x) + self.second(F.silu(self.second_norm(y)))


class PixelAttention(nn.Module):
    """Self-attention over the pixels of a feature map."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads, self.norm = heads, nn.GroupNorm(8, width)
        self.qkv, self.out = nn.Conv2d(width, 3 * width, 1), nn.Conv2d(width, width, 1)

    def forward(self, x: Tensor) -> Tensor:
        batch, width, height, length = x.shape
        qkv = self.qkv(self.norm(x)).reshape(batch, 3, self.heads, width // self.heads, -1)
        query, key, value = (part.transpose(-1, -2) for part in qkv.unbind(1))
        mixed = F.scaled_dot_product_attention(query, key, value)
        return x + self.out(mixed.transpose(-1, -2).reshape(batch, width, height, length))


class DiffusionUNet(nn.Module):
    """Ho et al. 2020."""

    def __init__(
        self,
        widths: Sequence[int] = (128, 256, 256, 512),
        depth: int = 2,
        channels: int = 3,
        heads: int = 4,
        attention_from: int = 2,
    ) -> None:
        super().__init__()
        time = 4 * widths[0]
        self.frequency_width = widths[0]
        self.time = nn.Sequential(nn.Linear(widths[0], time), nn.SiLU(), nn.Linear(time, time))
        self.stem = nn.Conv2d(channels, widths[0], 3, padding=1)
        self.down, self.up = nn.ModuleList(), nn.ModuleList()
        inputs, skip_widths = widths[0], [widths[0]]
        for stage, width in enumerate(widths):
            blocks = nn.ModuleList()
            for _ in range(depth):
                blocks.append(TimeBlock(inputs, width, time))
                inputs = width
                skip_widths.append(width)
            attend = PixelAttention(width, heads) if stage >= attention_from else nn.Identity()
            shrink = nn.Conv2d(width, width, 3, 2, 1) if stage + 1 < len(widths) else nn.Identity()
            self.down.append(nn.ModuleList([blocks, attend, shrink]))
        self.middle = nn.ModuleList([TimeBlock(inputs, inputs, time) for _ in range(2)])
        self.middle_attention = PixelAttention(inputs, heads)
        for stage, width in reversed(list(enumerate(widths))):
            blocks = nn.ModuleList()
            for _ in range(depth):
                blocks.append(TimeBlock(inputs + skip_widths.pop(), width, time))
                inputs = width
            attend = PixelAttention(width, heads) if stage >= attention_from else nn.Identity()
            grow = nn.Conv2d(width, width, 3, padding=1) if stage else nn.Identity()
            self.up.append(nn.ModuleList([blocks, attend, grow]))
        self.norm = nn.GroupNorm(8, inputs)
        self.head = nn.Conv2d(inputs, channels, 3, padding=1)

    def forward(self, x: Tensor, steps: Tensor) -> Tensor:
        time = self.time(timestep_embedding(steps, self.frequency_width).to(x.dtype))
        stages: Any = self.down  # of lists, which the stubs of torch know as Modules
        x, skips = self.stem(x), []
        for stage, (blocks, attend, shrink) in enumerate(stages):
            for block in blocks:
                x = block(x, time)
                skips.append(x)
            x = attend(x)
            if stage + 1 < len(self.down):
                x = shrink(x)
        x = self.middle[1](self.middle_attention(self.middle[0](x, time)), time)
        stages = self.up
        for stage, (blocks, attend, grow) in enumerate(stages):
            for block in blocks:
                x = block(torch.cat([x, skips.pop()], 1), time)
            x = attend(x)
            if stage + 1 < len(self.up):
                x = grow(F.interpolate(x, scale_factor=2.0, mode="nearest"))
        return self.head(F.silu(self.norm(x)))


class DiffusionTransformer(nn.Module):
    """Peebles and Xie 2023: transformer blocks modulated by the time step."""

    def __init__(
        self,
        size: int = 32,
        patch: int = 2,
        channels: int = 4,
        width: int = 384,
        depth: int = 12,
        heads: int = 6,
    ) -> None:
        super().__init__()
        self.patch, self.heads, self.width = patch, heads, width
        self.embed = nn.Conv2d(channels, width, patch, patch)
        self.position = nn.Parameter(torch.randn(1, (size // patch) ** 2, width) * 0.02)
        self.time = nn.Sequential(nn.Linear(256, width), nn.SiLU(), nn.Linear(width, width))
        self.modulate = nn.ModuleList(nn.Linear(width, 6 * width) for _ in range(depth))
        self.qkv = nn.ModuleList(nn.Linear(width, 3 * width) for _ in range(depth))
        self.out = nn.ModuleList(nn.Linear(width, width) for _ in range(depth))
        self.mlp = nn.ModuleList(
            nn.Sequential(
                nn.Linear(width, 4 * width),
                nn.GELU(approximate="tanh"),
                nn.Linear(4 * width, width),
            )
            for _ in range(depth)
        )
        self.final = nn.Linear(width, 2 * width)
        self.head = nn.Linear(width, 2 * channels * patch**2)

    def _attention(self, index: int, x: Tensor) -> Tensor:
        batch, tokens, width = x.shape
        qkv = self.qkv[index](x).view(batch, tokens, 3, self.heads, width // self.heads)
        query, key, value = qkv.permute(2, 0, 3, 1, 4)
        mixed = F.scaled_dot_product_attention(query, key, value)
        return self.out[index](mixed.transpose(1, 2).reshape(batch, tokens, width))

    def forward(self, x: Tensor, steps: Tensor) -> Tensor:
        batch, _, height, length = x.shape
        condition = F.silu(self.time(timestep_embedding(steps, 256).to(x.dtype)))
        x = self.embed(x).flatten(2).transpose(1, 2) + self.position
        for index, modulate in enumerate(self.modulate):
            parts = modulate(condition)[:, None].chunk(6, -1)
            y = F.layer_norm(x, (self.width,)) * (1 + parts[1]) + parts[0]
            x = x + parts[2] * self._attention(index, y)
            y = F.layer_norm(x, (self.width,)) * (1 + parts[4]) + parts[3]
            x = x + parts[5] * self.mlp[index](y)
        shift, scale = self.final(condition)[:, None].chunk(2, -1)
        x = self.head(F.layer_norm(x, (self.width,)) * (1 + scale) + shift)
        rows, columns, patch = height // self.patch, length // self.patch, self.patch
        x = x.view(batch, rows, columns, patch, patch, -1)
        return torch.einsum("bhwpqc->bchpwq", x).reshape(batch, -1, height, length)


class ImageAutoencoder(nn.Module):
    """A variational autoencoder (Kingma and Welling 2014) with convolutions; draws its code."""

    def __init__(self, widths: Sequence[int] = (32, 64, 128, 256), code: int = 128) -> None:
        super().__init__()
        down: list[nn.Module] = []
        up: list[nn.Module] = []
        inputs = 3
        for width in widths:
            down += [nn.Conv2d(inputs, width, 4, 2, 1), nn.BatchNorm2d(width), nn.LeakyReLU(0.2)]
            up = [
                nn.ConvTranspose2d(width, inputs, 4, 2, 1),
                *([nn.BatchNorm2d(inputs), nn.LeakyReLU(0.2)] if inputs != 3 else [nn.Tanh()]),
                *up,
            ]
            inputs = width
        self.encode, self.decode = nn.Sequential(*down), nn.Sequential(*up)
        self.mean, self.log_variance = nn.Conv2d(inputs, code, 1), nn.Conv2d(inputs, code, 1)
        self.expand = nn.Conv2d(code, inputs, 1)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        features = self.encode(x)
        mean, log_variance = self.mean(features), self.log_variance(features)
        code = mean + torch.randn_like(mean) * (0.5 * log_variance).exp()
        return self.decode(self.expand(code)), mean, log_variance


class VectorQuantizer(nn.Module):
    """An autoencoder with a codebook (van den Oord et al. 2017)."""

    def __init__(self, width: int = 128, codes: int = 512) -> None:
        super().__init__()
        self.encode = nn.Sequential(
            nn.Conv2d(3, width // 2, 4, 2, 1), nn.ReLU(), nn.Conv2d(width // 2, width, 4, 2, 1),
            nn.ReLU(), nn.Conv2d(width, width, 3, padding=1),
        )  # fmt: skip
        self.codes = nn.Embedding(codes, width)
        self.decode = nn.Sequential(
            nn.Conv2d(width, width, 3, padding=1), nn.ReLU(),
            nn.ConvTranspose2d(width, width // 2, 4, 2, 1), nn.ReLU(),
            nn.ConvTranspose2d(width // 2, 3, 4, 2, 1),
        )  # fmt: skip

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        z = self.encode(x).permute(0, 2, 3, 1)
        flat = z.reshape(-1, z.shape[-1])
        indices = torch.cdist(flat, self.codes.weight).argmin(1)
        quantized = self.codes(indices).view_as(z)
        return self.decode(quantized.permute(0, 3, 1, 2)), indices


def dcgan(code: int = 100, width: int = 64, size: int = 64) -> nn.Module:
    """The generator of Radford et al. 2016."""
    stages = size.bit_length() - 4
    widths = [width * 2**stage for stage in reversed(range(stages + 1))]
    layers: list[nn.Module] = [
        nn.Unflatten(1, (code, 1, 1)),
        nn.ConvTranspose2d(code, widths[0], 4, bias=False), nn.BatchNorm2d(widths[0]),
        nn.ReLU(True),
    ]  # fmt: skip
    for a, b in itertools.pairwise(widths):
        layers += [
            nn.ConvTranspose2d(a, b, 4, 2, 1, bias=False), nn.BatchNorm2d(b), nn.ReLU(True),
        ]  # fmt: skip
    return nn.Sequential(*layers, nn.ConvTranspose2d(widths[-1], 3, 4, 2, 1), nn.Tanh())


class RealNVP(nn.Module):
    """Dinh et al. 2017: affine coupling layers and their log determinant."""

    def __init__(self, features: int = 16, hidden: int = 128, depth: int = 6) -> None:
        super().__init__()
        half = features // 2
        self.nets = nn.ModuleList(
            nn.Sequential(
                nn.Linear(half, hidden), nn.ReLU(), nn.Linear(hidden, hidden), nn.ReLU(),
                nn.Linear(hidden, 2 * half),
            )
            for _ in range(depth)
        )  # fmt: skip

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        log_determinant = x.new_zeros(x.shape[0])
        left, right = x.chunk(2, 1)
        for net in self.nets:
            scale, shift = net(left).chunk(2, 1)
            scale = torch.tanh(scale)
            left, right = right * scale.exp() + shift, left
            log_determinant = log_determinant + scale.sum(1)
        return torch.cat([left, right], 1), log_determinant


class RadianceField(nn.Module):
    """NeRF (Mildenhall et al. 2020), with volume rendering along each ray."""

    def __init__(self, width: int = 256, depth: int = 8, samples: int = 64) -> None:
        super().__init__()
        self.samples, self.levels, inputs = samples, 10, 3 + 3 * 2 * 10
        self.layers = nn.ModuleList(
            nn.Linear(
                inputs if not index else width + (inputs if index == depth // 2 else 0), width
            )
            for index in range(depth)
        )
        self.density, self.color = nn.Linear(width, 1), nn.Linear(width + 3, 3)

    def forward(self, origins: Tensor, directions: Tensor) -> Tensor:
        depths = torch.linspace(2.0, 6.0, self.samples, device=origins.device, dtype=origins.dtype)
        points = origins[:, None] + directions[:, None] * depths[None, :, None]
        bands = 2.0 ** torch.arange(self.levels, device=points.device, dtype=points.dtype)
        angles = (points[..., None] * bands).flatten(-2)
        encoded = torch.cat([points, angles.sin(), angles.cos()], -1)
        x = encoded
        for index, layer in enumerate(self.layers):
            if index == len(self.layers) // 2:
                x = torch.cat([x, encoded], -1)
            x = F.relu(layer(x))
        density = F.softplus(self.density(x).squeeze(-1))
        views = directions[:, None].expand(-1, self.samples, -1)
        color = torch.sigmoid(self.color(torch.cat([x, views], -1)))
        alpha = 1 - torch.exp(-density * (4.0 / self.samples))
        passed = torch.cumprod(1 - alpha + 1e-10, 1)
        weights = alpha * torch.cat([torch.ones_like(passed[:, :1]), passed[:, :-1]], 1)
        return (weights[..., None] * color).sum(1)


ARCHITECTURES: Mapping[str, Callable[..., nn.Module]] = {
    "diffusion_unet": DiffusionUNet,
    "diffusion_transformer": DiffusionTransformer,
    "image_autoencoder": ImageAutoencoder,
    "vector_quantizer": VectorQuantizer,
    "dcgan": dcgan,
    "real_nvp": RealNVP,
    "radiance_field": RadianceField,
}
