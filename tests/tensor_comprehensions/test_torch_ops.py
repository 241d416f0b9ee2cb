"""Operators of torch made of definitions: gradients, tracing, `torch.compile`."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch._dynamo.testing import CompileCounterWithBackend
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.fx.experimental.proxy_tensor import make_fx
from torch.utils._python_dispatch import TorchDispatchMode

from graphnet_datasets.errors import TensorComprehensionError
from graphnet_datasets.tensor_comprehensions import define
from graphnet_datasets.tensor_comprehensions.torch_ops import as_torch_op

pytest.importorskip("islpy", reason="needs islpy (extra tc)")

SOURCE = """
def mm(double(M,K) A, double(K,N) B) -> (C) { C(m,n) +=! A(m,k) * B(k,n) }
def conv(double(N,C,H,W) I, double(F,C,P,Q) K, double(F) B) -> (O) {
    O(n,f,h,w) +=! I(n,c,2*h+p,w+q) * K(f,c,p,q)
    O(n,f,h,w) = tanh(O(n,f,h,w) + B(f)) }
def weighted(double(B,N) X, double(N) W) -> (Y, S) {
    E(b,n) = exp(X(b,n))  S(b) +=! E(b,n) * W(n)  Y(b,n) = E(b,n) / S(b) }
def shifted(double(N) A, int32 k) -> (O) { O(i) = A(i+k) * A(i+k) where i in 0:N-k }
def several(double(N) A, double(N) B) -> (O) {
    O(i) = (A(i) > 0.5 ? A(i) * B(i) : sqrt(A(i)))  O(i) += A(i) * B(j) + A(0) }
