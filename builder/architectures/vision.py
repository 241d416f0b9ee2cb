"""Image and video classifiers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
import torch.nn.functional as F  # noqa: N812 - the field's name for it
from torch import Tensor, nn


def conv_norm(
    inputs: int,
    outputs: int,
    kernel: int = 3,
    stride: int = 1,
    groups: int = 1,
    activation: nn.Module | None = None,
) -> nn.Sequential:
    """Return convolution, batch norm and, if given, an activation."""
    layers: list[nn.Module] = [
        nn.Conv2d(inputs, outputs, kernel, stride, kernel // 2, groups=groups, bias=False),
        nn.BatchNorm2d(outputs),
    ]
    return nn.Sequential(*layers, *([activation] if activation is not None else []))


class Residual(nn.Module):
    """A residual block of ResNet, ResNeXt or Wide ResNet."""

    def __init__(
        self, inputs: int, width: int, outputs: int, stride: int, groups: int, is_bottleneck: bool
    ) -> None:
        super().__init__()
        if is_bottleneck:
            self.body = nn.Sequential(
                conv_norm(inputs, width, 1, activation=nn.ReLU(inplace=True)),
                conv_norm(width, width, 3, stride, groups, nn.ReLU(inplace=True)),
                conv_norm(width, outputs, 1),
            )
        else:
            self.body = nn.Sequential(
                conv_norm(inputs, width, 3, stride, activation=nn.ReLU(inplace=True)),
                conv_norm(width, outputs, 3),
            )
        self.shortcut = (
            conv_norm(inputs, outputs, 1, stride)
            if stride != 1 or inputs != outputs
            else nn.Identity()
        )

    def forward(self, x: Tensor) -> Tensor:
        return F.relu(self.body(x) + self.shortcut(x))


class ResNet(nn.Module):
    """He et al. 2016; with groups ResNeXt (Xie et al. 2017); with `width_factor` Wide ResNet."""

    def __init__(
        self,
        layers: Sequence[int] = (3, 4, 6, 3),
        is_bottleneck: bool = True,
        base_width: int = 64,
        groups: int = 1,
        width_factor: float = 1.0,
        num_classes: int = 1000,
        is_small_image: bool = False,
    ) -> None:
        super().__init__()
        stem_kernel, stem_stride = (3, 1) if is_small_image else (7, 2)
        self.stem = conv_norm(
            3, base_width, stem_kernel, stem_stride, activation=nn.ReLU(inplace=True)
        )
        self.pool = nn.Identity() if is_small_image else nn.MaxPool2d(3, 2, 1)
        stages, inputs = [], base_width
        for stage, count in enumerate(layers):
            outputs = base_width * 2**stage * (4 if is_bottleneck else 1)
            width = int(base_width * 2**stage * width_factor)
            blocks = []
            for index in range(count):
                stride = 2 if stage and not index else 1
                blocks.append(Residual(inputs, width, outputs, stride, groups, is_bottleneck))
                inputs = outputs
            stages.append(nn.Sequential(*blocks))
        self.stages = nn.ModuleList(stages)
        self.head = nn.Linear(inputs, num_classes)

    def features(self, x: Tensor) -> list[Tensor]:
        x, maps = self.pool(self.stem(x)), []
        for stage in self.stages:
            x = stage(x)
            maps.append(x)
        return maps

    def forward(self, x: Tensor) -> Tensor:
        return self.head(F.adaptive_avg_pool2d(self.features(x)[-1], 1).flatten(1))


def vgg(layout: Sequence[int | str], hidden: int = 4096, num_classes: int = 1000) -> nn.Module:
    """Simonyan and Zisserman 2015; `layout` lists widths, and "M" for pooling."""
    layers: list[nn.Module] = []
    inputs = 3
    for item in layout:
        if isinstance(item, str):
            layers.append(nn.MaxPool2d(2))
        else:
            layers += [nn.Conv2d(inputs, item, 3, padding=1), nn.ReLU(inplace=True)]
            inputs = item
    return nn.Sequential(
        *layers, nn.AdaptiveAvgPool2d(7), nn.Flatten(),
        nn.Linear(inputs * 49, hidden), nn.ReLU(inplace=True), nn.Dropout(),
        nn.Linear(hidden, hidden), nn.ReLU(inplace=True), nn.Dropout(),
        nn.Linear(hidden, num_classes),
    )  # fmt: skip


class SqueezeExcite(nn.Module):
    """Hu et al. 2018."""

    def __init__(self, width: int, squeezed: int) -> None:
        super().__init__()
        self.squeeze = nn.Conv2d(width, squeezed, 1)
        self.excite = nn.Conv2d(squeezed, width, 1)

    def forward(self, x: Tensor) -> Tensor:
        scale = F.silu(self.squeeze(x.mean((2, 3), keepdim=True)))
        return x * self.excite(scale).sigmoid()


class InvertedResidual(nn.Module):
    """The block of MobileNetV2 (Sandler et al. 2018) and EfficientNet (Tan and Le 2019)."""

    def __init__(
        self,
        inputs: int,
        outputs: int,
        kernel: int,
        stride: int,
        expansion: int,
        activation: Callable[[], nn.Module],
        has_squeeze: bool,
    ) -> None:
        super().__init__()
        width = inputs * expansion
        layers: list[nn.Module] = []
        if expansion != 1:
            layers.append(conv_norm(inputs, width, 1, activation=activation()))
        layers.append(conv_norm(width, width, kernel, stride, width, activation()))
        if has_squeeze:
            layers.append(SqueezeExcite(width, max(1, inputs // 4)))
        layers.append(conv_norm(width, outputs, 1))
        self.body = nn.Sequential(*layers)
        self.is_residual = stride == 1 and inputs == outputs

    def forward(self, x: Tensor) -> Tensor:
        return x + self.body(x) if self.is_residual else self.body(x)


def inverted_residual_net(
    stages: Sequence[Sequence[int]],
    stem: int,
    head: int,
    is_efficientnet: bool = False,
    num_classes: int = 1000,
) -> nn.Module:
    """MobileNetV2 or EfficientNet; a stage is (expansion, width, count, stride, kernel)."""
    activation = nn.SiLU if is_efficientnet else nn.ReLU6
    layers: list[nn.Module] = [conv_norm(3, stem, 3, 2, activation=activation())]
    inputs = stem
    for expansion, width, count, stride, kernel in stages:
        for index in range(count):
            layers.append(
                InvertedResidual(
                    inputs, width, kernel, 1 if index else stride, expansion, activation,
                    is_efficientnet,
                )
            )  # fmt: skip
            inputs = width
    return nn.Sequential(
        *layers, conv_norm(inputs, head, 1, activation=activation()),
        nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Dropout(0.2), nn.Linear(head, num_classes),
    )  # fmt: skip


class DenseNet(nn.Module):
    """Huang et al. 2017."""

    def __init__(
        self,
        layers: Sequence[int] = (6, 12, 24, 16),
        growth: int = 32,
        stem: int = 64,
        num_classes: int = 1000,
    ) -> None:
        super().__init__()
        self.stem = nn.Sequential(
            conv_norm(3, stem, 7, 2, activation=nn.ReLU(inplace=True)), nn.MaxPool2d(3, 2, 1)
        )
        self.blocks, self.transitions, width = nn.ModuleList(), nn.ModuleList(), stem
        for stage, count in enumerate(layers):
            block = nn.ModuleList()
            for _ in range(count):
                block.append(
                    nn.Sequential(
                        nn.BatchNorm2d(width), nn.ReLU(inplace=True),
                        nn.Conv2d(width, 4 * growth, 1, bias=False),
                        nn.BatchNorm2d(4 * growth), nn.ReLU(inplace=True),
                        nn.Conv2d(4 * growth, growth, 3, padding=1, bias=False),
                    )
                )  # fmt: skip
                width += growth
            self.blocks.append(block)
            if stage + 1 < len(layers):
                self.transitions.append(
                    nn.Sequential(
                        nn.BatchNorm2d(width), nn.ReLU(inplace=True),
                        nn.Conv2d(width, width // 2, 1, bias=False), nn.AvgPool2d(2),
                    )
                )  # fmt: skip
                width //= 2
        self.norm, self.head = nn.BatchNorm2d(width), nn.Linear(width, num_classes)

    def forward(self, x: Tensor) -> Tensor:
        x = self.stem(x)
        blocks: Any = self.blocks  # of lists, which the stubs of torch know as Modules
        for stage, block in enumerate(blocks):
            for layer in block:
                x = torch.cat([x, layer(x)], 1)
            if stage < len(self.transitions):
                x = self.transitions[stage](x)
        return self.head(F.relu(self.norm(x)).mean((2, 3)))


class ShuffleUnit(nn.Module):
    """Ma et al. 2018."""

    def __init__(self, inputs: int, outputs: int, stride: int) -> None:
        super().__init__()
        branch = outputs // 2
        self.stride = stride
        main = inputs if stride == 2 else branch
        self.main = nn.Sequential(
            conv_norm(main, branch, 1, activation=nn.ReLU(inplace=True)),
            conv_norm(branch, branch, 3, stride, branch),
            conv_norm(branch, branch, 1, activation=nn.ReLU(inplace=True)),
        )
        self.side = (
            nn.Sequential(
                conv_norm(inputs, inputs, 3, 2, inputs),
                conv_norm(inputs, branch, 1, activation=nn.ReLU(inplace=True)),
            )
            if stride == 2
            else nn.Identity()
        )

    def forward(self, x: Tensor) -> Tensor:
        if self.stride == 2:
            x = torch.cat([self.side(x), self.main(x)], 1)
        else:
            passed, changed = x.chunk(2, 1)
            x = torch.cat([passed, self.main(changed)], 1)
        batch, width, height, length = x.shape
        x = x.view(batch, 2, width // 2, height, length).transpose(1, 2).contiguous()
        return x.view(batch, width, height, length)


def shufflenet(
    widths: Sequence[int] = (116, 232, 464), head: int = 1024, num_classes: int = 1000
) -> nn.Module:
    """ShuffleNetV2."""
    layers: list[nn.Module] = [
        conv_norm(3, 24, 3, 2, activation=nn.ReLU(inplace=True)), nn.MaxPool2d(3, 2, 1),
    ]  # fmt: skip
    inputs = 24
    for width, count in zip(widths, (4, 8, 4), strict=True):
        for index in range(count):
            layers.append(ShuffleUnit(inputs, width, 1 if index else 2))
            inputs = width
    return nn.Sequential(
        *layers, conv_norm(inputs, head, 1, activation=nn.ReLU(inplace=True)),
        nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(head, num_classes),
    )  # fmt: skip


class Fire(nn.Module):
    """Iandola et al. 2016."""

    def __init__(self, inputs: int, squeezed: int, expanded: int) -> None:
        super().__init__()
        self.squeeze = nn.Conv2d(inputs, squeezed, 1)
        self.narrow = nn.Conv2d(squeezed, expanded, 1)
        self.wide = nn.Conv2d(squeezed, expanded, 3, padding=1)

    def forward(self, x: Tensor) -> Tensor:
        x = F.relu(self.squeeze(x))
        return torch.cat([F.relu(self.narrow(x)), F.relu(self.wide(x))], 1)


def squeezenet(num_classes: int = 1000) -> nn.Module:
    """SqueezeNet 1.1."""
    pool = nn.MaxPool2d(3, 2, ceil_mode=True)
    return nn.Sequential(
        nn.Conv2d(3, 64, 3, 2), nn.ReLU(inplace=True), pool,
        Fire(64, 16, 64), Fire(128, 16, 64), pool, Fire(128, 32, 128), Fire(256, 32, 128), pool,
        Fire(256, 48, 192), Fire(384, 48, 192), Fire(384, 64, 256), Fire(512, 64, 256),
        nn.Dropout(), nn.Conv2d(512, num_classes, 1), nn.ReLU(inplace=True),
        nn.AdaptiveAvgPool2d(1), nn.Flatten(),
    )  # fmt: skip


ARCHITECTURES: Mapping[str, Callable[..., nn.Module]] = {
    "resnet": ResNet,
    "vgg": vgg,
    "inverted_residual_net": inverted_residual_net,
    "densenet": DenseNet,
    "shufflenet": shufflenet,
    "squeezenet": squeezenet,
}
