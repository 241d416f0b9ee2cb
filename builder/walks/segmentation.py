"""Crosses the architectures of segmentation-models-pytorch with encoders of several kinds."""

from __future__ import annotations

from collections.abc import Iterator

from ..libraries.imports import optional
from ..libraries.segmentation import preload
from .workloads import vision_line

ENCODERS = (
    "resnet18", "resnext50_32x4d", "se_resnet50", "densenet121", "vgg11_bn", "mobilenet_v2",
    "efficientnet-b0", "mit_b0", "xception", "inceptionv4", "dpn68",
)  # fmt: skip

LEFT_OUT = {
    "deeplabv3": ("vgg11_bn", "mit_b0", "densenet121", "inceptionv4", "xception"),
    "deeplabv3plus": ("vgg11_bn", "mit_b0", "densenet121", "inceptionv4", "xception"),
    "pan": ("vgg11_bn", "mit_b0", "densenet121", "inceptionv4", "xception"),
    "linknet": ("mit_b0",),
    "unetplusplus": ("mit_b0",),
    "dpt": ENCODERS,
}
"""Encoders that an architecture rejects, mostly because they cannot be dilated or lack a first
stage."""


def walk() -> Iterator[str]:
    """Yield catalog lines: every architecture with every encoder that it accepts."""
    preload()
    for name in sorted(optional("segmentation_models_pytorch").MODEL_ARCHITECTURES_MAPPING):
        for encoder in ENCODERS:
            if encoder not in LEFT_OUT.get(name, ()):
                yield vision_line(
                    f"segmentation_models_pytorch/{name}-{encoder}",
                    "segmentation_models_pytorch",
                    name,
                    f'encoder_name="{encoder}"',
                    {"_0": "normal(1,3,512,512)"},
                )
