"""Candidates in C++ and CUDA, built and called in this process."""

from __future__ import annotations

import importlib.util
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from graphnet_datasets.compilers.native import NativeCandidate, build_library, nvcc
from graphnet_datasets.errors import CandidateError

pytestmark = pytest.mark.torch

SCALE = """
#include "graphnet.h"

extern "C" void candidate(const Tensor* inputs, Tensor* outputs) {
    const float* x = static_cast<const float*>(inputs[0].data);
    float* out = static_cast<float*>(outputs[0].data);
    for (int64_t row = 0; row < inputs[0].sizes[0]; ++row)
        for (int64_t column = 0; column < inputs[0].sizes[1]; ++column)
            out[row * inputs[0].sizes[1] + column] = op0_arg1 *
                x[row * inputs[0].strides[0] + column * inputs[0].strides[1]];
}
"""


def bound(text: str, directory: Path, suffix: str = ".cpp") -> Callable[..., Any]:
    function, log = NativeCandidate(f"mine{suffix}", text).compile_for(
        lambda input_0: (input_0 * 2,), {"input_0": None}, {"op0_arg1": 2.0}, directory
    )
    assert log == ""
    return function


def test_sizes_strides_and_attributes_arrive(tmp_path: Path) -> None:
    import torch

    function = bound(SCALE, tmp_path)
    for tensor in (torch.randn(3, 4), torch.randn(5, 2).t()):
        (out,) = function(tensor)
        assert torch.equal(out, 2 * tensor) and out.is_contiguous()


def test_numeric_arguments_are_constants_of_their_type(tmp_path: Path) -> None:
    attributes = {
        "op0_dim": -(2**63) + 1,
        "op0_arg1": 2.0,
        "op1_bound": (math.inf, -math.inf, 0.1),
        "op2_large": 2**70,
        "op3_x; #error": 1,
    }
    text = """
#include "graphnet.h"
static_assert(op0_dim == INT64_MIN + 1 && op1_bound[0] > 1e308 && op1_bound[1] < -1e308);
static_assert(op1_bound[2] == 0.1 && op2_large == 1180591620717411303424.0);
extern "C" void candidate(const Tensor*, Tensor*) {}
"""
    path = tmp_path / "mine.cpp"
    path.write_text(text)
    library, log = build_library(path, attributes)
    assert library.exists()
    assert log == ""


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("void other() {}", 'defines no `extern "C"` function `candidate`'),
        ("int x = unknown;", "`g[+][+]` cannot compile `mine.cpp`:\n(?s:.*)unknown"),
    ],
)
def test_faults_of_the_source_are_errors(text: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(CandidateError, match=message):
        bound(text, tmp_path)


def test_cuda_without_its_compiler_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", "")
    monkeypatch.setattr(importlib.util, "find_spec", lambda _: None)
    with pytest.raises(CandidateError, match="needs `nvcc`, which is not on the PATH"):
        build_library(tmp_path / "mine.cu", {})


@pytest.mark.slow
@pytest.mark.skipif(nvcc() is None, reason="needs nvcc: pip install graphnet-datasets[kernels]")
def test_cuda_is_compiled_and_refuses_a_cpu(tmp_path: Path) -> None:
    import torch

    source = SCALE.replace("outputs) {", "outputs, void* stream) {").replace(
        "extern", "__global__ void scale(const float* x, float* out) { out[0] = x[0]; }\nextern"
    )
    function = bound(source, tmp_path, ".cu")
    with pytest.raises(CandidateError, match="`--device cuda`"):
        function(torch.randn(2, 2))
