"""Default statistics by role."""

from __future__ import annotations

import math
from typing import Any

import pytest

from graphnet_datasets.inputs import default_statistics


@pytest.mark.parametrize(
    ("role", "name", "shape", "expected"),
    [
        ("input", "x", (2, 3), (0.0, 1.0, None, None)),
        ("parameter", "layer.weight", (64, 16, 3, 3), (0.0, 1 / 12, None, None)),
        ("parameter", "layer.bias", (64,), (0.0, 0.02, None, None)),
        ("parameter", "norm.weight", (64,), (1.0, 0.1, 0.5, 1.5)),
        ("buffer", "bn.running_mean", (64,), (0.0, 0.02, None, None)),
        ("buffer", "bn.running_var", (64,), (1.0, 0.1, 0.5, 1.5)),
        ("parameter", "scale", (), (0.0, 0.02, None, None)),
    ],
)
def test_floats_by_role(role: Any, name: str, shape: tuple[int, ...], expected: tuple) -> None:
    found = default_statistics(role, name, shape, "float32")
    assert (found.mean, found.std, found.min, found.max) == expected
    assert not found.is_measured


def test_an_empty_kernel_has_a_finite_spread() -> None:
    found = default_statistics("parameter", "weight", (4, 0), "float32")
    assert found.std is not None
    assert math.isfinite(found.std)


@pytest.mark.parametrize("dtype", ["int64", "uint8", "qint8"])
def test_integers_are_zero_or_one(dtype: str) -> None:
    found = default_statistics("input", "ids", (4,), dtype)
    assert (found.min, found.max) == (0.0, 1.0)


def test_booleans_are_true() -> None:
    found = default_statistics("input", "mask", (4,), "bool")
    assert (found.min, found.max) == (1.0, 1.0)
