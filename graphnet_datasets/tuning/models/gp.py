"""GPTune's model: one Gaussian process over all tasks, the linear model of coregionalisation.

Liu et al., "GPTune: Multitask Learning for Autotuning Exascale Applications", PPoPP 2021. The log
times of task i at knobs x have the covariance

    K((i, x), (j, x')) = sum_{q <= Q} (a_iq a_jq + b_iq [i = j]) k_q(x, x') + d_i [i = j][x = x']

where k_q is a kernel over knobs and d_i is noise. For a single task it is an ordinary Gaussian
process. The parameters maximise the marginal likelihood by L-BFGS.

gpytorch's `LCMKernel` requires all tasks to be measured at the same points. Here the kernel is a
sum of products of a task kernel and a knob kernel, so that each task can have its own points.

Differences from the paper: few rows cannot determine many parameters, and with the paper's
parameters the transfer between tasks was lost. Hence a_iq and b_iq are shared by all tasks, with
one correlation rho_q between any two: a_iq^2 = rho_q / Q and b_iq = (1 - rho_q) / Q. Each k_q is a
Matern kernel (nu = 5/2) with one lengthscale for all knobs and a prior around the median distance
of the points; the paper uses squared exponentials with a lengthscale per knob. Log times are
centred per task, with an uncertain centre, and scaled by the pooled spread of all tasks, because
six rows cannot determine the spread of a single task. A failure counts as twice the task's slowest
success.

A set of tasks is refitted, starting from its last parameters, when its rows have grown by a fifth;
in between, the process is conditioned on the new rows with the old parameters. The cost is cubic in
the number of rows: beyond `max_rows`, each task keeps its fastest and its newest rows.
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
"""Factor by which the number of rows must grow before the parameters are refitted."""


class GpModel(CostModel):
    """A Gaussian process over the knobs of all tasks.

    `latent` is Q, or None for the number of tasks. Knobs are scaled over all candidates passed to
    `know`; pass it all candidates that will be queried.

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
            raise TuningError(f"`latent` must be at least 1 or None, got {latent}.")
        self.space, self.seed, self.latent = space, seed, latent
        self.max_rows, self.iterations = max_rows, iterations
        self._knobs: dict[tuple[str, str], Mapping[str, float]] = {}
        self._positions: dict[tuple[str, str], int] = {}
        self._points = np.zeros((0, 0))
        self._tasks: list[str] = []
        self._centres: dict[str, tuple[float, float]] = {}
        """By task: mean and minimum of the fitted log times."""
        self._scale = 1.0
        self._model: Any = None
        self._optima: dict[str, tuple[int, dict[str, Any]]] = {}
        """By task ids: the number of rows at the last fit, and the fitted parameters."""
        self._libraries = import_libraries()

    def know(self, candidates: Sequence[Candidate]) -> None:
        """Register candidates whose knobs determine the scale; they are not measured."""
        for candidate in candidates:
            key = (candidate.task_id, candidate.trace_hash)
            if key not in self._knobs:
                self._knobs[key] = self.space.knobs(candidate)

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
            selected = _thinned(rows, self.max_rows // len(by_task))
            logs = _log_times(selected)
            self._centres[task_id] = (float(logs.mean()), float(logs.min()))
            targets.append(logs - logs.mean())
            tasks.append(np.full(len(selected), number))
            points.append(
                self._points[[self._positions[task_id, row.trace_hash] for row in selected]]
            )
        key = " ".join(by_task)
        flat = np.concatenate(targets)
        count = len(flat)
        self._scale = float(np.sqrt(flat @ flat / max(count - len(by_task), 1))) or 1.0
        fitted_rows, parameters = self._optima.get(key, (0, {}))
        self._model = fitted(
            self._libraries,
            np.concatenate(points),
            np.concatenate(tasks),
            flat / self._scale,
            parameters=parameters,
            is_final=count < REFIT_GROWTH * fitted_rows,
            latent=len(by_task) if self.latent is None else min(self.latent, len(by_task)),
            seed=self.seed,
            iterations=self.iterations,
        )

        if count >= REFIT_GROWTH * fitted_rows:
            parameters_json = {
                name: parameter.tolist() for name, parameter in self._model.state_dict().items()
            }
            self._optima[key] = (count, parameters_json)

    def state(self) -> dict[str, Any]:
        """Return the initial parameters of the next fit, as JSON data."""
        return {key: [count, optimum] for key, (count, optimum) in self._optima.items()}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Restore the data returned by `state`."""
        self._optima = {
            str(key): (int(count), dict(optimum)) for key, (count, optimum) in state.items()
        }

    def posterior(
        self, task: Task, candidates: Sequence[Candidate]
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return the mean [n] and covariance [n, n] of log times in ms, without noise.

        Raises:
            TuningError: the model has no rows of this task, or a candidate was not passed to `know`
                before the last fit.
        """
        if self._model is None or task.task_id not in self._tasks:
            raise TuningError(
                f"The model has not been fitted to any row of `{task.task_name}`. Call `fit` with "
                "at least one success of it."
            )
        try:
            rows = [
                self._positions[candidate.task_id, candidate.trace_hash] for candidate in candidates
            ]
        except KeyError as error:
            raise TuningError(
                "A candidate was not passed to `know` before the last `fit`. Call `know` with it, "
                "then `fit`."
            ) from error
        torch = self._libraries[0]
        number = self._tasks.index(task.task_id)
        with torch.no_grad(), one_thread(), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            prediction = self._model(
                torch.as_tensor(self._points[rows]),
                torch.full((len(rows), 1), number, dtype=torch.long),
            )
            mean, covariance = prediction.mean.numpy(), prediction.covariance_matrix.numpy()
        centre, _ = self._centres[task.task_id]
        return mean * self._scale + centre, covariance * self._scale**2

    def predict(
        self, task: Task, candidates: Sequence[Candidate]
    ) -> tuple[np.ndarray, np.ndarray | None]:
        """Return the throughput relative to the task's best row, and its standard deviation."""
        if self._model is None or task.task_id not in self._tasks:
            return np.zeros(len(candidates)), None
        mean, covariance = self.posterior(task, candidates)
        best = self._centres[task.task_id][1]
        throughput = np.exp(best - mean)
        return throughput, throughput * np.sqrt(np.maximum(np.diag(covariance), 0.0))

    def best_log_ms(self, task: Task) -> float:
        """Return the log of the shortest fitted time of the task, in log ms."""
        return self._centres[task.task_id][1]


def _log_times(rows: Sequence[Measurement]) -> np.ndarray:
    slowest = max(row.latency_ms for row in rows if row.is_ok)
    return np.log([row.latency_ms if row.is_ok else 2 * slowest for row in rows])


def _thinned(rows: Sequence[Measurement], most: int) -> list[Measurement]:
    """Return at most `most` rows: half of them the fastest, the rest the newest."""
    if len(rows) <= most:
        return list(rows)
    order = sorted(range(len(rows)), key=lambda index: rows[index].latency_ms)
    fastest = set(order[: max(most // 2, 1)])
    newest = [index for index in range(len(rows) - 1, -1, -1) if index not in fastest]
    selected = fastest | set(newest[: most - len(fastest)])
    return [rows[index] for index in sorted(selected)]
