"""Where jobs run: on this machine, or on the cluster that Ray knows."""

from __future__ import annotations

from ..errors import RunError
from .pool import LocalPool, Pool, Work, num_processors

EXECUTORS = ("local", "ray")


def check_executor(name: str) -> None:
    """Refuse an executor that does not exist.

    Raises:
        RunError: there is none of that name.
    """
    if name not in EXECUTORS:
        raise RunError(f"There is no executor `{name}`. Choose one of {', '.join(EXECUTORS)}.")


def open_pool(work: Work, executor: str = "local", jobs: int | None = None) -> Pool:
    """Return a pool of `jobs` workers (default: one a processor), which is to be closed.

    Raises:
        MissingExtraError: Ray is asked for and not installed.
        RunError: there is no such executor, no cluster, or no worker can be started on it.

    >>> open_pool(Work("graphnet_datasets.validation.server", ("load",)), "slurm")
    Traceback (most recent call last):
    graphnet_datasets.errors.RunError: There is no executor `slurm`. Choose one of local, ray.
    """
    check_executor(executor)
    if executor == "ray":
        from .ray_pool import RayPool

        return RayPool(work, jobs)
    return LocalPool(work, jobs or num_processors())
