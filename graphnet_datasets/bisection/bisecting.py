"""`bisect`: reduces a failing graph to the few operators responsible."""

from __future__ import annotations

import contextlib
import math
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from ..benchmark import Settings
from ..compilers import resolve_name
from ..errors import BisectionError
from ..frameworks import find_results
from ..frameworks.results import Observed, Result
from ..sample import Sample
from ..timing.pairs import TimingSettings
from ..transforms import Cutter
from .convex import ConvexSets
from .failures import Failure, Verdict, find_failure
from .result import Bisection
from .searching import find_smallest
from .shrinking import drop_elements, shrink_sizes
from .trials import Budget, BudgetSpentError, Piece, Progress, TrialRunner, Trials

NAME = "minimal"
"""Suffix of the ids of tried parts and of the result. Inputs are drawn by id."""
TIMEOUTS_S = {"load": 120.0, "baseline": 120.0, "compile": 300.0, "run": 60.0}
"""Timeouts of trials, shorter than in a timed run because each hanging trial takes the whole
timeout."""
TIMING = TimingSettings(budget_s=1.0, min_pairs=10, max_pairs=200, precision=0.03, warmup_s=0.05)
"""Settings that suffice to decide whether a part is slower than a bound."""
DEFAULT_T = -3.0


def bisect(
    sample: Sample,
    compiler: str,
    out: str | os.PathLike[str],
    *,
    options: Mapping[str, Any] | None = None,
    t: float = DEFAULT_T,
    slower_than: float | None = None,
    device: str = "cpu",
    settings: Settings | None = None,
    budget: Budget | None = None,
    shrinks_sizes: bool = True,
    runner: TrialRunner | None = None,
    on_progress: Callable[[Progress], None] | None = None,
) -> Bisection:
    """Reduce a failing graph to the smallest subgraph that fails in the same way.

    Each trial runs a part under eager and under the compiler in its own process, on the values that
    the part receives in the whole graph. The search first finds the smallest failing convex set of
    operators, then smaller input sizes, and finally inputs that can be drawn from their statistics.
    `Failure.is_met_by` defines when two failures are the same. Trials are stored in `out`, so the
    same call resumes an interrupted bisection.

    Args:
        sample: The graph.
        compiler: A name of `graphnet compilers`, `module:attribute`, or `file.py:attribute`.
        out: Directory for the trials and the result (`Bisection.write`).
        options: Options of the compiler.
        t: Outputs that do not pass at this tolerance are wrong.
        slower_than: Search for a speedup below this bound instead.
        device: `cpu`, `cuda` or `cuda:1`.
        settings: How samples run; seed, threads, limits and `phase_timeouts_s` apply.
        budget: Time or number of trials after which the search stops with its best result.
        shrinks_sizes: Whether to reduce the input sizes as well.
        runner: Runs the trials of several bisections in sequence. It stays open, and its device and
            settings apply. None creates a runner.
        on_progress: Called with the progress after each trial.

    Raises:
        BisectionError: The compiler does not fail on the graph, or eager does.
        CompilerError: The compiler is unknown, unavailable or wrongly configured.
        MaterializeError, SampleError: The graph cannot be walked or cut.
        DiskError: `out` cannot be written.
    """
    settings = runner.settings if runner else settings or default_settings()
    device = runner.device if runner else device
    place = Path(out)
    place.mkdir(parents=True, exist_ok=True)
    with contextlib.ExitStack() as stack:
        if runner is None:
            runner = TrialRunner(device, settings, compilers=(compiler,))
            stack.callback(runner.close)
        candidate = runner.find_candidate(resolve_name(compiler), sample.framework, options or {})
        trials = Trials(
            sample,
            candidate,
            runner,
            settings,
            device,
            place,
            is_timed=slower_than is not None,
            budget=budget or Budget(),
            on_progress=on_progress,
        )
        stack.callback(trials.close)
        search = _Search(trials, t, slower_than, shrinks_sizes)
        is_minimal = search.run()
        if search.failure is None:
            raise BisectionError(
                f"The budget ran out before `{compiler}` was tried on `{sample.id}`. Increase it."
            )
        # A part of a random graph need not be random, so its own trial describes the failure.
        failure = find_failure(trials.verdict(search.best), t, slower_than) or search.failure
        return Bisection(
            whole=sample,
            sample=trials.with_elements(search.best),
            failure=failure,
            candidate=candidate,
            device=device,
            settings=settings,
            is_minimal=is_minimal,
            num_trials=trials.num_trials,
            num_known=trials.num_known,
            seconds=trials.seconds,
        )


