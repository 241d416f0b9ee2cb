"""Derived gradients agree with torch: gathers, scatters, scans, extremes, products, quotients."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
import torch

from graphnet_datasets.errors import TensorComprehensionError
from graphnet_datasets.tensor_comprehensions import define
from graphnet_datasets.tensor_comprehensions.gradients import derive_backward
from graphnet_datasets.tensor_comprehensions.torch_ops import as_torch_op

pytest.importorskip("islpy", reason="needs islpy (extra tc)")

functional: Any = torch.nn.functional
NUMBERS = itertools.count()


def values(*shape: int) -> torch.Tensor:
    generator = torch.Generator().manual_seed(len(shape) + sum(shape))
    random = torch.rand(shape, dtype=torch.double, generator=generator)
    return (random + 0.1).requires_grad_()


def rows(*shape: int, end: int) -> torch.Tensor:
    generator = torch.Generator().manual_seed(end + sum(shape))
    return torch.randint(0, end, shape, generator=generator, dtype=torch.int32)


def assert_like_torch(
    source: str, inputs: list[torch.Tensor], reference: Any, *, is_compiled: bool = False
) -> None:
    """Compare the results and gradients of a definition with those of a torch function.

    The definitions are interpreted, which is faster than compiling them, or compiled.
    """
    theirs = [tensor.detach().clone().requires_grad_(tensor.requires_grad) for tensor in inputs]
    expected = reference(*theirs)
    upstream = torch.linspace(-1, 2, expected.numel(), dtype=expected.dtype).reshape(expected.shape)
    (expected * upstream).sum().backward()
    wanted = [tensor.grad for tensor in theirs if tensor.requires_grad]
    ours = [tensor.detach().clone().requires_grad_(tensor.requires_grad) for tensor in inputs]
    if is_compiled:
        operator = as_torch_op(f"graphnet_gradients::f{next(NUMBERS)}", define(source))
        result = operator(*ours)
        (result * upstream).sum().backward()
        gradients = [tensor.grad for tensor in ours if tensor.requires_grad]
    else:
        definition = define(source)
        backward = define(derive_backward(definition.checked("f")))
        plain = [tensor.detach() for tensor in ours]
        result = definition.interpret("f", *plain, check_bounds=True)
        gradients = backward.interpret("f_backward", *plain, upstream, check_bounds=True)
        gradients = list(gradients) if isinstance(gradients, tuple) else [gradients]
    torch.testing.assert_close(result, expected)
    for own, gradient in zip(gradients, wanted, strict=True):
        torch.testing.assert_close(own, gradient)


def segments(kind: str) -> Any:
    def reduce(a: Any, i: Any, start: Any) -> Any:
        include = kind != "sum"
        return start.scatter_reduce(0, i.long(), a, kind, include_self=include)

    return reduce


POOLING = """def f(double(N,C,H,W) X) -> (O) {
    O(n,c,h,w) max=! (2*h+p-1 >= 0 && 2*h+p-1 < H && 2*w+q-1 >= 0 && 2*w+q-1 < W
        ? X(n,c,2*h+p-1,2*w+q-1) : -1e30)
    where h in 0:(H+1)/2, w in 0:(W+1)/2, p in 0:3, q in 0:3 }"""
CASES: dict[str, tuple[str, list[torch.Tensor], Any]] = {
    "padded and strided pooling": (
        POOLING, [values(2, 3, 7, 6)], lambda x: functional.max_pool2d(x, 3, 2, 1),
    ),
    "pooling of one element": (
        POOLING, [values(1, 1, 1, 1)], lambda x: functional.max_pool2d(x, 3, 2, 1),
    ),
    "lookup": (
        "def f(double(E,D) L, int32(B,K) I) -> (O) { O(b,k,d) = L(I(b,k),d) }",
        [values(5, 9), rows(3, 4, end=5)], lambda table, i: functional.embedding(i, table),
    ),
    "embedding bag": (
        "def f(double(E,D) L, int32(B,K) I) -> (O) { O(b,d) +=! L(I(b,k),d) }",
        [values(5, 9), rows(3, 4, end=5)],
        lambda table, i: functional.embedding_bag(i, table, mode="sum"),
    ),
    "largest of a bag": (
        "def f(double(E,D) L, int32(B,K) I) -> (O) { O(b,d) max=! L(I(b,k),d) }",
        [values(5, 3), torch.tensor([[0, 3, 2], [1, 4, 3]], dtype=torch.int32)],
        lambda table, i: functional.embedding(i, table).amax(1),
    ),
    "weighted bag": (
        "def f(double(E,D) L, int32(B,K) I, double(B,K) W) -> (O) {"
        " O(b,d) +=! L(I(b,k),d) * W(b,k) }",
        [values(5, 9), rows(3, 4, end=5), values(3, 4)],
        lambda table, i, w: (functional.embedding(i, table) * w[:, :, None]).sum(1),
    ),
    "one row of a table": (
        "def f(double(1,D) L, int32(B) I) -> (O) { O(b,d) = L(I(b),d) }",
        [values(1, 2), rows(3, end=1)], lambda table, i: functional.embedding(i, table),
    ),
    "empty bag": (
        "def f(double(E,D) L, int32(B,K) I) -> (O) { O(b,d) +=! L(I(b,k),d) }",
        [values(5, 9), rows(3, 0, end=5)],
        lambda table, i: functional.embedding(i, table).sum(1),
    ),
    "pixel shuffle": (
        "def f(double(N,C,H,W) X) -> (O) { O(n,c,h,w) = X(n, 4*c + 2*(h%2) + w%2, h/2, w/2)"
        " where c in 0:C/4, h in 0:2*H, w in 0:2*W }",
        [values(2, 8, 3, 5)], lambda x: functional.pixel_shuffle(x, 2),
    ),
    "space to depth": (
        "def f(double(C,H,W) X) -> (O) { O(c,h,w) = X(c/4, 2*h + (c%4)/2, 2*w + c%2)"
        " where c in 0:4*C, h in 0:H/2, w in 0:W/2 }",
        [values(2, 4, 6)], lambda x: functional.pixel_unshuffle(x, 2),
    ),
    "blocks": (
        "def f(double(N) X, double(4) W) -> (O) { O(b) +=! X(4*b+k) * W(k) }",
        [values(12), values(4)], lambda x, w: x.reshape(3, 4) @ w,
    ),
    "nested remainders": (
        "def f(double(N) X) -> (O) { O(i) = X(2*(i%3) + i/6) where i in 0:12 }",
        [values(6)], lambda x: x[2 * (torch.arange(12) % 3) + torch.arange(12) // 6],
    ),
    "guarded gather": (
        "def f(double(N) X, int32(M) I) -> (O) {"
        " O(i) = (i > 0 ? X(I(i)) * X(i-1) : X(0)) where i in 0:M }",
        [values(7), rows(5, end=7)],
        lambda x, i: torch.cat([x[:1], x[i.long()][1:] * x[:4]]),
    ),
    "causal convolution": (
        "def f(double(T,C) X, double(K,C,D) W) -> (O) {"
        " O(t,d) +=! (t - 2*k >= 0 ? X(t - 2*k, c) : 0.0) * W(k,c,d) where t in 0:T }",
        [values(7, 3), values(3, 3, 2)],
        lambda x, w: functional.conv1d(
            functional.pad(x.t()[None], (4, 0)), w.flip(0).permute(2, 1, 0), dilation=2
        )[0].t(),
    ),
    "product": (
        "def f(double(N,M) A) -> (O) { O(n) *=! A(n,m) }", [values(3, 5)], lambda a: a.prod(1),
    ),
    "product of everything": (
        "def f(double(N) A, double(N) B) -> (O) { O *=! A(n) + B(n) }", [values(4), values(4)],
        lambda a, b: (a + b).prod(),
    ),
    "product of nothing": (
        "def f(double(N,M) A) -> (O) { O(n) *=! A(n,m) }", [values(3, 0)], lambda a: a.prod(1),
    ),
    "continued extreme": (
        "def f(double(N) A, double(N,M) B) -> (O) { O(n) = A(n) O(n) max= B(n,m) O(n) *= A(n) }",
        [values(4), values(4, 3)], lambda a, b: torch.maximum(a, b.amax(1)) * a,
    ),
    "softmax": (
        "def f(double(N,M) X) -> (O) { m(i) max=! X(i,j) e(i,j) = exp(X(i,j)-m(i))"
        " s(i) +=! e(i,j) O(i,j) = e(i,j) / s(i) }",
        [values(4, 6)], lambda x: x.softmax(1),
    ),
    "cumulative sum": (
        "def f(double(N,C) A) -> (S) { S(i,c) = S(i-1,c) + A(i,c) }",
        [values(6, 3)], lambda a: a.cumsum(0),
    ),
    "cumulative sum of one row": (
        "def f(double(N,C) A) -> (S) { S(i,c) = S(i-1,c) + A(i,c) }",
        [values(1, 3)], lambda a: a.cumsum(0),
    ),
    "cumulative sum of nothing": (
        "def f(double(N,C) A) -> (S) { S(i,c) = S(i-1,c) + A(i,c) }",
        [values(0, 3)], lambda a: a.cumsum(0),
    ),
    "cumulative sum from the end": (
        "def f(double(N,C) A) -> (S) { S(n,c) = A(n,c) * A(n,c) + S(n,c+1) }",
        [values(3, 6)], lambda a: (a * a).flip(1).cumsum(1).flip(1),
    ),
    "cumulative product": (
        "def f(double(N) A) -> (P) { P(i) = (i > 0 ? P(i-1) : 1.0) * A(i) }",
        [values(6)], lambda a: a.cumprod(0),
    ),
    "cumulative maximum": (
        "def f(double(N) A) -> (O) { P(i) = max((i > 0 ? P(i-1) : -1e30), A(i)) O(i) = P(i)*A(i) }",
        [values(6)], lambda a: a.cummax(0)[0] * a,
    ),
    "linear recurrence": (
        "def f(double(T,C) A, double(T,C) X) -> (Y) {"
        " H(t,c) = A(t,c) * H(t-1,c) + 0.5 * H(t-2,c) + X(t,c)  Y(t) +=! tanh(H(t,c)) * X(t,c) }",
        [values(5, 3), values(5, 3)], lambda a, x: recurrence(a, x),
    ),
    "segment sum": (
        "def f(double(N) A, int32(N) I, double(M) Z) -> (double(M) O) {"
        " O(I(n)) +=! A(n) * A(n) O(m) += Z(m) }",
        [values(9), rows(9, end=4), values(4)],
        lambda a, i, z: z.index_add(0, i, a * a),
    ),
    "segment sum of nothing": (
        "def f(double(N) A, int32(N) I, double(M) Z) -> (double(M) O) {"
        " O(I(n)) +=! A(n) * A(n) O(m) += Z(m) }",
        [values(0), rows(0, end=4), values(4)], lambda a, i, z: z.index_add(0, i, a * a),
    ),
    "no segments": (
        "def f(double(N) A, int32(N) I, double(M) Z) -> (double(M) O) {"
        " O(I(n)) +=! A(n) * A(n) O(m) += Z(m) }",
        [values(3), torch.full((3,), 0, dtype=torch.int32), values(0)],
        lambda a, _, z: z + 0 * a.sum(),
    ),
    "rows added to a table": (
        "def f(double(E,D) L, int32(N) I, double(N,D) A) -> (double(E,D) O) {"
        " O(e,d) = L(e,d)  O(I(n),d) += A(n,d) * L(n,d) }",
        [values(6, 9), rows(5, end=6), values(5, 9)],
        lambda table, i, a: table.index_add(0, i, a * table[:5]),
    ),
    "largest of a segment": (
        "def f(double(N) A, int32(N) I, double(M) Z) -> (double(M) O) {"
        " O(m) = Z(m)  O(I(n)) max= A(n) }",
        [values(9), rows(9, end=4), values(4)], segments("amax"),
    ),
    "product of a segment": (
        "def f(double(N) A, int32(N) I, double(M) Z) -> (double(M) O) {"
        " O(m) = Z(m)  O(I(n)) *= A(n) }",
        [values(9), rows(9, end=4), values(4)], segments("prod"),
    ),
    "histogram of weights in a temporary": (
        "def f(double(N) A, int32(N) I, double(M) Z) -> (P) {"
        " T(m) = Z(m) * Z(m)  T(I(n)) += A(n)  P(m) = exp(T(m)) }",
        [values(9), rows(9, end=4), values(4)],
        lambda a, i, z: (z * z).index_add(0, i, a).exp(),
    ),
    "transposed convolution": (
        "def f(double(T) A, double(3) K) -> (double(13) O) { O(2*t+k) +=! A(t) * K(k) }",
        [values(6), values(3)],
        lambda a, k: functional.conv_transpose1d(a[None, None], k[None, None], stride=2)[0, 0],
    ),
}  # fmt: skip


def recurrence(a: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
    states = [torch.zeros_like(x[0])] * 2
    for factor, added in zip(a, x, strict=True):
        states.append(factor * states[-1] + 0.5 * states[-2] + added)
    return (torch.stack(states[2:]).tanh() * x).sum(1)


@pytest.mark.parametrize("name", CASES)
def test_results_and_gradients_are_those_of_torch(name: str) -> None:
    assert_like_torch(*CASES[name])


@pytest.mark.parametrize(
    "name",
    [
        *("weighted bag", "pixel shuffle", "product", "cumulative sum of nothing"),
        *("linear recurrence", "cumulative sum from the end", "no segments"),
        *("rows added to a table", "largest of a segment"),
    ],
)
def test_compiled_operators_agree_with_torch(name: str) -> None:
    assert_like_torch(*CASES[name], is_compiled=True)


def test_the_other_terms_of_a_product_remain_if_terms_are_zero() -> None:
    factors = values(4, 5).detach()
    factors[1, 2] = 0.0
    factors[2, 1] = factors[2, 4] = 0.0
    source = "def f(double(N,M) A) -> (O) { O(n) *=! A(n,m) }"
    assert_like_torch(source, [factors.requires_grad_()], lambda a: a.prod(1))
    segment = """def f(double(N) A, int32(N) I, double(M) Z) -> (double(M) O) {
        O(m) = Z(m)  O(I(n)) *= A(n) }"""
    inputs = [factors.detach()[2].requires_grad_(), rows(5, end=2), values(2)]
    assert_like_torch(segment, inputs, segments("prod"))


def test_equal_terms_share_the_gradient_of_an_extreme() -> None:
    pooled = "def f(double(N) X) -> (O) { O(i) max=! X(2*i+k) where k in 0:2 }"
    assert_like_torch(
        pooled, [torch.ones(6, dtype=torch.double, requires_grad=True)],
        lambda x: x.reshape(3, 2).amax(1),
    )  # fmt: skip
    segment = """def f(double(N) A, int32(N) I, double(M) Z) -> (double(M) O) {
        O(I(n)) max=! A(n)  O(m) = O(m) + Z(m) }"""
    inputs = [torch.ones(6).double().requires_grad_(), torch.tensor([0, 1, 1, 2, 2, 2]), values(3)]
    inputs[1] = inputs[1].int()
    assert_like_torch(
        segment, inputs,
        lambda a, i, z: z + torch.full_like(z, -9).scatter_reduce(0, i.long(), a, "amax"),
    )  # fmt: skip


@pytest.mark.parametrize(
    ("function", "low", "high"),
    [
        ("acosh(A(i))", 1.1, 3), ("cospi(A(i))", -1, 1), ("sinpi(A(i))", -1, 1),
        ("exp10(A(i))", -1, 1), ("erfcx(A(i))", -1, 1), ("erfinv(A(i))", -0.9, 0.9),
        ("erfcinv(A(i))", 0.2, 1.8), ("normcdfinv(A(i))", 0.1, 0.9), ("rcbrt(A(i))", 0.5, 2),
        ("j0(A(i))", 0.5, 3), ("j1(A(i))", 0.5, 3), ("y0(A(i))", 0.5, 3), ("y1(A(i))", 0.5, 3),
        ("cyl_bessel_i0(A(i))", 0.5, 2), ("cyl_bessel_i1(A(i))", 0.5, 2),
        ("copysign(A(i), 0.3 - A(i))", 0.5, 2), ("fdim(A(i), 0.7)", 0.8, 2),
        ("fmod(A(i), 0.25 * A(i) + 0.5)", 2.1, 2.6), ("remainder(2.3, A(i))", 0.8, 0.9),
        ("A(i) % 0.75", 0.8, 1.4), ("2.1 % A(i)", 0.8, 1.0), ("rhypot(A(i), 2.0)", 0.5, 2),
        ("rnorm3d(A(i), 2.0, A(i))", 0.5, 2), ("rnorm4d(1.0, A(i), 2.0, A(i))", 0.5, 2),
        ("norm3d(A(i), 2.0, A(i))", 0.5, 2), ("norm4d(1.0, A(i), 2.0, A(i))", 0.5, 2),
    ],
)  # fmt: skip
def test_derivatives_of_functions(function: str, low: float, high: float) -> None:
    definition = define(f"def f(double(N) A) -> (O) {{ O(i) = {function} }}")
    backward = define(derive_backward(definition.checked("f")))
    points, step = np.linspace(low, high, 7), 1e-6
    above, below = (definition.interpret("f", points + offset) for offset in (step, -step))
    slope = backward.interpret("f_backward", points, np.ones(7))
    np.testing.assert_allclose(slope, (above - below) / (2 * step), rtol=1e-5, atol=1e-7)


def test_an_underivable_integer_scatter_is_reported() -> None:
    source = """def f(double(N) A, int64(N) I, int64(M) Z) -> (O) {
        T(m) = Z(m)  T(I(n)) max= I(n)  O(m) = A(m) * T(m) }"""
    with pytest.raises(TensorComprehensionError, match="cannot write the identity of `max=`"):
        derive_backward(define(source).checked("f"))
