"""The parent's side of the fork server: start it and run jobs in it."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import logging
import os
import secrets
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from ..errors import RunError
from .cleaning import remove_tree
from .confinement import CONFINED_VARIABLE, without_secrets
from .limits import Limits
from .orphans import adopt_orphans_of, kill_orphans_of
from .server import MAX_CONTROL_BYTES
from .stamps import StampReader, stamp_sockets
from .watch import KILL_GRACE_S, Outcome, Watch

_LOGGER = logging.getLogger("graphnet_datasets")
_LOG_NAME = "server.log"


class ForkServer:
    """A process that has imported what jobs need and forks a fresh process for each of them.

    `module` is run with `python -m`; it must call `serve` (see there). The server starts with the
    first job and starts again after it has been lost. `environment` is added to this process's. The
    jobs of a confined server have no network, where the kernel allows that (`has_network` tells),
    and none of the environment's tokens and passwords.
    """

    def __init__(
        self,
        module: str,
        *,
        environment: Mapping[str, str] | None = None,
        start_timeout_s: float = 300.0,
        is_confined: bool = False,
    ) -> None:
        self._is_confined = is_confined
        self._module = module
        self._environment = dict(environment or {})
        self._start_timeout_s = start_timeout_s
        self._lock = threading.Lock()
        self._running: _Running | None = None
        self._finalizer: weakref.finalize | None = None
        self.num_starts = 0
        self.has_network = True

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    @property
    def pid(self) -> int | None:
        """The server's process id, None while it does not run."""
        running = self._running
        return None if running is None else running.process.pid

    def start(self) -> None:
        """Start the server if it does not run, and wait until it is ready for jobs.

        Raises:
            RunError: it does not start; the message has the end of what it printed.
        """
        self._start()

    def _start(self) -> _Running:
        running = self._running
        if running is not None and running.process.poll() is None:
            return running
        self.close()
        running = self._launch()
        ours = running.control
        told = b""
        try:
            with contextlib.suppress(OSError):
                ours.settimeout(self._start_timeout_s)
                told = ours.recv(MAX_CONTROL_BYTES)
                ours.settimeout(None)
        except BaseException:  # Ctrl-C: it is not ready, and nobody would learn when it is
            self.close()
            raise
        running.is_ready = b"ready" in told
        if not running.is_ready:
            if self._running is not running:
                raise RunError(f"The worker process `{self._module}` was closed as it started.")
            text = (running.session / _LOG_NAME).read_text(errors="replace")[-2000:].strip()
            self.close()
            raise RunError(
                f"The worker process `{self._module}` did not start within "
                f"{self._start_timeout_s:g} s. It printed: {text or 'nothing'}"
            )
        if self._is_confined:
            self.has_network = bool(json.loads(told).get("has_network"))
            if self.has_network:
                _LOGGER.warning(
                    "This system allows no network namespaces, so the samples that run in %s can "
                    "reach the network.",
                    self._module,
                )
        return running

    def _launch(self) -> _Running:
        session = Path(tempfile.mkdtemp(prefix="graphnet-"))
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        environment = {
            **(without_secrets(os.environ) if self._is_confined else os.environ),
            "PYTHONPATH": os.pathsep.join(str(Path(entry or ".").absolute()) for entry in sys.path),
            # A worker thread made before a fork does not exist after it.
            "OPENBLAS_NUM_THREADS": "1",
            CONFINED_VARIABLE: "1" if self._is_confined else "",
            # What an import leaves in a temporary directory goes with the server.
            "TMPDIR": str(session),
            **self._environment,
        }
        with theirs, (session / _LOG_NAME).open("wb") as log:
            process = subprocess.Popen(  # noqa: S603 (our own module, no shell)
                [sys.executable, "-m", self._module, str(theirs.fileno()), str(session)],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                env=environment,
                pass_fds=[theirs.fileno()],
                start_new_session=True,  # out of reach of the terminal's Ctrl-C
            )
        adopt_orphans_of(process.pid)
        running = _Running(process, ours, session)
        with self._lock:
            self._running = running
            self._finalizer = weakref.finalize(self, _shut_down, running)
        self.num_starts += 1
        return running

    def be_still(self, is_still: bool) -> None:
        """Have the server look after its job no more, or again: who stopped it does meanwhile."""
        running = self._running
        if running is not None:
            with running.lock, contextlib.suppress(OSError):
                running.control.send(json.dumps({"is_still": is_still}).encode())

    def close(self) -> None:
        """Kill the job under way, if any, and end the server; any thread may call this.

        A `run` or `start` of another thread ends with it.
        """
        with self._lock:
            finalizer, self._running, self._finalizer = self._finalizer, None, None
        if finalizer is not None:
            finalizer()

    @contextlib.contextmanager
    def directory(self) -> Iterator[Path]:
        """Give a job an empty directory, which goes with the job or with the server."""
        running = self._start()
        with _closed_meanwhile(self._module):
            path = Path(tempfile.mkdtemp(prefix="job-", dir=running.session))
        try:
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
    ) -> Outcome:
        """Run one job in a fresh process and return how it ended; nothing that it does raises here.

        Args:
            payload: what the job is handed, as JSON; what is large goes into a file in `directory`.
            directory: the job's working directory (see `directory`).
            phases: the phases in their order; a job starts in the first and cannot go back.
            limits: what the job may use.
            environment: variables set in the job's process.
            on_phase: told each phase when the job enters it; the phase's time begins when it
                returns.
            on_start: called when the job's process is there.
            now_s: the clock of the time limits, which may stand still.

        Raises:
            RunError: the payload is too large, the server cannot be started, or another thread
                closed it before the job began. A job that a `close` ends is a crash.
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
            "is_memory_enforced": limits.is_memory_enforced,
            "max_processes": limits.max_processes,
            "file_bytes": limits.file_bytes,
            "is_confined": self._is_confined,
        }
        data = json.dumps(request).encode()
        if len(data) > MAX_CONTROL_BYTES:
            raise RunError(
                f"A job's payload takes {len(data)} bytes; at most {MAX_CONTROL_BYTES} fit. Put "
                "what is larger into a file in the job's directory."
            )
        running = self._start()
        with running.lock, _closed_meanwhile(self._module):
            control = running.control.dup()  # ours until the job has ended, whoever closes
        result_read, result_write = os.pipe()
        log_read, log_write = os.pipe()
        stamps, stamps_of_job = stamp_sockets()
        reader = StampReader(stamps, key)
        watch = Watch(
            control, result_read, log_read, phases, limits, key, reader, on_phase, on_start, now_s
        )
        try:
            with stamps_of_job, contextlib.suppress(BrokenPipeError, ConnectionResetError):
                fds = [result_write, log_write, stamps_of_job.fileno()]
                socket.send_fds(control, [data], fds)
            os.close(result_write)
            os.close(log_write)
            outcome = watch.watch()
        except BaseException:  # Ctrl-C above all: what is under way must not go on unwatched
            self.close()
            raise
        finally:
            os.close(result_read)
            os.close(log_read)
            reader.close()
            control.close()
        if watch.is_server_lost and self._running is running:
            self.close()
        return outcome


@dataclasses.dataclass
class _Running:
    """A server's process, this end of its connection, and the directory of all its jobs.

    `lock` is held where `control` is closed or duplicated.
    """

    process: subprocess.Popen[bytes]
    control: socket.socket
    session: Path
    is_ready: bool = False
    lock: threading.Lock = dataclasses.field(default_factory=threading.Lock)


@contextlib.contextmanager
def _closed_meanwhile(module: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise RunError(f"The worker process `{module}` was closed before its job began.") from error


def _shut_down(running: _Running) -> None:
    """End a server: it sees the connection end, kills its job and goes.

    So does who waits for a job or for the start, in another thread. Closing alone would tell
    nobody: a socket that is closed while it is waited for leaves the selector without a word.
    """
    with contextlib.suppress(OSError):  # the server has gone before
        running.control.shutdown(socket.SHUT_RDWR)
    if not running.is_ready:  # it has no job yet, and hears nothing until its imports are done
        with contextlib.suppress(ProcessLookupError):
            os.killpg(running.process.pid, signal.SIGKILL)
    try:
        running.process.wait(KILL_GRACE_S)
    except subprocess.TimeoutExpired:
        running.process.kill()
        running.process.wait()
    with running.lock:
        running.control.close()
    kill_orphans_of(running.process.pid)
    remove_tree(running.session)
