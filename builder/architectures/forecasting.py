"""Time series."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor, nn

from .recommenders import mlp


class BasisExpansion(nn.Module):
    """N-BEATS (Oreshkin et al. 2020): each block explains a part of the residual."""

    def __init__(
        self, past: int = 96, future: int = 24, width: int = 256, depth: int = 4, blocks: int = 6
    ) -> None:
        super().__init__()
        self.past, self.future = past, future
        self.blocks = nn.ModuleList(
            mlp([past, *[width] * depth, past + future]) for _ in range(blocks)
        )

    def forward(self, series: Tensor) -> Tensor:
        forecast = series.new_zeros(series.shape[0], self.future)
        for block in self.blocks:
            back, ahead = block(series).split([self.past, self.future], -1)
            series, forecast = series - back, forecast + ahead
        return forecast


class DecomposedLinear(nn.Module):
    """DLinear (Zeng et al. 2023): trend and remainder, one linear map each."""

    def __init__(self, past: int = 336, future: int = 96, kernel: int = 25) -> None:
        super().__init__()
        self.kernel = kernel
        self.trend, self.rest = nn.Linear(past, future), nn.Linear(past, future)

    def forward(self, series: Tensor) -> Tensor:
        x = series.transpose(1, 2)
        half = self.kernel // 2
        trend = F.avg_pool1d(F.pad(x, (half, half), mode="replicate"), self.kernel, 1)
        return (self.trend(trend) + self.rest(x - trend)).transpose(1, 2)


class TemporalConvolutions(nn.Module):
    """TCN (Bai et al. 2018): dilated causal convolutions with weight norm."""

    def __init__(
        self, channels: int = 7, widths: Sequence[int] = (64, 64, 64, 64), kernel: int = 3
    ) -> None:
        super().__init__()
        self.kernel, self.layers, self.shortcuts = kernel, nn.ModuleList(), nn.ModuleList()
        inputs = channels
        for index, width in enumerate(widths):
            conv = nn.Conv1d(inputs, width, kernel, dilation=2**index)
            self.layers.append(nn.utils.parametrizations.weight_norm(conv))
            self.shortcuts.append(nn.Conv1d(inputs, width, 1) if inputs != width else nn.Identity())
            inputs = width
        self.head = nn.Linear(inputs, channels)

    def forward(self, series: Tensor) -> Tensor:
        x = series.transpose(1, 2)
        for index, (layer, shortcut) in enumerate(zip(self.layers, self.shortcuts, strict=True)):
            padded = F.pad(x, ((self.kernel - 1) * 2**index, 0))
            x = F.relu(F.dropout(F.relu(layer(padded)), 0.2, self.training) + shortcut(x))
        return self.head(x[..., -1])


class PeriodNet(nn.Module):
    """TimesNet's idea (Wu et al. 2023): fold the series by its periods and convolve in two axes."""

    def __init__(
        self,
        channels: int = 7,
        width: int = 32,
        periods: Sequence[int] = (24, 12, 8),
        depth: int = 2,
    ) -> None:
        super().__init__()
        self.periods = tuple(periods)
        self.embed, self.head = nn.Linear(channels, width), nn.Linear(width, channels)
        self.convs = nn.ModuleList(
            nn.Sequential(nn.Conv2d(width, width, 3, padding=1), nn.GELU(),
                          nn.Conv2d(width, width, 3, padding=1))
            for _ in range(depth)
        )  # fmt: skip
        self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(depth))

    def forward(self, series: Tensor) -> Tensor:
        mean, spread = series.mean(1, keepdim=True), series.std(1, keepdim=True) + 1e-5
        x = self.embed((series - mean) / spread)
        batch, length, width = x.shape
        for conv, norm in zip(self.convs, self.norms, strict=True):
            energy = torch.fft.rfft(x, dim=1).abs().mean(-1)
            parts = []
            for period in self.periods:
                folded = x.reshape(batch, length // period, period, width).permute(0, 3, 1, 2)
                parts.append(conv(folded).permute(0, 2, 3, 1).reshape(batch, length, width))
            chosen = torch.stack([energy[:, length // period] for period in self.periods], -1)
            weights = chosen.softmax(-1)[:, None, None]
            x = norm(x + (torch.stack(parts, -1) * weights).sum(-1))
        return self.head(x) * spread + mean


class InvertedTransformer(nn.Module):
    """iTransformer (Liu et al. 2024): the variables are the tokens."""

    def __init__(
        self, past: int = 96, future: int = 96, width: int = 256, heads: int = 8, depth: int = 3
    ) -> None:
        super().__init__()
        layer = nn.TransformerEncoderLayer(
            width, heads, 2 * width, activation="gelu", batch_first=True
        )
        self.embed, self.head = nn.Linear(past, width), nn.Linear(width, future)
        self.body = nn.TransformerEncoder(layer, depth, enable_nested_tensor=False)

    def forward(self, series: Tensor) -> Tensor:
        mean, spread = series.mean(1, keepdim=True), series.std(1, keepdim=True) + 1e-5
        x = ((series - mean) / spread).transpose(1, 2)
        return self.head(self.body(self.embed(x))).transpose(1, 2) * spread + mean


class RecurrentForecaster(nn.Module):
    """DeepAR (Salinas et al. 2020): an LSTM with the parameters of a distribution per step."""

    def __init__(self, channels: int = 5, width: int = 40, depth: int = 3) -> None:
        super().__init__()
        self.body = nn.LSTM(channels, width, depth, batch_first=True)
        self.mean, self.scale = nn.Linear(width, 1), nn.Linear(width, 1)

    def forward(self, series: Tensor) -> tuple[Tensor, Tensor]:
        hidden, _ = self.body(series)
        return self.mean(hidden), F.softplus(self.scale(hidden)) + 1e-6


ARCHITECTURES: Mapping[str, Callable[..., nn.Module]] = {
    "basis_expansion": BasisExpansion,
    "decomposed_linear": DecomposedLinear,
    "temporal_convolutions": TemporalConvolutions,
    "period_net": PeriodNet,
    "inverted_transformer": InvertedTransformer,
    "recurrent_forecaster": RecurrentForecaster,
}
