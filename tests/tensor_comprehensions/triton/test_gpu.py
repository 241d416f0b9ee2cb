"""Triton on a GPU: values of the kernels of the paper, tuning, and the compiler of graphs."""

from __future__ import annotations

import statistics
from typing import Any

import numpy as np
import pytest
import torch

from benchmarks.tc import paper
from benchmarks.tc.eager import EAGER
from graphnet_datasets.tensor_comprehensions import Options, TunerConfig, define
from graphnet_datasets.tensor_comprehensions.compiler import TensorComprehensions

pytest.importorskip("islpy", reason="needs islpy (extra tc)")
pytest.importorskip("triton", reason="needs triton (extra kernels)")

pytestmark = pytest.mark.gpu
TRITON = Options().with_triton()


def tensors_of(kernel: paper.PaperKernel, dtype: torch.dtype) -> list[torch.Tensor]:
    generator, limits = np.random.default_rng(0), dict(kernel.gathers)
    arrays = [
        generator.integers(0, limits[place], shape)
        if place in limits
        else generator.standard_normal(shape, np.float32)
        for place, shape in enumerate(kernel.shapes)
    ]
    tensors = [torch.from_numpy(array).cuda() for array in arrays]
    return [tensor.to(dtype) if tensor.is_floating_point() else tensor for tensor in tensors]


def median_ms(call: Any) -> float:
    times = []
    for _ in range(10):
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        begin.record()
        call()
        end.record()
        torch.cuda.synchronize()
        times.append(begin.elapsed_time(end))
    return statistics.median(times)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
@pytest.mark.parametrize("kernel", paper.kernels(), ids=lambda kernel: kernel.label)
def test_kernels_of_the_paper_agree_with_eager(
    kernel: paper.PaperKernel, dtype: torch.dtype, capsys: pytest.CaptureFixture[str]
) -> None:
    name = str(dtype).removeprefix("torch.")
    definition = define(paper.in_dtype(kernel.source, name))
    tensors = tensors_of(kernel, dtype)
    results = definition(definition.names[0], *tensors, options=TRITON)
    results = results if isinstance(results, tuple) else (results,)
    eager = EAGER[kernel.name]
    wanted = eager(
        *(tensor.float() if tensor.is_floating_point() else tensor for tensor in tensors)
    )
    tolerance = 1e-4 if dtype == torch.float32 else 3e-2
    for result, want in zip(results, wanted, strict=False):
        assert result.is_cuda
        scale = float(want.abs().max())
        assert float((result.float() - want).abs().max()) <= tolerance * scale
    ours = median_ms(lambda: definition(definition.names[0], *tensors, options=TRITON))
    theirs = median_ms(lambda: eager(*tensors))
    with capsys.disabled():
        print(f"\n{kernel.label} in {name}: {theirs / ours:.2f} of eager")  # noqa: T201


def test_unaligned_inputs_are_computed_by_another_variant() -> None:
    definition = define("def f(float(N) A) -> (O) { O(i) = A(i) * 2 }")
    values = torch.randn(1001, device="cuda")
    for start in (0, 1):
        view = values[start : start + 1000]
        torch.testing.assert_close(definition("f", view, options=TRITON), view * 2)


def test_options_are_tuned_on_a_gpu() -> None:
    definition = define(paper.TMM)
    tensors = [torch.randn(128, 256, device="cuda"), torch.randn(64, 256, device="cuda")]
    config = TunerConfig(population=4, generations=1, elites=1)
    options = definition.autotune(definition.names[0], *tensors, config=config)
    assert options.gpu == "triton"
    result = definition(definition.names[0], *tensors, options=options)
    torch.testing.assert_close(result, tensors[0] @ tensors[1].T, rtol=1e-4, atol=1e-4)


def test_graphs_are_compiled_on_a_gpu() -> None:
    module = torch.nn.Sequential(torch.nn.Linear(64, 32), torch.nn.GELU(), torch.nn.LayerNorm(32))
    module = module.cuda().eval()
    inputs = {"input": torch.randn(16, 64, device="cuda")}
    compiler = TensorComprehensions()
    with torch.no_grad():
        run = compiler.compile(module, inputs)
        torch.testing.assert_close(run(**inputs), module(**inputs), rtol=1e-4, atol=1e-4)
    assert compiler.compiled_groups
    assert "tl.dot" in compiler.compiled_groups[0][1].kernel.source
