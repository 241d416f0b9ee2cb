"""Published parameter counts of models, and their agreement with the rows of a dataset.

`builder/published.csv` contains a line per row:

    id of the row, count, unit, source

The published count is `count` times `unit`: a unit of 1 for exact counts, 1000000 for counts in
millions. Counts whose last digit is worth more than `TOLERANCE` are excluded, and so are counts of
other quantities: of models with fused branches, of trainable parameters only, or with buffers.
"""

from __future__ import annotations

import csv
import dataclasses
from collections.abc import Iterable
from pathlib import Path

PATH = Path(__file__).parent / "published.csv"

TOLERANCE = 0.005
"""Maximum relative difference between a row and the published count."""

_TIMM = "https://github.com/huggingface/pytorch-image-models/blob/aa4b585/results"

SOURCES = {
    "torchvision": "`meta['num_params']` of the weights in torchvision 0.28.0",
    "pytorchcv": "`net_weights` in `models/common/model_metainfos.csv` of pytorchcv 0.0.74",
    "keras-hub": (
        "`params` of the presets in https://github.com/keras-team/keras-hub/tree/71453d0/keras_hub/"
        "src/models"
    ),
    "timm-results": f"{_TIMM}/results-imagenet.csv",
    "timm-pt291": f"{_TIMM}/benchmark-infer-amp-nchw-pt291-cu130-5090.csv",
    "timm-pt210": f"{_TIMM}/benchmark-infer-amp-nchw-pt210-cu121-rtx3090.csv",
}
"""Where the counts were published, by the name in the last column."""


@dataclasses.dataclass(frozen=True)
class Published:
    """A published parameter count, with its unit and a key of `SOURCES`."""

    count: float
    unit: int
    source: str

    def is_equal(self, num_params: int) -> bool:
        """Return whether a number of parameters agrees with the published count.

        >>> Published(25.56, 10**6, "timm-results").is_equal(25_557_032)
        True
        """
        published = self.count * self.unit
        return abs(num_params - published) <= TOLERANCE * published


def read_published(path: Path = PATH) -> dict[str, Published]:
    """Return the published counts by the id of the row."""
    with path.open(newline="") as file:
        return {
            line["id"]: Published(float(line["count"]), int(line["unit"]), line["source"])
            for line in csv.DictReader(file)
        }


def agreements(rows: Iterable[tuple[str, int | None]]) -> list[bool]:
    """Return whether each row with a published count agrees with it; other rows are skipped.

    Rows are pairs of an id and a number of parameters.
    """
    published = read_published()
    return [
        num_params is not None and published[name].is_equal(num_params)
        for name, num_params in rows
        if name in published
    ]
