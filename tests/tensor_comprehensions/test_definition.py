"""`define`: operators called with tensors of NumPy, torch and paddle."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from graphnet_datasets.errors import KernelInputError, TensorComprehensionError
from graphnet_datasets.tensor_comprehensions import define, register_function
from graphnet_datasets.tensor_comprehensions.torch_ops import as_torch_op
from graphnet_datasets.tensor_comprehensions.tuner import TunerConfig

pytest.importorskip("islpy", reason="needs islpy (extra tc)")

SOURCE = """
def axpy(float a, float(N) X, float(N) Y) -> (Z) { Z(i) = a * X(i) + Y(i) }
def add_to(float(N) A) -> (O) { O(i) += A(i) }
def two(float(N) A) -> (P, S) { P(i) = A(i) * 2.0  S +=! A(i) }
def dilated(float(N) A, int32 d) -> (O) { O(i) = A(i) + A(i+d) where i in 0:N-d }
def lookup(float(E,D) L, int64(B) I) -> (O) { O(b,d) = L(I(b),d) }
def outside(float(N) A) -> (O) { O(i) = A(i+1) where i in 0:N }
"""


@pytest.fixture(scope="module")
def definition():
    return define(SOURCE)


def test_the_same_operator_takes_arrays_and_tensors(definition) -> None:
    x, y = torch.randn(100), torch.randn(100)
    expected = 2 * x + y
    torch.testing.assert_close(definition.axpy(2.0, x, y), expected)
    found = definition.axpy(2.0, x.numpy(), y.numpy())
    assert isinstance(found, np.ndarray)
    np.testing.assert_allclose(found, expected.numpy(), rtol=1e-6)


@pytest.mark.paddle
def test_tensors_of_paddle_are_taken_and_returned(definition) -> None:
    paddle = pytest.importorskip("paddle", reason="needs paddlepaddle")
    x = paddle.to_tensor(np.arange(5, dtype="float32"))
    found = definition.axpy(2.0, x, x)
    assert isinstance(found, paddle.Tensor)
    np.testing.assert_array_equal(found.numpy(), 3 * x.numpy())


def test_several_outputs_come_as_a_tuple(definition) -> None:
    x = torch.randn(50)
    product, total = definition.two(x)
    torch.testing.assert_close(product, 2 * x)
    torch.testing.assert_close(total, x.sum(), rtol=1e-5, atol=1e-5)


def test_strides_that_are_no_overlap_are_taken_and_others_copied(definition) -> None:
    x = torch.randn(10, 20)
    torch.testing.assert_close(definition.axpy(1.0, x[:, 3], x[:, 4]), x[:, 3] + x[:, 4])
    wide = torch.ones(1).expand(10)
    torch.testing.assert_close(definition.axpy(1.0, wide, x[:, 0]), x[:, 0] + 1)


def test_kernels_are_memoised_by_layout() -> None:
    own = define(SOURCE)
    x = torch.randn(16)
    for _ in range(3):
        own.axpy(1.5, x, x)
    assert len(own._kernels) == 1
    own.axpy(1.5, x[:8], x[:8])
    assert len(own._kernels) == 2


def test_accumulation_starts_from_the_passed_output(definition) -> None:
    x, held = torch.randn(9), torch.ones(9)
    found = definition.add_to(x, outputs={"O": held})
    assert found is held
    torch.testing.assert_close(held, x + 1)
    with pytest.raises(KernelInputError, match="accumulated into, so it needs initial contents"):
        definition.add_to(x)


def test_python_ints_of_integral_scalars_are_constants(definition) -> None:
    x = torch.randn(10)
    torch.testing.assert_close(definition.dilated(x, 3), x[:7] + x[3:])
    torch.testing.assert_close(definition.interpret("dilated", x, 3), x[:7] + x[3:])
    kernel = definition.compile("dilated", x, constants={"d": 2})
    torch.testing.assert_close(kernel(x), x[:8] + x[2:])


@pytest.mark.parametrize(
    ("name", "inputs", "message"),
    [
        ("axpy", (1.0, torch.ones(3)), "takes 3 inputs (a, X, Y), got 2"),
        ("axpy", (1.0, torch.ones(3).double(), torch.ones(3)), "`X` of `axpy` is float64"),
        ("axpy", (1.0, torch.ones(3), torch.ones(4)), "Dimension 0 of the input `Y` is 4"),
        ("axpy", (1.0, torch.ones(3, 1), torch.ones(3)), "has 1 dimensions but got 2"),
        ("outside", (torch.ones(3),), "would read out of bounds: 0 <= i+1 < N (= 3)"),
    ],
)
@pytest.mark.filterwarnings("ignore::graphnet_datasets.tensor_comprehensions.PreconditionWarning")
def test_inputs_that_do_not_fit_are_refused(definition, name, inputs, message: str) -> None:
    with pytest.raises(KernelInputError) as caught:
        definition(name, *inputs)
    assert message in str(caught.value)


def test_a_kernel_refuses_other_sizes(definition) -> None:
    x = torch.randn(6)
    kernel = definition.compile("two", x)
    with pytest.raises(KernelInputError, match=r"shape \(5,\); the kernel was compiled for \(6,\)"):
        kernel(x[:5])
    with pytest.raises(KernelInputError, match="is float64; it must be float32"):
        kernel(x.double())
    with pytest.raises(KernelInputError, match="has no output `Q`"):
        kernel(x, outputs={"Q": x})
    with pytest.raises(KernelInputError, match="shares memory with another argument"):
        kernel(x, outputs={"P": x})
    assert "tc_kernel" in kernel.source
    assert kernel.profile(x, num_runs=2).median_ms > 0


def test_gathers_out_of_range_are_limited_by_default(definition) -> None:
    table, rows = torch.randn(4, 3), torch.tensor([0, 7, -1, 10**12, -(2**63)])
    expected = table[[0, 3, 0, 3, 0]]
    calls = {
        "compile": definition.compile("lookup", table, rows),
        "attribute": definition.lookup,
        "item": definition["lookup"],
        "torch": as_torch_op("tests_bounds::lookup", definition, "lookup", differentiable=False),
    }
    for name, call in calls.items():
        torch.testing.assert_close(call(table, rows), expected, msg=name)
    checked = definition.lookup(table, rows, check_bounds=True)
    torch.testing.assert_close(checked, expected)


@pytest.mark.filterwarnings("ignore::graphnet_datasets.tensor_comprehensions.PreconditionWarning")
def test_gathers_are_trusted_on_request(definition) -> None:
    table, rows = torch.randn(4, 3), torch.tensor([0, 3, 1])
    kernel = definition.compile("lookup", table, rows, check_bounds=False)
    torch.testing.assert_close(kernel(table, rows), table[rows])
    trusting = as_torch_op(
        "tests_bounds::trusting", definition, "lookup", differentiable=False, check_bounds=False
    )
    torch.testing.assert_close(trusting(table, rows), table[rows])
    assert kernel.source != definition.compile("lookup", table, rows).source
    # A call without the option does not get the kernel that trusts.
    definition.lookup(table, rows, check_bounds=False)
    far = torch.tensor([0, 10**12, 1])
    torch.testing.assert_close(definition.lookup(table, far), table[[0, 3, 1]])


def test_subscripts_that_leave_their_tensor_are_limited_on_request(definition) -> None:
    x = torch.ones(3)
    with pytest.raises(KernelInputError, match="would read out of bounds"):
        definition.outside(x)
    assert definition.outside(x, check_bounds=True).shape


def test_registered_functions_are_called_by_kernels_and_interpreter() -> None:
    c = "x0 / (1 + (x0 < 0 ? -x0 : x0))"
    register_function("softsign_of_tests", 1, c, numpy=lambda x: x / (1 + np.abs(x)), replace=True)
    own = define("def f(float(N) A) -> (B) { B(i) = softsign_of_tests(A(i)) }")
    x = torch.randn(33)
    torch.testing.assert_close(own.f(x), torch.nn.functional.softsign(x))
    torch.testing.assert_close(own.interpret("f", x), torch.nn.functional.softsign(x))
    with pytest.raises(TensorComprehensionError, match="`exp` is built in"):
        register_function("exp", 1, "x0")
    with pytest.raises(TensorComprehensionError, match="cannot be named"):
        register_function("a;b", 1, "x0")


def test_tuned_options_are_stored_and_found_again(definition, tmp_path: Path) -> None:
    x = torch.randn(64)
    cache = tmp_path / "tc.parquet"
    config = TunerConfig(population=2, generations=1, elites=1, num_runs=2)
    options = definition.autotune("two", x, config=config, cache=cache)
    assert definition.cached_options("two", x, cache=cache) is not None
    torch.testing.assert_close(definition.two(x, options=options)[0], 2 * x)


def test_unknown_names_are_refused(definition) -> None:
    with pytest.raises(AttributeError, match="no definition `nothing`"):
        _ = definition.nothing
    with pytest.raises(TensorComprehensionError, match="choose from axpy, add_to"):
        definition("nothing")
