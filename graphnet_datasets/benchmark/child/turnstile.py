"""Where a worker waits until nothing else runs that would disturb what is timed next."""

from __future__ import annotations

import os

from ...isolation import Reporter
from ..worker_job import WorkerJob


class Turnstile:
    """Enters phases that are timed; bound before any candidate is imported.

    Without a pipe in the job nobody else is under way, and nothing is waited for. A candidate that
    took another worker's way through would meet what runs beside it, and nothing but that.
    """

    def __init__(self, job: WorkerJob, reporter: Reporter) -> None:
        self._read, self._reporter = os.read, reporter
        # Opened for both, a pipe with a name waits for nobody.
        self._pipe = os.open(job.turnstile, os.O_RDWR | os.O_CLOEXEC) if job.turnstile else None

    def enter(self, phase: str) -> None:
        """Say that the job enters `phase`, and wait for its turn."""
        self._reporter.enter(phase)
        if self._pipe is not None:
            self._read(self._pipe, 1)