"""


def random(*shape: int) -> torch.Tensor:
    generator = torch.Generator().manual_seed(len(shape))
    made = torch.rand(*shape, dtype=torch.double, generator=generator) + 0.1
    return made.requires_grad_()


CASES = {
    "mm": lambda: (random(3, 4), random(4, 5)),
    "conv": lambda: (random(2, 3, 7, 6), random(4, 3, 3, 2), random(4)),
    "weighted": lambda: (random(3, 4), random(4)),
    "shifted": lambda: (random(6), 2),
    "several": lambda: (random(5), random(5)),
}


@pytest.mark.parametrize("name", CASES)
def test_derived_gradients_are_right_and_the_operator_is_well_behaved(name: str) -> None:
    operator = as_torch_op(f"graphnet_tests::{name}", define(SOURCE), name)
    assert torch.autograd.gradcheck(operator, CASES[name]())
    torch.library.opcheck(operator, CASES[name]())


@pytest.mark.parametrize(
    ("source", "shapes", "expected"),
    [
        ("(double(N) A) -> (O) { O(i) = A(2*i)*A(2*i) }", [(9,)], lambda a: a[::2] ** 2),
        (
            "(double(N) A) -> (O) { O(i) = A(8-2*i) where i in 0:4 }", [(9,)],
            lambda a: a.flip(0)[:8:2],
        ),
        (
            "(double(C,H) A) -> (O) { O(c,h) = A(c,(h+1)/3) where h in 0:8 }", [(2, 5)],
            lambda a: a[:, (torch.arange(8) + 1) // 3],
        ),
        (
            "(double(N) A) -> (O) { O(i) = A(i%3)*A(i%3) where i in 0:8 }", [(5,)],
            lambda a: a[torch.arange(8) % 3] ** 2,
        ),
        (
            "(double(N,M) A, double(M) B) -> (O) { O(n) min=! A(n,m)*B(m) }", [(4, 6), (6,)],
            lambda a, b: (a * b).amin(1),
        ),
        (
            "(double(N,C,H) X) -> (O) { O(n,c,h) max=! X(n,c,2*h+p) where p in 0:3 }", [(1, 2, 9)],
            lambda x: torch.nn.functional.max_pool1d(x, 3, 2),
        ),
        (
            "(double(T,C) X) -> (O) { O(t,c) max=! (t-k >= 0 ? X(t-k,c) : -9.0) "
            "where t in 0:T, k in 0:2 }", [(6, 3)],
            lambda x: torch.maximum(x, torch.nn.functional.pad(x, (0, 0, 1, 0), value=-9.0)[:6]),
        ),
        (
            "(double(N,M) X) -> (O) { m(i) max=! X(i,j)  s(i) +=! exp(X(i,j)-m(i))  "
            "O(i,j) = exp(X(i,j)-m(i)) / s(i) }", [(4, 6)],
            lambda x: x.softmax(1),
        ),
    ],
)  # fmt: skip
def test_gradients_of_strides_quotients_and_extremes(
    source: str, shapes: list[tuple[int, ...]], expected: Any
) -> None:
    name = f"graphnet_tests::gradient_{abs(hash(source))}"
    operator = as_torch_op(name, define(f"def f{source}"))
    ours = [random(*shape) for shape in shapes]
    theirs = [value.detach().clone().requires_grad_() for value in ours]
    result, reference = operator(*ours), expected(*theirs)
    torch.testing.assert_close(result, reference)
    upstream = random(*reference.shape).detach()
    for actual, wanted in zip(
        torch.autograd.grad(result, ours, upstream),
        torch.autograd.grad(reference, theirs, upstream),
        strict=True,
    ):
        torch.testing.assert_close(actual, wanted)


def test_equal_maxima_share_their_gradient() -> None:
    operator = as_torch_op(
        "graphnet_tests::ties", define("def f(double(N,M) A) -> (O) { O(n) max=! A(n,m) }")
    )
    values = torch.ones(2, 4, dtype=torch.float64, requires_grad=True)
    operator(values).sum().backward()
    torch.testing.assert_close(values.grad, torch.full_like(values, 0.25))


def test_symbolic_sizes_stay_symbolic() -> None:
    source = """def f(double(N,C,T) A, double(F,C,K) B) -> (O) {
        O(n,f,t) +=! A(n,c,t+k) * B(f,c,k) }"""
    operator = as_torch_op("graphnet_tests::dynamic", define(source))
    weights = random(4, 3, 3).detach()
    counter = CompileCounterWithBackend("aot_eager")
    compiled = torch.compile(operator, dynamic=True, fullgraph=True, backend=counter)
    for length in (5, 7, 12):
        values = random(2, 3, length)
        compiled(values, weights).sum().backward()
        gradient, values.grad = values.grad, None
        expected = torch.nn.functional.conv1d(values, weights)
        expected.sum().backward()
        torch.testing.assert_close(gradient, values.grad)
    assert counter.frame_count == 1
    exported = torch.export.export(
        _Module(operator),
        (random(2, 3, 9).detach(), weights),
        dynamic_shapes=({0: torch.export.Dim("n"), 2: torch.export.Dim("t", min=4)}, None),
    )
    values = random(5, 3, 20).detach()
    torch.testing.assert_close(
        exported.module()(values, weights), torch.nn.functional.conv1d(values, weights)
    )


def test_quotients_and_extremes_of_sizes_stay_symbolic() -> None:
    source = """def f(double(N) A, double(M) B) -> (O, S) {
        O(i) = A(2*i)  S(j) = A(j) + B(j) where j in 0:min(N/2, M) }"""
    operator = as_torch_op("graphnet_tests::quotient", define(source, max_specialised=1))
    counter = CompileCounterWithBackend("aot_eager")
    compiled = torch.compile(operator, dynamic=True, fullgraph=True, backend=counter)
    for length, other in ((5, 9), (8, 3), (11, 4), (14, 20)):
        values, added = random(length).detach(), random(other).detach()
        strided, summed = compiled(values, added)
        torch.testing.assert_close(strided, values[::2])
        count = min(length // 2, other)
        torch.testing.assert_close(summed, values[:count] + added[:count])
    assert counter.frame_count == 1
    exported = torch.export.export(
        _Module(operator),
        (random(9).detach(), random(6).detach()),
        dynamic_shapes=({0: torch.export.Dim("n", min=4)}, {0: torch.export.Dim("m", min=4)}),
    )
    for length, other in ((20, 5), (6, 30)):
        values, added = random(length).detach(), random(other).detach()
        torch.testing.assert_close(exported.module()(values, added)[0], values[::2])


def test_it_is_one_graph_under_torch_compile() -> None:
    operator = as_torch_op("graphnet_tests::compiled_mm", define(SOURCE), "mm")

    def loss(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        return torch.relu(operator(a, b) - 1).sum()

    a, b = CASES["mm"]()
    torch.compile(loss, fullgraph=True, backend="aot_eager")(a, b).backward()
    found = a.grad
    a.grad = None
    torch.relu(a @ b - 1).sum().backward()
    torch.testing.assert_close(found, a.grad)


def test_a_call_goes_through_the_dispatcher_where_somebody_looks_on() -> None:
    operator = as_torch_op("graphnet_tests::watched_mm", define(SOURCE), "mm")
    a, b = (each.detach() for each in CASES["mm"]())
    seen = []

    class Watching(TorchDispatchMode):
        def __torch_dispatch__(self, function, types, args=(), kwargs=None):
            seen.append(str(function))
            return function(*args, **(kwargs or {}))

    plain = operator(a, b)
    with Watching():
        watched = operator(a, b)
    assert seen == ["graphnet_tests.watched_mm.default"]
    torch.testing.assert_close(plain, watched, rtol=0, atol=0)
    with FakeTensorMode() as mode:
        assert operator(mode.from_tensor(a), mode.from_tensor(b)).shape == (3, 5)
    traced = make_fx(lambda a, b: operator(a, b) + 1)(a, b)
    assert "watched_mm" in traced.code
    with torch.profiler.profile() as profile:
        operator(a, b)
    assert any("watched_mm" in each.key for each in profile.key_averages())
    exported = torch.export.export(_Module(operator), (a, b))
    assert "watched_mm" in str(exported.graph)
    torch.testing.assert_close(exported.module()(a, b), plain)


class _Module(torch.nn.Module):
    def __init__(self, operator: Any) -> None:
        super().__init__()
        self.operator = operator

    def forward(self, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        return self.operator(a, b)


def test_gradients_can_be_given() -> None:
    forward = define("def f(double(N) A) -> (B) { B(i) = A(i) * A(i) * A(i) }")
    backward = define("def g(double(N) A, double(N) D) -> (G) { G(i) = 3 * A(i) * A(i) * D(i) }")
    operator = as_torch_op("graphnet_tests::cube", forward, backward=backward)
    assert torch.autograd.gradcheck(operator, (random(4),))


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("def f(double(N) A) -> (O) { O(i) = tgamma(A(i)) }", "`tgamma` is not known"),
        ("def f(double(N) A) -> (O) { O(i) += A(i) }", "accumulates into an output"),
    ],
)
def test_underivable_sizes_are_requested(source: str, message: str) -> None:
    with pytest.raises(TensorComprehensionError) as caught:
        as_torch_op("graphnet_tests::refused", define(source))
    assert message in str(caught.value)


def test_a_shifted_origin_is_refused_when_gradients_are_wanted() -> None:
    source = "def f(double(N) A) -> (O) { O(i) = A(i-1) }"
    operator = as_torch_op("graphnet_tests::origin", define(source))
    with pytest.raises(TensorComprehensionError, match="does not begin at coordinate 0"):
        operator(random(4)).sum().backward()
