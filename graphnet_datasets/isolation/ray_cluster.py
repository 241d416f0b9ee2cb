"""Connection to a Ray cluster."""

from __future__ import annotations

import logging
import os
from typing import Any

from ..errors import MissingExtraError, RunError
from .watch import Ending, Outcome


def import_ray(purpose: str) -> Any:
    """Import and return `ray`.

    Raises:
        MissingExtraError: Ray is not installed; the message begins with `purpose`.
    """
    # Disable Ray's usage statistics.
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    try:
        import ray
        import ray.exceptions
    except ImportError as error:
        raise MissingExtraError("ray", "ray", purpose) from error
    return ray


def connect(ray: Any) -> bool:
    """Connect to a cluster and return whether this call started it.

    Uses the current connection, else the cluster at `RAY_ADDRESS` or on this machine, else starts a
    cluster on this machine alone.

    Raises:
        RunError: `RAY_ADDRESS` is set but the cluster is not available.
    """
    if ray.is_initialized():
        return False
    quiet = {"log_to_driver": False, "logging_level": logging.ERROR}
    try:
        ray.init(address="auto", **quiet)
    except ConnectionError as error:
        if os.environ.get("RAY_ADDRESS"):
            raise RunError(
                f"There is no Ray cluster at RAY_ADDRESS, {os.environ['RAY_ADDRESS']}."
            ) from error
        ray.init(num_cpus=len(os.sched_getaffinity(0)), include_dashboard=False, **quiet)
    return True


def lost_outcome(phase: str, message: str, error: Exception) -> Outcome:
    """Return the outcome of a job whose worker was lost, which contains only Ray's error."""
    lines = str(error).strip().splitlines()
    reason = lines[0] if lines else type(error).__name__
    return Outcome(
        ending=Ending.CRASH,
        phase=phase,
        messages=[],
        error={"type": "WorkerLost", "message": f"{message} ({reason})."},
        exit_code=None,
        log="",
        num_log_bytes=0,
        duration_s=0.0,
        phase_s={},
        peak_memory_bytes=0,
        num_leftovers=0,
    )
