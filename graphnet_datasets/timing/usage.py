"""Operating system statistics about a call and the machine.

The duration of a call does not reveal whether the code is slow or the machine is busy, and dropping
calls by duration would bias the remaining ones. The kernel, however, records whether a call was
interrupted.
"""

from __future__ import annotations

import os
import resource
from pathlib import Path
from typing import Any, NamedTuple

_getrusage, _OF_PROCESS = resource.getrusage, resource.RUSAGE_SELF
_STAT = Path("/proc/stat")


class Usage(NamedTuple):
    """Resources used by a call, over all threads of the process.

    `num_preemptions` counts involuntary context switches and `cpu_ms` is the processor time in
    milliseconds.
    """

    num_preemptions: int
    cpu_ms: float


class UsageMeter:
    """Measure the resource usage of this process between two moments.

    >>> meter = UsageMeter()
    >>> meter.begin()
    >>> usage = meter.end()
    >>> usage.num_preemptions >= 0, usage.cpu_ms < 1000
    (True, True)
    """

    def __init__(self) -> None:
        self._read, self._who = _getrusage, _OF_PROCESS
        self._before = self._read(self._who)

    def begin(self) -> None:
        """Start measuring."""
        self._before = self._read(self._who)

    def end(self) -> Usage:
        """Return the usage since `begin`."""
        before, after = self._before, self._read(self._who)
        return Usage(
            after.ru_nivcsw - before.ru_nivcsw,
            1000 * (after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime),
        )


class MachineState(NamedTuple):
    """A snapshot of the machine's CPU counters, in clock ticks since boot, and its 1-minute load.

    `own_ticks` are the ticks used by this process.
    """

    load: float
    total_ticks: int
    idle_ticks: int
    stolen_ticks: int
    own_ticks: float


def read_machine() -> MachineState:
    """Return the current state of the machine; counters that the system does not provide are 0."""
    ticks = [0] * 8
    try:
        with _STAT.open() as file:
            ticks = [int(word) for word in file.readline().split()[1:9]]
    except (OSError, ValueError):
        pass
    own = resource.getrusage(resource.RUSAGE_SELF)
    return MachineState(
        os.getloadavg()[0],
        sum(ticks),
        ticks[3] + ticks[4],
        ticks[7],
        (own.ru_utime + own.ru_stime) * os.sysconf("SC_CLK_TCK"),
    )


def describe_machine(before: MachineState, after: MachineState) -> dict[str, Any]:
    """Return the machine's activity between two states, with the keys of `MACHINE_FIELDS`.

    `other_cpu_share` and `steal_share` are fractions of the time of all processors: the time used
    by other processes, and the time that the host of a virtual machine gave to other guests.

    >>> before = MachineState(1.0, 1000, 500, 0, 100.0)
    >>> state = describe_machine(before, MachineState(3.0, 1200, 550, 10, 190.0))
    >>> state["load"], state["other_cpu_share"], state["steal_share"]
    (3.0, 0.25, 0.05)
    """
    total = max(after.total_ticks - before.total_ticks, 1)
    stolen = after.stolen_ticks - before.stolen_ticks
    busy = total - (after.idle_ticks - before.idle_ticks) - stolen
    others = max(busy - (after.own_ticks - before.own_ticks), 0.0)
    return {
        "load": max(before.load, after.load),
        "other_cpu_share": min(others / total, 1.0),
        "steal_share": min(stolen / total, 1.0),
    }
