"""Resource limits of a job, and their enforcement within the job's process."""

from __future__ import annotations

import contextlib
import dataclasses
import resource
from collections.abc import Mapping
from pathlib import Path

from ..errors import RunError
from .linux import available_memory_bytes, data_bytes, give_up_raising_limits

GIB = 2**30
THREADS_PER_CPU = 64
"""A job may start this many threads per processor, besides its processes."""


@dataclasses.dataclass(frozen=True)
class Limits:
    """Resource limits of a job.

    `phase_timeouts_s` limits the time from entering a phase to entering the next; other phases use
    `default_timeout_s`. `memory_bytes` limits the anonymous and shared memory of the whole process
    tree; None means nine tenths of the memory available when the job starts. The first and last
    `log_bytes // 2` of a job's output are kept. `file_bytes` limits each file, and `result_bytes`
    the result file of a pool's job, which is read into memory.

    With `is_memory_enforced`, the memory limit also applies within each process (RLIMIT_DATA), so
    that an allocation raises an exception before the job is killed. GPU drivers map far more memory
    than they use, so GPU jobs disable it.

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
    result_bytes: int = 4 * GIB

    def __post_init__(self) -> None:
        positive = ("default_timeout_s", "max_processes", "log_bytes", "file_bytes", "result_bytes")
        for name in positive:
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
        """The memory limit of a job's process tree."""
        if self.memory_bytes is not None:
            return self.memory_bytes
        return available_memory_bytes() * 9 // 10

    def timeout_s(self, phase: str) -> float:
        """Return the time limit of `phase` in seconds."""
        return self.phase_timeouts_s.get(phase, self.default_timeout_s)


def apply_limits(*, memory_bytes: int | None, file_bytes: int) -> None:
    """Set the limits of this process and of all processes that it starts.

    `memory_bytes` is in addition to the memory already mapped. Core dumps are disabled: crashes are
    expected results here, and dumping a process with a framework takes seconds. If memory runs out,
    the kernel kills this process first.
    """
    lower_limit(resource.RLIMIT_CORE, 0)
    lower_limit(resource.RLIMIT_FSIZE, file_bytes)
    if memory_bytes is not None:
        lower_limit(resource.RLIMIT_DATA, data_bytes() + memory_bytes)
    with contextlib.suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text("1000")
    give_up_raising_limits()


def lower_limit(which: int, value: int) -> None:
    """Set a limit of this process, and of all processes that it starts, unless it is lower."""
    _, hard = resource.getrlimit(which)
    if hard != resource.RLIM_INFINITY:
        value = min(value, hard)
    resource.setrlimit(which, (value, value))
