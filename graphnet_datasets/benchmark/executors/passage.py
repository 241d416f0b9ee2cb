"""One job of a lane passing the gate: it waits for permission to be timed and may be stopped."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from ...isolation import ForkServer, Outcome
from ..worker_job import Kind
from .overlap import TIMED_PHASES, Lane

_PIPE_NAME = "turnstile"
_GO = b"g"


class Passage:
    """Run one job; `tell` receives each phase before the job continues.

    Without a lane nothing else happens. `pipe` is where the worker waits before each phase in
    `TIMED_PHASES`, whether or not the lane's device needs the others to be stopped in it.
    """

    def __init__(
        self, lane: Lane | None, kind: Kind, directory: Path, tell: Callable[[str], None]
    ) -> None:
        self._lane, self._tell = lane, tell
        self._gated_phases = TIMED_PHASES.get(kind, frozenset())
        timed = {} if lane is None else lane.timed_phases
        self._timed_phases = timed.get(kind, frozenset())
        self._is_timed = self._is_idle = False
        self.pipe = "" if lane is None else str(directory / _PIPE_NAME)

    def run(
        self, server: ForkServer, payload: Mapping[str, Any], directory: Path, **options: Any
    ) -> Outcome:
        """Run the job and return its outcome (see `ForkServer.run`)."""
        lane = self._lane
        if lane is None:
            return server.run(payload, directory, on_phase=self._tell, **options)
        os.mkfifo(self.pipe, 0o600)
        # Opened before the job starts, since the job could replace it.
        grants = os.open(self.pipe, os.O_RDWR | os.O_CLOEXEC | os.O_NONBLOCK)
        began_s = time.monotonic()
        try:
            outcome = server.run(
                payload,
                directory,
                on_phase=lambda phase: self._enter(lane, phase, grants),
                on_start=lambda: self._be_idle(lane),
                now_s=lane.now_s,
                **options,
            )
        finally:
            os.close(grants)
            if self._is_timed:
                lane.gate.end_timed(lane)
            if self._is_idle:
                lane.gate.begin_work(lane)
        outcome.pauses = [pause for pause in lane.pauses if pause[1] > began_s]
        return outcome

    def _be_idle(self, lane: Lane) -> None:
        """Declare that the lane now only has a process that can be stopped."""
        is_all_timed = lane.is_timed and not self._is_timed  # inside a longer timed section
        if not self._is_idle and not is_all_timed:
            self._is_idle = True
            lane.gate.end_work(lane)
        lane.gate.begin_job(lane)

    def _enter(self, lane: Lane, phase: str, grants: int) -> None:
        lane.gate.enter(lane, phase)
        if phase not in self._timed_phases:
            if self._is_timed:
                self._is_timed = False
                lane.gate.end_timed(lane)
        elif not self._is_timed:
            lane.gate.begin_timed(lane)
            self._is_timed = True
        self._tell(phase)  # before the worker continues
        if phase not in self._gated_phases:
            return
        # The write blocks if the worker asked for permissions but never read them.
        with contextlib.suppress(BlockingIOError):
            os.write(grants, _GO)


def need_bytes(row: Mapping[str, Any]) -> int:
    """Return an upper estimate of a sample's memory, including compilers.

    >>> need_bytes({"input_bytes": 2**20, "peak_memory_bytes": None}) // 2**20
    1038
    """
    inputs = row.get("input_bytes") or 0
    peak = row.get("peak_memory_bytes") or 2 * inputs
    return 2**30 + 6 * inputs + 4 * peak
