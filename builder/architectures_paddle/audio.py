"""Audio models in plain paddle."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import paddle
import paddle.nn.functional as F  # noqa: N812
from paddle import Tensor, nn

from .blocks import Attention


class SpeakerNet(nn.Layer):
    """Dilated convolutions over frames, then mean and deviation (Snyder et al. 2018)."""

    def __init__(self, bands: int = 80, width: int = 512, size: int = 192) -> None:
        super().__init__()
        layers: list[nn.Layer] = []
        for before, kernel, dilation in (
            (bands, 5, 1),
            (width, 3, 2),
            (width, 3, 3),
            (width, 1, 1),
        ):
            layers.append(nn.Conv1D(before, width, kernel, dilation=dilation))
            layers += [nn.ReLU(), nn.BatchNorm1D(width)]
        self.frames = nn.Sequential(*layers)
        self.head = nn.Sequential(nn.Linear(2 * width, width), nn.ReLU(), nn.Linear(width, size))

    def forward(self, mels: Tensor) -> Tensor:
        x = self.frames(mels)
        return self.head(paddle.concat([x.mean(-1), x.std(-1)], -1))


class ScaledBlock(nn.Layer):
    """A chain of small convolutions with squeeze and excitation (Desplanques et al. 2020)."""

    def __init__(self, width: int, dilation: int, scale: int = 4) -> None:
        super().__init__()
        self.scale, part = scale, width // scale
        self.parts = nn.LayerList(
            [
                nn.Conv1D(part, part, 3, padding=dilation, dilation=dilation)
                for _ in range(scale - 1)
            ]
        )
        self.first, self.last = nn.Conv1D(width, width, 1), nn.Conv1D(width, width, 1)
        self.squeeze, self.excite = nn.Conv1D(width, 32, 1), nn.Conv1D(32, width, 1)

    def forward(self, x: Tensor) -> Tensor:
        pieces = paddle.chunk(F.relu(self.first(x)), self.scale, 1)
        done = [pieces[0]]
        for piece, part in zip(pieces[1:], self.parts):  # noqa: B905
            done.append(F.relu(part(piece + done[-1] if len(done) > 1 else piece)))
        y = self.last(paddle.concat(done, 1))
        gate = F.sigmoid(self.excite(F.relu(self.squeeze(y.mean(-1, keepdim=True)))))
        return x + y * gate


class ScaledSpeakerNet(nn.Layer):
    """Three scaled blocks and attentive statistics (Desplanques et al. 2020)."""

    def __init__(self, bands: int = 80, width: int = 256, size: int = 192) -> None:
        super().__init__()
        self.stem = nn.Conv1D(bands, width, 5, padding=2)
        self.blocks = nn.LayerList([ScaledBlock(width, dilation) for dilation in (2, 3, 4)])
        self.weigh = nn.Sequential(
            nn.Conv1D(3 * width, 128, 1), nn.Tanh(), nn.Conv1D(128, 3 * width, 1)
        )
        self.head = nn.Linear(6 * width, size)

    def forward(self, mels: Tensor) -> Tensor:
        x, skips = F.relu(self.stem(mels)), []
        for block in self.blocks:
            x = block(x)
            skips.append(x)
        x = paddle.concat(skips, 1)
        weights = F.softmax(self.weigh(x))
        mean = (x * weights).sum(-1)
        spread = ((x * x * weights).sum(-1) - mean * mean).clip(min=1e-6).sqrt()
        return self.head(paddle.concat([mean, spread], -1))


class Vocoder(nn.Layer):
    """Raises mel frames to a waveform (Kong et al. 2020)."""

    def __init__(self, bands: int = 80, width: int = 128, rates: Sequence[int] = (8, 4, 2)) -> None:
        super().__init__()
        self.stem = nn.Conv1D(bands, width, 7, padding=3)
        widths = [width // 2**level for level in range(len(rates) + 1)]
        self.ups = nn.LayerList(
            [
                nn.Conv1DTranspose(a, b, 2 * rate, rate, rate // 2)
                for a, b, rate in zip(widths, widths[1:], rates, strict=False)
            ]
        )
        self.mixes = nn.LayerList(
            [
                nn.LayerList([nn.Conv1D(b, b, 3, padding=d, dilation=d) for d in (1, 3, 5)])
                for b in widths[1:]
            ]
        )
        self.head = nn.Conv1D(widths[-1], 1, 7, padding=3)

    def forward(self, mels: Tensor) -> Tensor:
        x = self.stem(mels)
        for up, mix in zip(self.ups, self.mixes):  # noqa: B905
            x = up(F.leaky_relu(x, 0.1))
            for conv in mix.children():
                x = x + conv(F.leaky_relu(x, 0.1))
        return paddle.tanh(self.head(F.leaky_relu(x)))


class Recognizer(nn.Layer):
    """Strided convolutions and bidirectional GRUs over a spectrogram (Amodei et al. 2016)."""

    def __init__(
        self, bands: int = 161, width: int = 32, hidden: int = 512, depth: int = 3, marks: int = 29
    ) -> None:
        super().__init__()
        self.stem = nn.Sequential(
            nn.Conv2D(1, width, [11, 5], [2, 2], [5, 2]),
            nn.BatchNorm2D(width),
            nn.Hardtanh(0, 20),
            nn.Conv2D(width, width, [11, 5], [2, 1], [5, 2]),
            nn.BatchNorm2D(width),
            nn.Hardtanh(0, 20),
        )  # fmt: skip
        features = ((bands + 1) // 2 + 1) // 2 * width
        self.body = nn.GRU(features, hidden, depth, direction="bidirect")
        self.head = nn.Linear(2 * hidden, marks)

    def forward(self, spectrogram: Tensor) -> Tensor:
        x = self.stem(spectrogram)
        x = x.flatten(1, 2).transpose([0, 2, 1])
        return F.log_softmax(self.head(self.body(x)[0]))


class ConformerLayer(nn.Layer):
    """Half a feed-forward layer, attention, convolution, half a layer (Gulati et al. 2020)."""

    def __init__(self, width: int, heads: int, kernel: int) -> None:
        super().__init__()
        self.halves = nn.LayerList(
            [
                nn.Sequential(
                    nn.LayerNorm(width), nn.Linear(width, 4 * width), nn.Silu(),
                    nn.Linear(4 * width, width),
                )
                for _ in range(2)
            ]
        )  # fmt: skip
        self.norms = nn.LayerList([nn.LayerNorm(width) for _ in range(3)])
        self.attention = Attention(width, heads)
        self.gate = nn.Conv1D(width, 2 * width, 1)
        self.depthwise = nn.Conv1D(width, width, kernel, padding=kernel // 2, groups=width)
        self.batch_norm, self.point = nn.BatchNorm1D(width), nn.Conv1D(width, width, 1)

    def forward(self, x: Tensor) -> Tensor:
        x = x + 0.5 * self.halves[0](x)
        x = x + self.attention(self.norms[0](x))
        y = F.glu(self.gate(self.norms[1](x).transpose([0, 2, 1])), 1)
        y = self.point(F.silu(self.batch_norm(self.depthwise(y))))
        x = x + y.transpose([0, 2, 1])
        return self.norms[2](x + 0.5 * self.halves[1](x))


class Conformer(nn.Layer):
    """Conformer layers over subsampled mel frames, with scores for CTC."""

    def __init__(
        self,
        bands: int = 80,
        width: int = 144,
        heads: int = 4,
        depth: int = 4,
        kernel: int = 15,
        marks: int = 1000,
    ) -> None:
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2D(1, width, 3, 2, 1), nn.ReLU())
        self.project = nn.Linear(bands // 2 * width, width)
        self.layers = nn.LayerList([ConformerLayer(width, heads, kernel) for _ in range(depth)])
        self.head = nn.Linear(width, marks)

    def forward(self, mels: Tensor) -> Tensor:
        x = self.stem(mels.unsqueeze(1)).transpose([0, 2, 1, 3]).flatten(2)
        x = self.project(x)
        for layer in self.layers:
            x = layer(x)
        return F.log_softmax(self.head(x))


ARCHITECTURES: Mapping[str, Callable[..., nn.Layer]] = {
    "speaker_net": SpeakerNet,
    "scaled_speaker_net": ScaledSpeakerNet,
    "vocoder": Vocoder,
    "recognizer": Recognizer,
    "conformer": Conformer,
}
