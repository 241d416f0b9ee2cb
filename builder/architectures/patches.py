"""Classifiers that mix patches of an image, or the frames of a video."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import torch.nn.functional as F  # noqa: N812
from torch import Tensor, nn


class ConvMixerLayer(nn.Module):
    """Trockman and Kolter 2022."""

    def __init__(self, width: int, kernel: int) -> None:
        super().__init__()
        self.depthwise = nn.Conv2d(width, width, kernel, groups=width, padding="same")
        self.norm = nn.BatchNorm2d(width)
        self.pointwise = nn.Sequential(nn.Conv2d(width, width, 1), nn.GELU(), nn.BatchNorm2d(width))

    def forward(self, x: Tensor) -> Tensor:
        return self.pointwise(x + self.norm(F.gelu(self.depthwise(x))))


def convmixer(
    width: int = 768, depth: int = 32, kernel: int = 7, patch: int = 7, num_classes: int = 1000
) -> nn.Module:
    """ConvMixer."""
    return nn.Sequential(
        nn.Conv2d(3, width, patch, patch), nn.GELU(), nn.BatchNorm2d(width),
        *(ConvMixerLayer(width, kernel) for _ in range(depth)),
        nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(width, num_classes),
    )  # fmt: skip


class MixerLayer(nn.Module):
    """Tolstikhin et al. 2021."""

    def __init__(self, tokens: int, width: int, token_hidden: int, channel_hidden: int) -> None:
        super().__init__()
        self.token_norm, self.channel_norm = nn.LayerNorm(width), nn.LayerNorm(width)
        self.token_mlp = nn.Sequential(
            nn.Linear(tokens, token_hidden), nn.GELU(), nn.Linear(token_hidden, tokens)
        )
        self.channel_mlp = nn.Sequential(
            nn.Linear(width, channel_hidden), nn.GELU(), nn.Linear(channel_hidden, width)
        )

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.token_mlp(self.token_norm(x).transpose(1, 2)).transpose(1, 2)
        return x + self.channel_mlp(self.channel_norm(x))


class MLPMixer(nn.Module):
    def __init__(
        self,
        image: int = 224,
        patch: int = 16,
        width: int = 768,
        depth: int = 12,
        token_hidden: int = 384,
        channel_hidden: int = 3072,
        num_classes: int = 1000,
    ) -> None:
        super().__init__()
        self.embed = nn.Conv2d(3, width, patch, patch)
        tokens = (image // patch) ** 2
        self.layers = nn.Sequential(
            *(MixerLayer(tokens, width, token_hidden, channel_hidden) for _ in range(depth))
        )
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, num_classes)

    def forward(self, x: Tensor) -> Tensor:
        tokens = self.embed(x).flatten(2).transpose(1, 2)
        return self.head(self.norm(self.layers(tokens)).mean(1))


class ConvNet3d(nn.Module):
    """R(2+1)D (Tran et al. 2018): convolutions over space, then over time."""

    def __init__(self, widths: Sequence[int] = (64, 128, 256, 512), num_classes: int = 400) -> None:
        super().__init__()
        layers: list[nn.Module] = []
        inputs = 3
        for index, width in enumerate(widths):
            stride = 2 if index else 1
            layers += [
                nn.Conv3d(inputs, width, (1, 3, 3), (1, 2, 2), (0, 1, 1), bias=False),
                nn.BatchNorm3d(width), nn.ReLU(inplace=True),
                nn.Conv3d(width, width, (3, 1, 1), (stride, 1, 1), (1, 0, 0), bias=False),
                nn.BatchNorm3d(width), nn.ReLU(inplace=True),
            ]  # fmt: skip
            inputs = width
        self.body, self.head = nn.Sequential(*layers), nn.Linear(inputs, num_classes)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(F.adaptive_avg_pool3d(self.body(x), 1).flatten(1))


ARCHITECTURES: Mapping[str, Callable[..., nn.Module]] = {
    "convmixer": convmixer,
    "mlp_mixer": MLPMixer,
    "convnet_3d": ConvNet3d,
}
