"""A limit on the processes and threads of a job that the kernel enforces.

The server polls the number of a job's processes, but a process that forks without end starts
thousands between two polls, and the machine stalls. Root needs a control group with the `pids`
controller, since the kernel ignores root's `RLIMIT_NPROC`; other users need only the latter.
"""

from __future__ import annotations

import contextlib
import functools
import os
import resource
import signal
import time
from collections.abc import Iterator
from pathlib import Path

from .linux import CONTROL_GROUP

_PROC = Path("/proc")
_PREFIX = "graphnet-job-"


def max_tasks(max_processes: int) -> int:
    """Return the largest number of processes and threads of a job with this many processes.

    >>> max_tasks(256) > 256
    True
    """
    return max_processes + 64 * (os.cpu_count() or 1)


@contextlib.contextmanager
def task_group(number: int) -> Iterator[Path | None]:
    """Create a control group with at most `number` tasks, and remove it at the end.

    Yields its directory, or None if this process may not create one.
    """
    group = None
    parent = _pids_directory()
    if parent is not None:
        group = parent / f"{_PREFIX}{os.getpid()}"
        try:
            group.mkdir(exist_ok=True)
            (group / "pids.max").write_text(str(number))
        except OSError:
            with contextlib.suppress(OSError):
                group.rmdir()
            group = None
    try:
        yield group
    finally:
        if group is not None:
            kill_group(group)
            _remove(group)


def _remove(group: Path) -> None:
    """Remove a group, whose processes may still be ending, within about a second."""
    for _ in range(100):
        try:
            group.rmdir()
        except OSError:
            time.sleep(0.01)
        else:
            return


def num_processes(group: Path) -> int:
    """Return the number of processes of a group."""
    with contextlib.suppress(OSError):
        return len((group / "cgroup.procs").read_text().split())
    return 0


def kill_group(group: Path) -> None:
    """Kill all processes of a group.

    This takes one read for all processes. A walk through the tree takes several for each, which
    takes minutes if a thousand processes compete for the processors.
    """
    killed: set[str] = set()
    with contextlib.suppress(OSError):
        # Dead processes stay in the list until their parent has waited for them.
        while alive := {*(group / "cgroup.procs").read_text().split()} - killed:
            for pid in alive:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(int(pid), signal.SIGKILL)
            killed |= alive


def enter(group: Path | None, number: int) -> None:
    """Limit the tasks of this process and of all processes that it starts to `number`.

    `group` is that of `task_group`. Without one, `RLIMIT_NPROC` limits the tasks of a user other
    than root, including those that ran when the server started.
    """
    if group is not None:
        with contextlib.suppress(OSError):
            (group / "cgroup.procs").write_text("0")
    elif os.geteuid() != 0:
        _, hard = resource.getrlimit(resource.RLIMIT_NPROC)
        limit = tasks_of_user() + number
        if hard != resource.RLIM_INFINITY:
            limit = min(limit, hard)
        resource.setrlimit(resource.RLIMIT_NPROC, (limit, limit))


@functools.cache
def tasks_of_user() -> int:
    """Return the number of processes and threads of this user at the first call.

    >>> tasks_of_user() > 0
    True
    """
    number, user = 0, os.geteuid()
    for path in _PROC.iterdir():
        if path.name.isdigit():
            with contextlib.suppress(OSError):
                if path.stat().st_uid == user:
                    number += sum(1 for _ in (path / "task").iterdir())
    return number


def _pids_directory() -> Path | None:
    """Return the directory of this process in the hierarchy of the `pids` controller."""
    with contextlib.suppress(OSError):
        for line in (_PROC / "self" / "cgroup").read_text().splitlines():
            _, controllers, path = line.split(":", 2)
            if "pids" in controllers.split(","):
                return CONTROL_GROUP / "pids" / path.lstrip("/")
            if not controllers and (CONTROL_GROUP / "cgroup.controllers").exists():
                return CONTROL_GROUP / path.lstrip("/")
    return None
