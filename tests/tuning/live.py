"""Tasks of a real graph, TVM's space and a measurer, made once for all tests that need them."""

from __future__ import annotations

import importlib.util

import pytest

SAMPLE = "torch/siren-small"
"""Ten operators; one task is a product of [512, 64] and [64, 64] with bias and sine."""

needs_tvm = pytest.mark.skipif(
    importlib.util.find_spec("tvm") is None,
    reason="the extra `tuning` is not installed: it has no module `tvm`",
)
