"""Compilation under `torch.compile` ends before anything compiled runs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from graphnet_datasets.compilers.dynamo import DynamoCompiler  # noqa: E402


class Recording(DynamoCompiler):
    """Runs captured graphs as they are and records what happens when."""

    name = "recording"

    def __init__(self, options: dict[str, Any] | None = None) -> None:
        super().__init__(options)
        self.events: list[str] = []

    def compile_graph(
        self,
        graph: torch.fx.GraphModule,
        example_inputs: Sequence[Any],  # noqa: ARG002
    ) -> Callable[..., Any]:
        self.events.append("compile")

        def run(*args: Any) -> Any:
            self.events.append("run")
            return graph.forward(*args)

        return run


class FailingToCompile(Recording):
    """A backend that raises."""

    name = "failing"

    def compile_graph(
        self, graph: torch.fx.GraphModule, example_inputs: Sequence[Any]
    ) -> Callable[..., Any]:
        super().compile_graph(graph, example_inputs)
        raise RuntimeError("this backend cannot do it")


class FailingToRun(Recording):
    """A backend whose code raises."""

    name = "failing"
    error: Exception = RuntimeError("the compiled code broke")

    def compile_graph(
        self, graph: torch.fx.GraphModule, example_inputs: Sequence[Any]
    ) -> Callable[..., Any]:
        super().compile_graph(graph, example_inputs)

        def run(*args: Any) -> Any:  # noqa: ARG001
            raise self.error

        return run


class Rewriting(Recording):
    """A backend that destroys the graph that it was given."""

    name = "rewriting"

    def compile_graph(
        self, graph: torch.fx.GraphModule, example_inputs: Sequence[Any]
    ) -> Callable[..., Any]:
        compiled = super().compile_graph(graph, example_inputs)
        for node in list(graph.graph.nodes):
            if node.target is torch.sin:
                node.target = torch.cos
        graph.recompile()
        return compiled


class WithBreak(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = x.sin()
        torch._dynamo.graph_break()
        return y.cos()


def traced(function: Callable[[torch.Tensor], Any]) -> torch.fx.GraphModule:
    return torch.fx.symbolic_trace(function)


@pytest.fixture
def x() -> torch.Tensor:
    return torch.linspace(0, 1, 6)


def test_nothing_compiled_runs_while_compiling(x: torch.Tensor) -> None:
    compiler = Recording()
    compiled = compiler.compile(WithBreak(), {"x": x})
    assert compiler.events == ["compile", "compile"], "the code after the break is compiled too"
    assert torch.equal(compiled(x=x), x.sin().cos())
    assert compiler.events == ["compile", "compile", "run", "run"]
    assert compiler.num_compilations() == 2
    assert compiler.excluded_time_s > 0


def test_a_graph_break_is_noted_with_its_reason(x: torch.Tensor) -> None:
    compiler = Recording()
    compiler.compile(WithBreak(), {"x": x})
    assert compiler.warnings == [
        "graph_break: 1 (Call to `torch._dynamo.graph_break()`)",
    ]


def test_a_whole_graph_leaves_no_warnings(x: torch.Tensor) -> None:
    compiler = Recording()
    compiler.compile(traced(lambda x: x.sin() + 1), {"x": x})
    assert compiler.warnings == []


def test_falling_back_to_eager_altogether_is_flagged(x: torch.Tensor) -> None:
    class Hidden(torch.nn.Module):
        @torch._dynamo.disable
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x.sin()

    compiler = Recording()
    compiled = compiler.compile(Hidden(), {"x": x})
    assert torch.equal(compiled(x=x), x.sin())
    assert compiler.warnings[-1] == "fallback: 100% of the operators left to eager"
    assert compiler.fallback_share == 1.0


def test_a_backend_that_rewrites_its_graph_does_not_reach_the_uncompiled_run(
    x: torch.Tensor,
) -> None:
    compiler = Rewriting()
    module = traced(lambda x: torch.sin(x))
    compiled = compiler.compile(module, {"x": x})
    assert torch.equal(compiled(x=x), x.cos()), "this backend computes something else"


def test_a_failing_backend_fails_while_compiling(x: torch.Tensor) -> None:
    compiler = FailingToCompile()
    with pytest.raises(torch._dynamo.exc.BackendCompilerFailed) as error:
        compiler.compile(WithBreak(), {"x": x})
    assert compiler.phase_of(error.value) == "compile"


def test_failing_code_fails_while_running(x: torch.Tensor) -> None:
    compiler = FailingToRun()
    compiled = compiler.compile(WithBreak(), {"x": x})
    with pytest.raises(RuntimeError, match="the compiled code broke") as error:
        compiled(x=x)
    assert compiler.phase_of(error.value) == "run"


def test_compiled_code_cannot_pass_its_failure_off_as_the_compilers(x: torch.Tensor) -> None:
    compiler = FailingToRun()
    compiler.error = torch._dynamo.exc.BackendCompilerFailed(print, ValueError("no"), None)
    compiled = compiler.compile(traced(lambda x: x.sin()), {"x": x})
    with pytest.raises(torch._dynamo.exc.BackendCompilerFailed) as error:
        compiled(x=x)
    assert compiler.phase_of(error.value) == "run"


def test_a_recompilation_that_fails_is_a_failure_to_compile(x: torch.Tensor) -> None:
    class FailingAgain(Recording):
        def compile_graph(self, graph: Any, example_inputs: Any) -> Callable[..., Any]:
            if self.events:
                raise RuntimeError("only once")
            return super().compile_graph(graph, example_inputs)

    compiler = FailingAgain({"dynamic": False})
    compiled = compiler.compile(traced(lambda x: x.sin()), {"x": x})
    with pytest.raises(torch._dynamo.exc.BackendCompilerFailed) as error:
        compiled(x=torch.zeros(9))
    assert compiler.phase_of(error.value) == "compile"
    assert compiler.num_compilations() == 2


def test_fullgraph_refuses_a_break(x: torch.Tensor) -> None:
    compiler = Recording({"fullgraph": True})
    with pytest.raises(torch._dynamo.exc.Unsupported) as error:
        compiler.compile(WithBreak(), {"x": x})
    assert compiler.phase_of(error.value) == "compile"
