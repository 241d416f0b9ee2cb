"""Executors of jobs: this machine or a Ray cluster."""

from __future__ import annotations

from ..errors import RunError
from .pool import LocalPool, Pool, Work, num_processors

EXECUTORS = ("local", "ray")


def check_executor(name: str) -> None:
    """Check that an executor exists.

    Raises:
        RunError: No executor has this name.
    """
    if name not in EXECUTORS:
        raise RunError(f"There is no executor `{name}`. Choose one of {', '.join(EXECUTORS)}.")


def open_pool(work: Work, executor: str = "local", jobs: int | None = None) -> Pool:
    """Return a pool of `jobs` workers (default: one per processor). The caller closes it.

    Raises:
        MissingExtraError: Ray is requested but not installed.
        RunError: The executor or the cluster does not exist, or no worker can be started on it.

    >>> open_pool(Work("graphnet_datasets.kernels.worker", ("run",)), "slurm")
    Traceback (most recent call last):
    graphnet_datasets.errors.RunError: There is no executor `slurm`. Choose one of local, ray.
    """
    check_executor(executor)
    if executor == "ray":
        from .ray_pool import RayPool

        return RayPool(work, jobs)
    return LocalPool(work, jobs or num_processors())
