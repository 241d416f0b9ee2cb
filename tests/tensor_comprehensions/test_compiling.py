"""Compiled kernels compute what the interpreter does."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings

from graphnet_datasets.tensor_comprehensions.compiling import generate
from graphnet_datasets.tensor_comprehensions.options import Options

from .definitions import Case, cases, windows
from .kernels import assert_agree, assert_right, inputs_of, instance_of

pytest.importorskip("islpy", reason="needs islpy (extra tc)")

MATMUL = "def f(float(M,K) A, float(N,K) B) -> (C) { C(m,n) +=! A(m,k)*B(n,k) }"
CONVOLUTION = """def f(float(N,C,H,W) I, float(F,C,P,Q) K) -> (O) {
    O(n,f,h,w) +=! I(n,c,h+p,w+q) * K(f,c,p,q) }"""
PADDED = """def f(float(N,C,H,W) I, float(F,C,P,Q) K) -> (O) {
    O(n,f,h,w) +=! (h+p-1 >= 0 && h+p-1 < H && w+q-1 >= 0 && w+q-1 < W)
        ? I(n,c,h+p-1,w+q-1) * K(f,c,p,q) : 0.0 where h in 0:H, w in 0:W }"""
SOFTMAX = """def f(float(N,K) I) -> (O, largest, total) {
    largest(n) max=! I(n,k)
    O(n,k) = exp(I(n,k) - largest(n))
    total(n) +=! O(n,k)
    O(n,k) = O(n,k) / total(n) }"""
HOSTILE = [
    (MATMUL, ((1, 1), (1, 1))),
    (MATMUL, ((7, 13), (17, 13))),
    (MATMUL, ((65, 1100), (37, 1100))),
    (CONVOLUTION, ((1, 2, 9, 37), (3, 2, 1, 4))),
    (PADDED, ((2, 3, 7, 11), (5, 3, 3, 3))),
    (PADDED, ((1, 1, 1, 1), (1, 1, 3, 3))),
    (SOFTMAX, ((3, 131),)),
    ("def f(float(N,K) I) -> (O) { O +=! I(n,k) }", ((50, 67),)),
    ("def f(float(N,K) I) -> (O) { O(k) max=! I(n,k) }", ((19, 67),)),
    ("def f(float(N,K) I) -> (O) { O(k,n) = I(n,k) }", ((19, 67),)),
    ("def f(float(N) A) -> (O) { O(i) = A(i-3) * 2.0 }", ((20,),)),
    ("def f(float(N) A) -> (B, C) { B(i) = A(i)+1.0 C(i) = B(i+1) + A(i) }", ((37,),)),
    ("def f(float(N,C) A) -> (O) { O(n,j) = A(n, j/4) + A(n, j%3) where j in 0:23 }", ((3, 8),)),
    ("def f(float16(M,K) A, float16(K,N) B) -> (C) { C(m,n) +=! A(m,k)*B(k,n) }", ((3, 5), (5, 7))),
    ("def f(int8(N) A, uint8(N) B) -> (O) { O(i) = A(i) / 7 + B(i) % 3 }", ((37,), (37,))),
]


@pytest.mark.parametrize("number", range(len(HOSTILE)))
def test_tiles_are_right_at_hostile_sizes(number: int) -> None:
    source, shapes = HOSTILE[number]
    instance = instance_of(source, *shapes)
    tolerance = 2e-3 if "float16" in source else 4e-6
    assert_right(instance, inputs_of(instance), Options(threads=2), tolerance)


BLOCKED = [
    (MATMUL, ((65, 1100), (37, 1100)), (24, 32)),
    (MATMUL, ((65, 1100), (70, 1100)), (0, 16)),
    (MATMUL, ((200, 17), (33, 17)), (64,)),
    (CONVOLUTION, ((2, 2, 9, 37), (5, 2, 3, 4)), (1, 2, 3, 16)),
    (SOFTMAX, ((37, 131),), (8, 64)),
    ("def f(float(N,K) I) -> (O) { O(k,n) = I(n,k) }", ((19, 67),), (16, 8)),
    ("def f(int32(N,M) A) -> (O) { O(i,j) = A(i,j) / 7 + j }", ((37, 5),), (5, 2)),
]


@pytest.mark.parametrize("backend", ["tiles", "scalar"])
@pytest.mark.parametrize("number", range(len(BLOCKED)))
def test_loops_in_blocks_compute_the_same(number: int, backend: str) -> None:
    source, shapes, tile = BLOCKED[number]
    instance = instance_of(source, *shapes)
    options = Options(threads=2, backend=backend, tile=tile, k_block=256)
    kernel = assert_right(instance, inputs_of(instance), options)
    assert " b_d" in kernel.source
    loops = [loop for nest in kernel.schedule.nests for loop in nest.loops]
    assert any(each.kind == "block" and each.name.startswith("d") for each in loops)


def test_blocks_are_shared_out_over_threads() -> None:
    instance = instance_of(MATMUL, (512, 256), (512, 256))
    made = generate(instance, Options(threads=2, tile=(96, 64)))
    (nest,) = made.schedule.nests
    assert [each.kind for each in nest.loops[: nest.num_parallel]] == ["block", "block"]
    assert "const long b_d0 = " in made.program.source
    whole = generate(instance, Options(threads=2, tile=(512, 4096)))
    assert "b_d" not in whole.program.source


def test_functions_that_libm_lacks_are_right() -> None:
    instance = instance_of(
        """def f(float(N) A) -> (O, P) {
            O(i) = tanh(A(i)) + erf(A(i)) * sinpi(A(i)) + normcdf(A(i)) - cospi(A(i) * 3.0)
            P(i) = erfinv(tanh(A(i))) + erfcx(A(i)) + cyl_bessel_i0(A(i) * 9.0) / 1000.0
                + cyl_bessel_i1(A(i)) + rnorm3d(A(i), 1.0, 2.0) + normcdfinv(normcdf(A(i))) }""",
        (37,),
    )
    assert_right(instance, inputs_of(instance), tolerance=2e-5)


_FUZZING = settings(
    max_examples=12,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
)


@_FUZZING
@given(cases())
def test_interpreter_scalar_code_and_tuned_code_agree(case: Case) -> None:
    assert_agree(case)


@_FUZZING
@given(windows())
def test_windows_in_every_layout_and_type_agree(case: Case) -> None:
    assert_agree(case)
