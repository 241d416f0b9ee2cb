"""Code that takes sizes as parameters: one object for many sizes, with the same results."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from graphnet_datasets.tensor_comprehensions import define
from graphnet_datasets.tensor_comprehensions.codegen.general import write_general
from graphnet_datasets.tensor_comprehensions.codegen.machine import this_machine
from graphnet_datasets.tensor_comprehensions.compiling import compile_general
from graphnet_datasets.tensor_comprehensions.language.interpreter import interpret

from ..kernels import inputs_of, instance_of

NORM = """def f(float(N,C) X, float(C) W) -> (O) {
    mean(n) +=! X(n,c) / C  var(n) +=! (X(n,c) - mean(n)) * (X(n,c) - mean(n))
    O(n,c) = (X(n,c) - mean(n)) * rsqrt(var(n) / C + 1e-5) * W(c) }"""
SCALARS = "def f(float(N) A) -> (S, M) { S +=! A(i)  M max=! A(i)  S = S / M }"
WINDOW = """def f(float(N,C) X, float(3,C,D) W) -> (O) {
    O(i,d) +=! (2*i+k-1 >= 0 && 2*i+k-1 < N ? X(2*i+k-1,c) : 0.0) * W(k,c,d) where i in 0:N/2 }"""


@pytest.mark.parametrize(
    ("source", "shapes"),
    [
        (NORM, [((4, 9), (9,)), ((300, 77), (77,)), ((5, 3), (3,))]),
        (SCALARS, [((8,),), ((70,),)]),
        (WINDOW, [((8, 5), (3, 5, 6)), ((60, 7), (3, 7, 9)), ((9, 3), (3, 3, 4))]),
    ],
)
def test_all_sizes_share_one_object(source: str, shapes: list[Any]) -> None:
    paths = set()
    for sizes in shapes:
        instance = instance_of(source, *sizes)
        inputs = inputs_of(instance)
        kernel = compile_general(instance)
        paths.add(kernel.path)
        for actual, wanted in zip(
            kernel(*inputs), interpret(instance, inputs, float64=True), strict=True
        ):
            np.testing.assert_allclose(actual, wanted, rtol=1e-4, atol=1e-5)
    assert len(paths) == 1


def test_numbers_of_the_definition_keep_their_types() -> None:
    source = "def f(int32(N) A) -> (O) { O(i) = A(i) * 1000003 + i * 70000 }"
    instance = instance_of(source, (80_000,))
    values = np.full(80_000, 5000, "int32")
    (result,) = compile_general(instance)(values)
    exact = values.astype("int64") * 1000003 + np.arange(80_000) * 70000
    np.testing.assert_array_equal(result, exact.astype("int32"))


def test_only_the_first_sizes_get_their_own_kernels() -> None:
    definition = define("def f(float(N) A) -> (O) { O(i) = A(i) * N }", max_specialised=1)
    sources = set()
    for size in (7, 8, 9, 300):
        values = np.arange(size, dtype="float32")
        np.testing.assert_allclose(definition.f(values), values * size)
        sources.add(next(reversed(definition._kernels.values())).source)
    assert len(sources) == 2


def test_sizes_of_one_and_zero_are_right() -> None:
    for shape in ((1, 1), (1, 5), (6, 1), (0, 4), (3, 0)):
        instance = instance_of(NORM, shape, shape[1:])
        inputs = inputs_of(instance)
        kernel = compile_general(instance)
        for actual, wanted in zip(kernel(*inputs), interpret(instance, inputs), strict=True):
            np.testing.assert_allclose(actual, wanted, rtol=1e-4, atol=1e-5)


def test_strides_are_parameters() -> None:
    source = "def f(float(N,M) A) -> (O) { O(i,j) = A(i,j) + A(0,j) }"
    programs = [
        write_general(instance_of(source, shape), this_machine()) for shape in ((5, 6), (70, 8))
    ]
    assert programs[0].source == programs[1].source
    assert programs[0].parameters != programs[1].parameters
