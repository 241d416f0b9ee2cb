"""GPTune: Bayesian optimisation of many related tasks with one model of all of them.

Liu et al., "GPTune", PPoPP 2021:

1. Each task begins with a Latin hypercube over its knobs (in the paper half of its budget).
2. The linear model of coregionalisation is fitted to the rows of all tasks (`models/gp.py`).
3. Each task's next candidate has the largest expected improvement

       EI = (best - mu) * Phi(z) + sigma * phi(z),   z = (best - mu) / sigma

   of the log time. Over a finite space, or a fixed draw of `pool_size` candidates of a larger one,
   it is found by looking at all of them; the paper uses particle swarms.
4. Evaluate, and begin again at 2.

`shared=False` is the single-task control: a model of its own for each task.

Ours: points of the hypercube are snapped to the nearest candidates; of several in one slot each
next is chosen as if those before had come out as expected ("kriging believer", Ginsbourger et al.,
2010), since the paper proposes one at a time.
"""

from __future__ import annotations

import numpy as np
from scipy.stats import norm, qmc

from ...errors import TuningError
from ..candidate import Candidate, Origin
from ..interfaces import Space, State
from ..knobs import knob_matrix
from ..models.gp import MAX_ROWS, GpModel
from ..task import Task
from .base import MemoryTuner


class GpTuner(MemoryTuner):
    """Expected improvement under a Gaussian process over all tasks that it was asked for."""

    def __init__(
        self,
        space: Space,
        *,
        seed: int = 0,
        shared: bool = True,
        latent: int | None = 1,
        initial_trials: int = 8,
        pool_size: int = 512,
        max_rows: int = MAX_ROWS,
        iterations: int = 60,
    ) -> None:
        super().__init__(space, seed=seed)
        if initial_trials < 1 or pool_size < 1:
            raise TuningError(
                f"{initial_trials} initial trials of a pool of {pool_size} begin nothing. Both "
                "have to be at least 1."
            )
        self.shared, self.initial_trials, self.pool_size = shared, initial_trials, pool_size
        self.model = GpModel(
            space, seed=seed, latent=latent, max_rows=max_rows, iterations=iterations
        )
        self._pool_seeds: dict[str, int] = {}
        self._pools: dict[str, list[Candidate]] = {}

    def choose(self, task: Task, n: int) -> list[Candidate]:
        """Return points of a hypercube at first, then those with the most expected improvement."""
        pool = self._pool(task)
        rest = [each for each in pool if not self.is_proposed(each)]
        if not rest:
            return []
        missing = self.initial_trials - len(pool) + len(rest)
        if missing > 0 or not any(row.is_ok for row in self.rows_of(task)):
            return self._hypercube(rest, min(n, missing) if missing > 0 else n)
        for each in self._pools.values():
            self.model.know(each)
        self.model.fit(self.all_rows() if self.shared else self.rows_of(task))
        mean, covariance = self.model.posterior(task, rest)
        chosen = believed_best(mean, covariance, self.model.best_log_ms(task), n)
        return [
            Candidate(
                rest[index].task_id,
                rest[index].trace_json,
                Origin.PREDICT,
                float(mean[index]),
                float(np.sqrt(max(covariance[index, index], 0.0))),
            )
            for index in chosen
        ]

    def _pool(self, task: Task) -> list[Candidate]:
        if task.task_id not in self._pools:
            everything = self.space.enumerate(task)
            if everything is None or len(everything) > self.pool_size:
                seed = self._pool_seeds.setdefault(task.task_id, self.next_seed())
                everything = self.space.sample(task, self.pool_size, seed)
            self._pools[task.task_id] = everything
        return self._pools[task.task_id]

    def _hypercube(self, candidates: list[Candidate], n: int) -> list[Candidate]:
        points, names = knob_matrix([self.space.knobs(each) for each in candidates])
        rng = np.random.default_rng(self.next_seed())
        n = min(n, len(candidates))
        if not names:
            return [candidates[index] for index in rng.permutation(len(candidates))[:n]]
        wanted = qmc.LatinHypercube(len(names), rng=rng).random(n)
        free = np.ones(len(candidates), bool)
        chosen = []
        for point in wanted:
            distance = np.where(free, np.linalg.norm(points - point, axis=1), np.inf)
            chosen.append(int(np.argmin(distance)))
            free[chosen[-1]] = False
        return [candidates[index] for index in chosen]

    def extra_state(self) -> State:
        """Return the seeds of the pools, and the parameters of the model."""
        return {"pool_seeds": dict(self._pool_seeds), "model": self.model.state()}

    def restore_extra(self, state: State) -> None:
        """Take the seeds of the pools, and draw them anew when they are needed."""
        self._pool_seeds = {str(key): int(seed) for key, seed in state["pool_seeds"].items()}
        self._pools = {}
        self.model.restore(state["model"])


def expected_improvement(mean: np.ndarray, std: np.ndarray, best: float) -> np.ndarray:
    """Return E[max(best - X, 0)] of normal X, [n].

    >>> expected_improvement(np.array([1.0, 3.0]), np.array([1e-9, 1e-9]), 2.0).round(6).tolist()
    [1.0, 0.0]
    """
    z = (best - mean) / np.maximum(std, 1e-12)
    return (best - mean) * norm.cdf(z) + std * norm.pdf(z)


def believed_best(mean: np.ndarray, covariance: np.ndarray, best: float, n: int) -> list[int]:
    """Return the indices of `n` points, each with the largest expected improvement.

    After each the process is conditioned on its expected value: means stay, variances near it fall.
    """
    covariance = covariance.copy()
    chosen: list[int] = []
    for _ in range(min(n, len(mean))):
        std = np.sqrt(np.maximum(np.diag(covariance), 0.0))
        gain = expected_improvement(mean, std, best)
        gain[chosen] = -np.inf
        index = int(np.argmax(gain))
        chosen.append(index)
        best = min(best, float(mean[index]))
        column = covariance[:, index].copy()
        covariance -= np.outer(column, column) / max(column[index], 1e-12)
    return chosen
