"""What the operating system says of a call and of the machine meanwhile.

Times of a busy machine are not to be told from slow code by their size, and calls that were dropped
for their size would bias what is left. Whether a call was interrupted is a matter of record.
"""

from __future__ import annotations

import os
import resource
from pathlib import Path
from typing import Any, NamedTuple

_getrusage, _OF_PROCESS = resource.getrusage, resource.RUSAGE_SELF
_STAT = Path("/proc/stat")


class Usage(NamedTuple):
    """What a call took: how often the kernel took a processor away from one of the process's
    threads (involuntary context switches), and the processor time of all of them in milliseconds.
    """

    num_preemptions: int
    cpu_ms: float


class UsageMeter:
    """Reads the usage of this process between two moments.

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
        """Begin with a call."""
        self._before = self._read(self._who)

    def end(self) -> Usage:
        """Return the usage since `begin`."""
        before, after = self._before, self._read(self._who)
        return Usage(
            after.ru_nivcsw - before.ru_nivcsw,
            1000 * (after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime),
        )


class MachineState(NamedTuple):
    """The machine at one moment, in clock ticks since its start, and the load of the last minute.

    `own_ticks` are those that this process took.
    """

    load: float
    total_ticks: int
    idle_ticks: int
    stolen_ticks: int
    own_ticks: float


def read_machine() -> MachineState:
    """Return the state of the machine now; zeros where the system does not tell."""
    ticks = [0] * 8
    try:
        with _STAT.open() as file:
            ticks = [int(each) for each in file.readline().split()[1:9]]
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
    """Return what happened on the machine between two moments, with the keys of `MACHINE_FIELDS`.

    `other_cpu_share` and `steal_share` are shares of all processors: of the time that went to other
    processes, and of that which the host of a virtual machine gave to others.

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
