"""Launching: what reaches the driver, and, where there is a GPU, what comes back."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from benchmarks.tc import paper
from graphnet_datasets.errors import KernelCompileError, KernelInputError, MissingExtraError
from graphnet_datasets.tensor_comprehensions import Options, define
from graphnet_datasets.tensor_comprehensions.cuda import GpuKernel, driver, write_cuda
from graphnet_datasets.tensor_comprehensions.language.instance import Tensor
from graphnet_datasets.tensor_comprehensions.language.interpreter import interpret

from ..kernels import inputs_of, instance_of
from . import emulation

pytest.importorskip("islpy", reason="needs islpy (extra tc)")

SOFTMAX = """def softmax(float(N,K) I) -> (O) {
    largest(n) max=! I(n,k)
    shifted(n,k) = exp(I(n,k) - largest(n))
    total(n) +=! shifted(n,k)
    O(n,k) = shifted(n,k) / total(n) }"""
CASES = {
    "layers": (paper.MLP1, ((5, 9), (9, 7), (7,))),
    "several kernels with temporaries": (SOFTMAX, ((6, 11),)),
}
STREAM = 5
"""What the driver of the tests asks for."""


def allocate(tensor: Tensor) -> tuple[Any, int]:
    """Take memory of the processor, which is that of the emulated device."""
    made = np.full(tensor.shape, np.nan, tensor.dtype.name)
    return made, made.ctypes.data


@pytest.mark.parametrize("name", CASES)
def test_kernels_are_launched_in_order_with_their_extents_and_arguments(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source, shapes = CASES[name]
    instance, options = instance_of(source, *shapes), Options(tile=(4, 6)).with_cuda(threads=(3, 2))
    program = write_cuda(instance, options)
    library = emulation.driver(instance, program, tmp_path)
    monkeypatch.setattr(driver, "_library", lambda: library)
    assert driver.architecture(0) == "compute_80"
    try:
        kernel = GpuKernel(instance, options, 0, allocate, lambda: STREAM)
    except MissingExtraError as error:
        pytest.skip(str(error))
    assert kernel.source == program.source
    inputs = inputs_of(instance)
    outputs = [np.zeros(each.shape, each.dtype.name) for each in instance.outputs]
    kernel.launch([each.ctypes.data for each in (*inputs, *outputs)])
    for got, want in zip(outputs, interpret(instance, inputs, float64=True), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-5)
    other_stream = GpuKernel(instance, options, 0, allocate, lambda: STREAM + 1)
    with pytest.raises(KernelCompileError, match=r"CUDA failed at launching `tc_kernel_0`.*201"):
        other_stream.launch([each.ctypes.data for each in (*inputs, *outputs)])
    with pytest.raises(KernelCompileError, match="loading the generated code: a refusal"):
        driver.Module("no code", 0)


def test_without_a_driver_the_error_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> None:
        raise OSError(name)

    monkeypatch.setattr(driver.ctypes, "CDLL", missing)
    driver._library.cache_clear()
    with pytest.raises(KernelCompileError, match="no CUDA driver on this machine"):
        driver.architecture(0)


def test_tensors_of_another_device_are_refused() -> None:
    definition = define("def f(float(N) A) -> (B) { B(i) = A(i) * 2 }")
    kernel = definition.compile("f", torch.ones(3))
    with pytest.raises(KernelInputError, match="is on `meta`; the kernel takes tensors on `cpu`"):
        kernel(torch.ones(3, device="meta"))


@pytest.mark.gpu
@pytest.mark.parametrize("name", CASES)
def test_tensors_of_a_gpu_are_computed_there(name: str) -> None:
    source, shapes = CASES[name]
    instance, definition = instance_of(source, *shapes), define(source)
    inputs = inputs_of(instance)
    tensors = [torch.from_numpy(each).cuda() for each in inputs]
    found = definition(definition.names[0], *tensors)
    found = found if isinstance(found, tuple) else (found,)
    for got, want in zip(found, interpret(instance, inputs, float64=True), strict=True):
        assert got.is_cuda
        np.testing.assert_allclose(got.cpu().numpy(), want, rtol=1e-4, atol=1e-5)
    kernel = definition.compile(definition.names[0], *tensors)
    assert kernel.profile(*tensors).median_ms > 0


@pytest.mark.gpu
@pytest.mark.parametrize("label", ["tmm 128,256,32", "moments 128,2304", "group norm 4,512,12,12"])
@pytest.mark.parametrize("shared", [False, True])
def test_kernels_of_the_paper_are_right_on_a_gpu(label: str, shared: bool) -> None:
    (kernel,) = (each for each in paper.kernels() if each.label == label)
    instance, definition = instance_of(kernel.source, *kernel.shapes), define(kernel.source)
    inputs = inputs_of(instance)
    tensors = [torch.from_numpy(each).cuda() for each in inputs]
    options = Options().with_cuda(use_shared=shared, use_private=shared, threads=(16, 16))
    found = definition(definition.names[0], *tensors, options=options)
    found = found if isinstance(found, tuple) else (found,)
    for got, want in zip(found, interpret(instance, inputs, float64=True), strict=True):
        np.testing.assert_allclose(got.cpu().numpy(), want, rtol=1e-3, atol=1e-3)
