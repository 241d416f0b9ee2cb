"""Image models in plain paddle that `paddle.vision.models` lacks."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence

import paddle
import paddle.nn.functional as F  # noqa: N812
from paddle import Tensor, nn

from .blocks import Block


class VisionTransformer(nn.Layer):
    """Dosovitskiy et al. 2021."""

    def __init__(
        self,
        image: int = 224,
        patch: int = 16,
        width: int = 384,
        heads: int = 6,
        depth: int = 12,
        classes: int = 1000,
    ) -> None:
        super().__init__()
        self.patches = nn.Conv2D(3, width, patch, patch)
        self.token = self.create_parameter([1, 1, width])
        self.positions = self.create_parameter([1, (image // patch) ** 2 + 1, width])
        self.blocks = nn.LayerList([Block(width, heads) for _ in range(depth)])
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, classes)

    def forward(self, x: Tensor) -> Tensor:
        x = self.patches(x).flatten(2).transpose([0, 2, 1])
        x = paddle.concat([self.token.expand([x.shape[0], -1, -1]), x], 1) + self.positions
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x)[:, 0])


class ConvMixer(nn.Layer):
    """Trockman and Kolter 2022."""

    def __init__(
        self, width: int = 64, depth: int = 6, kernel: int = 5, patch: int = 4, classes: int = 10
    ) -> None:
        super().__init__()
        self.stem = nn.Sequential(
            nn.Conv2D(3, width, patch, patch), nn.GELU(), nn.BatchNorm2D(width)
        )
        self.spatial = nn.LayerList(
            [
                nn.Sequential(
                    nn.Conv2D(width, width, kernel, padding="same", groups=width),
                    nn.GELU(),
                    nn.BatchNorm2D(width),
                )
                for _ in range(depth)
            ]
        )
        self.channel = nn.LayerList(
            [
                nn.Sequential(nn.Conv2D(width, width, 1), nn.GELU(), nn.BatchNorm2D(width))
                for _ in range(depth)
            ]
        )
        self.head = nn.Linear(width, classes)

    def forward(self, x: Tensor) -> Tensor:
        x = self.stem(x)
        for spatial, channel in zip(self.spatial, self.channel):  # noqa: B905
            x = channel(x + spatial(x))
        return self.head(x.mean([2, 3]))


def _twice(before: int, after: int) -> nn.Sequential:
    return nn.Sequential(
        nn.Conv2D(before, after, 3, padding=1), nn.BatchNorm2D(after), nn.ReLU(),
        nn.Conv2D(after, after, 3, padding=1), nn.BatchNorm2D(after), nn.ReLU(),
    )  # fmt: skip


class UNet(nn.Layer):
    """Ronneberger et al. 2015."""

    def __init__(self, widths: Sequence[int] = (64, 128, 256, 512), classes: int = 2) -> None:
        super().__init__()
        self.down = nn.LayerList([_twice(a, b) for a, b in zip((3, *widths), widths, strict=False)])
        up = list(reversed(widths))
        self.raise_ = nn.LayerList(
            [nn.Conv2DTranspose(a, b, 2, 2) for a, b in itertools.pairwise(up)]
        )
        self.up = nn.LayerList([_twice(2 * b, b) for b in up[1:]])
        self.head = nn.Conv2D(widths[0], classes, 1)

    def forward(self, x: Tensor) -> Tensor:
        skips = []
        for level, block in enumerate(self.down):
            x = block(F.max_pool2d(x, 2) if level else x)
            skips.append(x)
        for raise_, block, skip in zip(self.raise_, self.up, skips[-2::-1]):  # noqa: B905
            x = block(paddle.concat([skip, raise_(x)], 1))
        return self.head(x)


class TextDetector(nn.Layer):
    """A pyramid over strided convolutions with a map of probabilities (Liao et al. 2020)."""

    def __init__(self, widths: Sequence[int] = (32, 64, 128, 256), inner: int = 64) -> None:
        super().__init__()
        self.stages = nn.LayerList(
            [
                nn.Sequential(nn.Conv2D(a, b, 3, 2, 1), nn.BatchNorm2D(b), nn.Hardswish())
                for a, b in zip((3, *widths), widths, strict=False)
            ]
        )
        self.lateral = nn.LayerList([nn.Conv2D(width, inner, 1) for width in widths])
        self.smooth = nn.LayerList([nn.Conv2D(inner, inner // 4, 3, padding=1) for _ in widths])
        self.head = nn.Sequential(
            nn.Conv2DTranspose(inner, inner // 4, 2, 2), nn.BatchNorm2D(inner // 4), nn.ReLU(),
            nn.Conv2D(inner // 4, 1, 1), nn.Sigmoid(),
        )  # fmt: skip

    def forward(self, x: Tensor) -> Tensor:
        levels = []
        for stage, lateral in zip(self.stages, self.lateral):  # noqa: B905
            x = stage(x)
            levels.append(lateral(x))
        for level in range(len(levels) - 2, -1, -1):
            levels[level] = levels[level] + F.interpolate(levels[level + 1], scale_factor=2)
        maps = [
            F.interpolate(smooth(level), scale_factor=2**index) if index else smooth(level)
            for index, (smooth, level) in enumerate(zip(self.smooth, levels))  # noqa: B905
        ]
        return self.head(paddle.concat(maps, 1))


class TextRecognizer(nn.Layer):
    """Convolutions, then a bidirectional LSTM over the columns (Shi et al. 2017)."""

    def __init__(
        self, widths: Sequence[int] = (32, 64, 128), hidden: int = 96, marks: int = 97
    ) -> None:
        super().__init__()
        self.stages = nn.LayerList(
            [
                nn.Sequential(nn.Conv2D(a, b, 3, padding=1), nn.BatchNorm2D(b), nn.ReLU())
                for a, b in zip((3, *widths), widths, strict=False)
            ]
        )
        self.body = nn.LSTM(widths[-1], hidden, 2, direction="bidirect")
        self.head = nn.Linear(2 * hidden, marks)

    def forward(self, x: Tensor) -> Tensor:
        for level, stage in enumerate(self.stages):
            x = F.max_pool2d(stage(x), [2, 2] if level < 2 else [2, 1])
        x = x.mean(2).transpose([0, 2, 1])
        return F.log_softmax(self.head(self.body(x)[0]))


class Upscaler(nn.Layer):
    """Convolutions at low resolution, then a shuffle of pixels (Shi et al. 2016)."""

    def __init__(self, factor: int = 3, width: int = 64) -> None:
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2D(1, width, 5, padding=2), nn.Tanh(),
            nn.Conv2D(width, width // 2, 3, padding=1), nn.Tanh(),
            nn.Conv2D(width // 2, factor**2, 3, padding=1),
        )  # fmt: skip
        self.shuffle = nn.PixelShuffle(factor)

    def forward(self, x: Tensor) -> Tensor:
        return F.sigmoid(self.shuffle(self.body(x)))


class Generator(nn.Layer):
    """Transposed convolutions from noise to an image (Radford et al. 2016)."""

    def __init__(self, noise: int = 100, widths: Sequence[int] = (256, 128, 64)) -> None:
        super().__init__()
        layers: list[nn.Layer] = [nn.Conv2DTranspose(noise, widths[0], 4)]
        for before, after in zip(widths, (*widths[1:], 3), strict=True):
            layers += [nn.BatchNorm2D(before), nn.ReLU()]
            layers.append(nn.Conv2DTranspose(before, after, 4, 2, 1))
        self.body = nn.Sequential(*layers)

    def forward(self, z: Tensor) -> Tensor:
        return paddle.tanh(self.body(z))


class StyleNet(nn.Layer):
    """A network that paints an image in a style, with instance norms (Johnson et al. 2016)."""

    def __init__(self, width: int = 32, depth: int = 5) -> None:
        super().__init__()
        self.down = nn.Sequential(
            nn.Pad2D(4, "reflect"), nn.Conv2D(3, width, 9), nn.InstanceNorm2D(width), nn.ReLU(),
            nn.Conv2D(width, 2 * width, 3, 2, 1), nn.InstanceNorm2D(2 * width), nn.ReLU(),
        )  # fmt: skip
        self.body = nn.LayerList(
            [
                nn.Sequential(
                    nn.Conv2D(2 * width, 2 * width, 3, padding=1),
                    nn.InstanceNorm2D(2 * width),
                    nn.ReLU(),
                    nn.Conv2D(2 * width, 2 * width, 3, padding=1),
                    nn.InstanceNorm2D(2 * width),
                )
                for _ in range(depth)
            ]
        )
        self.up = nn.Sequential(
            nn.Upsample(scale_factor=2, mode="bilinear"), nn.Conv2D(2 * width, width, 3, padding=1),
            nn.GroupNorm(4, width), nn.ReLU(), nn.Conv2D(width, 3, 9, padding=4),
        )  # fmt: skip

    def forward(self, x: Tensor) -> Tensor:
        x = self.down(x)
        for block in self.body:
            x = x + block(x)
        return F.sigmoid(self.up(x))


ARCHITECTURES: Mapping[str, Callable[..., nn.Layer]] = {
    "vision_transformer": VisionTransformer,
    "convmixer": ConvMixer,
    "unet": UNet,
    "text_detector": TextDetector,
    "text_recognizer": TextRecognizer,
    "upscaler": Upscaler,
    "generator": Generator,
    "style_net": StyleNet,
}
