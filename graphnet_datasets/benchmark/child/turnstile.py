"""The point at which a worker waits until no other job can disturb its timing."""

from __future__ import annotations

import os

from ...isolation import Reporter
from ..worker_job import WorkerJob
from .device_state import wait_for_quiet_gpu


class Turnstile:
    """Enter timed phases one job at a time; bound before any candidate is imported.

    Without a pipe in the job no other job is running, and `enter` does not wait. A candidate that
    reads another worker's permission from the pipe can only be timed while other jobs run, which
    slows it down.
    """

    def __init__(self, job: WorkerJob, reporter: Reporter) -> None:
        self._read, self._reporter = os.read, reporter
        # Opening a named pipe for reading and writing does not block.
        self._pipe = os.open(job.turnstile, os.O_RDWR | os.O_CLOEXEC) if job.turnstile else None
        self._device = job.device if job.framework in ("", "torch") else "cpu"

    def enter(self, phase: str) -> None:
        """Report that the job enters `phase` and wait for permission."""
        self._reporter.enter(phase)
        if self._pipe is not None:
            self._read(self._pipe, 1)
            if self._device.startswith("cuda"):
                wait_for_quiet_gpu(self._device)
