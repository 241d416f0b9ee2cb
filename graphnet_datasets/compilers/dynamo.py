"""Compilers that are backends of `torch.compile`, with all compilation done before the run.

`torch.compile` compiles during the first call, so a wrapper surrounds the backend. While `compile`
forces that first call, the wrapper passes each captured graph to the real backend and then runs the
graph uncompiled. In this way code after a graph break is also reached and compiled, and no compiled
code has run when `compile` returns. Afterwards the wrapper calls the compiled code, remembers the
errors it raises and counts recompilations. It adds about 0.1 microseconds per call of a graph.
"""

from __future__ import annotations

import abc
import copy
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

import torch
import torch._dynamo.exc
import torch._dynamo.utils

from .base import Compiler
from .options import Option

_perf_counter = time.perf_counter

_FREE_TARGETS = frozenset({"getitem", "getattr", "size", "dim", "numel", "shape", "stride"})
"""Operators that Dynamo resolves while tracing; if a graph lacks them, that is not a fallback."""

DYNAMO_OPTIONS: Mapping[str, Option] = {
    "dynamic": Option("auto", "Compile for dynamic shapes.", ("auto", True, False)),
    "fullgraph": Option(False, "Fail on a graph break instead of running in pieces."),
}


class DynamoCompiler(Compiler):
    """Base class of the compilers that run through `torch.compile`."""

    option_table = DYNAMO_OPTIONS

    def __init__(self, options: Mapping[str, Any] | None = None) -> None:
        super().__init__(options)
        self._backend = _Backend(self.compile_graph, self.uncompiled)

    @abc.abstractmethod
    def compile_graph(
        self, graph: torch.fx.GraphModule, example_inputs: Sequence[Any]
    ) -> Callable[..., Any]:
        """Compile one captured graph, as a `torch.compile` backend does."""

    def uncompiled(self, graph: torch.fx.GraphModule) -> Callable[..., Any]:
        """Return the callable that runs instead of a compiled graph within `compile`.

        Backends modify the graph they receive, so this is a copy.
        """
        return torch.fx.GraphModule(graph, copy.deepcopy(graph.graph))

    def compile(
        self, module: Callable[..., Any], example_inputs: Mapping[str, Any]
    ) -> Callable[..., Any]:
        torch._dynamo.reset()
        torch._dynamo.utils.counters.clear()
        dynamic = self.options["dynamic"]
        compiled = torch.compile(
            module,
            backend=self._backend,
            dynamic=None if dynamic == "auto" else dynamic,
            fullgraph=self.options["fullgraph"],
        )
        compiled(**example_inputs)
        self.excluded_time_s = self._backend.end_forcing()
        self._note_what_was_left_out(module)
        return compiled

    def num_compilations(self) -> int:
        return self._backend.num_graphs

    def phase_of(self, error: BaseException) -> Literal["compile", "run"]:
        if isinstance(error, torch._dynamo.exc.TorchDynamoException):
            return "run" if self._backend.has_raised(error) else "compile"
        return "run"

    def _note_what_was_left_out(self, module: Callable[..., Any]) -> None:
        breaks = torch._dynamo.utils.counters["graph_break"]
        if breaks:
            reasons = "; ".join(reason.partition("\n")[0] for reason in sorted(breaks))
            self.warnings.append(f"graph_break: {sum(breaks.values())} ({reasons})"[:1000])
        total = count_operators(module)
        captured = self._backend.num_operators
        if self._backend.num_graphs == 0:
            share = 1.0
        elif breaks and total:
            share = max(0.0, 1 - captured / total)
        else:
            share = 0.0
        self.note_fallback(share)


class _Backend:
    """The backend passed to `torch.compile`: runs graphs uncompiled first and compiled later."""

    def __init__(
        self,
        compile_graph: Callable[..., Callable[..., Any]],
        make_uncompiled: Callable[[torch.fx.GraphModule], Callable[..., Any]],
    ) -> None:
        self._compile_graph, self._make_uncompiled = compile_graph, make_uncompiled
        self._is_forcing = True
        self._uncompiled_time_s = 0.0
        self._pending: list[tuple[list[Callable[..., Any]], Callable[..., Any]]] = []
        self._last_error: BaseException | None = None
        self.num_graphs = 0
        self.num_operators = 0

    def __call__(
        self, graph: torch.fx.GraphModule, example_inputs: Sequence[Any]
    ) -> Callable[..., Any]:
        self.num_graphs += 1
        self.num_operators += count_operators(graph)
        uncompiled = None
        if self._is_forcing:
            started = _perf_counter()
            uncompiled = self._make_uncompiled(graph)
            self._uncompiled_time_s += _perf_counter() - started
        compiled = self._compile_graph(graph, example_inputs)
        target = [compiled]
        if uncompiled is not None:
            target[0] = self._timed(uncompiled)
            self._pending.append((target, compiled))

        def run(*args: Any) -> Any:
            try:
                return target[0](*args)
            except BaseException as error:
                self._last_error = error
                raise

        return run

    def _timed(self, uncompiled: Callable[..., Any]) -> Callable[..., Any]:
        def run(*args: Any) -> Any:
            started = _perf_counter()
            try:
                return uncompiled(*args)
            finally:
                self._uncompiled_time_s += _perf_counter() - started

        return run

    def end_forcing(self) -> float:
        """Switch to compiled code and return the seconds spent in uncompiled code."""
        self._is_forcing = False
        for target, compiled in self._pending:
            target[0] = compiled
        self._pending.clear()
        return self._uncompiled_time_s

    def has_raised(self, error: BaseException) -> bool:
        """Return whether compiled code raised `error` or its cause."""
        current: BaseException | None = error
        while current is not None:
            if current is self._last_error:
                return True
            current = current.__cause__ or current.__context__
        return False


def count_operators(module: Any) -> int:
    """Count the nodes of an FX graph that compute tensors (0 for any other object)."""
    if not isinstance(module, torch.fx.GraphModule):
        return 0
    return sum(
        node.op in ("call_function", "call_method", "call_module")
        and getattr(node.target, "__name__", node.target) not in _FREE_TARGETS
        for node in module.graph.nodes
    )
