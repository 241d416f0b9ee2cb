"""Inputs are the library's own arrays."""

from __future__ import annotations

from typing import Any

import numpy as np

from graphnet_datasets.inputs import make_array
from graphnet_datasets.sample import Sample
from graphnet_datasets.sample.vocabulary import WEIGHT_ROLES


def make_inputs(
    sample: Sample,
    seed: int = 0,
    mode: Any = "replay",
    device: str = "cpu",
    weights: str = "inputs",
    sizes: Any = None,
    **options: Any,
) -> dict[str, Any]:
    return {
        name: make_array(sample, index, seed, mode, sizes)
        for index, (name, each) in enumerate(zip(sample.input_names, sample.inputs, strict=True))
        if weights == "inputs" or each.role not in WEIGHT_ROLES
    }


def to_tensor(array: Any, dtype: str) -> Any:
    return np.asarray(array, dtype)
