"""A limit on the processes and threads of a job that the kernel enforces.

The server polls the number of a job's processes, but a process that forks without end starts
thousands between two polls, and the machine stalls. Root needs a control group with the `pids`
controller, since the kernel ignores root's `RLIMIT_NPROC`; other users need only the latter.
"""

from __future__ import annotations

import contextlib
import os
import resource
import signal
import time
from pathlib import Path
from typing import Self

from .limits import THREADS_PER_CPU, lower_limit
from .linux import CONTROL_GROUP

_PROC = Path("/proc")
_PREFIX = "graphnet-job-"


class TaskLimit:
    """A limit on the processes and threads of a job, and the control group that enforces it.

    The group exists while this context manager is open. The processes that remain are then killed.
    Without a group, for lack of rights, the methods other than `enter` do nothing.
    """

    def __init__(self, max_processes: int) -> None:
        self._max_tasks = max_processes + THREADS_PER_CPU * (os.cpu_count() or 1)
        self._group: Path | None = None

    def __enter__(self) -> Self:
        parent = _pids_directory()
        if parent is not None:
            group = parent / f"{_PREFIX}{os.getpid()}"
            try:
                group.mkdir(exist_ok=True)
                (group / "pids.max").write_text(str(self._max_tasks))
                self._group = group
            except OSError:
                _remove(group)
        return self

    def __exit__(self, *_: object) -> None:
        if self._group is not None:
            self.kill()
            _remove(self._group)

    def enter(self) -> None:
        """Limit this process and all processes that it starts.

        Without a group, `RLIMIT_NPROC` limits the tasks of a user other than root, including those
        that run now.
        """
        if self._group is not None:
            with contextlib.suppress(OSError):
                (self._group / "cgroup.procs").write_text("0")
        elif os.geteuid() != 0:
            lower_limit(resource.RLIMIT_NPROC, _tasks_of_user() + self._max_tasks)

    def processes(self) -> set[int]:
        """Return the processes of the group, including ended ones that nobody has waited for."""
        with contextlib.suppress(OSError):
            if self._group is not None:
                return set(map(int, (self._group / "cgroup.procs").read_text().split()))
        return set()

    def kill(self) -> None:
        """Kill all processes of the group.

        This takes one read for all processes. A walk through the tree takes several for each, and
        minutes if a thousand processes compete for the processors.
        """
        killed: set[int] = set()
        while alive := self.processes() - killed:
            for pid in alive:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            killed |= alive


def _remove(group: Path) -> None:
    """Remove a group, whose processes may still be ending, within about a second."""
    for _ in range(100):
        try:
            group.rmdir()
        except FileNotFoundError:
            return
        except OSError:
            time.sleep(0.01)
        else:
            return


def _tasks_of_user() -> int:
    """Return the number of processes and threads of this user."""
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