def default_settings(*, timeouts_s: Mapping[str, float] | None = None, **changes: Any) -> Settings:
    """Return the settings of trials: shorter timeouts and fewer pairs than in a timed run.

    `changes` are settings by name.

    >>> default_settings(timeouts_s={"run": 5.0}, seed=3).phase_timeouts_s["run"]
    5.0
    """
    limits = {**TIMEOUTS_S, **(timeouts_s or {})}
    return Settings(phase_timeouts_s=limits, **{"timing": TIMING, **changes})


class _Search:
    """The steps of one bisection and the best result so far."""

    def __init__(
        self, trials: Trials, t: float, slower_than: float | None, shrinks_sizes: bool
    ) -> None:
        self._trials, self._t, self._slower_than = trials, t, slower_than
        self._shrinks_sizes = shrinks_sizes
        self.failure: Failure | None = None
        self.best = Piece(trials.sample, (None,) * len(trials.sample.inputs))

    def run(self) -> bool:
        """Run all steps; return whether the search was completed."""
        try:
            self._check_whole()
            self._find_operators()
            if self._shrinks_sizes:
                self._trials.doing = "smaller sizes"
                self.best = shrink_sizes(self.best, self._fails, self._keep)
            self._trials.doing = "drawn inputs"
            self.best = drop_elements(self.best, self._seen(), self._fails, self._keep)
        except BudgetSpentError:
            return False
        return True

    def _check_whole(self) -> None:
        trials = self._trials
        trials.doing = "the whole graph"
        verdict = trials.verdict(self.best)
        self.failure = find_failure(verdict, self._t, self._slower_than)
        if self.failure is None:
            raise BisectionError(
                _why_not(trials.sample.id, trials.compiler, verdict, self._slower_than)
            )

    def _find_operators(self) -> None:
        trials = self._trials
        trials.doing = "fewer operators"
        sets = ConvexSets(self._make_cutter())

        def make(ops: frozenset[int]) -> Piece | None:
            part = sets.cut(ops, NAME)
            if part is None:
                return None
            return Piece(part.sample, tuple(map(trials.stored, part.takes)))

        def fails(ops: frozenset[int]) -> bool:
            piece = make(ops)
            return piece is not None and self._fails(piece)

        def keep(ops: frozenset[int]) -> None:
            piece = make(ops)
            if piece is not None:
                self._keep(piece)

        all_ops = frozenset(range(trials.sample.num_ops))
        if not fails(all_ops):
            raise BisectionError(
                f"`{trials.sample.id}` fails under `{trials.compiler}` ({self.failure}), but not "
                "as a part with all its operators at the captured sizes. If it fails at random "
                "or is dynamic, try another seed."
            )
        keep(all_ops)
        find_smallest(sets, all_ops, fails, keep)

    def _fails(self, piece: Piece) -> bool:
        assert self.failure is not None  # noqa: S101 (the whole graph comes first)
        return self._trials.fails(self.failure, piece)

    def _keep(self, piece: Piece) -> None:
        self.best = piece
        self._trials.num_ops = piece.sample.num_ops

    def _make_cutter(self) -> Cutter:
        """Return a cutter for the graph, with data-dependent sizes fixed as observed."""
        sample, stored = self._trials.sample, self._trials.values
        results = [
            Result("tensor", stored[value].value)
            if result.kind == "other" and value in stored
            else result
            for value, result in enumerate(find_results(sample), len(sample.inputs))
        ]
        return Cutter(sample, seen=self._seen(), results=results)

    def _seen(self) -> dict[int, Observed]:
        return {value: stored.seen for value, stored in self._trials.values.items()}


def _why_not(name: str, compiler: str, verdict: Verdict, slower_than: float | None) -> str:
    """Explain why the run of the whole graph shows no failure to bisect."""
    if verdict.ending == "baseline":
        return (
            f"`{name}` does not run under eager: {verdict.message} Choose a graph that runs; no "
            "compiler is to blame for another."
        )
    if verdict.ending == "nothing":
        return f"`{name}` gives no outputs, so that nothing could be compared. Choose another one."
    if slower_than is None:
        passed = (
            "are those of eager, bit for bit"
            if verdict.min_t == -math.inf
            else f"pass from t = {verdict.min_t:.2f} on"
        )
        return (
            f"`{compiler}` does not fail on `{name}`: its outputs {passed}. To bisect a smaller "
            "difference give a lower `t`, and for a slow graph `slower_than`."
        )
    if verdict.speedup is None:
        return (
            f"`{name}` has no speedup under `{compiler}`: it ends by {verdict.ending} in phase "
            f"{verdict.phase}. Leave `slower_than` out to bisect that."
        )
    return (
        f"`{compiler}` is not slower than {slower_than:g} on `{name}`: its speedup is "
        f"{verdict.speedup:.3g}. Give a higher bound."
    )
