"""The interpreter against NumPy's own operations and against loops over scalars."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import HealthCheck, assume, given, settings

from graphnet_datasets.errors import KernelInputError
from graphnet_datasets.tensor_comprehensions.language import check, instantiate
from graphnet_datasets.tensor_comprehensions.language.interpreter import interpret

from ..definitions import ROUNDING, Case, cases
from ..loops import NotANumberError, evaluate


def run(source: str, *arrays: np.ndarray, outputs=None, float64=False, **options):
    shapes = [np.shape(each) for each in arrays]
    instance = instantiate(check(source)[0], shapes, **options)
    return interpret(instance, arrays, outputs, float64=float64)


@given(cases())
@settings(
    max_examples=100,
    deadline=None,
    suppress_health_check=[HealthCheck.filter_too_much, HealthCheck.too_slow],
)
def test_interpreter_agrees_with_loops_over_scalars(case: Case) -> None:
    found = interpret(case.instance, case.inputs, case.outputs)
    try:
        expected = evaluate(case.instance, case.inputs, case.outputs)
    except NotANumberError:
        assume(False)
    for tensor, array in zip(case.instance.outputs, found, strict=True):
        assert array.dtype == expected[tensor.name].dtype
        rtol = ROUNDING.get(tensor.dtype.name, 1e-5)
        np.testing.assert_allclose(array, expected[tensor.name], rtol=rtol, err_msg=case.source)


def test_matrix_product_is_that_of_numpy() -> None:
    generator = np.random.default_rng(0)
    a, b = generator.standard_normal((7, 5)), generator.standard_normal((5, 9))
    source = "def mm(double(M,K) A, double(K,N) B) -> (C) { C(m,n) +=! A(m,k) * B(k,n) }"
    np.testing.assert_allclose(run(source, a, b)[0], a @ b, rtol=1e-12)


def test_large_boxes_are_cut_into_pieces_with_the_same_result() -> None:
    generator = np.random.default_rng(0)
    a, b = generator.standard_normal((130, 140)), generator.standard_normal((140, 150))
    plain = "def f(double(M,K) A, double(K,N) B) -> (C) { C(m,n) +=! A(m,k) * B(k,n) }"
    general = plain.replace("A(m,k) * B(k,n)", "A(m,k) * B(k,n) + 0.0")
    np.testing.assert_allclose(run(general, a, b)[0], run(plain, a, b)[0], rtol=1e-10)
    np.testing.assert_allclose(run(general, a, b)[0], a @ b, rtol=1e-10)


def test_integer_division_rounds_towards_minus_infinity_and_by_zero_gives_zero() -> None:
    a, b = np.int32([7, -7, 7, -7, 5]), np.int32([2, 2, -2, -2, 0])
    source = "def f(int32(N) A, int32(N) B) -> (Q, R) { Q(i) = A(i) / B(i) R(i) = A(i) % B(i) }"
    quotient, rest = run(source, a, b)
    assert quotient.tolist() == [3, -4, -4, 3, 0]
    assert rest.tolist() == [1, 1, -1, -1, 0]


def test_integers_wrap_around() -> None:
    source = "def f(uint8(N) A, int8(N) B) -> (S, T) { S(i) = A(i) + A(i) T(i) = B(i) * B(i) }"
    total, product = run(source, np.uint8([200]), np.int8([100]))
    assert (total.tolist(), product.tolist()) == ([144], [16])


def test_scatter_free_gather_reads_the_rows_that_an_index_tensor_names() -> None:
    table = np.arange(12, dtype=np.float32).reshape(4, 3)
    rows = np.int32([[0, 3], [2, 2]])
    source = "def lut(float(E,D) L, int32(B,K) I) -> (O) { O(b,d) +=! L(I(b,k),d) }"
    with pytest.warns(UserWarning, match=r"0 <= I\(b,k\) < E"):
        (found,) = run(source, table, rows)
    np.testing.assert_array_equal(found, table[rows].sum(1))


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_a_row_out_of_range_raises_or_is_limited() -> None:
    table, rows = np.arange(4, dtype=np.float32), np.int32([1, 9, -1])
    source = "def lut(float(E) L, int32(B) I) -> (O) { O(b) = L(I(b)) }"
    with pytest.raises(KernelInputError, match=r"reads `L` at 9 along dimension 0"):
        run(source, table, rows)
    assert run(source, table, rows, check_bounds=True)[0].tolist() == [1, 3, 0]


def test_reads_out_of_range_are_kept_away_by_a_condition() -> None:
    source = "def pad(float(N) A) -> (O) { O(i) = i > 0 && i <= N ? A(i-1) : 9 where i in 0:N+2 }"
    assert run(source, np.float32([1, 2]))[0].tolist() == [9, 1, 2, 9]


def test_outputs_start_at_the_origin_of_their_range() -> None:
    source = "def f(float(N) A) -> (O) { S(i) = A(i-1) O(i) = S(i) + A(i) }"
    instance = instantiate(check(source)[0], [(4,)])
    assert (instance.tensor("S").origin, instance.tensor("O").origin) == ((1,), (1,))
    assert run(source, np.float32([1, 2, 4, 8]))[0].tolist() == [3, 6, 12]


def test_accumulating_needs_the_contents_and_leaves_them_unchanged() -> None:
    source = "def f(float(N,M) A) -> (O) { O(i) += A(i,j) }"
    array, start = np.ones((2, 3), np.float32), np.float32([10, 20])
    with pytest.raises(KernelInputError, match="accumulates into `O`"):
        run(source, array)
    assert run(source, array, outputs={"O": start})[0].tolist() == [13, 23]
    assert start.tolist() == [10, 20]


def test_sixteen_bit_floats_are_computed_in_float32_and_rounded_when_stored() -> None:
    source = "def f(float16(N) A, bfloat16(N) B) -> (S, T) { S +=! A(i) T(i) = B(i) * B(i) }"
    a = np.full(3000, 1.0, np.float16)
    b = np.full(3000, 1.0078125, np.float32)
    total, product = run(source, a, b)
    assert (total.dtype, float(total)) == (np.float16, 3000.0)
    assert float(product[0]) == 1.015625


def test_float64_mode_rounds_nothing() -> None:
    source = "def f(float(N) A) -> (O) { O(i) = A(i) / 3 }"
    assert run(source, np.float32([1]), float64=True)[0].tolist() == [1 / 3]


def test_scalars_and_identities() -> None:
    source = """def f(int32(N) A) -> (S, P, L, H) {
        S +=! A(i)  P *=! A(i)  L min=! A(i)  H max=! A(i) }"""
    assert [int(each) for each in run(source, np.int32([3, -2, 5]))] == [6, -30, -2, 5]


def test_inputs_of_another_shape_or_type_are_refused() -> None:
    instance = instantiate(check("def f(float(N) A) -> (O) { O(i) = A(i) }")[0], [(3,)])
    with pytest.raises(KernelInputError, match=r"`A` has shape \(4,\), expected \(3,\)"):
        interpret(instance, [np.zeros(4, np.float32)])
    with pytest.raises(KernelInputError, match="`A` is float64, expected float32"):
        interpret(instance, [np.zeros(3)])
    with pytest.raises(KernelInputError, match="takes 1 inputs, got 0"):
        interpret(instance, [])
