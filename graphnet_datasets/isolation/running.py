"""A fork server that runs: its process, the connection to it, its directory, and its end."""

from __future__ import annotations

import contextlib
import dataclasses
import os
import select
import signal
import socket
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Self

from .cleaning import remove_tree
from .orphans import kill_orphans_of
from .watch import KILL_GRACE_S


@dataclasses.dataclass(eq=False)
class Running:
    """A server's process, this end of its connection, and the directory of all its jobs.

    `key` says how it was started. `lock` is held where `control` is closed or duplicated.
    """

    process: subprocess.Popen[bytes]
    control: socket.socket
    session: Path
    key: tuple[object, ...]
    is_ready: bool = False
    missing_layers: tuple[str, ...] = ()
    num_jobs: int = 0
    is_handed_over: bool = False
    lock: threading.Lock = dataclasses.field(default_factory=threading.Lock)

    def is_alive(self) -> bool:
        """Whether its process has not ended."""
        return self.process.poll() is None

    @contextlib.contextmanager
    def at_work(self) -> Iterator[socket.socket]:
        """Hold the server for a job, and give a connection that stays open whoever closes it.

        Raises:
            OSError: it was closed, or is somebody else's by now.
        """
        with self.lock:
            if self.is_handed_over:
                raise BrokenPipeError("The server serves somebody else.")
            control = self.control.dup()
            self.num_jobs += 1
        try:
            with control:
                yield control
        finally:
            with self.lock:
                self.num_jobs -= 1

    def hand_over(self) -> Self | None:
        """Return the same server for another owner; None if it is at work or does not run.

        This object is good for nothing then.
        """
        with self.lock:
            if self.num_jobs or not self.is_ready or self.is_handed_over or not self.is_alive():
                return None
            self.is_handed_over = True
            return dataclasses.replace(self, is_handed_over=False, lock=threading.Lock())

    def end(self) -> None:
        """End the server: it sees the connection end, kills its job and goes.

        So does who waits for a job or for the start, in another thread. Closing alone would tell
        nobody: a socket that is closed while it is waited for leaves the selector without a word.
        """
        with contextlib.suppress(OSError):  # the server has gone before
            self.control.shutdown(socket.SHUT_RDWR)
        if not self.is_ready:  # it has no job yet, and hears nothing until its imports are done
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
        """Wait for the process, and notice its end at once: `Popen.wait` looks every 50 ms."""
        if self.process.poll() is not None:
            return True
        try:
            ended = os.pidfd_open(self.process.pid)
        except ProcessLookupError:  # another thread has waited for it
            return True
        try:
            poller = select.poll()
            poller.register(ended, select.POLLIN)
            return bool(poller.poll(1000 * time_s))
        finally:
            os.close(ended)
