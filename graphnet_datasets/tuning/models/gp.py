"""GPTune's model: one Gaussian process over all tasks, the linear model of coregionalisation.

Liu et al., "GPTune: Multitask Learning for Autotuning Exascale Applications", PPoPP 2021. Log times
of tasks i and knobs x have the covariance

    K((i, x), (j, x')) = sum_{q <= Q} (a_iq a_jq + b_iq [i = j]) k_q(x, x') + d_i [i = j][x = x']

with k_q squared exponentials that have a length scale for each knob, and d_i noise. With Q = 1 it
is the intrinsic model (`MultiTaskGP` of botorch); with one task an ordinary Gaussian process.
Parameters maximise the marginal likelihood by L-BFGS.

gpytorch's own `LCMKernel` needs every task measured at the same points; here it is a sum of
`IndexKernel` times `RBFKernel`, with which each task has points of its own.

Ours: length scales have a log-normal prior (a handful of points says nothing of twenty scales), the
one that is botorch's default; log times are standardised within each task; a failure counts as
twice the task's slowest; parameters are looked for anew, from the last ones, when a set of tasks
has a fifth more rows than when they were found, and in between the process is conditioned on the
new rows with the parameters that it has; of more than `max_rows` rows, since the cost is cubic,
each task keeps its fastest and its newest.
"""

from __future__ import annotations

