"""GPTune's model: one Gaussian process over all tasks, the linear model of coregionalisation.

Liu et al., "GPTune: Multitask Learning for Autotuning Exascale Applications", PPoPP 2021. Log times
of tasks i and knobs x have the covariance

    K((i, x), (j, x')) = sum_{q <= Q} (a_iq a_jq + b_iq [i = j]) k_q(x, x') + d_i [i = j][x = x']

with k_q a kernel over knobs and d_i noise. With one task it is an ordinary Gaussian process.
Parameters maximise the marginal likelihood by L-BFGS.

gpytorch's own `LCMKernel` needs every task measured at the same points; here it is a sum of
products of a kernel over tasks and one over knobs, with which each task has points of its own.

Ours: few measured rows cannot tell many parameters, and with those of the paper what one task
knows of another was lost in them. Hence a_iq and b_iq are those of all tasks, one correlation rho_q
between any two: a_iq^2 = rho_q / Q and b_iq = (1 - rho_q) / Q. Each k_q is a Matern kernel (nu =
5/2) with one length for all knobs, which has a prior around the median distance of the points; the
paper has squared exponentials with a length for each knob. Log times are centred within each task,
where the centre is known only to within some of the spread, and scaled by the spread of all tasks
together: six rows say little of the spread of theirs. A failure counts as twice the task's slowest.
Parameters are looked for anew, from the last ones, when a set of tasks has a fifth more rows than
when they were found, and in between the process is conditioned on the new rows with the parameters
that it has. Of more than `max_rows` rows, since the cost is cubic, each task keeps its fastest and
its newest.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ...errors import TuningError
from ..candidate import Candidate
from ..interfaces import CostModel, Space
from ..knobs import knob_matrix
from ..measurement import Measurement
from ..task import Task
from .gp_process import fitted, import_libraries
from .ranking import one_thread

MAX_ROWS = 1000
REFIT_GROWTH = 1.2
"""How many more rows there are when parameters are looked for anew."""


class GpModel(CostModel):
    """A Gaussian process over the knobs of all tasks.

    `latent` is Q, the number of tasks if None. Knobs are scaled by the candidates that `know` was
    told of, so tell it of those that will be asked for.

    Raises:
        MissingExtraError: gpytorch is not installed.
    """

    def __init__(
        self,
        space: Space,
        *,
        seed: int = 0,
        latent: int | None = 1,
        max_rows: int = MAX_ROWS,
        iterations: int = 60,
    ) -> None:
        if latent is not None and latent < 1:
            raise TuningError(f"{latent} latent functions model nothing; give at least 1, or None.")
        self.space, self.seed, self.latent = space, seed, latent
        self.max_rows, self.iterations = max_rows, iterations
        self._knobs: dict[tuple[str, str], Mapping[str, float]] = {}
        self._positions: dict[tuple[str, str], int] = {}
        self._points = np.zeros((0, 0))
        self._tasks: list[str] = []
        self._centres: dict[str, tuple[float, float]] = {}
        """By task: mean and least of the log times that it was fitted to."""
        self._scale = 1.0
        self._model: Any = None
        self._climbed: dict[str, tuple[int, dict[str, Any]]] = {}
        """By the ids of the tasks: with how many rows parameters were looked for, and those."""
        self._libraries = import_libraries()

    def know(self, candidates: Sequence[Candidate]) -> None:
        """Tell of candidates whose knobs belong to the scale; they cost no measurement."""
        for each in candidates:
            key = (each.task_id, each.trace_hash)
            if key not in self._knobs:
                self._knobs[key] = self.space.knobs(each)

    def fit(self, measurements: Sequence[Measurement]) -> None:
        """Fit the parameters to the log times of all rows."""
        self.know([row.candidate for row in measurements])
        self._positions = {key: index for index, key in enumerate(self._knobs)}
        self._points, _ = knob_matrix(list(self._knobs.values()))
        by_task: dict[str, list[Measurement]] = {}
        for row in measurements:
            by_task.setdefault(row.task_id, []).append(row)
        by_task = {key: rows for key, rows in by_task.items() if any(row.is_ok for row in rows)}
        self._tasks = list(by_task)
        self._model = None
        if not by_task:
            return
        points, tasks, targets = [], [], []
        for number, (task_id, rows) in enumerate(by_task.items()):
            kept = _thinned(rows, self.max_rows // len(by_task))
            logs = _log_times(kept)
            self._centres[task_id] = (float(logs.mean()), float(logs.min()))
            targets.append(logs - logs.mean())
            tasks.append(np.full(len(kept), number))
            points.append(self._points[[self._positions[task_id, row.trace_hash] for row in kept]])
        key = " ".join(by_task)
        flat = np.concatenate(targets)
        count = len(flat)
        self._scale = float(np.sqrt(flat @ flat / max(count - len(by_task), 1))) or 1.0
        at, parameters = self._climbed.get(key, (0, {}))
        self._model = fitted(
            self._libraries,
            np.concatenate(points),
            np.concatenate(tasks),
            flat / self._scale,
            parameters=parameters,
            is_final=count < REFIT_GROWTH * at,
            latent=len(by_task) if self.latent is None else min(self.latent, len(by_task)),
            seed=self.seed,
            iterations=self.iterations,
        )

        if count >= REFIT_GROWTH * at:
            found = {name: each.tolist() for name, each in self._model.state_dict().items()}
            self._climbed[key] = (count, found)

    def state(self) -> dict[str, Any]:
        """Return what the next fit begins with, as JSON data."""
        return {key: [count, found] for key, (count, found) in self._climbed.items()}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Take what `state` returned."""
        self._climbed = {
            str(key): (int(count), dict(found)) for key, (count, found) in state.items()
        }

    def posterior(
        self, task: Task, candidates: Sequence[Candidate]
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return mean [n] and covariance [n, n] of the log of times in ms, noise left out.

        Raises:
            TuningError: nothing of this task was fitted, or `know` was not told of a candidate
                before the last fit.
        """
        if self._model is None or task.task_id not in self._tasks:
            raise TuningError(f"The model was not fitted to any row of `{task.task_name}`.")
        try:
            rows = [self._positions[each.task_id, each.trace_hash] for each in candidates]
        except KeyError as error:
            raise TuningError(
                "A candidate is asked for that the model was not told of before it was fitted."
            ) from error
        torch = self._libraries[0]
        number = self._tasks.index(task.task_id)
        with torch.no_grad(), one_thread(), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = self._model(
                torch.as_tensor(self._points[rows]),
                torch.full((len(rows), 1), number, dtype=torch.long),
            )
            mean, covariance = found.mean.numpy(), found.covariance_matrix.numpy()
        centre, _ = self._centres[task.task_id]
        return mean * self._scale + centre, covariance * self._scale**2

    def predict(
        self, task: Task, candidates: Sequence[Candidate]
    ) -> tuple[np.ndarray, np.ndarray | None]:
        """Return the throughput relative to the best row of the task, and its deviation."""
        if self._model is None or task.task_id not in self._tasks:
            return np.zeros(len(candidates)), None
        mean, covariance = self.posterior(task, candidates)
        best = self._centres[task.task_id][1]
        throughput = np.exp(best - mean)
        return throughput, throughput * np.sqrt(np.maximum(np.diag(covariance), 0.0))

    def best_log_ms(self, task: Task) -> float:
        """Return the log of the least time of the task that it was fitted to."""
        return self._centres[task.task_id][1]


def _log_times(rows: Sequence[Measurement]) -> np.ndarray:
    slowest = max(row.latency_ms for row in rows if row.is_ok)
    return np.log([row.latency_ms if row.is_ok else 2 * slowest for row in rows])


def _thinned(rows: Sequence[Measurement], most: int) -> list[Measurement]:
    """Return at most `most` rows: the fastest half of them, and the newest of the others."""
    if len(rows) <= most:
        return list(rows)
    order = sorted(range(len(rows)), key=lambda index: rows[index].latency_ms)
    fastest = set(order[: max(most // 2, 1)])
    newest = [index for index in range(len(rows) - 1, -1, -1) if index not in fastest]
    kept = fastest | set(newest[: most - len(fastest)])
    return [rows[index] for index in sorted(kept)]
