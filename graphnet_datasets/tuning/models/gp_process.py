"""The Gaussian process of `gp.py` in gpytorch: kernels, priors and likelihood maximisation."""

from __future__ import annotations

import contextlib
import copy
import math
import warnings
from collections.abc import Mapping
from typing import Any

import numpy as np
from scipy.spatial.distance import pdist

from ...errors import MissingExtraError
from .ranking import one_thread

_LENGTH_SPREAD = 0.5
"""Standard deviation of the log lengthscale around the median distance of two points."""
_LOG_NOISE = -3.0
"""Log of the noise variance, as a share of the variance of the log times."""
_RAW_RHO = 1.0
"""Initial logit of the correlation of two tasks: similar until the data disagree."""
_CENTRE_VARIANCE = 0.3
"""Variance of a task's true centre around its rows' mean, as a share of that of the log times."""


def fitted(
    libraries: tuple[Any, Any, Any],
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
    """Return the fitted process; fitting starts at `parameters` if their shapes match.

    If `is_final` is true and the shapes match, the parameters are used without fitting.
    """
    torch, gpytorch, to_linear_operator = libraries
    length = float(np.median(pdist(points))) if len(points) > 1 else 1.0
    kernel = _task_kernel(libraries)

    class Process(gpytorch.models.ExactGP):
        def __init__(self, x: Any, task: Any, y: Any, likelihood: Any) -> None:
            super().__init__((x, task), y, likelihood)
            self.mean_module = gpytorch.means.ZeroMean()
            self.over_knobs = torch.nn.ModuleList(
                gpytorch.kernels.MaternKernel(
                    nu=2.5,
                    lengthscale_prior=gpytorch.priors.LogNormalPrior(
                        math.log(max(length, 1e-3)), _LENGTH_SPREAD
                    ),
                )
                for _ in range(latent)
            )
            self.over_tasks = torch.nn.ModuleList(kernel() for _ in range(latent))
            for number, knob_kernel in enumerate(self.over_knobs):
                knob_kernel.lengthscale = max(length, 1e-3) * 2.0 ** (number - (latent - 1) / 2)

        def forward(self, x: Any, task: Any) -> Any:
            is_same = (task == task.transpose(-1, -2)).to(x)
            covariance: Any = _CENTRE_VARIANCE * is_same
            for over_knobs, over_tasks in zip(self.over_knobs, self.over_tasks, strict=True):
                term = over_knobs(x).to_dense() * over_tasks(task).to_dense()
                covariance = covariance + term / latent
            # torch would factorise a dense covariance immediately, without the jitter it may need
            covariance = to_linear_operator(covariance)
            return gpytorch.distributions.MultivariateNormal(self.mean_module(x), covariance)

    with torch.random.fork_rng(devices=[]), one_thread(), warnings.catch_warnings():
        # gpytorch warns when it adds jitter to a covariance, which is expected here
        warnings.simplefilter("ignore")
        torch.manual_seed(seed)
        likelihood = gpytorch.likelihoods.GaussianLikelihood(
            noise_prior=gpytorch.priors.LogNormalPrior(_LOG_NOISE, 0.7),
            noise_constraint=gpytorch.constraints.GreaterThan(1e-4),
        )
        likelihood.noise = math.exp(_LOG_NOISE)
        process = Process(
            torch.as_tensor(points),
            torch.as_tensor(tasks, dtype=torch.long)[:, None],
            torch.as_tensor(targets),
            likelihood,
        ).double()
        mll = gpytorch.mlls.ExactMarginalLogLikelihood(likelihood, process)
        current = process.state_dict()
        initial = {
            name: torch.tensor(value, dtype=torch.float64) for name, value in parameters.items()
        }
        fits = bool(initial) and all(
            name in initial and initial[name].shape == value.shape
            for name, value in current.items()
        )
        if fits:
            process.load_state_dict(initial)
        if not (fits and is_final):
            mll.train()
            _maximise(torch, mll, process, iterations)
        process.eval()
    return process


def _task_kernel(libraries: tuple[Any, Any, Any]) -> Any:
    """Return the class of the task kernel: 1 for a task with itself, rho for any two tasks."""
    torch, gpytorch, _ = libraries

    class Alike(gpytorch.kernels.Kernel):
        def __init__(self) -> None:
            super().__init__()
            self.register_parameter("raw_rho", torch.nn.Parameter(torch.tensor(_RAW_RHO)))

        def forward(self, x1: Any, x2: Any, diag: bool = False, **_: Any) -> Any:
            rho = torch.sigmoid(self.raw_rho)
            is_same = (x1 == x2 if diag else x1 == x2.transpose(-1, -2)).to(rho)
            is_same = is_same.squeeze(-1) if diag else is_same
            return rho + (1 - rho) * is_same

    return Alike


def _maximise(torch: Any, mll: Any, process: Any, iterations: int) -> None:
    """Maximise the likelihood by L-BFGS and keep the best parameters.

    A step that is too long can leave a covariance without a Cholesky factor; maximisation stops
    there.
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
            raise RuntimeError("The likelihood is not finite. Maximisation stops here.")
        loss.backward()
        if float(loss.detach()) < least:
            least, best = float(loss.detach()), copy.deepcopy(process.state_dict())
        return loss

    # linear_operator's factorisation errors derive from RuntimeError and ValueError
    with contextlib.suppress(RuntimeError, ValueError):
        optimiser.step(closure)
    process.load_state_dict(best)


def import_libraries() -> tuple[Any, Any, Any]:
    """Return torch, gpytorch and `to_linear_operator`.

    Raises:
        MissingExtraError: gpytorch is not installed.
    """
    try:
        with warnings.catch_warnings():
            # its linear operators use torch.jit.script, which torch 2.13 deprecates
            warnings.simplefilter("ignore", DeprecationWarning)
            import gpytorch
            import torch
            from linear_operator import to_linear_operator
    except ImportError as error:
        raise MissingExtraError("gpytorch", "tuning-gp", "A model of Gaussian processes") from error
    return torch, gpytorch, to_linear_operator