import contextlib
import copy
import math
import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ...errors import MissingExtraError, TuningError
from ..candidate import Candidate
from ..interfaces import CostModel, Space
from ..knobs import knob_matrix
from ..measurement import Measurement
from ..task import Task
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
        self._scales: dict[str, tuple[float, float, float]] = {}
        self._model: Any = None
        self._climbed: dict[str, tuple[int, dict[str, Any]]] = {}
        """By the ids of the tasks: with how many rows parameters were looked for, and those."""
        self._libraries = _import_libraries()

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
            mean, scale = float(logs.mean()), float(logs.std()) or 1.0
            self._scales[task_id] = (mean, scale, float(logs.min()))
            targets.append((logs - mean) / scale)
            tasks.append(np.full(len(kept), number))
            points.append(self._points[[self._positions[task_id, row.trace_hash] for row in kept]])
        key = " ".join(by_task)
        count = sum(map(len, targets))
        at, parameters = self._climbed.get(key, (0, {}))
        self._model = _fitted(
            self._libraries,
            np.concatenate(points),
            np.concatenate(tasks),
            np.concatenate(targets),
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
        centre, scale, _ = self._scales[task.task_id]
        return mean * scale + centre, covariance * scale**2

    def predict(
        self, task: Task, candidates: Sequence[Candidate]
    ) -> tuple[np.ndarray, np.ndarray | None]:
        """Return the throughput relative to the best row of the task, and its deviation."""
        if self._model is None or task.task_id not in self._tasks:
            return np.zeros(len(candidates)), None
        mean, covariance = self.posterior(task, candidates)
        best = self._scales[task.task_id][2]
        throughput = np.exp(best - mean)
        return throughput, throughput * np.sqrt(np.maximum(np.diag(covariance), 0.0))

    def best_log_ms(self, task: Task) -> float:
        """Return the log of the least time of the task that it was fitted to."""
        return self._scales[task.task_id][2]


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


def _fitted(
    libraries: tuple[Any, Any],
    points: np.ndarray,
    tasks: np.ndarray,
    targets: np.ndarray,
    *,
    latent: int,
    seed: int,
    iterations: int,
    parameters: Mapping[str, Any],
    is_final: bool,
) -> Any:
    """Return the process; `parameters`, if any of its size, are where the climb begins."""
    torch, gpytorch = libraries
    count, dimensions = int(tasks.max()) + 1, max(points.shape[1], 1)
    # botorch's default: the expected length grows with the root of the number of dimensions.
    centre, spread = math.sqrt(2) + math.log(dimensions) / 2, math.sqrt(3)

    class Process(gpytorch.models.ExactGP):
        def __init__(self, x: Any, task: Any, y: Any, likelihood: Any) -> None:
            super().__init__((x, task), y, likelihood)
            self.mean_module = gpytorch.means.ZeroMean()
            self.over_knobs = torch.nn.ModuleList(
                gpytorch.kernels.RBFKernel(
                    ard_num_dims=dimensions,
                    lengthscale_prior=gpytorch.priors.LogNormalPrior(centre, spread),
                )
                for _ in range(latent)
            )
            self.over_tasks = torch.nn.ModuleList(
                gpytorch.kernels.IndexKernel(num_tasks=count, rank=1) for _ in range(latent)
            )
            for kernel in self.over_knobs:
                kernel.lengthscale = math.exp(centre - spread**2)  # the mode of its prior
            for kernel in self.over_tasks:
                # tasks begin alike: what one learned holds for the others until they disagree
                kernel.covar_factor.data.normal_(0.8 / math.sqrt(latent), 0.1)
                kernel.var = torch.full_like(kernel.var, 0.3 / latent)

        def forward(self, x: Any, task: Any) -> Any:
            pairs = zip(self.over_knobs, self.over_tasks, strict=True)
            covariance: Any = None
            for over_knobs, over_tasks in pairs:
                term = over_knobs(x).mul(over_tasks(task))
                covariance = term if covariance is None else covariance + term
            return gpytorch.distributions.MultivariateNormal(self.mean_module(x), covariance)

    with torch.random.fork_rng(devices=[]), one_thread(), warnings.catch_warnings():
        # gpytorch warns of jitter that it adds to a covariance, which is what it should do
        warnings.simplefilter("ignore")
        torch.manual_seed(seed)
        likelihood = gpytorch.likelihoods.GaussianLikelihood(
            noise_prior=gpytorch.priors.LogNormalPrior(-4.0, 1.0),
            noise_constraint=gpytorch.constraints.GreaterThan(1e-4),
        )
        likelihood.noise = math.exp(-4.0)
        process = Process(
            torch.as_tensor(points),
            torch.as_tensor(tasks, dtype=torch.long)[:, None],
            torch.as_tensor(targets),
            likelihood,
        ).double()
        mll = gpytorch.mlls.ExactMarginalLogLikelihood(likelihood, process)
        own = process.state_dict()
        known = {name: torch.tensor(each, dtype=torch.float64) for name, each in parameters.items()}
        fits = bool(known) and all(
            name in known and known[name].shape == each.shape for name, each in own.items()
        )
        if fits:
            process.load_state_dict(known)
        if not (fits and is_final):
            mll.train()
            _maximise(torch, mll, process, iterations)
        process.eval()
    return process


def _maximise(torch: Any, mll: Any, process: Any, iterations: int) -> None:
    """Climb the likelihood, and keep the best parameters on the way.

    A step that is too long can leave a covariance without a Cholesky factor; the climb ends there.
    """
    optimiser = torch.optim.LBFGS(
        process.parameters(), max_iter=iterations, line_search_fn="strong_wolfe"
    )
    least, best = math.inf, copy.deepcopy(process.state_dict())

    def closure() -> Any:
        nonlocal least, best
        optimiser.zero_grad()
        loss = -mll(process(*process.train_inputs), process.train_targets)
        if not torch.isfinite(loss):
            raise RuntimeError("the likelihood is not finite")
        loss.backward()
        if float(loss.detach()) < least:
            least, best = float(loss.detach()), copy.deepcopy(process.state_dict())
        return loss

    # linear_operator's errors of factorising derive from RuntimeError and ValueError
    with contextlib.suppress(RuntimeError, ValueError):
        optimiser.step(closure)
    process.load_state_dict(best)


def _import_libraries() -> tuple[Any, Any]:
    try:
        with warnings.catch_warnings():
            # its linear operators use torch.jit.script, of which torch 2.13 warns
            warnings.simplefilter("ignore", DeprecationWarning)
            import gpytorch
            import torch
    except ImportError as error:
        raise MissingExtraError("gpytorch", "tuning-gp", "A model of Gaussian processes") from error
    return torch, gpytorch
