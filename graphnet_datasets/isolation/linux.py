"""What Linux offers to keep hold of a process and of all that it starts.

A process that forks twice loses its parent and is handed to init, out of reach of a process group.
A subreaper gets it instead, so that the tree below a subreaper can always be listed and killed.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import time
from pathlib import Path

_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36
_PR_GET_CHILD_SUBREAPER = 37
_PR_CAPBSET_DROP = 24
_CAP_SYS_RESOURCE = 24
_CAPABILITY_VERSION_3 = 0x20080522
_PROC = Path("/proc")
_CONTROL_GROUP = Path("/sys/fs/cgroup")


def _prctl(option: int, value: int) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(option, ctypes.c_ulong(value), 0, 0, 0) != 0:
        code = ctypes.get_errno()
        raise OSError(code, f"prctl({option}) failed: {os.strerror(code)}")


def become_subreaper() -> None:
    """Make this process the new parent of every descendant whose own parent ends."""
    _prctl(_PR_SET_CHILD_SUBREAPER, 1)


def cease_to_be_subreaper() -> None:
    """Leave the orphans of this process's descendants to whoever is above it."""
    _prctl(_PR_SET_CHILD_SUBREAPER, 0)


def is_subreaper() -> bool:
    """Tell whether this process is the new parent of orphans below it."""
    answer = ctypes.c_int()
    _prctl(_PR_GET_CHILD_SUBREAPER, ctypes.addressof(answer))
    return bool(answer.value)


def give_up_raising_limits() -> None:
    """Give up CAP_SYS_RESOURCE for this process and all that it starts, if it is root's.

    Without it no hard limit can be raised again.
    """
    libc = ctypes.CDLL(None, use_errno=True)
    with contextlib.suppress(OSError):  # who may not drop it does not have it
        _prctl(_PR_CAPBSET_DROP, _CAP_SYS_RESOURCE)
    header = (ctypes.c_uint32 * 2)(_CAPABILITY_VERSION_3, 0)
    # Effective, permitted and inheritable capabilities, the lower 32 of each and then the upper.
    sets = (ctypes.c_uint32 * 6)()
    if libc.capget(header, sets) == 0:
        for which in range(3):
            sets[which] &= ~(1 << _CAP_SYS_RESOURCE)
        libc.capset(header, sets)


def give_up_capabilities() -> None:
    """Give up root's capabilities for this process and all that it starts.

    Among others, `CAP_PERFMON` and `CAP_SYS_PTRACE` let a process read another one's environment.
    """
    libc = ctypes.CDLL(None, use_errno=True)
    for capability in range(64):
        with contextlib.suppress(OSError):  # unknown to this kernel, or not held
            _prctl(_PR_CAPBSET_DROP, capability)
    header = (ctypes.c_uint32 * 2)(_CAPABILITY_VERSION_3, 0)
    libc.capset(header, (ctypes.c_uint32 * 6)())


def die_with_parent(parent: int) -> None:
    """Have the kernel kill this process when `parent` ends; ends at once if it already has."""
    _prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(1)


def children(pid: int) -> list[int]:
    """Return the direct children of process `pid`, zombies included; [] if it is gone."""
    found: list[int] = []
    with contextlib.suppress(OSError):
        for task in (_PROC / str(pid) / "task").iterdir():
            found += map(int, (task / "children").read_bytes().split())
    return found


def descendants(pid: int) -> list[int]:
    """Return all processes below `pid`, nearest first.

    >>> descendants(os.getpid()) == children(os.getpid()) or len(descendants(os.getpid())) > 0
    True
    """
    found: list[int] = []
    pending = [pid]
    while pending:
        below = children(pending.pop())
        found += below
        pending += below
    return found


def memory_bytes(pid: int) -> int:
    """Return the anonymous and shared memory that process `pid` holds, 0 if it is gone.

    File pages are left out: they are the libraries, which the kernel can drop at any time.
    """
    total_kib = 0
    with contextlib.suppress(OSError, ValueError):
        for line in (_PROC / str(pid) / "status").read_bytes().splitlines():
            if line.startswith((b"RssAnon:", b"RssShmem:")):
                total_kib += int(line.split()[1])
    return total_kib * 1024


def proportional_memory_bytes(pid: int) -> int:
    """Return `memory_bytes`, each page divided by the number of processes that share it.

    Takes milliseconds for a large process, where `memory_bytes` takes microseconds.
    """
    total_kib = 0
    with contextlib.suppress(OSError, ValueError):
        for line in (_PROC / str(pid) / "smaps_rollup").read_bytes().splitlines():
            if line.startswith((b"Pss_Anon:", b"Pss_Shmem:")):
                total_kib += int(line.split()[1])
    return total_kib * 1024


def available_memory_bytes() -> int:
    """Return the memory that new processes can take, the limit of the control group included.

    >>> 0 < available_memory_bytes() <= os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    True
    """
    available = os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    with contextlib.suppress(OSError, ValueError):
        for line in (_PROC / "meminfo").read_bytes().splitlines():
            if line.startswith(b"MemAvailable:"):
                available = int(line.split()[1]) * 1024
    with contextlib.suppress(OSError, ValueError):  # "max" without a limit
        limit = int((_CONTROL_GROUP / "memory.max").read_bytes())
        used = int((_CONTROL_GROUP / "memory.current").read_bytes())
        available = min(available, max(limit - used, 0))
    return max(available, 1)


def data_bytes() -> int:
    """Return the private writable memory that this process has mapped (VmData)."""
    for line in (_PROC / "self" / "status").read_bytes().splitlines():
        if line.startswith(b"VmData:"):
            return int(line.split()[1]) * 1024
    return 0


def reset_peak_memory() -> None:
    """Begin a new measurement of this process's peak resident memory (see `peak_memory_bytes`)."""
    with contextlib.suppress(OSError):
        (_PROC / "self" / "clear_refs").write_text("5")


def peak_memory_bytes() -> int:
    """Return the most memory that this process has had resident since the last reset.

    >>> peak_memory_bytes() > 2**20
    True
    """
    for line in (_PROC / "self" / "status").read_bytes().splitlines():
        if line.startswith(b"VmHWM:"):
            return int(line.split()[1]) * 1024
    return 0


def oom_kills() -> int:
    """Return how many processes the kernel has killed because memory ran out."""
    with contextlib.suppress(OSError, ValueError):
        for line in (_PROC / "vmstat").read_bytes().splitlines():
            if line.startswith(b"oom_kill "):
                return int(line.split()[1])
    return 0


def kill_descendants(timeout_s: float = 10.0) -> dict[int, int]:
    """Kill and reap every process below this one; needs `become_subreaper` to reach them all.

    All are stopped before the first is killed, so that none can fork in answer to a death.

    Returns:
        The wait status of each direct child that was reaped, by process id.
    """
    me = os.getpid()
    reaped: dict[int, int] = {}
    deadline = time.monotonic() + timeout_s
    while time.monotonic() < deadline:
        known: set[int] = set()
        while new := set(descendants(me)) - known:
            for pid in new:
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.kill(pid, signal.SIGSTOP)
            known |= new
        for pid in known:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
        try:
            while (result := os.waitpid(-1, os.WNOHANG))[0]:
                reaped[result[0]] = result[1]
        except ChildProcessError:
            return reaped
        time.sleep(0.002)
    return reaped
