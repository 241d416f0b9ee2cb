"""Definitions as people write them compile, and their results are those of torch."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
import torch

from graphnet_datasets import tensor_comprehensions as tc
from graphnet_datasets.errors import KernelInputError, RangeInferenceError
from graphnet_datasets.tensor_comprehensions.gradients import derive_backward
from graphnet_datasets.tensor_comprehensions.torch_ops import as_torch_op

pytest.importorskip("islpy", reason="needs islpy (extra tc)")

functional: Any = torch.nn.functional


def normals(*shape: int, dtype: str = "float32") -> Any:
    generator = torch.Generator().manual_seed(len(shape) + sum(shape))
    return torch.randn(shape, generator=generator).to(getattr(torch, dtype))


def integers(*shape: int, dtype: str = "int32", end: int = 50) -> Any:
    generator = torch.Generator().manual_seed(len(shape) + sum(shape))
    return torch.randint(0, end, shape, generator=generator, dtype=getattr(torch, dtype))


def assert_computes(source: str, inputs: list[Any], expected: Any, outputs: Any = None) -> None:
    """Compare the result of the first definition with the expected tensor."""
    definition = tc.define(source)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        result = definition[definition.names[0]](*inputs, outputs=outputs)
    tolerance = 2e-2 if result.dtype in (torch.bfloat16, torch.float16) else 1e-4
    torch.testing.assert_close(result, expected, rtol=tolerance, atol=tolerance)


def shifted(rows: Any, distance: int) -> Any:
    """Return rows that are moved down, with zeros above."""
    return functional.pad(rows, (0, 0, distance, 0))[: len(rows)]


@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16", "float16", "int32", "int8"])
def test_a_causal_window_over_channels(dtype: str) -> None:
    make = integers if dtype.startswith("int") else normals
    rows = make(37, 48, dtype=dtype)
    source = f"""def f({dtype}(T,C) X) -> (O) {{
        O(t,c) +=! (t-k >= 0 ? X(t-k,c) : {dtype}(0)) where t in 0:T, k in 0:4 }}"""
    expected = sum(shifted(rows.double(), k) for k in range(4)).to(rows.dtype)
    assert_computes(source, [rows], expected)


@pytest.mark.parametrize("channels", [1, 19, 24])
def test_a_padded_depthwise_convolution_with_channels_last(channels: int) -> None:
    images, weights = normals(2, 9, 11, channels), normals(3, 3, channels)
    source = """def f(float(N,H,W,C) X, float(P,Q,C) Y) -> (O) {
        O(n,h,w,c) +=! (h+p-1 >= 0 && h+p-1 < H && w+q-1 >= 0 && w+q-1 < W
            ? X(n,h+p-1,w+q-1,c) : 0.0) * Y(p,q,c) where h in 0:H, w in 0:W }"""
    filters = weights.permute(2, 0, 1)[:, None]
    expected = functional.conv2d(images.permute(0, 3, 1, 2), filters, padding=1, groups=channels)
    assert_computes(source, [images, weights], expected.permute(0, 2, 3, 1))


def test_a_padded_pooling_with_channels_last() -> None:
    images = normals(2, 8, 12, 24)
    source = """def f(float(N,H,W,C) X) -> (O) {
        O(n,h,w,c) max=! (2*h+p-1 >= 0 && 2*h+p-1 < H && 2*w+q-1 >= 0 && 2*w+q-1 < W
            ? X(n,2*h+p-1,2*w+q-1,c) : -1e30) where h in 0:4, w in 0:6, p in 0:3, q in 0:3 }"""
    expected = functional.max_pool2d(images.permute(0, 3, 1, 2), 3, 2, 1).permute(0, 2, 3, 1)
    assert_computes(source, [images], expected)


@pytest.mark.parametrize("dtype", ["bfloat16", "float16", "float64", "int8", "uint8", "int64"])
def test_accumulation_into_passed_outputs(dtype: str) -> None:
    make = integers if "int" in dtype else normals
    values, start = make(70, dtype=dtype), make(70, dtype=dtype)
    source = f"def f({dtype}(N) A) -> (O) {{ O(i) += A(i) }}"
    assert_computes(source, [values], start + values, outputs=(start.clone(),))
    table = make(70, 5, dtype=dtype)
    source = f"def f({dtype}(N,K) A) -> (O) {{ O(i) max= A(i,k) }}"
    expected = torch.maximum(start, table.amax(1))
    assert_computes(source, [table], expected, outputs=(start.clone(),))
    definition = tc.define(source)
    from_list, from_names = (
        definition.interpret("f", table, outputs=outputs) for outputs in ((start,), {"O": start})
    )
    torch.testing.assert_close(from_list, expected)
    torch.testing.assert_close(from_names, expected)


def test_an_index_converted_to_16_bits() -> None:
    values = normals(70, dtype="bfloat16")
    positions = torch.arange(70).bfloat16()
    source = "def f(bfloat16(N) A) -> (O) { O(i) = A(i) + bfloat16(i) }"
    assert_computes(source, [values], values + positions)


@pytest.mark.parametrize(
    ("value", "positions"),
    [
        ("float(int64(i)*int64(i))", lambda i: (i * i).float()),
        ("float(uint32(i-5))", lambda i: ((i - 5) % 2**32).float()),
        ("float(uint8(i))", lambda i: (i % 256).float()),
        ("(int64(i)*int64(i) > int64(2000000000) ? 1.0 : 0.0)", lambda i: (i * i > 2e9).float()),
        ("(i*i > 100 ? 1.0 : 0.0)", lambda i: ((i * i).int() > 100).float()),
    ],
)
def test_index_arithmetic_overflows_as_its_type(value: str, positions: Any) -> None:
    zeros, index = torch.zeros(70_000), torch.arange(70_000)
    source = f"def f(float(N) A) -> (O) {{ O(i) = A(i) + {value} }}"
    assert_computes(source, [zeros], positions(index))
    wide = zeros.double()
    expected = ((index * 100_000 + 2**31) % 2**32 - 2**31).double()
    assert_computes(
        "def f(double(N) A) -> (O) { O(i) = A(i) + double(i*100000) }", [wide], expected
    )


@pytest.mark.parametrize(
    ("guard", "holds"),
    [
        ("i % 2 == 1", lambda i, _: i % 2 == 1),
        ("i != 0", lambda i, _: i != 0),
        ("i*i > 4", lambda i, _: i * i > 4),
        ("S(i) > 20 && i > 0", lambda i, s: (s > 20) & (i > 0)),
        ("!(i < 2 || i > 60)", lambda i, _: ~((i < 2) | (i > 60))),
    ],
)
def test_a_read_under_any_condition_keeps_the_range(guard: str, holds: Any) -> None:
    values, selected = normals(70), integers(70)
    source = f"""def f(float(N) X, int32(N) S) -> (O) {{
        O(i) = X(i) + ({guard} ? X(i-1) : 0.0) + 0.0*float(S(i)) }}"""
    before = functional.pad(values, (1, 0))[:-1]
    expected = values + torch.where(holds(torch.arange(70), selected), before, 0.0)
    assert_computes(source, [values, selected], expected)


def test_interleaved_rotary_keeps_all_columns() -> None:
    x, cosines, sines = normals(9, 32), normals(9, 32), normals(9, 32) + 1
    source = """def f(float(T,D) X, float(T,D) C, float(T,D) S) -> (O) {
        O(t,d) = X(t,d)*C(t,d) + (d % 2 == 0 ? -X(t,d+1) : X(t,d-1))*S(t,d) }"""
    turned = torch.stack([-x[:, 1::2], x[:, ::2]], 2).flatten(1)
    assert_computes(source, [x, cosines, sines], x * cosines + turned * sines)


def test_tensors_may_have_the_names_of_functions() -> None:
    left, right = normals(37), normals(37) + 1
    source = "def f(float(exp) y0, float(exp) j1) -> (erf) { erf(tan) = y0(tan)*sinh(j1(tan)) }"
    assert_computes(source, [left, right], left * torch.sinh(right))


def test_gradients_of_tensors_with_the_names_of_functions() -> None:
    definition = tc.define(
        "def f(double(N) tanh, double(N) cosh) -> (O) { O(i) = tanh(i)*sinh(cosh(i)) }"
    )
    assert "cosh_" in derive_backward(definition.checked("f"))
    operator = as_torch_op("graphnet_natural::names", definition)
    inputs = [normals(20, dtype="float64").requires_grad_() for _ in range(2)]
    torch.autograd.gradcheck(operator, inputs)


def test_empty_sizes_are_those_of_torch() -> None:
    assert_computes(
        "def f(float(N,M) A) -> (O) { O(i,j) = A(i,j)*2.0 }", [normals(0, 9)], normals(0, 9)
    )
    product = "def f(float(M,K) A, float(K,N) B) -> (O) { O(m,n) +=! A(m,k)*B(k,n) }"
    assert_computes(product, [normals(5, 0), normals(0, 6)], torch.zeros(5, 6))
    assert_computes(product, [normals(0, 4), normals(4, 6)], torch.zeros(0, 6))
    maximum = "def f(float(N,K) A) -> (O) { O(i) max=! A(i,k) }"
    assert_computes(maximum, [normals(5, 0)], torch.full((5,), -torch.inf))
    joined = """def f(float(N,C) X, float(M,C) Y) -> (O) {
        O(i,c) = i < N ? X(i,c) : Y(i-N,c) where i in 0:N+M }"""
    assert_computes(joined, [normals(0, 33), normals(9, 33)], normals(9, 33))
    start = normals(5)
    update = "def f(float(N,K) A) -> (O) { O(i) += A(i,k) }"
    assert_computes(update, [normals(5, 0)], start, outputs=(start.clone(),))
    kernel = tc.define(maximum).compile("f", np.zeros((5, 0), "float32"))
    np.testing.assert_array_equal(kernel(np.zeros((5, 0), "float32")), np.full(5, -np.inf))


def test_a_window_longer_than_its_input_is_still_an_error() -> None:
    definition = tc.define("def f(float(N) X, float(K) W) -> (O) { O(i) +=! X(i+k)*W(k) }")
    with pytest.raises(RangeInferenceError, match="is empty"):
        definition.f(normals(2), normals(3))


def test_arrays_of_bfloat16() -> None:
    ml_dtypes = pytest.importorskip("ml_dtypes", reason="NumPy has no bfloat16 of its own")
    narrow = tc.define("def f(float(N) A) -> (bfloat16(N) O) { O(i) = bfloat16(A(i)*2.0) }")
    values = np.arange(40, dtype="float32")
    for result in (narrow.f(values), narrow.interpret("f", values)):
        assert result.dtype == ml_dtypes.bfloat16
        np.testing.assert_array_equal(result.astype("float32"), values * 2)
    doubled = tc.define("def f(bfloat16(N) A) -> (O) { O(i) = A(i)*bfloat16(2.0) }")
    stored = values.astype(ml_dtypes.bfloat16)
    np.testing.assert_array_equal(doubled.f(stored).astype("float32"), values * 2)
    kernel = doubled.compile("f", normals(64, dtype="bfloat16"))
    assert kernel.profile(normals(64, dtype="bfloat16"), num_runs=2).least_ms > 0


def test_memory_that_holds_negated_values() -> None:
    definition = tc.define("def f(float(N) A) -> (O) { O(i) = A(i)*2.0 }")
    plain = definition.f(normals(10))
    torch.testing.assert_close(plain, normals(10) * 2)
    negated = torch.complex(normals(10), normals(10)).conj().imag
    assert negated.is_neg()
    torch.testing.assert_close(definition.f(negated), negated * 2)
    torch.testing.assert_close(definition.interpret("f", negated), negated * 2)
    with pytest.raises(KernelInputError, match="negative bit"):
        definition.f(normals(10), outputs=(torch.complex(plain, plain).conj().imag,))


def test_outputs_that_overlap_other_arguments() -> None:
    source = "def f(float(N) A) -> (O, P) { O(i) = A(i)*2.0 P(i) = A(i)+1.0 }"
    definition, memory = tc.define(source), torch.zeros(30)
    for inputs, outputs in (
        (memory[:10], (memory[5:15], memory[15:25])),
        (normals(10), (memory[5:15], memory[10:20])),
        (normals(10), (memory[:10], memory[:10])),
    ):
        with pytest.raises(KernelInputError, match="shares memory"):
            definition.f(inputs, outputs=outputs)
    result, _ = definition.f(memory[:10], outputs=(memory[10:20], memory[20:30]))
    assert result.data_ptr() == memory[10:].data_ptr()
    with pytest.raises(KernelInputError, match="has the type `list`"):
        definition.f(normals(10), outputs=([0.0] * 10, memory[:10]))
    with pytest.raises(KernelInputError, match="must be contiguous"):
        definition.f(normals(10), outputs=(memory[:20:2], memory[20:]))
