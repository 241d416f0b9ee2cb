"""Search configuration and results."""

from __future__ import annotations

import dataclasses
import statistics

from ...errors import TensorComprehensionError
from ..options import Options


@dataclasses.dataclass(frozen=True, slots=True)
class TunerConfig:
    """Strategy and budget of a search.

    The paper uses 100 candidates in 25 generations on a GPU. The defaults are smaller, because a
    candidate costs a run of the C compiler and the model's choice is among the first candidates.

    Attributes:
        population: number of candidates per generation.
        generations: number of generations.
        crossover: share of children that mix three parents instead of copying one.
        mutation: probability that an option of a child is drawn anew.
        elites: number of best candidates kept unchanged; at most half of the population.
        num_saved: number of best candidates stored in a cache.
        num_finalists: number of best candidates timed again at the end, in turn with the first
            candidate, to exclude chance; 0 disables this.
        min_valid: with fewer successful candidates, all but the best are drawn anew.
        seed: random seed.
        budget_s: seconds after which no candidate is started; None for no limit.
        num_runs: timed runs of a candidate, after `num_warm_up` untimed runs. Slow kernels run
            less often: for `run_budget_s`, but at least three times.
        run_budget_s: seconds after which no further run of a candidate is started.
        drop_factor: a candidate is dropped if its first run takes longer than the best time by
            this factor, plus 20 ms for the overhead of a first run.
        compile_workers: number of parallel compiler processes; None for one per processor. The
            compiler never runs during timing.
        timeout_s: time limit in seconds for compiling a candidate, and for running it.
        memory_bytes: memory limit for running a candidate, in addition to its tensors.
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
                    f"`{name}` is {getattr(self, name)}; it must be at least 1."
                )
        for name in ("crossover", "mutation"):
            if not 0 <= getattr(self, name) <= 1:
                raise TensorComprehensionError(
                    f"`{name}` is {getattr(self, name)}; it must be from 0 to 1."
                )
        if not 0 <= self.elites <= self.population // 2:
            raise TensorComprehensionError(
                f"`elites` is {self.elites}; it must be from 0 to half of the population."
            )


@dataclasses.dataclass(frozen=True, slots=True)
class Candidate:
    """Options that were tried.

    Attributes:
        times_ms: times of the timed runs; () if the candidate failed or was dropped.
        error: the reason for missing times, or "".
        source_hash: SHA-256 of the generated code.
        at_s: seconds since the start of the search.
    """

    options: Options
    times_ms: tuple[float, ...] = ()
    error: str = ""
    source_hash: str = ""
    at_s: float = 0.0

    @property
    def median_ms(self) -> float:
        """Median time, or infinity without times."""
        return statistics.median(self.times_ms) if self.times_ms else float("inf")


@dataclasses.dataclass(frozen=True, slots=True)
class Progress:
    """State of a search after a candidate."""

    generation: int
    num_tried: int
    num_failed: int
    best_ms: float
    elapsed_s: float


@dataclasses.dataclass(frozen=True, slots=True)
class TuningResult:
    """Result of a search.

    Attributes:
        candidates: all tried candidates, in order.
        finalists: the best candidates and the first, with the times of the final runs only.
        seconds: duration of the search.
    """

    candidates: tuple[Candidate, ...]
    seconds: float
    finalists: tuple[Candidate, ...] = ()

    @property
    def best(self) -> Candidate:
        """The fastest finalist, or the fastest candidate without finalists."""
        return min(self.finalists or self.candidates, key=lambda candidate: candidate.median_ms)

    def ranked(self) -> list[Candidate]:
        """Return candidates worth saving, fastest first: the finalists, then slower candidates."""
        final_hashes = {finalist.source_hash for finalist in self.finalists}
        best = self.best.median_ms
        rest = [
            candidate
            for candidate in self.candidates
            if candidate.source_hash not in final_hashes
            and candidate.times_ms
            and candidate.median_ms >= best
        ]
        return sorted([*self.finalists, *rest], key=lambda candidate: candidate.median_ms)

    @property
    def options(self) -> Options:
        """Options of the fastest candidate."""
        return self.best.options

    def curve(self) -> list[tuple[float, float]]:
        """Return `(seconds since the start, best time so far in ms)` after each candidate."""
        best, points = float("inf"), []
        for candidate in self.candidates:
            best = min(best, candidate.median_ms)
            if best < float("inf"):
                points.append((candidate.at_s, best))
        return points
