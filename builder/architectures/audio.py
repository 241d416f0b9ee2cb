"""Speech, music and sound."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor, nn


class WaveNet(nn.Module):
    """van den Oord et al. 2016: gated, dilated, causal convolutions."""

    def __init__(
        self, width: int = 64, skip: int = 256, depth: int = 10, stacks: int = 2, levels: int = 256
    ) -> None:
        super().__init__()
        self.embed = nn.Conv1d(1, width, 1)
        self.dilations = [2**layer for _ in range(stacks) for layer in range(depth)]
        self.gates = nn.ModuleList(
            nn.Conv1d(width, 2 * width, 2, dilation=dilation) for dilation in self.dilations
        )
        self.residual = nn.ModuleList(nn.Conv1d(width, width, 1) for _ in self.dilations)
        self.skip = nn.ModuleList(nn.Conv1d(width, skip, 1) for _ in self.dilations)
        self.head = nn.Sequential(
            nn.ReLU(), nn.Conv1d(skip, skip, 1), nn.ReLU(), nn.Conv1d(skip, levels, 1)
        )

    def forward(self, x: Tensor) -> Tensor:
        x = self.embed(x)
        total = torch.zeros((), dtype=x.dtype, device=x.device)
        for dilation, gate, residual, skip in zip(
            self.dilations, self.gates, self.residual, self.skip, strict=True
        ):
            filtered, gated = gate(F.pad(x, (dilation, 0))).chunk(2, 1)
            y = torch.tanh(filtered) * torch.sigmoid(gated)
            total = total + skip(y)
            x = x + residual(y)
        return self.head(total)


class TasNet(nn.Module):
    """Conv-TasNet (Luo and Mesgarani 2019): masks over a learned filter bank."""

    def __init__(
        self,
        filters: int = 512,
        kernel: int = 16,
        width: int = 128,
        hidden: int = 512,
        depth: int = 8,
        repeats: int = 3,
        speakers: int = 2,
    ) -> None:
        super().__init__()
        self.speakers = speakers
        self.encode = nn.Conv1d(1, filters, kernel, kernel // 2, bias=False)
        self.norm, self.narrow = nn.GroupNorm(1, filters), nn.Conv1d(filters, width, 1)
        self.blocks = nn.ModuleList(
            nn.Sequential(
                nn.Conv1d(width, hidden, 1), nn.PReLU(), nn.GroupNorm(1, hidden),
                nn.Conv1d(hidden, hidden, 3, padding=2**layer, dilation=2**layer, groups=hidden),
                nn.PReLU(), nn.GroupNorm(1, hidden), nn.Conv1d(hidden, width, 1),
            )
            for _ in range(repeats)
            for layer in range(depth)
        )  # fmt: skip
        self.mask = nn.Conv1d(width, filters * speakers, 1)
        self.decode = nn.ConvTranspose1d(filters, 1, kernel, kernel // 2, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        mixture = F.relu(self.encode(x))
        y = self.narrow(self.norm(mixture))
        for block in self.blocks:
            y = y + block(y)
        masks = self.mask(y).sigmoid().unflatten(1, (self.speakers, -1))
        separated = masks * mixture[:, None]
        return self.decode(separated.flatten(0, 1)).unflatten(0, (x.shape[0], -1))


class Vocoder(nn.Module):
    """The generator of HiFi-GAN (Kong et al. 2020)."""

    def __init__(
        self,
        mels: int = 80,
        width: int = 512,
        rates: Sequence[int] = (8, 8, 2, 2),
        kernels: Sequence[int] = (3, 7, 11),
        dilations: Sequence[int] = (1, 3, 5),
    ) -> None:
        super().__init__()
        self.first = nn.Conv1d(mels, width, 7, padding=3)
        self.up, self.mixers = nn.ModuleList(), nn.ModuleList()
        for rate in rates:
            self.up.append(
                nn.ConvTranspose1d(width, width // 2, 2 * rate, rate, rate // 2 + rate % 2,
                                   output_padding=rate % 2)
            )  # fmt: skip
            width //= 2
            self.mixers.append(
                nn.ModuleList(
                    nn.ModuleList(
                        nn.Conv1d(width, width, kernel, padding=dilation * (kernel - 1) // 2,
                                  dilation=dilation)
                        for dilation in dilations
                    )
                    for kernel in kernels
                )
            )  # fmt: skip
        self.last = nn.Conv1d(width, 1, 7, padding=3)

    def forward(self, mels: Tensor) -> Tensor:
        x = self.first(mels)
        mixers: Any  # a list of lists of layers, which the stubs of torch know as a Module
        for up, mixers in zip(self.up, self.mixers, strict=True):
            x = up(F.leaky_relu(x, 0.1))
            branches = []
            for mixer in mixers:
                y = x
                for layer in mixer:
                    y = y + layer(F.leaky_relu(y, 0.1))
                branches.append(y)
            x = torch.stack(branches).mean(0)
        return torch.tanh(self.last(F.leaky_relu(x, 0.01)))


class SpeechRecognizer(nn.Module):
    """Deep Speech 2 (Amodei et al. 2016): convolutions over the spectrogram, then recurrences."""

    def __init__(
        self, bins: int = 161, width: int = 32, hidden: int = 800, depth: int = 5, letters: int = 29
    ) -> None:
        super().__init__()
        self.front = nn.Sequential(
            nn.Conv2d(1, width, (41, 11), (2, 2), (20, 5)), nn.BatchNorm2d(width),
            nn.Hardtanh(0, 20, inplace=True),
            nn.Conv2d(width, width, (21, 11), (2, 1), (10, 5)), nn.BatchNorm2d(width),
            nn.Hardtanh(0, 20, inplace=True),
        )  # fmt: skip
        rows = (bins - 1) // 2 + 1
        rows = (rows - 1) // 2 + 1
        self.body = nn.GRU(width * rows, hidden, depth, batch_first=True, bidirectional=True)
        self.head = nn.Linear(2 * hidden, letters)

    def forward(self, spectrogram: Tensor) -> Tensor:
        x = self.front(spectrogram).flatten(1, 2).transpose(1, 2)
        return self.head(self.body(x)[0]).log_softmax(-1)


class ConformerBlock(nn.Module):
    """Gulati et al. 2020."""

    def __init__(self, width: int, heads: int, kernel: int) -> None:
        super().__init__()
        self.first, self.last = self._mlp(width), self._mlp(width)
        self.attention_norm, self.final_norm = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attention = nn.MultiheadAttention(width, heads, batch_first=True)
        self.convolution_norm = nn.LayerNorm(width)
        self.convolution = nn.Sequential(
            nn.Conv1d(width, 2 * width, 1), nn.GLU(1),
            nn.Conv1d(width, width, kernel, padding=kernel // 2, groups=width),
            nn.BatchNorm1d(width), nn.SiLU(), nn.Conv1d(width, width, 1), nn.Dropout(0.1),
        )  # fmt: skip

    @staticmethod
    def _mlp(width: int) -> nn.Sequential:
        return nn.Sequential(
            nn.LayerNorm(width), nn.Linear(width, 4 * width), nn.SiLU(), nn.Dropout(0.1),
            nn.Linear(4 * width, width), nn.Dropout(0.1),
        )  # fmt: skip

    def forward(self, x: Tensor) -> Tensor:
        x = x + 0.5 * self.first(x)
        y = self.attention_norm(x)
        x = x + self.attention(y, y, y, need_weights=False)[0]
        x = x + self.convolution(self.convolution_norm(x).transpose(1, 2)).transpose(1, 2)
        return self.final_norm(x + 0.5 * self.last(x))


class Conformer(nn.Module):
    def __init__(
        self,
        mels: int = 80,
        width: int = 256,
        heads: int = 4,
        depth: int = 16,
        kernel: int = 31,
        tokens: int = 1000,
    ) -> None:
        super().__init__()
        self.front = nn.Sequential(
            nn.Conv2d(1, width, 3, 2, 1), nn.ReLU(), nn.Conv2d(width, width, 3, 2, 1), nn.ReLU()
        )
        self.narrow = nn.Linear(width * (mels // 4), width)
        self.blocks = nn.Sequential(*(ConformerBlock(width, heads, kernel) for _ in range(depth)))
        self.head = nn.Linear(width, tokens)

    def forward(self, mels: Tensor) -> Tensor:
        x = self.front(mels[:, None]).transpose(1, 2).flatten(2)
        return self.head(self.blocks(self.narrow(x))).log_softmax(-1)


class SoundClassifier(nn.Module):
    """A network over log-mel spectrograms that are computed from the wave inside the graph."""

    window: Tensor

    def __init__(
        self, fft: int = 512, hop: int = 160, mels: int = 64, width: int = 32, classes: int = 50
    ) -> None:
        super().__init__()
        self.fft, self.hop = fft, hop
        self.register_buffer("window", torch.hann_window(fft))
        self.mels = nn.Parameter(torch.rand(fft // 2 + 1, mels) / fft)
        layers: list[nn.Module] = []
        inputs = 1
        for stage in range(4):
            outputs = width * 2**stage
            layers += [
                nn.Conv2d(inputs, outputs, 3, padding=1), nn.BatchNorm2d(outputs), nn.ReLU(),
                nn.MaxPool2d(2),
            ]  # fmt: skip
            inputs = outputs
        self.body, self.head = nn.Sequential(*layers), nn.Linear(inputs, classes)

    def forward(self, wave: Tensor) -> Tensor:
        spectrum = torch.stft(
            wave, self.fft, self.hop, window=self.window, center=True, return_complex=True
        )
        power = torch.view_as_real(spectrum).square().sum(-1)
        x = torch.log(torch.matmul(power.transpose(1, 2), self.mels.abs()) + 1e-6)
        return self.head(self.body(x[:, None]).mean((2, 3)))


class MelSynthesizer(nn.Module):
    """FastSpeech (Ren et al. 2019) with given durations: transformer, expansion, transformer."""

    def __init__(
        self, symbols: int = 80, width: int = 256, heads: int = 2, depth: int = 4, mels: int = 80
    ) -> None:
        super().__init__()
        self.embedding = nn.Embedding(symbols, width)
        self.encoder, self.decoder = (
            nn.ModuleList(self._block(width, heads) for _ in range(depth)) for _ in range(2)
        )
        self.duration = nn.Sequential(
            nn.Conv1d(width, width, 3, padding=1), nn.ReLU(), nn.Conv1d(width, 1, 1)
        )
        self.head = nn.Linear(width, mels)

    @staticmethod
    def _block(width: int, heads: int) -> nn.ModuleDict:
        return nn.ModuleDict(
            {
                "attention": nn.MultiheadAttention(width, heads, batch_first=True),
                "wide": nn.Conv1d(width, 4 * width, 9, padding=4),
                "narrow": nn.Conv1d(4 * width, width, 1),
                "norm": nn.LayerNorm(width),
                "last": nn.LayerNorm(width),
            }
        )

    @staticmethod
    def _mix(block: Any, x: Tensor) -> Tensor:
        x = block["norm"](x + block["attention"](x, x, x, need_weights=False)[0])
        y = block["narrow"](F.relu(block["wide"](x.transpose(1, 2)))).transpose(1, 2)
        return block["last"](x + y)

    def forward(self, symbols: Tensor, alignment: Tensor) -> tuple[Tensor, Tensor]:
        x = self.embedding(symbols)
        for block in self.encoder:
            x = self._mix(block, x)
        durations = self.duration(x.transpose(1, 2)).squeeze(1)
        x = torch.gather(x, 1, alignment[..., None].expand(-1, -1, x.shape[-1]))
        for block in self.decoder:
            x = self._mix(block, x)
        return self.head(x), durations


ARCHITECTURES: Mapping[str, Callable[..., nn.Module]] = {
    "wavenet": WaveNet,
    "tasnet": TasNet,
    "vocoder": Vocoder,
    "speech_recognizer": SpeechRecognizer,
    "conformer": Conformer,
    "sound_classifier": SoundClassifier,
    "mel_synthesizer": MelSynthesizer,
}
