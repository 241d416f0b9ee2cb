"""What a search is told and what it tells."""

from __future__ import annotations

import dataclasses
import statistics

from ...errors import TensorComprehensionError
from ..options import Options


@dataclasses.dataclass(frozen=True, slots=True)
class TunerConfig:
    """How long and how a search goes.

    The paper's are 100 candidates in 25 generations on a GPU; here a candidate costs a run of the C
    compiler, and the model's own choice is among the first, so few are enough.

    Attributes:
        population: candidates of a generation.
        generations: how many generations.
        crossover: the share of children that are mixed of three parents rather than copied.
        mutation: how likely each option of a child is drawn anew.
        elites: how many of the best stay as they are; at most half of the population.
        num_saved: how many of the best a cache keeps.
        num_finalists: how many of the best are timed once more at the end, in turn with what the
            search began with, so that a lucky moment decides nothing; 0 for none.
        min_valid: with fewer candidates that ran, all but the best are drawn anew.
        seed: of all that is drawn.
        budget_s: seconds after which no further candidate is begun, None for no limit.
        num_runs: timed runs of a candidate, after `num_warm_up` that are not counted. A kernel of
            many milliseconds gets fewer: it is timed for `run_budget_s`, at least three times.
        run_budget_s: seconds after which no further run of a candidate is begun.
        drop_factor: a candidate whose first run takes so many times the best, and 20 ms more for
            what only a first run does, is dropped.
        compile_workers: processes that compile at once, None for one a processor. Nothing is
            compiled while something is timed.
        timeout_s: seconds that compiling a candidate, and that running it, may take.
        memory_bytes: memory that running a candidate may take above its tensors.
    """

    population: int = 12
    generations: int = 4
    crossover: float = 0.8
    mutation: float = 0.07
    elites: int = 3
    num_saved: int = 10
    num_finalists: int = 3
    min_valid: int = 3
    seed: int = 0
    budget_s: float | None = None
    num_runs: int = 10
    num_warm_up: int = 2
    run_budget_s: float = 0.25
    drop_factor: float = 5.0
    compile_workers: int | None = None
    timeout_s: float = 60.0
    memory_bytes: int = 4 << 30

    def __post_init__(self) -> None:
        for name in ("population", "generations", "num_runs", "num_saved"):
            if getattr(self, name) < 1:
                raise TensorComprehensionError(
                    f"`{name}` is {getattr(self, name)}; it has to be at least 1."
                )
        for name in ("crossover", "mutation"):
            if not 0 <= getattr(self, name) <= 1:
                raise TensorComprehensionError(
                    f"`{name}` is {getattr(self, name)}; it has to be from 0 to 1."
                )
        if not 0 <= self.elites <= self.population // 2:
            raise TensorComprehensionError(
                f"`elites` is {self.elites}; it has to be from 0 to half of the population."
            )


@dataclasses.dataclass(frozen=True, slots=True)
class Candidate:
    """Options that were tried.

    Attributes:
        times_ms: of each timed run; () if it failed or was dropped.
        error: why it has no times; "" if it has.
        source_hash: SHA-256 of the generated code.
        at_s: seconds since the search began.
    """

    options: Options
    times_ms: tuple[float, ...] = ()
    error: str = ""
    source_hash: str = ""
    at_s: float = 0.0

    @property
    def median_ms(self) -> float:
        """The median of the runs, infinite if there are none."""
        return statistics.median(self.times_ms) if self.times_ms else float("inf")


@dataclasses.dataclass(frozen=True, slots=True)
class Progress:
    """Where a search stands, after each candidate."""

    generation: int
    num_tried: int
    num_failed: int
    best_ms: float
    elapsed_s: float


@dataclasses.dataclass(frozen=True, slots=True)
class TuningResult:
    """What a search found.

    Attributes:
        candidates: all that were tried, in order.
        finalists: the best of them and the first, with the times of their last runs only.
        seconds: how long it took.
    """

    candidates: tuple[Candidate, ...]
    seconds: float
    finalists: tuple[Candidate, ...] = ()

    @property
    def best(self) -> Candidate:
        """The fastest candidate: of the finalists if there are any."""
        return min(self.finalists or self.candidates, key=lambda each: each.median_ms)

    def ranked(self) -> list[Candidate]:
        """Return what is worth keeping, fastest first: the finalists, then what is no faster."""
        again = {each.source_hash for each in self.finalists}
        best = self.best.median_ms
        rest = [
            each
            for each in self.candidates
            if each.source_hash not in again and each.times_ms and each.median_ms >= best
        ]
        return sorted([*self.finalists, *rest], key=lambda each: each.median_ms)

    @property
    def options(self) -> Options:
        """The options of the fastest candidate."""
        return self.best.options

    def curve(self) -> list[tuple[float, float]]:
        """Return the best time so far, in ms, after each candidate, by seconds since the start."""
        best, points = float("inf"), []
        for each in self.candidates:
            best = min(best, each.median_ms)
            if best < float("inf"):
                points.append((each.at_s, best))
        return points
