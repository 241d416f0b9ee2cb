"""The client of the fork server: starts the server and runs jobs in it."""

from __future__ import annotations

import contextlib
import errno
import functools
import json
import logging
import math
import os
import secrets
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Self

from ..errors import DiskError, RunError
from . import launch
from .cleaning import remove_tree
from .confinement import CONFINED_VARIABLE, without_secrets
from .import_path import import_variables
from .keeping import keep, launch_key, take
from .limits import Limits
from .orphans import adopt_orphans_of
from .running import ForkedServer, Running
from .server import MAX_CONTROL_BYTES
from .stamps import StampReader, stamp_sockets
from .watch import Ending, Outcome, Watch

_LOGGER = logging.getLogger("graphnet_datasets")
_LOG_NAME = "server.log"
_SPACE_BYTES = 2**20
_MAX_OWN_BYTES = 2**30
"""The size of a job's files from which on the job itself is the reason for a full device."""
_LAUNCHER = str(Path(launch.__file__).resolve())
MIN_FREE_BYTES = 16 * 2**20
"""Minimum free space for a job; with less, compilers fail and their graphs would be blamed."""


class ForkServer:
    """A process that imports the modules that jobs need and forks a new process for each job.

    `module` has a function `work` for the jobs and optionally `prepare` (see `server.main`). Its
    name must not come from data. The server starts with the first job and restarts after it is
    lost. Within `keep_servers`, a kept server started in the same way is reused. The server's
    environment is that of this process without tokens and passwords, updated with `environment`.
    Jobs are confined unless `is_confined` is false (see `confinement`); `missing_layers` lists the
    layers that the kernel lacks. `has_unix_sockets` allows jobs to create named Unix sockets.
    `origin` is a server of the same module with the same environment, which runs no jobs: this
    server then starts as a fork of it, without imports of its own.
    """

    def __init__(
        self,
        module: str,
        *,
        environment: Mapping[str, str] | None = None,
        start_timeout_s: float = 300.0,
        is_confined: bool = True,
        has_unix_sockets: bool = False,
        origin: ForkServer | None = None,
    ) -> None:
        self._origin = origin
        self._is_confined = is_confined and not os.environ.get(CONFINED_VARIABLE)
        self._has_unix_sockets = has_unix_sockets
        self._module = module
        self._environment = dict(environment or {})
        self._start_timeout_s = start_timeout_s
        self._lock, self._forking = threading.Lock(), threading.Lock()
        self._running: Running | None = None
        self._finalizer: weakref.finalize | None = None
        self.num_starts = 0
        self.missing_layers: tuple[str, ...] = ()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def pid(self) -> int | None:
        """The server's process id; None if the server is not running."""
        running = self._running
        return None if running is None else running.process.pid

    def start(self) -> None:
        """Start the server if it is not running, and wait until it accepts jobs.

        Raises:
            RunError: The server does not start; the message contains the end of its output.
        """
        self._start()

    def _start(self) -> Running:
        running = self._running
        if running is not None and running.process.poll() is None:
            return running
        self.close()
        environment = self._whole_environment()
        key = launch_key(self._module, environment)
        running = take(key) if self._origin is None else None
        if running is not None:
            self._own(running)
        elif self._origin is not None:
            running = self._fork(self._origin, key)
            self._wait_until_ready(running)
        else:
            running = self._launch(environment, key)
            self._wait_until_ready(running)
        self.missing_layers = running.missing_layers
        if self.missing_layers:
            _warn_of(self.missing_layers)
        return running

    def _wait_until_ready(self, running: Running) -> None:
        ours = running.control
        message = b""
        try:
            with contextlib.suppress(OSError):
                ours.settimeout(self._start_timeout_s)
                message = ours.recv(MAX_CONTROL_BYTES)
                ours.settimeout(None)
        except BaseException:  # includes Ctrl-C: nothing else would stop the server
            self.close()
            raise
        if b"ready" not in message:
            if self._running is not running:
                raise RunError(f"The worker process `{self._module}` was closed as it started.")
            text = (running.session / _LOG_NAME).read_text(errors="replace")[-2000:].strip()
            self.close()
            raise RunError(
                f"The worker process `{self._module}` did not start within "
                f"{self._start_timeout_s:g} s. It printed: {text or 'nothing'}"
            )
        running.missing_layers = tuple(json.loads(message).get("missing_layers", ()))
        running.is_ready = True

    def _whole_environment(self) -> dict[str, str]:
        return {
            **without_secrets(os.environ),
            **import_variables(os.environ),
            # Threads of OpenBLAS would not survive the fork.
            "OPENBLAS_NUM_THREADS": "1",
            CONFINED_VARIABLE: os.environ.get(CONFINED_VARIABLE)
            or ("1" if self._is_confined else ""),
            **self._environment,
        }

    def _launch(self, environment: Mapping[str, str], key: tuple[object, ...]) -> Running:
        session = Path(tempfile.mkdtemp(prefix="graphnet-"))
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        # Temporary files left by an import are removed with the server.
        environment = {**environment, "TMPDIR": self._environment.get("TMPDIR", str(session))}
        with theirs, (session / _LOG_NAME).open("wb") as log:
            process = subprocess.Popen(  # noqa: S603 (our own module, no shell)
                [sys.executable, "-P", _LAUNCHER, self._module, str(theirs.fileno()), str(session)],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                env=environment,
                pass_fds=[theirs.fileno()],
                start_new_session=True,  # protects the server from the terminal's Ctrl-C
            )
        adopt_orphans_of(process.pid)
        running = Running(process, ours, session, key)
        self._own(running)
        return running

    def _fork(self, origin: ForkServer, key: tuple[object, ...]) -> Running:
        session = Path(tempfile.mkdtemp(prefix="graphnet-"))
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        try:
            with theirs, origin._forking:
                control = origin._start().control
                with _closed_meanwhile(self._module):
                    request = json.dumps({"fork": str(session)}).encode()
                    socket.send_fds(control, [request], [theirs.fileno()])
                    answer = control.recv(MAX_CONTROL_BYTES)
                    if not answer:
                        raise BrokenPipeError("The server that should fork has ended.")
        except BaseException:
            ours.close()
            remove_tree(session)
            raise
        running = Running(ForkedServer(json.loads(answer)["forked"]), ours, session, key)
        self._own(running)
        return running

    def _confinement(
        self, reads: Sequence[str], writes: Sequence[str], executes: Sequence[str]
    ) -> dict[str, Any] | None:
        if not self._is_confined:
            return None
        return {
            "reads": [str(path) for path in reads],
            "writes": [str(path) for path in writes],
            "executes": [str(path) for path in executes],
            "has_unix_sockets": self._has_unix_sockets,
        }

    def _own(self, running: Running) -> None:
        with self._lock:
            self._running = running
            self._finalizer = weakref.finalize(self, running.end)
        self.num_starts += 1

    def be_still(self, is_still: bool) -> None:
        """Pause or resume the server's monitoring of its job. The caller monitors the job
        meanwhile.
        """
        running = self._running
        if running is not None:
            with running.lock, contextlib.suppress(OSError):
                running.control.send(json.dumps({"is_still": is_still}).encode())

    def close(self) -> None:
        """Kill the current job, if there is one, and stop the server. Any thread may call this.

        A concurrent `run` or `start` in another thread also ends. An idle server may be kept for
        another owner instead (see `keep_servers`).
        """
        with self._lock:
            finalizer, self._finalizer = self._finalizer, None
            running, self._running = self._running, None
        if finalizer is None or running is None:
            return
        if self._origin is None and keep(running):
            finalizer.detach()
        else:
            finalizer()

    @contextlib.contextmanager
    def directory(self) -> Iterator[Path]:
        """Create an empty directory for a job; it is removed with the job or with the server.

        Raises:
            DiskError: There is too little space for temporary files.
        """
        running = self._start()
        with _closed_meanwhile(self._module):
            path = Path(tempfile.mkdtemp(prefix="job-", dir=running.session))
        try:
            free = shutil.disk_usage(path).free
            if free < MIN_FREE_BYTES:
                raise _full(f"A job needs {MIN_FREE_BYTES:,} bytes, but only {free:,} are free")
            yield path
        finally:
            remove_tree(path)

    def run(
        self,
        payload: Mapping[str, Any],
        directory: Path,
        *,
        phases: Sequence[str],
        limits: Limits | None = None,
        environment: Mapping[str, str] | None = None,
        on_phase: Callable[[str], None] | None = None,
        on_start: Callable[[], None] | None = None,
        now_s: Callable[[], float] = time.monotonic,
        reads: Sequence[str] = (),
        writes: Sequence[str] = (),
        executes: Sequence[str] = (),
    ) -> Outcome:
        """Run a job in a new process and return its outcome; the job's errors are not raised.

        Args:
            payload: The job's input as JSON; large data belongs in files in `directory`.
            directory: The job's working directory (see `directory`).
            phases: The phases in order; a job starts in the first and cannot go back.
            limits: The job's resource limits.
            environment: Variables set in the job's process.
            on_phase: Called with each phase that the job enters; the time of the phase starts when
                this call returns.
            on_start: Called when the job's process exists.
            now_s: The clock of the time limits, which may be paused.
            reads: Files and directories that a confined job may read, besides its own directory and
                the installed software.
            writes: Files and directories that a confined job may write, besides its own directory.
            executes: Programs, or directories of programs, that a confined job may start, besides
                Python, the C++ toolchain and the programs of Python packages.

        Raises:
            RunError: The payload is too large, the server cannot be started, or another thread
                closed it before the job began. If `close` ends a job, its outcome is a crash.
            DiskError: The job failed, and no space is left for its directory.
        """
        limits = limits or Limits()
        key = secrets.token_hex(16)
        request = {
            "key": key,
            "job": self.num_starts,
            "payload": dict(payload),
            "directory": str(directory),
            "environment": dict(environment or {}),
            "memory_bytes": limits.memory_bytes,
            "tree_bytes": limits.tree_bytes,
            "is_memory_enforced": limits.is_memory_enforced,
            "max_processes": limits.max_processes,
            "priority": os.getpriority(os.PRIO_PROCESS, 0),
            "file_bytes": limits.file_bytes,
            "confinement": self._confinement(reads, writes, executes),
        }
        data = json.dumps(request).encode()
        if len(data) > MAX_CONTROL_BYTES:
            raise RunError(
                f"A job's payload takes {len(data)} bytes; at most {MAX_CONTROL_BYTES} fit. Put "
                "larger data into a file in the job's directory."
            )
        running = self._start()
        with contextlib.ExitStack() as stack:
            with _closed_meanwhile(self._module):
                control = stack.enter_context(running.at_work())
            result_read, result_write = os.pipe()
            log_read, log_write = os.pipe()
            stamps, stamps_of_job = stamp_sockets()
            reader = StampReader(stamps, key)
            pipes = (control, result_read, log_read)
            watch = Watch(*pipes, phases, limits, key, reader, on_phase, on_start, now_s)
            try:
                with stamps_of_job, contextlib.suppress(BrokenPipeError, ConnectionResetError):
                    fds = [result_write, log_write, stamps_of_job.fileno()]
                    socket.send_fds(control, [data], fds)
                os.close(result_write)
                os.close(log_write)
                outcome = watch.watch()
            except BaseException:  # includes Ctrl-C: the job must not continue unwatched
                self.close()
                raise
            finally:
                os.close(result_read)
                os.close(log_read)
                reader.close()
            # Still inside `at_work`, so that the unresponsive server is not handed to another
            # owner.
            if watch.is_server_lost and self._running is running:
                self.close()
        if outcome.ending is not Ending.FINISHED:
            _check_space(directory)
        return outcome


