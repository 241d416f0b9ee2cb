"""Walks the backbones of PaddleClas at the image sizes in their names."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterator

from ..paddleclas import names
from .workloads import batched, workload_of

SIZE = 224
"""Default image size in pixels."""

SIZES = (
    (r"^(InceptionV\d|Xception\d+$|Xception\d+_deeplab)", (299, 299)),
    (r"^(AdaFace|MobileFaceNet)", (112, 112)),
    (r"^SVTR", (48, 320)),
    (r"^EfficientNetB1$", (240, 240)),
    (r"^EfficientNetB2$", (260, 260)),
    (r"^EfficientNetB3", (300, 300)),
    (r"^EfficientNetB4", (380, 380)),
    (r"^EfficientNetB5", (456, 456)),
    (r"^EfficientNetB6", (528, 528)),
    (r"^EfficientNetB7", (600, 600)),
    (r"^MobileViT_|^MobileViTV[23]", (256, 256)),
)
"""Height and width by patterns of names, for names without a size."""

LEFT_OUT = {
    "WideResNet": "its depth and width have no default",
    "EVA_vit_giant_patch14": "its weights take more than the 4 GiB of a capture",
    "MAE_vit_huge_patch14": "its weights take more than the 4 GiB of a capture",
    "ResNeXt101_32x32d_wsl": "its weights take more than the 4 GiB of a capture",
    "ResNeXt101_32x48d_wsl": "its weights take more than the 4 GiB of a capture",
    "PPLCNetBaseNet": "a part of other backbones",
    "HRNet_W60_C": "it looks itself up in a table of weights that does not name it",
    "MobileViTV2_x0_75": "it looks itself up in a table of weights that does not name it",
    "MobileViTV2_x1_25": "it looks itself up in a table of weights that does not name it",
    "MobileViTV2_x1_75": "it looks itself up in a table of weights that does not name it",
}
"""Backbones without an entry, with the reason."""

_SIDE = re.compile(r"_(224|256|336|384)(?:_|\Z)")


def walk() -> Iterator[str]:
    """Yield catalog lines: every backbone with its own image size, in float32."""
    for name in names():
        if name in LEFT_OUT:
            continue
        height, width = size_of(name)
        workload = dataclasses.replace(workload_of(f"paddleclas/{name}"), dtype="float32")
        inputs = batched({"_0": f"normal(1,3,{height},{width})"}, workload.batch)
        fields = (
            f"paddleclas/{name}{workload.suffix}", "cv", "paddleclas", name, "",
            f"_0={inputs['_0']}", "float32", workload.mode,
            "_0.0" if workload.is_dynamic else "", "",
        )  # fmt: skip
        yield " | ".join(fields)


def size_of(name: str) -> tuple[int, int]:
    """Return the height and width of the images of a published backbone.

    >>> size_of("ResNet50_vd"), size_of("SVTR_tiny"), size_of("DeiT_base_patch16_384")
    ((224, 224), (48, 320), (384, 384))
    >>> size_of("SwinTransformer_tiny_patch4_window7_224_SOLIDER")
    (224, 224)
    """
    for pattern, size in SIZES:
        if re.search(pattern, name):
            return size
    match = _SIDE.search(name)
    side = int(match[1]) if match else SIZE
    return side, side
