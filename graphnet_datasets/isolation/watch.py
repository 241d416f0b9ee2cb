"""Monitoring of a job: its outcome, from its pipes and the messages of its server."""

from __future__ import annotations

import contextlib
import dataclasses
import enum
import json
import os
import selectors
import signal
import socket
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from .limits import Limits
from .linux import oom_kills
from .reporting import LogKeeper, MessageReader
from .server import MAX_CONTROL_BYTES
from .stamps import Stamp, StampReader

KILL_GRACE_S = 20.0
"""Seconds that a server has to kill a job before the server itself is abandoned."""
_READ_BYTES = 2**20
_STAMPS_S, _IDLE_S = 0.02, 0.25
"""Intervals for reading stamps: while stamps arrive, and while none do. The job blocks when 500
stamps are unread, but waking up for each stamp would disturb the timing.
"""


class Ending(enum.StrEnum):
    """The way a job ended."""

    FINISHED = "finished"
    """The job returned."""
    ERROR = "error"
    """The job raised an exception, described in `Outcome.error`."""
    CRASH = "crash"
    """The process ended without a report: by a signal or an unexpected exit."""
    TIMEOUT = "timeout"
    """The job exceeded the time limit of a phase."""
    OUT_OF_MEMORY = "out_of_memory"
    """The job exceeded its memory limit, or the kernel killed it for lack of memory."""
    TOO_MANY_PROCESSES = "too_many_processes"
    """The job exceeded its limit of simultaneous processes."""
    PROTOCOL = "protocol"
    """The job wrote invalid data to its result pipe."""


@dataclasses.dataclass
class Outcome:
    """The outcome of a job and its messages.

    `phase` is the last phase; `phase_s` contains the seconds spent in each phase. `exit_code` is
    negative for a signal and None if unknown. `error` has the keys `type` and `message`.
    `num_leftovers` counts descendants that were alive when the job ended and were killed with it.
    `message_phases` contains the phase of each message. `stamps` are the moments sent by the job,
    timestamped by the kernel if `is_kernel_time`. `pauses` are intervals of the monotonic clock in
    which the caller paused the job; all other times exclude them.
    """

    ending: Ending
    phase: str
    messages: list[dict[str, Any]]
    error: dict[str, str] | None
    exit_code: int | None
    log: str
    num_log_bytes: int
    duration_s: float
    phase_s: dict[str, float]
    peak_memory_bytes: int
    num_leftovers: int
    message_phases: list[str] = dataclasses.field(default_factory=list)
    stamps: list[Stamp] = dataclasses.field(default_factory=list)
    is_kernel_time: bool = True
    pauses: list[tuple[float, float]] = dataclasses.field(default_factory=list)

    def merged(self) -> dict[str, Any]:
        """Merge all messages into one object; within a phase, later values win.

        Values from earlier phases take precedence: code that runs in a later phase cannot change
        them.
        """
        merged: dict[str, Any] = {}
        said_in: dict[str, str] = {}
        phases = self.message_phases or [self.phase] * len(self.messages)
        for phase, message in zip(phases, self.messages, strict=True):
            for key, value in message.items():
                if said_in.setdefault(key, phase) == phase:
                    merged[key] = value
        return merged