def _check_space(directory: Path) -> None:
    """Raise a DiskError if a job's directory has no space left, unless its own files are large."""
    try:
        with tempfile.TemporaryFile(dir=directory) as file:
            file.write(bytes(_SPACE_BYTES))
    except OSError as error:
        is_full = error.errno in (errno.ENOSPC, errno.EDQUOT)
        if is_full and _size_bytes(directory) < _MAX_OWN_BYTES:
            raise _full("There is no space left") from error


def _size_bytes(directory: Path) -> float:
    """Return the size of a job's files, and infinity if its directory cannot be traversed."""
    try:
        return sum(512 * path.lstat().st_blocks for path in directory.rglob("*"))
    except (OSError, RecursionError):
        return math.inf


def _full(problem: str) -> DiskError:
    return DiskError(
        f"{problem} for temporary files in `{tempfile.gettempdir()}`. Free some, or set `TMPDIR` "
        "to a directory on another device."
    )


@functools.cache
def _warn_of(layers: tuple[str, ...]) -> None:
    _LOGGER.warning(
        "This system lacks %s, so samples run with less confinement. `graphnet doctor` lists the "
        "layers, and docs/security.md describes the protection that each adds.",
        " and ".join(layers),
    )


@contextlib.contextmanager
def _closed_meanwhile(module: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise RunError(f"The worker process `{module}` was closed before its job began.") from error
