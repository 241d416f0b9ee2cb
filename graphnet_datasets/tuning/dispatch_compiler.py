"""`dispatch`: the compiler that run records say is best for a graph like this one."""

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
    """Choose a compiler by the graph's size and its time in eager, then compile with that one.

    What to choose is learnt from records in each compilation, and eager is timed in it: both are
    part of the compile time, as they would be for a user. Which compiler was chosen is among the
    warnings of the record. Records of the graphs that it is measured on are a look at the answers:
    keep their families apart.
    """

    name = "dispatch"
    extra = "tuning"
    package = "scikit-learn"
    module = "sklearn"
    option_table: ClassVar[Mapping[str, Option]] = {
        "runs": Option("", "Run records of several compilers on the same samples."),
        "t": Option(-3, "Tolerance at which a compiler's outputs have to be right."),
    }

    def __init__(self, options: Mapping[str, Any] | None = None) -> None:
        super().__init__(options)
        self.chosen: Compiler | None = None
        """What the last compilation was left to."""

    def compile(
        self, module: Callable[..., Any], example_inputs: Mapping[str, Any]
    ) -> Callable[..., Any]:
        """Return what the chosen compiler makes of the module.

        Raises:
            CompilerError: no records were named, or the module is not a graph.
            TuningError: the records are too few.
            UntrustedCodeError: the records name a compiler that is not installed.
        """
        if not self.options["runs"]:
            raise CompilerError(
                "`dispatch` learns from run records. Make some with `graphnet run … --out runs`, "
                "and name them with the option `runs=./runs`."
            )
        graph = getattr(module, "graph", None)
        if graph is None:
            raise CompilerError(
                "`dispatch` counts the operators of a graph, and the module has none."
            )
        table = read_runs(self.options["runs"])
        learnt = learn_compilers(table.to_pylist(), t=self.options["t"])
        num_ops = sum(node.op.startswith("call_") for node in graph.nodes)
        eager_ms = _eager_ms(module, example_inputs)
        name = learnt.choose(graph_features(num_ops, eager_ms))
        self.warnings.append(
            f"dispatch: {name}, for {num_ops} operators that take {eager_ms:.3g} ms in eager"
        )
        if not is_installed(name):
            raise UntrustedCodeError(
                f"The records name the compiler `{name}`, which would be imported from a file or "
                "module. `dispatch` chooses among installed compilers: publish it under the entry "
                "point `graphnet_datasets.compilers`, or leave its records out."
            )
        self.chosen = make_compiler(name) if name != EAGER else None
        if self.chosen is None:
            return module
        compiled = self.chosen.compile(module, example_inputs)
        self.warnings += self.chosen.warnings
        self.fallback_share = self.chosen.fallback_share
        return compiled

    def synchronize(self) -> None:
        """Wait as the chosen compiler does."""
        if self.chosen is not None:
            self.chosen.synchronize()

    def num_compilations(self) -> int:
        """Return how many graphs the chosen compiler has compiled."""
        return 1 if self.chosen is None else self.chosen.num_compilations()

    def phase_of(self, error: BaseException) -> Literal["compile", "run"]:
        """Return the phase that the chosen compiler names."""
        chosen = self.chosen
        return super().phase_of(error) if chosen is None else chosen.phase_of(error)


def _eager_ms(module: Callable[..., Any], inputs: Mapping[str, Any]) -> float:
    """Return the median of a few calls, after two that are not counted."""
    times = []
    for _ in range(_WARM_UP + _CALLS):
        started = time.perf_counter()
        module(**inputs)
        times.append((time.perf_counter() - started) * 1e3)
    return statistics.median(times[_WARM_UP:])
