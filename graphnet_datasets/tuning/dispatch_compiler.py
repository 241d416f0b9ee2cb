"""The `dispatch` compiler, which chooses a compiler per graph by learning from run records."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Mapping
from typing import Any, ClassVar, Literal

from ..benchmark import read_runs
from ..compilers.base import Compiler
from ..compilers.options import Option
from ..compilers.registry import is_installed, make_compiler
from ..errors import CompilerError, UntrustedCodeError
from .dispatch.compilers import EAGER, graph_features, learn_compilers

_WARM_UP = 2
_CALLS = 5


class Dispatch(Compiler):
    """Choose a compiler by the graph's size and eager time, then compile with it.

    The choice is learned from records and eager is timed during each compilation; both count as
    compile time, as they would for a user. The record's warnings name the chosen compiler. Training
    records must not contain the measured graphs: keep their families apart.
    """

    name = "dispatch"
    extra = "tuning"
    package = "scikit-learn"
    module = "sklearn"
    option_table: ClassVar[Mapping[str, Option]] = {
        "runs": Option("", "Run records of several compilers on the same samples."),
        "t": Option(-3, "Tolerance at which a compiler's outputs must be correct."),
    }

    def __init__(self, options: Mapping[str, Any] | None = None) -> None:
        super().__init__(options)
        self.chosen: Compiler | None = None
        """The compiler used by the last compilation, None for eager."""

    def compile(
        self, module: Callable[..., Any], example_inputs: Mapping[str, Any]
    ) -> Callable[..., Any]:
        """Compile the module with the chosen compiler.

        Raises:
            CompilerError: the option `runs` is missing, or the module is not a graph.
            TuningError: there are too few records.
            UntrustedCodeError: the records name a compiler that is not installed.
        """
        if not self.options["runs"]:
            raise CompilerError(
                "`dispatch` needs run records to learn from. Create some with "
                "`graphnet run … --out runs`, and pass the option `runs=./runs`."
            )
        graph = getattr(module, "graph", None)
        if graph is None:
            raise CompilerError(
                "`dispatch` needs a `torch.fx` graph module to count operators, got "
                f"`{type(module).__name__}`. Pass a materialized sample."
            )
        table = read_runs(self.options["runs"])
        learnt = learn_compilers(table.to_pylist(), t=self.options["t"])
        num_ops = sum(node.op.startswith("call_") for node in graph.nodes)
        eager_ms = _eager_ms(module, example_inputs)
        name = learnt.choose(graph_features(num_ops, eager_ms))
        self.warnings.append(
            f"dispatch: chose {name} for {num_ops} operators and {eager_ms:.3g} ms in eager"
        )
        if not is_installed(name):
            raise UntrustedCodeError(
                f"The records name the compiler `{name}`, which refers to a file or module. "
                "`dispatch` chooses only among installed compilers: publish it under the entry "
                "point `graphnet_datasets.compilers`, or remove its records."
            )
        self.chosen = make_compiler(name) if name != EAGER else None
        if self.chosen is None:
            return module
        compiled = self.chosen.compile(module, example_inputs)
        self.warnings += self.chosen.warnings
        self.fallback_share = self.chosen.fallback_share
        return compiled

    def synchronize(self) -> None:
        """Synchronize the chosen compiler."""
        if self.chosen is not None:
            self.chosen.synchronize()

    def num_compilations(self) -> int:
        """Return the number of graphs compiled by the chosen compiler."""
        return 1 if self.chosen is None else self.chosen.num_compilations()

    def phase_of(self, error: BaseException) -> Literal["compile", "run"]:
        """Return the phase of an error according to the chosen compiler."""
        chosen = self.chosen
        return super().phase_of(error) if chosen is None else chosen.phase_of(error)


def _eager_ms(module: Callable[..., Any], inputs: Mapping[str, Any]) -> float:
    """Return the median of a few calls after two warm-up calls, in milliseconds."""
    times = []
    for _ in range(_WARM_UP + _CALLS):
        started = time.perf_counter()
        module(**inputs)
        times.append((time.perf_counter() - started) * 1e3)
    return statistics.median(times[_WARM_UP:])
