"""GPTune: Bayesian optimisation of many related tasks with one shared model.

Liu et al., "GPTune", PPoPP 2021:

1. Each task starts with a Latin hypercube over its knobs (half of the budget in the paper).
2. The linear model of coregionalisation is fitted to the rows of all tasks (`models/gp.py`).
3. The next candidate of each task maximises the expected improvement of the log time,

       EI = (best - mu) * Phi(z) + sigma * phi(z),   z = (best - mu) / sigma

   over all candidates of a finite space, or over a fixed sample of `pool_size` candidates of a
   larger space; the paper uses particle swarms.
4. The candidate is evaluated, and the procedure continues with step 2.

`shared=False` is the single-task control, with a separate model per task.

Differences from the paper: points of the hypercube are snapped to the nearest candidates. The paper
proposes one candidate at a time; here each further candidate of a slot is chosen as if the previous
candidates had returned their expected values ("kriging believer", Ginsbourger et al., 2010).
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
    """Expected improvement under a Gaussian process over all tasks proposed for so far."""

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
                f"`initial_trials` and `pool_size` must be at least 1, got {initial_trials} and "
                f"{pool_size}."
            )
        self.shared, self.initial_trials, self.pool_size = shared, initial_trials, pool_size
        self.model = GpModel(
            space, seed=seed, latent=latent, max_rows=max_rows, iterations=iterations
        )
        self._pool_seeds: dict[str, int] = {}
        self._pools: dict[str, list[Candidate]] = {}

    def choose(self, task: Task, n: int) -> list[Candidate]:
        """Return points of a hypercube first, then those of the largest expected improvement."""
        pool = self._pool(task)
        remaining = [candidate for candidate in pool if not self.is_proposed(candidate)]
        if not remaining:
            return []
        missing = self.initial_trials - len(pool) + len(remaining)
        if missing > 0 or not any(row.is_ok for row in self.rows_of(task)):
            return self._hypercube(remaining, min(n, missing) if missing > 0 else n)
        for candidates in self._pools.values():
            self.model.know(candidates)
        self.model.fit(self.all_rows() if self.shared else self.rows_of(task))
        mean, covariance = self.model.posterior(task, remaining)
        chosen = believed_best(mean, covariance, self.model.best_log_ms(task), n)
        return [
            Candidate(
                remaining[index].task_id,
                remaining[index].trace_json,
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
        points, names = knob_matrix([self.space.knobs(candidate) for candidate in candidates])
        rng = np.random.default_rng(self.next_seed())
        n = min(n, len(candidates))
        if not names:
            return [candidates[index] for index in rng.permutation(len(candidates))[:n]]
        targets = qmc.LatinHypercube(len(names), rng=rng).random(n)
        free = np.ones(len(candidates), bool)
        chosen = []
        for point in targets:
            distance = np.where(free, np.linalg.norm(points - point, axis=1), np.inf)
            chosen.append(int(np.argmin(distance)))
            free[chosen[-1]] = False
        return [candidates[index] for index in chosen]

    def extra_state(self) -> State:
        """Return the seeds of the pools and the parameters of the model."""
        return {"pool_seeds": dict(self._pool_seeds), "model": self.model.state()}

    def restore_extra(self, state: State) -> None:
        """Restore the seeds of the pools, which are redrawn when needed, and the model."""
        self._pool_seeds = {str(key): int(seed) for key, seed in state["pool_seeds"].items()}
        self._pools = {}
        self.model.restore(state["model"])


def expected_improvement(mean: np.ndarray, std: np.ndarray, best: float) -> np.ndarray:
    """Return E[max(best - X, 0)] for normal X, [n].

    >>> expected_improvement(np.array([1.0, 3.0]), np.array([1e-9, 1e-9]), 2.0).round(6).tolist()
    [1.0, 0.0]
    """
    z = (best - mean) / np.maximum(std, 1e-12)
    return (best - mean) * norm.cdf(z) + std * norm.pdf(z)


def believed_best(mean: np.ndarray, covariance: np.ndarray, best: float, n: int) -> list[int]:
    """Return the indices of `n` points chosen in turn by expected improvement.

    The process is conditioned on the expected value of each chosen point: means stay the same, and
    nearby variances shrink.
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
