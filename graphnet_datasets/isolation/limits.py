"""What a job may use, and the setting of it inside the job's process."""

from __future__ import annotations

import contextlib
import dataclasses
import resource
from collections.abc import Mapping
from pathlib import Path

from ..errors import RunError
from .linux import available_memory_bytes, data_bytes, give_up_raising_limits

GIB = 2**30


@dataclasses.dataclass(frozen=True)
class Limits:
    """What one job may use before it is ended.

    `phase_timeouts_s` bounds the time between a job's report that it enters a phase and its next
    such report; a phase without an entry has `default_timeout_s`. `memory_bytes` bounds the
    anonymous and shared memory of the whole tree of processes; None means nine tenths of the
    available memory at the start of the job. The first and the last `log_bytes // 2` of the
    output of a job are kept. `file_bytes` bounds each file.

    `is_memory_enforced` makes the limit hold inside each process as well (RLIMIT_DATA), so that an
    allocation fails with an exception instead of the job being killed. GPU drivers map far more
    memory than they use, so jobs on a GPU switch it off.

    >>> Limits(phase_timeouts_s={"compile": 60.0}).timeout_s("compile")
    60.0
    """

    phase_timeouts_s: Mapping[str, float] = dataclasses.field(default_factory=dict)
    default_timeout_s: float = 600.0
    memory_bytes: int | None = None
    is_memory_enforced: bool = True
    max_processes: int = 256
    log_bytes: int = 256 * 1024
    file_bytes: int = 64 * GIB

    def __post_init__(self) -> None:
        for name in ("default_timeout_s", "max_processes", "log_bytes", "file_bytes"):
            if not getattr(self, name) > 0:
                raise RunError(
                    f"The limit `{name}` is {getattr(self, name)}; it must be more than zero."
                )
        if self.memory_bytes is not None and self.memory_bytes <= 0:
            raise RunError(
                f"The limit `memory_bytes` is {self.memory_bytes}; it must be more than zero, or "
                "None for nine tenths of the available memory."
            )
        for phase, seconds in self.phase_timeouts_s.items():
            if not seconds > 0:
                raise RunError(
                    f"The timeout of the phase `{phase}` is {seconds} s; it must be more than zero."
                )

    @property
    def tree_bytes(self) -> int:
        """The memory that the tree of processes of a job may take."""
        if self.memory_bytes is not None:
            return self.memory_bytes
        return available_memory_bytes() * 9 // 10

    def timeout_s(self, phase: str) -> float:
        """Return how many seconds a job may stay in `phase`."""
        return self.phase_timeouts_s.get(phase, self.default_timeout_s)


def apply_limits(*, memory_bytes: int | None, file_bytes: int) -> None:
    """Set the limits of this process and of all that it starts.

    `memory_bytes` counts from what the process has mapped already. No core is dumped: a crash is
    a result here, and the dump of a process with a framework in it takes seconds. The kernel is
    told to take this process first when memory runs out.
    """
    _lower(resource.RLIMIT_CORE, 0)
    _lower(resource.RLIMIT_FSIZE, file_bytes)
    if memory_bytes is not None:
        _lower(resource.RLIMIT_DATA, data_bytes() + memory_bytes)
    with contextlib.suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text("1000")
    give_up_raising_limits()


def _lower(which: int, value: int) -> None:
    _, hard = resource.getrlimit(which)
    if hard != resource.RLIM_INFINITY:
        value = min(value, hard)
    resource.setrlimit(which, (value, value))
