"""Calls in processes of their own: many calls a process, and whoever kills it is named.

The process that forks has imported a framework and made nothing. A child works off a list of
calls, and says in shared memory where it is; when a signal ends it, the call under way is known, is
made once more alone, and the next child goes on behind it.
"""

from __future__ import annotations

import contextlib
import dataclasses
import mmap
import os
import resource
import signal
import struct
import time
from collections.abc import Callable
from pathlib import Path

MAX_DATA_BYTES = 300_000_000
CALL_TIMEOUT_S = 3.0
"""Processor time of one call; it may wait ten times as long."""
_TIMEOUTS = (signal.SIGALRM, signal.SIGPROF)
_TEXT = 2000
_HEAD = struct.Struct("<qqq")


@dataclasses.dataclass
class Outcome:
    """What became of the calls of one operator."""

    calls: int = 0
    accepted: int = 0
    timeouts: int = 0
    deaths: list[dict[str, object]] = dataclasses.field(default_factory=list)


Attempt = Callable[[int], tuple[str, Callable[[], bool]]]
"""Gives, for the number of a call, its text and what makes it (true: it was accepted)."""


def run_calls(attempt: Attempt, num_calls: int, max_deaths: int = 3) -> Outcome:
    """Make calls 0 to `num_calls` - 1 in forked processes; stop after `max_deaths` of them."""
    outcome = Outcome()
    begin = 0
    with mmap.mmap(-1, 4096) as board:
        while begin < num_calls and len(outcome.deaths) + outcome.timeouts < max_deaths:
            status, position, accepted, text = _child(attempt, begin, num_calls, board)
            outcome.accepted += accepted
            if status == 0:
                outcome.calls += num_calls - begin
                break
            outcome.calls += position - begin + 1
            if status > 0:
                pass  # the child itself ran out of memory between two calls
            elif -status in _TIMEOUTS:
                outcome.timeouts += 1
            else:
                alone, *_ = _child(attempt, position, position + 1, board)
                outcome.deaths.append(
                    {
                        "signal": _name(status),
                        "call": text,
                        "number": position,
                        "alone": alone < 0 and -alone not in _TIMEOUTS,
                    }
                )
            begin = position + 1
    return outcome


def _child(attempt: Attempt, begin: int, end: int, board: mmap.mmap) -> tuple[int, int, int, str]:
    board[:] = bytes(len(board))
    _HEAD.pack_into(board, 0, begin, 0, 0)
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            _work(attempt, begin, end, board)
            code = 0
        finally:
            os._exit(code)
    _, status = os.waitpid(pid, 0)
    position, accepted, length = _HEAD.unpack_from(board, 0)
    text = board[_HEAD.size : _HEAD.size + length].decode(errors="replace")
    return os.waitstatus_to_exitcode(status), position, accepted, text


def _work(attempt: Attempt, begin: int, end: int, board: mmap.mmap) -> None:
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    limit = _data_bytes() + MAX_DATA_BYTES
    resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))
    null = os.open(os.devnull, os.O_RDWR)
    os.dup2(null, 1)
    os.dup2(null, 2)
    for name in ("SIGSEGV", "SIGABRT", "SIGFPE", "SIGBUS", "SIGILL", "SIGALRM", "SIGPROF"):
        signal.signal(getattr(signal, name), signal.SIG_DFL)
    accepted = 0
    for number in range(begin, end):
        text, make = attempt(number)
        data = text.encode(errors="replace")[:_TEXT]
        board[_HEAD.size : _HEAD.size + len(data)] = data
        _HEAD.pack_into(board, 0, number, accepted, len(data))
        signal.setitimer(signal.ITIMER_PROF, CALL_TIMEOUT_S)
        signal.setitimer(signal.ITIMER_REAL, 10 * CALL_TIMEOUT_S)
        with contextlib.suppress(Exception):
            accepted += make()
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.setitimer(signal.ITIMER_REAL, 0)
    _HEAD.pack_into(board, 0, end, accepted, 0)


def _data_bytes() -> int:
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmData:"):
            return int(line.split()[1]) * 1024
    return 0


def _name(status: int) -> str:
    with contextlib.suppress(ValueError):
        return signal.Signals(-status).name
    return f"exit {status}"


def now() -> float:
    """Return a clock that only runs forward."""
    return time.monotonic()
