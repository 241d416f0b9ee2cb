"""Ansor's search: evolution of schedules under a learned cost model.

Zheng et al., "Ansor: Generating High-Performance Tensor Programs for Deep Learning", OSDI 2020,
section 5. Each round:

1. The population starts with the best measured programs (a fixed share) and fresh random programs.
2. For several generations, parents are drawn with probability proportional to predicted fitness
   (negative scores count as 0). A child is a mutation with probability `mutation`, otherwise a
   crossover of two parents. The best candidates over all generations are kept.
3. The best candidates not measured before are measured, except for a random share epsilon.
4. The cost model is refitted to all rows.

Defaults are TVM's: population 512, 4 generations, mutation 0.85, epsilon 0.05, a fifth of the
population measured. Sketches and the kinds of mutation (tile size, location, unrolling, parallel)
belong to the space.

Difference from the paper: if the space has no crossover (`Space.crossover` returns None), the child
is a mutation.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ...errors import TuningError
from ..candidate import Candidate
from ..interfaces import CostModel, Space
from ..measurement import Measurement
from ..models.gbdt import GbdtModel
from ..task import Task
from .base import MemoryTuner


class AnsorTuner(MemoryTuner):
    """Evolutionary search under a cost model, by default boosted trees (`GbdtModel`)."""

    def __init__(
        self,
        space: Space,
        *,
        seed: int = 0,
        model: CostModel | None = None,
        population: int = 512,
        generations: int = 4,
        mutation: float = 0.85,
        epsilon: float = 0.05,
        measured_share: float = 0.2,
        **model_options: Any,
    ) -> None:
        super().__init__(space, seed=seed)
        if population < 2 or generations < 0:
            raise TuningError(
                f"`population` must be at least 2 and `generations` at least 0, got {population} "
                f"and {generations}."
            )
        self.model = model or GbdtModel(space, seed=seed, **model_options)
        self.population, self.generations = population, generations
        self.mutation, self.epsilon, self.measured_share = mutation, epsilon, measured_share
        self._fitted_rows = 0

    def choose(self, task: Task, n: int) -> list[Candidate]:
        """Return the best candidates of an evolution by the model, mixed with random draws."""
        if not self.rows_of(task):
            return self.fresh(task, n)
        self._fit()
        ranked = self._evolve(task)
        rng = np.random.default_rng(self.next_seed())
        num_random = int(rng.binomial(n, self.epsilon))
        chosen = ranked[: n - num_random]
        return chosen + self.fresh(task, n - len(chosen))

    def _fit(self) -> None:
        """Refit if there are new rows, so that a resumed run refits at the same points."""
        rows = self.all_rows()
        if len(rows) != self._fitted_rows:
            self.model.fit(rows)
            self._fitted_rows = len(rows)

    def _evolve(self, task: Task) -> list[Candidate]:
        """Return the unproposed candidates of all generations, best first."""
        measured = sorted(self._measured(task), key=lambda row: row.latency_ms)
        parents = [row.candidate for row in measured[: int(self.population * self.measured_share)]]
        parents += self.fresh(task, self.population - len(parents))
        seen: dict[str, tuple[float, Candidate]] = {}
        for generation in range(self.generations + 1):
            scores, _ = self.model.predict(task, parents)
            for score, parent in zip(scores, parents, strict=True):
                if np.isfinite(score) and not self.is_proposed(parent):
                    seen.setdefault(parent.trace_hash, (float(score), parent))
            if generation < self.generations:
                parents = self._next_generation(parents, scores)
        ranked = sorted(seen.values(), key=lambda pair: -pair[0])
        return [_with_score(candidate, score) for score, candidate in ranked]

    def _measured(self, task: Task) -> list[Measurement]:
        return [row for row in self.rows_of(task) if row.is_ok]

    def _next_generation(self, parents: list[Candidate], scores: np.ndarray) -> list[Candidate]:
        rng = np.random.default_rng(self.next_seed())
        fitness = np.where(np.isfinite(scores), np.maximum(scores, 0.0), 0.0) + 1e-9
        fitness /= fitness.sum()
        drawn = rng.choice(len(parents), (self.population, 2), p=fitness)
        is_mutation = rng.random(self.population) < self.mutation
        seeds = rng.integers(0, 2**31, self.population)
        children = []
        for (first, second), mutates, seed in zip(drawn, is_mutation, seeds, strict=True):
            child = None
            if not mutates:
                child = self.space.crossover(parents[first], parents[second], int(seed))
            if child is None:
                child = self.space.mutate(parents[first], int(seed))
            children.append(parents[first] if child is None else child)
        return children


def _with_score(candidate: Candidate, score: float) -> Candidate:
    return Candidate(candidate.task_id, candidate.trace_json, candidate.origin, score)
