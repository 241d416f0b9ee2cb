"""Ansor's search: evolution of schedules under a learned cost model.

Zheng et al., "Ansor: Generating High-Performance Tensor Programs for Deep Learning", OSDI 2020,
section 5. Each round:

1. The population begins with the best measured programs (a share of it) and fresh random ones.
2. For some generations parents are drawn with probability proportional to the predicted fitness
   (scores below zero count as none); a child is a mutation with probability `mutation`, otherwise
   a crossover of two parents. The best seen in all generations are kept.
3. The best that were not measured are measured, all but a share epsilon of them, which is random.
4. The cost model is fitted anew to all rows.

Defaults are TVM's: population 512, 4 generations, mutation 0.85, epsilon 0.05, a fifth of the
population measured. Sketches and the kinds of mutation (tile size, location, unrolling, parallel)
are the space's.

Ours: where a space has no crossover (`Space.crossover` gives None) the child is a mutation.
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
    """Evolutionary search under a cost model, boosted trees unless another one is given."""

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
                f"A population of {population} in {generations} generations cannot evolve. Take at "
                "least 2 and 0."
            )
        self.model = model or GbdtModel(space, seed=seed, **model_options)
        self.population, self.generations = population, generations
        self.mutation, self.epsilon, self.measured_share = mutation, epsilon, measured_share
        self._fitted_rows = 0

    def choose(self, task: Task, n: int) -> list[Candidate]:
        """Return the best of an evolution by the model, a few at random among them."""
        if not self.rows_of(task):
            return self.fresh(task, n)
        self._fit()
        kept = self._evolve(task)
        rng = np.random.default_rng(self.next_seed())
        num_random = int(rng.binomial(n, self.epsilon))
        chosen = kept[: n - num_random]
        return chosen + self.fresh(task, n - len(chosen))

    def _fit(self) -> None:
        """Fit when it is needed, so that a run that was resumed fits at the same moments."""
        rows = self.all_rows()
        if len(rows) != self._fitted_rows:
            self.model.fit(rows)
            self._fitted_rows = len(rows)

    def _evolve(self, task: Task) -> list[Candidate]:
        """Return what was seen in all generations and never proposed, best first."""
        measured = sorted(self._measured(task), key=lambda row: row.latency_ms)
        parents = [row.candidate for row in measured[: int(self.population * self.measured_share)]]
        parents += self.fresh(task, self.population - len(parents))
        seen: dict[str, tuple[float, Candidate]] = {}
        for generation in range(self.generations + 1):
            scores, _ = self.model.predict(task, parents)
            for score, each in zip(scores, parents, strict=True):
                if np.isfinite(score) and not self.is_proposed(each):
                    seen.setdefault(each.trace_hash, (float(score), each))
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
