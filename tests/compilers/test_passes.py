"""Passes: which occurrences of a pattern are replaced, and passes inside of compilers."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from graphnet_datasets.compilers import make_compiler  # noqa: E402
from graphnet_datasets.compilers.passes import NO_OCCURRENCE, replace_occurrences  # noqa: E402
from graphnet_datasets.errors import CandidateError  # noqa: E402

pytestmark = pytest.mark.torch
functional = torch.nn.functional
X = torch.linspace(-2, 2, 12).reshape(3, 4)


def replaced(graph: Callable[..., Any], pattern: Callable[..., Any], **functions: Any) -> int:
    """Replace a pattern by itself, check the outputs, and return the number of occurrences."""
    module = torch.fx.symbolic_trace(graph)
    functions.setdefault("replacement", pattern)
    number = replace_occurrences(module, {"pattern": pattern, **functions}, {"x": X})
    assert torch.allclose(module(X), graph(X))
    return number


@pytest.mark.parametrize(
    ("graph", "pattern"),
    [
        (lambda x: torch.relu(x) + 1, lambda a: a.relu()),
        (lambda x: functional.relu(x) + 1, lambda a: torch.relu(a)),
        (lambda x: functional.relu(x, inplace=False) + 1, lambda a: functional.relu(a)),
        (lambda x: torch.softmax(x, dim=-1) * 2, lambda a: a.softmax(-1)),
        (lambda x: functional.softmax(x, dim=-1), lambda a: functional.softmax(a, -1)),
        (lambda x: torch.add(x, x.sin()).exp(), lambda a, b: (a + b).exp()),
        (lambda x: x.mul(3.0), lambda a, b: a * b),
        (lambda x: torch.flatten(x, 1), lambda a: a.flatten(1)),
        (lambda x: x.transpose(dim0=0, dim1=1) + 1, lambda a: torch.transpose(a, 0, 1)),
        (lambda x: x.sum(dim=1, keepdim=True), lambda a: a.sum(1, True)),
        (lambda x: functional.gelu(x, approximate="tanh"),
         lambda a: functional.gelu(a, approximate="tanh")),
        (lambda x: functional.layer_norm(x, (4,), None, None, 1e-5),
         lambda a: functional.layer_norm(a, (4,))),
    ],
)  # fmt: skip
def test_spellings_do_not_matter(graph: Callable[..., Any], pattern: Callable[..., Any]) -> None:
    assert replaced(graph, pattern) == 1


@pytest.mark.parametrize(
    ("graph", "pattern"),
    [
        (lambda x: torch.softmax(x, dim=-1), lambda a: a.softmax(0)),
        (lambda x: torch.add(x, x, alpha=2), lambda a, b: a + b),
        (lambda x: torch.where(x > 0, x, -x), lambda c, a, b: a.where(c, b)),
        (lambda x: x.relu() + x, lambda a: a.sigmoid()),
    ],
)
def test_other_operators_and_literals_do_not_match(
    graph: Callable[..., Any], pattern: Callable[..., Any]
) -> None:
    assert replaced(graph, pattern) == 0


def test_all_occurrences_are_replaced_and_several_outputs_are_returned() -> None:
    def graph(x: Any) -> Any:
        first = x.exp() + 1
        second = first.exp() + 1
        return second * first

    def pattern(a: Any) -> Any:
        return a.exp() + 1

    assert replaced(graph, pattern) == 2
    assert replaced(lambda x: x.exp() + x.sin(), lambda a: (a.exp(), a.sin())) == 1


def test_literals_are_operands() -> None:
    seen = []

    def replacement(a: Any, dim: int) -> Any:
        seen.append(dim)
        return torch.softmax(a, dim)

    def pattern(a: Any, dim: Any) -> Any:
        return a.softmax(dim)

    graph: Callable[..., Any] = lambda x: x.softmax(0) + torch.softmax(x, 1)  # noqa: E731
    assert replaced(graph, pattern, replacement=replacement) == 2 and set(seen) == {0, 1}


def test_gain_decides_by_the_shapes_of_an_occurrence() -> None:
    def graph(x: Any) -> Any:
        return x.exp().sum() + x[:1].exp().sum()

    def pattern(a: Any) -> Any:
        return a.exp()

    assert replaced(graph, pattern, gain=lambda a: a.shape[0] - 1) == 1
    assert replaced(graph, pattern, gain=torch.numel) == 2


def test_the_contract_of_passnet() -> None:
    number = replaced(
        lambda x: torch.relu(x) + 1,
        lambda in_0: (torch.relu(in_0),),
        replacement_args=lambda in_0: (in_0, 0),
        replacement_func=lambda: torch.clamp,
    )
    assert number == 1


@pytest.mark.parametrize(
    ("functions", "sentence"),
    [
        ({"replacement": lambda: 0}, "`replacement` cannot be called with the 1 parameter"),
        ({"replacement": lambda a: a, "gain": lambda: 1}, "`gain` cannot be called with"),
        ({}, "must also define `replacement`"),
    ],
)
def test_faulty_passes_are_errors(functions: dict[str, Any], sentence: str) -> None:
    module = torch.fx.symbolic_trace(lambda x: x.relu())
    with pytest.raises(CandidateError, match=sentence):
        replace_occurrences(module, {"pattern": lambda a: a.relu(), **functions}, {"x": X})


def compile_pass(path: Path, text: str, name: str) -> Any:
    path.write_text(text)
    compiler = make_compiler(f"{path}:{name}")
    compiler.use_caches(path.parent / "cache")
    module = torch.fx.symbolic_trace(lambda x: torch.relu(x) + 1)
    return compiler.compile(module, {"x": X})


def test_an_absent_pattern_is_an_error(tmp_path: Path) -> None:
    text = "def pattern(x):\n    return x.sin()\n\n\nreplacement = pattern\n"
    with pytest.raises(CandidateError, match=NO_OCCURRENCE):
        compile_pass(tmp_path / "absent.py", text, "pattern")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "text"),
    [
        (
            "inductor_pass",
            "import torch\n\n\ndef inductor_pass(graph):\n"
            "    for node in graph.nodes:\n"
            "        if node.target is torch.ops.aten.relu.default:\n"
            "            node.target = torch.ops.aten.abs.default\n",
        ),
        (
            "tvm_pass",
            "import tvm\n\n\ndef tvm_pass(module):\n"
            "    def visit(node):\n"
            "        if isinstance(node, tvm.relax.Call) and str(node.op) == "
            "str(tvm.ir.Op.get('relax.nn.relu')):\n"
            "            return tvm.relax.op.abs(*node.args)\n"
            "        return node\n\n"
            "    @tvm.relax.expr_functor.mutator\n"
            "    class Relu(tvm.relax.PyExprMutator):\n"
            "        def visit_call_(self, call):\n"
            "            return visit(self.visit_expr_post_order(call))\n\n"
            "    mutator = Relu(module)\n"
            "    for name, function in module.functions_items():\n"
            "        mutator.builder_.update_func(name, mutator.visit_expr(function))\n"
            "    return mutator.builder_.get()\n",
        ),
    ],
)
def test_a_pass_runs_inside_of_a_compiler(name: str, text: str, tmp_path: Path) -> None:
    compiled = compile_pass(tmp_path / "mine.py", text, name)
    assert torch.allclose(compiled(x=X), X.abs() + 1)
