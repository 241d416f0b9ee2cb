"""Scans and scatters compute the same under all options, and keep the order that they need."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from graphnet_datasets.tensor_comprehensions.codegen.choices import Choices
from graphnet_datasets.tensor_comprehensions.codegen.choosing import choose_plan
from graphnet_datasets.tensor_comprehensions.codegen.coalescing import coalesce
from graphnet_datasets.tensor_comprehensions.codegen.machine import Machine
from graphnet_datasets.tensor_comprehensions.codegen.nests import gather_nests
from graphnet_datasets.tensor_comprehensions.compiling import compile_general, generate
from graphnet_datasets.tensor_comprehensions.cuda import write_cuda
from graphnet_datasets.tensor_comprehensions.language import Instance
from graphnet_datasets.tensor_comprehensions.language.interpreter import interpret
from graphnet_datasets.tensor_comprehensions.options import Options

from ..cuda.emulation import run
from ..kernels import assert_right, inputs_of, instance_of

pytest.importorskip("islpy", reason="needs islpy (extra tc)")

AVX512 = Machine("x86_64", "avx512", 64, 32)
DOWN = "def f(float(N,C) A) -> (S) { S(i,c) = 0.5*S(i-1,c) + A(i,c) }"
ACROSS = """def f(float(B,T) A) -> (S, P) {
    S(b,t) = 0.5*S(b,t+2) + A(b,t)  P(b,t) = exp(-S(b,t)) * A(b,t) }"""
ROWS = """def f(float(B,D) G, int32(B,K) I, float(E,D) L) -> (float(E,D) O) {
    O(I(b,k)-1,d) +=! G(b,d) * L(0,d) }"""
SEGMENTS = """def f(float(N) A, int32(N) I) -> (float(8) O) {
    O(m) = -9.0 where m in 0:8  O(I(i)) max= A(i) }"""
DIAGONALS = "def f(float(N,M) A) -> (float(N,M) O) { O(i+1,(j*3)%M) +=! A(i,j) }"
CASES: dict[str, tuple[str, tuple[tuple[int, ...], ...]]] = {
    "down": (DOWN, ((9, 37),)),
    "across": (ACROSS, ((21, 50),)),
    "rows": (ROWS, ((4, 37), (4, 3), (5, 37))),
    "segments": (SEGMENTS, ((40,), (40,))),
    "diagonals": (DIAGONALS, ((20, 33),)),
}
BLOCKED = Options(threads=2, tile=(4, 16), vector_index=1, parallel_depth=2)


def prepared(name: str) -> tuple[Instance, list[np.ndarray]]:
    source, shapes = CASES[name]
    instance = instance_of(source, *shapes, check_bounds=True)
    return instance, inputs_of(instance, {1: 7})


@pytest.mark.parametrize("name", CASES)
def test_they_are_right_in_blocks_and_with_sizes_as_parameters(name: str) -> None:
    instance, inputs = prepared(name)
    assert_right(instance, inputs, BLOCKED)
    expected = interpret(instance, inputs, float64=True)
    for actual, wanted in zip(compile_general(instance)(*inputs), expected, strict=True):
        np.testing.assert_allclose(actual, wanted, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("name", CASES)
def test_emulated_gpu_code_is_right(name: str, tmp_path: Path) -> None:
    instance, inputs = prepared(name)
    program = write_cuda(instance, Options(tile=(4, 6, 5)).with_cuda(threads=(3, 2)))
    outputs = run(instance, program, inputs, tmp_path)
    for actual, wanted in zip(outputs, interpret(instance, inputs, float64=True), strict=True):
        np.testing.assert_allclose(actual, wanted, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    ("name", "serial", "vector"),
    [
        ("down", ("d0",), "d1"), ("across", ("d1",), "d0"), ("rows", ("d0", "d1"), "d2"),
        ("segments", ("d0",), ""), ("diagonals", ("d1",), "d0"),
    ],
)  # fmt: skip
def test_ordered_dimensions_are_innermost_and_never_vectors(
    name: str, serial: tuple[str, ...], vector: str
) -> None:
    instance, _ = prepared(name)
    nests = gather_nests(instance, [range(len(instance.statements))])
    (nest,) = (nest for nest in nests if nest.serial)
    assert nest.serial == serial
    plan = choose_plan(coalesce(nest).nest, AVX512, Choices(threads=2, parallel_depth=3))
    assert plan.vector in (vector, "")
    assert plan.order[-len(serial) :] == serial
    assert plan.num_parallel <= len(plan.order) - len(serial)


def test_large_scans_and_scatters_pass_the_check_of_their_schedules() -> None:
    scan = generate(instance_of(DOWN, (1000, 4096)), Options(threads=4))
    assert any(nest.num_parallel == 1 for nest in scan.schedule.nests)
    assert generate(instance_of(ACROSS, (4096, 1000)), Options(threads=4)).plans
    scatter = generate(instance_of(ROWS, (64, 512), (64, 50), (1000, 512)), Options(threads=4))
    assert scatter.schedule.nests[-1].num_parallel <= 1


def test_a_scan_is_split_where_its_guard_changes() -> None:
    program = generate(instance_of(DOWN, (9, 37)), Options(threads=1)).program
    body = program.source[program.source.index("void tc_kernel") :]
    assert "?" not in body
