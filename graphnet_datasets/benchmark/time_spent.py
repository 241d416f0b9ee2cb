"""A breakdown of the time of a run by phase and compiler."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from typing import Any

from ..scores.text import text_table

START, JUDGE, STAND_STILL = "start", "judge", "stand still"
"""Phases of the parent: starting a process and passing its sample, comparing outputs, and keeping
the processes of a sample stopped while another sample is timed."""
_OTHER = "everything else"
_ROWS: Mapping[str, str] = {
    START: "start processes",
    "load": "load",
    "baseline": "eager untimed",
    "first": "eager first",
    "compile": "compile",
    "run": "time in pairs",
    "profiler": "start the profiler",
    "profile": "count kernels",
    "eager alone load": "eager alone: load",
    "eager alone baseline": "eager alone: repeat calls",
    "eager alone run": "eager alone: time",
    "eager alone oracle": "eager alone: float64",
    JUDGE: "judge",
    STAND_STILL: "stand still for others",
}
"""The phases in order, with readable names."""


class TimeSpent:
    """Accumulate the seconds of each phase per compiler, as reported by `run`.

    With several devices these are seconds summed over all devices. Time outside of all phases (the
    dataset, inspecting the compilers, writing records) is the remainder since creation.

    >>> now = iter([0.0, 1.0, 1.5, 4.5, 5.0, 6.0]).__next__
    >>> spent = TimeSpent(now)
    >>> spent.enter("cv/a", "eager", "load")
    >>> spent.enter("cv/a", "eager", "run")
    >>> spent.enter("cv/a", "eager", "judge")
    >>> spent.add({"sample_id": "cv/a"})
    >>> spent.seconds()
    {('eager', 'load'): 0.5, ('eager', 'run'): 3.0, ('eager', 'judge'): 0.5}
    >>> print(spent)
    Where the time went, in seconds:
    phase            eager  all  share
    load               0.5  0.5     8%
    time in pairs      3.0  3.0    50%
    judge              0.5  0.5     8%
    everything else         2.0    33%
    all                4.0  6.0   100%
    """

    def __init__(self, clock_s: Callable[[], float] = time.monotonic) -> None:
        self._clock_s, self._lock = clock_s, threading.Lock()
        self._started_s = clock_s()
        self._current: dict[str, tuple[str, str, float]] = {}
        self._seconds: dict[tuple[str, str], float] = {}

    def enter(self, sample_id: str, compiler: str, phase: str) -> None:
        """Record the current phase of a sample."""
        with self._lock:
            now_s = self._leave(sample_id)
            self._current[sample_id] = compiler, phase, now_s

    def add(self, record: Mapping[str, Any]) -> None:
        """Record the end of a run."""
        with self._lock:
            self._leave(str(record["sample_id"]))

    def seconds(self) -> dict[tuple[str, str], float]:
        """Return the seconds by compiler and phase."""
        with self._lock:
            return dict(self._seconds)

    def __str__(self) -> str:
        seconds = self.seconds()
        total_s = self._clock_s() - self._started_s
        compilers = list(dict.fromkeys(compiler for compiler, _ in seconds))
        phases_seen = {phase for _, phase in seconds}
        phases = [phase for phase in _ROWS if phase in phases_seen] + sorted(
            phases_seen - _ROWS.keys()
        )
        known_s = sum(seconds.values())
        # With several devices the phases may add up to more than the elapsed time.
        whole_s = max(total_s, known_s)
        rows = [
            [
                _ROWS.get(phase, phase),
                *(f"{seconds.get((compiler, phase), 0.0):.1f}" for compiler in compilers),
                *_sum(sum(seconds.get((compiler, phase), 0.0) for compiler in compilers), whole_s),
            ]
            for phase in phases
        ]
        rows.append([_OTHER, *("" for _ in compilers), *_sum(whole_s - known_s, whole_s)])
        of_each = [
            sum(value for (name, _), value in seconds.items() if name == compiler)
            for compiler in compilers
        ]
        rows.append(["all", *(f"{total_s:.1f}" for total_s in of_each), *_sum(whole_s, whole_s)])
        table = text_table(["phase", *compilers, "all", "share"], rows, is_first_left=True)
        text = f"Where the time went, in seconds:\n{table}"
        still_s = sum(value for (_, phase), value in seconds.items() if phase == STAND_STILL)
        if still_s:
            saved_s = max(0.0, known_s - still_s - total_s)
            text += (
                f"\nSamples under way at once did {known_s - still_s:.1f} s of work in "
                f"{total_s:.1f} s on the clock: {saved_s:.1f} s saved."
            )
        return text

    def _leave(self, sample_id: str) -> float:
        now_s = self._clock_s()
        if sample_id in self._current:
            compiler, phase, since_s = self._current.pop(sample_id)
            key = compiler, phase
            self._seconds[key] = self._seconds.get(key, 0.0) + now_s - since_s
        return now_s


def _sum(seconds: float, whole_s: float) -> tuple[str, str]:
    return f"{seconds:.1f}", f"{100 * seconds / whole_s if whole_s else 0.0:.0f}%"
