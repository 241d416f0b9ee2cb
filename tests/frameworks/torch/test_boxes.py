"""A small detection head, captured: what it makes of drawn boxes is finite, as its own is."""

from __future__ import annotations

import pytest
import torch

from graphnet_datasets import extract, extract_export, make_inputs, materialize
from graphnet_datasets.sample import Sample


class DetectionHead(torch.nn.Module):
    """Decodes boxes from anchors and compares both with what is to be found."""

    cells: torch.Tensor

    def __init__(self) -> None:
        super().__init__()
        self.conv = torch.nn.Conv2d(16, 12, 1)
        cells = [[-16.0, -16, 16, 16], [-32, -16, 32, 16], [-16, -32, 16, 32]]
        self.register_buffer("cells", torch.tensor(cells))

    def forward(self, features: torch.Tensor, truth: torch.Tensor) -> tuple[torch.Tensor, ...]:
        deltas = self.conv(features).permute(0, 2, 3, 1).reshape(-1, 4)
        y, x = torch.meshgrid(torch.arange(8) * 16, torch.arange(8) * 16, indexing="ij")
        shifts = torch.stack((x.reshape(-1), y.reshape(-1), x.reshape(-1), y.reshape(-1)), dim=1)
        anchors = (shifts.view(-1, 1, 4) + self.cells.view(1, -1, 4)).reshape(-1, 4)
        width, height = anchors[:, 2] - anchors[:, 0], anchors[:, 3] - anchors[:, 1]
        decoded = torch.exp(torch.clamp(deltas[:, 2::4], max=4.1)) * width[:, None]
        x1, y1, x2, y2 = truth.unbind(-1)
        area = (x2 - x1) * (y2 - y1)
        begin = torch.max(anchors[:, None, :2], truth[None, :, :2])
        end = torch.min(anchors[:, None, 2:], truth[None, :, 2:])
        sides = (end - begin).clamp(min=0)
        shared = sides[..., 0] * sides[..., 1]
        overlap = shared / ((width * height)[:, None] + area - shared)
        best = truth[overlap.argmax(1)]
        targets = torch.log((best[:, 2] - best[:, 0]) / width)
        return decoded, overlap, targets, torch.sqrt(area)


ARGUMENTS = (
    torch.ones(1, 16, 8, 8),
    torch.tensor([[10.0, 10, 50, 60], [30, 20, 100, 90], [5, 70, 60, 110]]),
)


def captured(is_aten: bool) -> Sample:
    if is_aten:
        return extract_export(DetectionHead(), ARGUMENTS, name="example/head")
    module = extract(name="example/head")(DetectionHead())
    module(*ARGUMENTS)
    return module.samples[0]


@pytest.mark.parametrize("is_aten", [False, True], ids=["torch", "aten"])
def test_a_detection_heads_outputs_are_finite_on_drawn_inputs(is_aten: bool) -> None:
    sample = captured(is_aten)
    module = materialize(sample)
    for seed in range(5):
        for mode in ("replay", "probe"):
            outputs = module(*make_inputs(sample, seed=seed, mode=mode).values())
            decoded, overlap = outputs[0], outputs[1]
            assert all(bool(torch.isfinite(output).all()) for output in outputs)
            assert bool((decoded > 0).all())
            assert bool(((overlap >= 0) & (overlap <= 1)).all())
