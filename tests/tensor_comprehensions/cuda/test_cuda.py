"""CUDA C: what it computes when emulated, how it is mapped, and that NVRTC takes it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from benchmarks.tc import paper
from graphnet_datasets.errors import KernelCompileError, MissingExtraError, TensorComprehensionError
from graphnet_datasets.tensor_comprehensions.cuda import compile_ptx, write_cuda
from graphnet_datasets.tensor_comprehensions.language.interpreter import interpret
from graphnet_datasets.tensor_comprehensions.options import Options

from ..kernels import inputs_of, instance_of
from .emulation import run

pytest.importorskip("islpy", reason="needs islpy (extra tc)")

SHARED = Options(tile=(4, 6, 5)).with_cuda(use_shared=True, threads=(3, 2))
READ_ONLY = Options(tile=(4, 6, 5)).with_cuda(
    use_readonly_cache=True, threads=(3, 2), blocks=(2, 2)
)
PRIVATE = Options(tile=(4, 6, 5)).with_cuda(use_shared=True, use_private=True, threads=(3, 2))
REDUCED = Options().with_cuda(threads=(6,))
SMALL = {
    "product": (paper.TMM, ((9, 13), (11, 13)), SHARED),
    "product with registers": (paper.TMM, ((9, 13), (11, 13)), PRIVATE),
    "layers with registers": (paper.MLP1, ((5, 9), (9, 7), (7,)), PRIVATE),
    "product on few blocks": (paper.TMM, ((9, 13), (11, 13)), READ_ONLY),
    "convolution": (paper.GROUP_CONVOLUTION, ((2, 2, 3, 6, 7), (2, 3, 3, 2, 3), (2, 3)), SHARED),
    "layers": (paper.MLP1, ((5, 9), (9, 7), (7,)), SHARED),
    "moments": (paper.MOMENTS, ((3, 37),), REDUCED),
    "norm": (paper.GROUP_NORM, ((2, 2, 3, 4, 5), (2, 3), (2, 3)), REDUCED),
    "dilated": (
        paper.WAVENET,
        ((1, 3, 11), (2, 3, 2), (2,), (2, 3, 2), (2,), (3, 2), (3,), (4, 2), (4,), (3,)),
        SHARED,
    ),
}


@pytest.mark.parametrize("name", SMALL)
def test_generated_code_agrees_with_the_interpreter(name: str, tmp_path: Path) -> None:
    source, shapes, options = SMALL[name]
    instance = instance_of(source, *shapes)
    inputs = inputs_of(instance)
    outputs = run(instance, write_cuda(instance, options), inputs, tmp_path)
    for got, want in zip(outputs, interpret(instance, inputs, float64=True), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-5)


def test_threads_come_from_the_innermost_dimension_and_blocks_are_tight() -> None:
    program = write_cuda(instance_of(paper.TMM, (100, 64), (70, 64)), Options(tile=(32, 32)))
    (kernel,) = program.kernels
    assert (kernel.grid, kernel.block, kernel.shared_bytes) == ((3, 4, 1), (32, 8, 1), 0)
    assert "__launch_bounds__(256)" in program.source


def test_copies_are_padded_odd_between_barriers() -> None:
    options = Options(tile=(32, 32, 16)).with_cuda(use_shared=True, threads=(16, 16))
    program = write_cuda(instance_of(paper.TMM, (128, 64), (128, 64)), options)
    assert program.source.count(f"[{32 * 17}];") == 2
    assert program.kernels[0].shared_bytes == 2 * 32 * 17 * 4
    body = program.source[program.source.index("b_r0 +=") :]
    assert body.index("__syncthreads") < body.index("s0[") < body.index("s1[")
    assert body.count("__syncthreads") == 2
    small = options.with_cuda(max_shared=3000)
    (kernel,) = write_cuda(instance_of(paper.TMM, (128, 64), (128, 64)), small).kernels
    assert kernel.shared_bytes == 32 * 17 * 4


def test_sums_are_reduced_by_whole_blocks() -> None:
    program = write_cuda(instance_of(paper.MOMENTS, (128, 2304)), Options())
    (kernel,) = program.kernels
    assert (kernel.grid, kernel.block) == ((128, 1, 1), (32, 1, 1))
    assert "if (threadIdx.x == 0)" in program.source
    largest = "def f(float(N,K) I) -> (O) { O(n) max=! I(n,k) }"
    assert "__shared__" not in write_cuda(instance_of(largest, (128, 2304)), Options()).source


def test_16_bit_floats_are_refused() -> None:
    instance = instance_of("def f(float16(N) A) -> (B) { B(i) = A(i) }", (4,))
    with pytest.raises(TensorComprehensionError, match="only generated for float32 and float64"):
        write_cuda(instance)


def test_nvrtc_compiles_generated_code() -> None:
    options = Options(tile=(32, 32, 16)).with_cuda(use_shared=True, threads=(16, 16))
    try:
        ptx = compile_ptx(
            write_cuda(instance_of(paper.MLP1, (8, 40), (40, 64), (64,)), options).source
        )
    except MissingExtraError as error:
        pytest.skip(str(error))
    assert ".entry tc_kernel_0" in ptx
    assert "bar.sync" in ptx
    functions = (
        "def f(float(N) A) -> (O) { O(i) = erfcx(A(i)) + cyl_bessel_i0(A(i)) + fmax(A(i), 0) }"
    )
    assert ".entry" in compile_ptx(write_cuda(instance_of(functions, (9,))).source)
    with pytest.raises(KernelCompileError, match="NVRTC could not compile"):
        compile_ptx("__global__ void f() { x }")
