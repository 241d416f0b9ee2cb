"""Segmentation, detection, super-resolution and depth: a value for each pixel or box."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence

import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor, nn

from .vision import ResNet, conv_norm


def _double_conv(inputs: int, outputs: int) -> nn.Sequential:
    return nn.Sequential(
        conv_norm(inputs, outputs, activation=nn.ReLU(inplace=True)),
        conv_norm(outputs, outputs, activation=nn.ReLU(inplace=True)),
    )


class UNet(nn.Module):
    """Ronneberger et al. 2015."""

    def __init__(self, widths: Sequence[int] = (64, 128, 256, 512, 1024), classes: int = 2) -> None:
        super().__init__()
        pairs = list(itertools.pairwise(widths))
        self.first = _double_conv(3, widths[0])
        self.down = nn.ModuleList(_double_conv(small, large) for small, large in pairs)
        self.up = nn.ModuleList(nn.ConvTranspose2d(large, small, 2, 2) for small, large in pairs)
        self.merge = nn.ModuleList(_double_conv(2 * small, small) for small, _ in pairs)
        self.head = nn.Conv2d(widths[0], classes, 1)

    def forward(self, x: Tensor) -> Tensor:
        skips = [self.first(x)]
        for block in self.down:
            skips.append(block(F.max_pool2d(skips[-1], 2)))
        x = skips.pop()
        for up, merge in zip(reversed(self.up), reversed(self.merge), strict=True):
            x = merge(torch.cat([skips.pop(), up(x)], 1))
        return self.head(x)


class DeepLab(nn.Module):
    """Chen et al. 2017: atrous spatial pyramid pooling over a ResNet."""

    def __init__(
        self,
        layers: Sequence[int] = (3, 4, 6, 3),
        base_width: int = 64,
        width: int = 256,
        rates: Sequence[int] = (12, 24, 36),
        classes: int = 21,
    ) -> None:
        super().__init__()
        self.backbone = ResNet(layers, base_width=base_width)
        inputs = base_width * 32
        self.point = conv_norm(inputs, width, 1, activation=nn.ReLU(inplace=True))
        self.atrous = nn.ModuleList(
            nn.Sequential(
                nn.Conv2d(inputs, width, 3, padding=rate, dilation=rate, bias=False),
                nn.BatchNorm2d(width), nn.ReLU(inplace=True),
            )
            for rate in rates
        )  # fmt: skip
        self.pooled = conv_norm(inputs, width, 1, activation=nn.ReLU(inplace=True))
        self.project = conv_norm(
            (2 + len(rates)) * width, width, 1, activation=nn.ReLU(inplace=True)
        )
        self.head = nn.Conv2d(width, classes, 1)

    def forward(self, x: Tensor) -> Tensor:
        size = x.shape[-2:]
        x = self.backbone.features(x)[-1]
        pooled = F.interpolate(
            self.pooled(F.adaptive_avg_pool2d(x, 1)), x.shape[-2:], mode="bilinear"
        )
        branches = [self.point(x), *(branch(x) for branch in self.atrous), pooled]
        x = self.head(self.project(torch.cat(branches, 1)))
        return F.interpolate(x, size, mode="bilinear", align_corners=False)


class RetinaNet(nn.Module):
    """Lin et al. 2017: a feature pyramid with heads for classes and boxes, without anchors."""

    def __init__(
        self,
        layers: Sequence[int] = (3, 4, 6, 3),
        base_width: int = 64,
        width: int = 256,
        depth: int = 4,
        classes: int = 80,
        anchors: int = 9,
    ) -> None:
        super().__init__()
        self.backbone = ResNet(layers, base_width=base_width)
        widths = [base_width * 4 * 2**stage for stage in range(4)][1:]
        self.lateral = nn.ModuleList(nn.Conv2d(size, width, 1) for size in widths)
        self.smooth = nn.ModuleList(nn.Conv2d(width, width, 3, padding=1) for _ in widths)
        self.extra = nn.ModuleList(
            nn.Conv2d(inputs, width, 3, 2, 1) for inputs in (widths[-1], width)
        )
        self.classify = self._head(width, depth, classes * anchors)
        self.locate = self._head(width, depth, 4 * anchors)
        self.classes = classes

    @staticmethod
    def _head(width: int, depth: int, outputs: int) -> nn.Sequential:
        layers: list[nn.Module] = []
        for _ in range(depth):
            layers += [nn.Conv2d(width, width, 3, padding=1), nn.ReLU(inplace=True)]
        return nn.Sequential(*layers, nn.Conv2d(width, outputs, 3, padding=1))

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        maps = self.backbone.features(x)[1:]
        merged = [lateral(level) for lateral, level in zip(self.lateral, maps, strict=True)]
        for index in (1, 0):
            upper = F.interpolate(merged[index + 1], merged[index].shape[-2:], mode="nearest")
            merged[index] = merged[index] + upper
        levels = [smooth(level) for smooth, level in zip(self.smooth, merged, strict=True)]
        levels.append(self.extra[0](maps[-1]))
        levels.append(self.extra[1](F.relu(levels[-1])))
        scores = [self._flat(self.classify(level), self.classes) for level in levels]
        boxes = [self._flat(self.locate(level), 4) for level in levels]
        return torch.cat(scores, 1).sigmoid(), torch.cat(boxes, 1)

    @staticmethod
    def _flat(x: Tensor, size: int) -> Tensor:
        return x.permute(0, 2, 3, 1).reshape(x.shape[0], -1, size)


class CrossStage(nn.Module):
    """The cross-stage partial block of the YOLO line of detectors."""

    def __init__(self, inputs: int, outputs: int, count: int) -> None:
        super().__init__()
        width = outputs // 2
        self.left = conv_norm(inputs, width, 1, activation=nn.SiLU(inplace=True))
        self.right = conv_norm(inputs, width, 1, activation=nn.SiLU(inplace=True))
        self.blocks = nn.ModuleList(
            nn.Sequential(
                conv_norm(width, width, 1, activation=nn.SiLU(inplace=True)),
                conv_norm(width, width, 3, activation=nn.SiLU(inplace=True)),
            )
            for _ in range(count)
        )
        self.merge = conv_norm(2 * width, outputs, 1, activation=nn.SiLU(inplace=True))

    def forward(self, x: Tensor) -> Tensor:
        left = self.left(x)
        for block in self.blocks:
            left = left + block(left)
        return self.merge(torch.cat([left, self.right(x)], 1))


class Yolo(nn.Module):
    """A one-stage detector with a cross-stage backbone, pyramid pooling and a path network."""

    def __init__(
        self,
        widths: Sequence[int] = (64, 128, 256, 512, 1024),
        depth: int = 3,
        classes: int = 80,
    ) -> None:
        super().__init__()
        silu = nn.SiLU(inplace=True)
        self.stem = conv_norm(3, widths[0], 5, 2, activation=silu)
        self.down = nn.ModuleList(
            nn.Sequential(conv_norm(a, b, 3, 2, activation=silu), CrossStage(b, b, depth))
            for a, b in itertools.pairwise(widths)
        )
        last = widths[-1]
        self.squeeze = conv_norm(last, last // 2, 1, activation=silu)
        self.expand = conv_norm(2 * last, last, 1, activation=silu)
        self.reduce = nn.ModuleList(
            conv_norm(b, a, 1, activation=silu)
            for a, b in zip(widths[-3:-1], widths[-2:], strict=True)
        )
        self.merge = nn.ModuleList(CrossStage(2 * a, a, depth) for a in widths[-3:-1])
        self.heads = nn.ModuleList(nn.Conv2d(a, 3 * (5 + classes), 1) for a in widths[-3:])

    def forward(self, x: Tensor) -> list[Tensor]:
        x, maps = self.stem(x), []
        for stage in self.down:
            x = stage(x)
            maps.append(x)
        pooled = [self.squeeze(maps[-1])]
        for _ in range(3):
            pooled.append(F.max_pool2d(pooled[-1], 5, 1, 2))
        levels = [self.expand(torch.cat(pooled, 1))]
        for index in (1, 0):
            upper = F.interpolate(self.reduce[index](levels[0]), scale_factor=2.0, mode="nearest")
            levels.insert(0, self.merge[index](torch.cat([upper, maps[index - 3]], 1)))
        outputs = []
        for head, level in zip(self.heads, levels, strict=True):
            scores = head(level)
            batch, _, height, width = scores.shape
            scores = scores.view(batch, 3, -1, height, width).permute(0, 1, 3, 4, 2)
            outputs.append(scores.contiguous().sigmoid())
        return outputs


class SuperResolution(nn.Module):
    """EDSR (Lim et al. 2017): residual blocks without norms, then pixel shuffle."""

    def __init__(self, width: int = 64, depth: int = 16, scale: int = 2) -> None:
        super().__init__()
        self.head = nn.Conv2d(3, width, 3, padding=1)
        self.blocks = nn.ModuleList(
            nn.Sequential(
                nn.Conv2d(width, width, 3, padding=1), nn.ReLU(inplace=True),
                nn.Conv2d(width, width, 3, padding=1),
            )
            for _ in range(depth)
        )  # fmt: skip
        self.upscale = nn.Conv2d(width, width * scale**2, 3, padding=1)
        self.shuffle = nn.PixelShuffle(scale)
        self.tail = nn.Conv2d(width, 3, 3, padding=1)

    def forward(self, x: Tensor) -> Tensor:
        features = self.head(x)
        deep = features
        for block in self.blocks:
            deep = deep + 0.1 * block(deep)
        return self.tail(self.shuffle(self.upscale(features + deep)))


ARCHITECTURES: Mapping[str, Callable[..., nn.Module]] = {
    "unet": UNet,
    "deeplab": DeepLab,
    "retinanet": RetinaNet,
    "yolo": Yolo,
    "super_resolution": SuperResolution,
}
