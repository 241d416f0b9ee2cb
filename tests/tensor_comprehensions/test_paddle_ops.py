"""Definitions as functions of paddle: gradients above all."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from graphnet_datasets.errors import TensorComprehensionError
from graphnet_datasets.tensor_comprehensions import define

pytest.importorskip("islpy", reason="needs islpy (extra tc)")

pytestmark = pytest.mark.paddle
SOURCE = """
def mm(double(M,K) A, double(K,N) B) -> (C) { C(m,n) +=! A(m,k) * B(k,n) }
def gate(double(N) A, double(N) B, int32 k) -> (O, S) {
    O(i) = tanh(A(i)) * B(i + k) where i in 0:N-k
    S +=! O(i) }"""
GENERATOR = np.random.default_rng(0)


def tensors(*shapes: tuple[int, ...]) -> list[Any]:
    """Return differentiable tensors of paddle."""
    paddle = pytest.importorskip("paddle", reason="needs paddlepaddle")
    return [
        paddle.to_tensor(GENERATOR.standard_normal(each), stop_gradient=False) for each in shapes
    ]


def test_gradients_are_those_of_paddle() -> None:
    from graphnet_datasets.tensor_comprehensions.paddle_ops import as_paddle_op

    a, b = tensors((3, 4), (4, 5))
    operator = as_paddle_op(define(SOURCE), "mm")
    (operator(a, b) ** 2).sum().backward()
    found = a.grad.numpy(), b.grad.numpy()
    a.clear_grad()
    b.clear_grad()
    ((a @ b) ** 2).sum().backward()
    np.testing.assert_allclose(found[0], a.grad.numpy(), rtol=1e-9)
    np.testing.assert_allclose(found[1], b.grad.numpy(), rtol=1e-9)


def test_several_outputs_and_constants_have_gradients_too() -> None:
    from graphnet_datasets.tensor_comprehensions.paddle_ops import as_paddle_op

    a, b = tensors((6,), (6,))
    gated, total = as_paddle_op(define(SOURCE), "gate")(a, b, 2)
    (gated.sum() + total).backward()
    np.testing.assert_allclose(
        b.grad.numpy(), [0, 0, *(2 * np.tanh(a.numpy()[:4]))], rtol=1e-9, atol=1e-12
    )


def test_gradients_can_be_given() -> None:
    from graphnet_datasets.tensor_comprehensions.paddle_ops import as_paddle_op

    (x,) = tensors((5,))
    forward = define("def f(double(N) A) -> (B) { B(i) = A(i) * A(i) * A(i) }")
    backward = define("def g(double(N) A, double(N) D) -> (G) { G(i) = 3 * A(i) * A(i) * D(i) }")
    cube = as_paddle_op(forward, backward=backward)
    cube(x).sum().backward()
    np.testing.assert_allclose(x.grad.numpy(), 3 * x.numpy() ** 2, rtol=1e-9)


def test_graphs_without_gradients_are_refused() -> None:
    from graphnet_datasets.tensor_comprehensions.paddle_ops import as_paddle_op

    with pytest.raises(
        TensorComprehensionError, match="outputs of a paddle operator start without"
    ):
        as_paddle_op(define("def f(double(N) A) -> (O) { O(i) += A(i) }"))
    with pytest.raises(TensorComprehensionError, match="Choose one with `name=`"):
        as_paddle_op(define(SOURCE))
    (a,) = tensors((4,))
    shifted = as_paddle_op(define("def f(double(N) A) -> (O) { O(i) = A(i-1) }"))
    with pytest.raises(TensorComprehensionError, match="does not begin at coordinate 0"):
        shifted(a)
