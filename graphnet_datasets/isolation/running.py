"""A running fork server: its process, connection, directory and shutdown."""

from __future__ import annotations

import contextlib
import dataclasses
import os
import select
import signal
import socket
import subprocess
import threading
import weakref
from collections.abc import Iterator
from pathlib import Path
from typing import Self

from .cleaning import remove_tree
from .orphans import kill_orphans_of
from .watch import KILL_GRACE_S


class ForkedServer:
    """The process of a server that another server forked, with the methods of `Popen` in use here.

    Its parent is that server, so its exit status is unknown; `poll` returns 0 when it has ended.
    """

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self._fd = os.pidfd_open(pid)
        weakref.finalize(self, os.close, self._fd)

    def poll(self) -> int | None:
        """Return 0 if the process has ended, else None."""
        return 0 if self._wait(0) else None

    def wait(self) -> int:
        """Wait until the process has ended and return 0."""
        self._wait(None)
        return 0

    def kill(self) -> None:
        """Kill the process, if it is running."""
        with contextlib.suppress(ProcessLookupError):
            signal.pidfd_send_signal(self._fd, signal.SIGKILL)

    def _wait(self, timeout_ms: int | None) -> bool:
        poller = select.poll()
        poller.register(self._fd, select.POLLIN)
        return bool(poller.poll(timeout_ms))


@dataclasses.dataclass(eq=False)
class Running:
    """A server's process, the client end of its connection, and the directory of its jobs.

    `key` identifies how the server was started. Closing or duplicating `control` requires `lock`.
    """

    process: subprocess.Popen[bytes] | ForkedServer
    control: socket.socket
    session: Path
    key: tuple[object, ...]
    is_ready: bool = False
    missing_layers: tuple[str, ...] = ()
    num_jobs: int = 0
    is_handed_over: bool = False
    lock: threading.Lock = dataclasses.field(default_factory=threading.Lock)

    def is_alive(self) -> bool:
        """Return whether the server's process is running."""
        return self.process.poll() is None

    @contextlib.contextmanager
    def at_work(self) -> Iterator[socket.socket]:
        """Reserve the server for a job and yield a duplicate of its connection, which `end` cannot
        close.

        Raises:
            OSError: The server was closed or handed over to another owner.
        """
        with self.lock:
            if self.is_handed_over:
                raise BrokenPipeError("The server now belongs to another owner.")
            control = self.control.dup()
            self.num_jobs += 1
        try:
            with control:
                yield control
        finally:
            with self.lock:
                self.num_jobs -= 1

    def hand_over(self) -> Self | None:
        """Return the server for another owner, or None if it is busy or not running.

        This object must not be used afterwards.
        """
        with self.lock:
            if self.num_jobs or not self.is_ready or self.is_handed_over or not self.is_alive():
                return None
            self.is_handed_over = True
            return dataclasses.replace(self, is_handed_over=False, lock=threading.Lock())

    def end(self) -> None:
        """Stop the server: it sees the end of the connection, kills its job and exits.

        Threads that wait for a job or for the start also return. `close` alone would not wake them,
        because a selector does not report a socket that is closed while it waits.
        """
        with contextlib.suppress(OSError):  # the server has already ended
            self.control.shutdown(socket.SHUT_RDWR)
        if not self.is_ready:  # it has no job yet and reads no messages before its imports end
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.process.pid, signal.SIGKILL)
        if not self._has_ended_within(KILL_GRACE_S):
            self.process.kill()
        self.process.wait()
        with self.lock:
            self.control.close()
        kill_orphans_of(self.process.pid)
        remove_tree(self.session)

    def _has_ended_within(self, time_s: float) -> bool:
        """Wait for the process and return as soon as it ends; `Popen.wait` polls every 50 ms."""
        if self.process.poll() is not None:
            return True
        try:
            ended = os.pidfd_open(self.process.pid)
        except ProcessLookupError:  # another thread has reaped it
            return True
        try:
            poller = select.poll()
            poller.register(ended, select.POLLIN)
            return bool(poller.poll(1000 * time_s))
        finally:
            os.close(ended)