class Watch:
    """Monitors a job until it ends."""

    def __init__(
        self,
        control: socket.socket,
        result_fd: int,
        log_fd: int,
        phases: Sequence[str],
        limits: Limits,
        key: str = "",
        stamps: StampReader | None = None,
        on_phase: Callable[[str], None] | None = None,
        on_start: Callable[[], None] | None = None,
        now_s: Callable[[], float] = time.monotonic,
    ) -> None:
        self._on_phase = on_phase or (lambda _: None)
        self._on_start, self._now_s = on_start or (lambda: None), now_s
        self._stamps, self._stamps_s = stamps, _IDLE_S
        self._control, self._result_fd, self._log_fd = control, result_fd, log_fd
        self._phases, self._limits = list(phases), limits
        self._reader, self._log = MessageReader(key), LogKeeper(limits.log_bytes)
        self._messages: list[dict[str, Any]] = []
        self._message_phases: list[str] = []
        self._error: dict[str, str] | None = None
        self._is_done = False
        self._phase = self._phases[0]
        self._phase_s: dict[str, float] = {}
        self._oom_kills = oom_kills()
        self._started = self._entered = now_s()
        self._kill_deadline: float | None = None
        self.is_server_lost = False
        for fd in (result_fd, log_fd):
            os.set_blocking(fd, False)
        self._on_phase(self._phase)

    def watch(self) -> Outcome:
        """Return when the job and all its processes have ended."""
        exited: dict[str, Any] | None = None
        with selectors.DefaultSelector() as selector:
            for source in (self._control, self._result_fd, self._log_fd):
                selector.register(source, selectors.EVENT_READ)
            while exited is None and not self.is_server_lost:
                for key, _ in selector.select(self._pause_s()):
                    if key.fileobj is self._control:
                        exited = self._read_control()
                    elif not self._read_pipe(key.fd):
                        selector.unregister(key.fileobj)
                self._read_stamps()
                self._enforce()
        while self._read_pipe(self._result_fd) or self._read_pipe(self._log_fd):
            pass  # read data written just before the end
        self._read_stamps()
        return self._outcome(exited or {})

    def _deadline(self) -> float:
        if self._kill_deadline is not None:
            return self._kill_deadline
        return self._entered + self._limits.timeout_s(self._phase)

    def _pause_s(self) -> float:
        until_deadline_s = max(self._deadline() - self._now_s(), 0)
        return until_deadline_s if self._stamps is None else min(until_deadline_s, self._stamps_s)

    def _read_stamps(self) -> None:
        if self._stamps is not None:
            self._stamps_s = _STAMPS_S if self._stamps.drain() else _IDLE_S
            self._reader.problem = self._reader.problem or self._stamps.problem

    def _enforce(self) -> None:
        if self._kill_deadline is None and self._reader.problem:
            self._kill("protocol")
        elif self._now_s() >= self._deadline():
            if self._kill_deadline is None:
                self._kill("timeout")
            else:
                self.is_server_lost = True

    def _kill(self, cause: str) -> None:
        self._kill_deadline = self._now_s() + KILL_GRACE_S
        with contextlib.suppress(OSError):
            self._control.send(json.dumps({"kill": cause}).encode())

    def _read_control(self) -> dict[str, Any] | None:
        try:
            data = self._control.recv(MAX_CONTROL_BYTES)
        except ConnectionResetError:
            data = b""
        if not data:
            self.is_server_lost = True
            return None
        message = json.loads(data)
        if "started" in message:
            self._on_start()
            return None
        return message

    def _read_pipe(self, fd: int) -> bool:
        """Read available data; return False at the end of the pipe or if no data is available."""
        try:
            data = os.read(fd, _READ_BYTES)
        except BlockingIOError:
            return False
        if not data:
            return False
        if fd == self._log_fd:
            self._log.feed(data)
        else:
            # Messages before a malformed line still count, especially phase changes.
            for message in self._reader.feed(data):
                if not self._take(message):
                    break
        return True

    def _take(self, message: dict[str, Any]) -> bool:
        """Process a message; return False if it is not allowed at this time."""
        if message.get("done") is True:
            self._is_done = True
        elif isinstance(phase := message.get("phase"), str):
            # Repeating a phase or going back would let a job postpone its timeout indefinitely.
            later = self._phases[self._phases.index(self._phase) + 1 :]
            if phase in later:
                self._leave_phase()
                self._phase = phase
                self._on_phase(phase)
                self._entered = self._now_s()  # excludes the time that the callback took
            else:
                self._reader.problem = f"The job went from phase `{self._phase}` to `{phase[:40]}`."
                return False
        elif isinstance(error := message.get("error"), dict):
            self._error = {key: str(error.get(key, "")) for key in ("type", "message")}
        else:
            self._messages.append(message)
            self._message_phases.append(self._phase)
        return True

    def _leave_phase(self) -> None:
        now_s = self._now_s()
        self._phase_s[self._phase] = now_s - self._entered
        self._entered = now_s

    def _outcome(self, exited: Mapping[str, Any]) -> Outcome:
        self._leave_phase()
        exit_code, cause = exited.get("exited"), str(exited.get("cause", ""))
        return Outcome(
            ending=self._ending(cause, exit_code),
            phase=self._phase,
            messages=self._messages,
            error=self._error or self._describe(cause, exit_code),
            exit_code=exit_code,
            log=self._log.text(),
            num_log_bytes=self._log.num_bytes,
            duration_s=self._now_s() - self._started,
            phase_s=self._phase_s,
            peak_memory_bytes=int(exited.get("peak_memory_bytes", 0)),
            num_leftovers=int(exited.get("num_leftovers", 0)),
            message_phases=self._message_phases,
            stamps=[] if self._stamps is None else self._stamps.stamps,
            is_kernel_time=self._stamps is None or self._stamps.is_kernel_time,
        )

    def _ending(self, cause: str, exit_code: int | None) -> Ending:
        if self._reader.problem:
            return Ending.PROTOCOL
        if self._is_done:
            return Ending.FINISHED
        if self._error is not None:
            return Ending.ERROR
        if cause == "timeout":
            return Ending.TIMEOUT
        if cause == "processes":
            return Ending.TOO_MANY_PROCESSES
        was_killed = exit_code == -signal.SIGKILL
        if cause == "memory" or (was_killed and oom_kills() > self._oom_kills):
            return Ending.OUT_OF_MEMORY
        return Ending.CRASH

    def _describe(self, cause: str, exit_code: int | None) -> dict[str, str] | None:
        if self._reader.problem:
            return {"type": "ProtocolError", "message": self._reader.problem}
        if self._is_done:
            return None
        if cause == "timeout":
            limit = f"{self._limits.timeout_s(self._phase):g} s"
            message = f"The phase `{self._phase}` took longer than its limit of {limit}."
            return {"type": "TimeoutError", "message": message}
        if cause == "processes":
            message = f"The job started more than {self._limits.max_processes} processes."
            return {"type": "TooManyProcesses", "message": message}
        if cause == "memory":
            message = "The job took more memory than its limit."
            return {"type": "MemoryError", "message": message}
        if exit_code is None:
            return {"type": "", "message": "The worker process and its server were lost."}
        if exit_code < 0:
            number = -exit_code  # most real-time signals have no name
            is_named = number in set(signal.Signals)
            name = signal.Signals(number).name if is_named else f"signal {number}"
            return {"type": name, "message": f"The worker process was ended by {name}."}
        return {
            "type": "SystemExit",
            "message": f"The worker process exited with code {exit_code} before it had finished.",
        }
