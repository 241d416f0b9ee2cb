"""Linux calls that track a process and all its descendants.

A process that forks twice loses its parent and passes to init, outside its process group. If an
ancestor is a subreaper, the process passes to the subreaper instead, so the tree below a subreaper
can always be listed and killed.
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
CONTROL_GROUP = Path("/sys/fs/cgroup")


def _prctl(option: int, value: int) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(option, ctypes.c_ulong(value), 0, 0, 0) != 0:
        code = ctypes.get_errno()
        raise OSError(code, f"prctl({option}) failed: {os.strerror(code)}")


def become_subreaper() -> None:
    """Make this process the new parent of every descendant whose own parent ends."""
    _prctl(_PR_SET_CHILD_SUBREAPER, 1)


def cease_to_be_subreaper() -> None:
    """Let an ancestor adopt the orphans of this process's descendants."""
    _prctl(_PR_SET_CHILD_SUBREAPER, 0)


def is_subreaper() -> bool:
    """Return whether this process adopts orphaned descendants."""
    answer = ctypes.c_int()
    _prctl(_PR_GET_CHILD_SUBREAPER, ctypes.addressof(answer))
    return bool(answer.value)


def give_up_raising_limits() -> None:
    """Drop CAP_SYS_RESOURCE in this process and all processes that it starts.

    Without this capability no hard limit can be raised again.
    """
    libc = ctypes.CDLL(None, use_errno=True)
    with contextlib.suppress(OSError):  # a process without the right to drop it does not have it
        _prctl(_PR_CAPBSET_DROP, _CAP_SYS_RESOURCE)
    header = (ctypes.c_uint32 * 2)(_CAPABILITY_VERSION_3, 0)
    # Effective, permitted and inheritable capabilities: three lower words, then three upper words.
    sets = (ctypes.c_uint32 * 6)()
    if libc.capget(header, sets) == 0:
        for index in range(3):
            sets[index] &= ~(1 << _CAP_SYS_RESOURCE)
        libc.capset(header, sets)


def give_up_capabilities() -> None:
    """Drop root's capabilities in this process and all processes that it starts.

    For example, `CAP_PERFMON` and `CAP_SYS_PTRACE` allow reading the environment of another
    process.
    """
    libc = ctypes.CDLL(None, use_errno=True)
    for capability in range(64):
        with contextlib.suppress(OSError):  # unknown to this kernel, or not permitted
            _prctl(_PR_CAPBSET_DROP, capability)
    header = (ctypes.c_uint32 * 2)(_CAPABILITY_VERSION_3, 0)
    libc.capset(header, (ctypes.c_uint32 * 6)())


def die_with_parent(parent: int) -> None:
    """Make the kernel kill this process when `parent` ends; exit now if it already ended."""
    _prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(1)


def children(pid: int) -> list[int]:
    """Return the direct children of process `pid`, zombies included; [] if it is gone."""
    pids: list[int] = []
    with contextlib.suppress(OSError):
        for task in (_PROC / str(pid) / "task").iterdir():
            pids += map(int, (task / "children").read_bytes().split())
    return pids


def descendants(pid: int) -> list[int]:
    """Return all processes below `pid`, parents before their children.

    >>> descendants(os.getpid()) == children(os.getpid()) or len(descendants(os.getpid())) > 0
    True
    """
    pids: list[int] = []
    pending = [pid]
    while pending:
        below = children(pending.pop())
        pids += below
        pending += below
    return pids


def memory_bytes(pid: int) -> int:
    """Return the anonymous and shared memory of process `pid`, or 0 if it is gone.

    File pages, such as libraries, are excluded because the kernel can evict them at any time.
    """
    total_kib = 0
    with contextlib.suppress(OSError, ValueError):
        for line in (_PROC / str(pid) / "status").read_bytes().splitlines():
            if line.startswith((b"RssAnon:", b"RssShmem:")):
                total_kib += int(line.split()[1])
    return total_kib * 1024


def proportional_memory_bytes(pid: int) -> int:
    """Return `memory_bytes` with each page divided by the number of processes that share it.

    This takes milliseconds for a large process, while `memory_bytes` takes microseconds.
    """
    total_kib = 0
    with contextlib.suppress(OSError, ValueError):
        for line in (_PROC / str(pid) / "smaps_rollup").read_bytes().splitlines():
            if line.startswith((b"Pss_Anon:", b"Pss_Shmem:")):
                total_kib += int(line.split()[1])
    return total_kib * 1024


def available_memory_bytes() -> int:
    """Return the memory available to new processes, limited by the control group.

    >>> 0 < available_memory_bytes() <= os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    True
    """
    available = os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    with contextlib.suppress(OSError, ValueError):
        for line in (_PROC / "meminfo").read_bytes().splitlines():
            if line.startswith(b"MemAvailable:"):
                available = int(line.split()[1]) * 1024
    with contextlib.suppress(OSError, ValueError):  # the file contains "max" if there is no limit
        limit = int((CONTROL_GROUP / "memory.max").read_bytes())
        used = int((CONTROL_GROUP / "memory.current").read_bytes())
        available = min(available, max(limit - used, 0))
    return max(available, 1)


def data_bytes() -> int:
    """Return the private writable memory mapped by this process (VmData)."""
    for line in (_PROC / "self" / "status").read_bytes().splitlines():
        if line.startswith(b"VmData:"):
            return int(line.split()[1]) * 1024
    return 0


def reset_peak_memory() -> None:
    """Restart the measurement of peak resident memory (see `peak_memory_bytes`)."""
    with contextlib.suppress(OSError):
        (_PROC / "self" / "clear_refs").write_text("5")


def peak_memory_bytes() -> int:
    """Return the peak resident memory of this process since the last reset.

    >>> peak_memory_bytes() > 2**20
    True
    """
    for line in (_PROC / "self" / "status").read_bytes().splitlines():
        if line.startswith(b"VmHWM:"):
            return int(line.split()[1]) * 1024
    return 0


def oom_kills() -> int:
    """Return the number of processes that the kernel has killed for lack of memory."""
    with contextlib.suppress(OSError, ValueError):
        for line in (_PROC / "vmstat").read_bytes().splitlines():
            if line.startswith(b"oom_kill "):
                return int(line.split()[1])
    return 0


def kill_descendants(timeout_s: float = 10.0) -> dict[int, int]:
    """Kill and reap every process below this one; requires `become_subreaper` to reach them all.

    All processes are stopped before any is killed, so that a process cannot react to a death by
    forking.

    Returns:
        The wait status of each reaped direct child, by process id.
    """
    me = os.getpid()
    reaped: dict[int, int] = {}
    deadline = time.monotonic() + timeout_s
    while time.monotonic() < deadline:
        stopped: set[int] = set()
        while new := set(descendants(me)) - stopped:
            for pid in new:
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.kill(pid, signal.SIGSTOP)
            stopped |= new
        for pid in stopped:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
        try:
            while (result := os.waitpid(-1, os.WNOHANG))[0]:
                reaped[result[0]] = result[1]
        except ChildProcessError:
            return reaped
        time.sleep(0.002)
    return reaped
