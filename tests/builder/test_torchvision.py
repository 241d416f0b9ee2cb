"""Inputs and overrides of the walk over torchvision, from the metadata of published weights."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from builder.walks.torchvision import _inputs, _overrides


def models(name: str, **sizes: list[int]) -> Any:
    weights = SimpleNamespace(name=name, transforms=lambda: SimpleNamespace(**sizes))
    return SimpleNamespace(get_model_weights=lambda _: SimpleNamespace(DEFAULT=weights))


@pytest.mark.parametrize(
    ("name", "weights", "sizes", "expected"),
    [
        ("resnet18", "IMAGENET1K_V1", {"crop_size": [224], "resize_size": [256]}, "1,3,224,224"),
        ("swin_v2_t", "IMAGENET1K_V1", {"crop_size": [256], "resize_size": [260]}, "1,3,256,256"),
        ("fcn_resnet50", "COCO_WITH_VOC_LABELS_V1", {"resize_size": [520]}, "1,3,520,520"),
        (
            "r3d_18", "KINETICS400_V1", {"crop_size": [112, 112], "resize_size": [128, 171]},
            "1,3,16,112,112",
        ),
        ("vit_h_14", "IMAGENET1K_SWAG_E2E_V1", {"crop_size": [518]}, "1,3,224,224"),
    ],
)  # fmt: skip
def test_inputs_have_the_size_of_the_weights(
    name: str, weights: str, sizes: dict[str, list[int]], expected: str
) -> None:
    assert _inputs(name, models(weights, **sizes)) == (f"normal({expected})",)


def test_segmentation_models_have_the_auxiliary_head_of_their_weights() -> None:
    assert _overrides("fcn_resnet50") == "weights_backbone=None aux_loss=True"
    assert _overrides("lraspp_mobilenet_v3_large") == "weights_backbone=None"
