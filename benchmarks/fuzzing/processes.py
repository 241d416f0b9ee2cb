"""Many calls per forked process, with a report of the calls that crash it.

The parent has imported a framework but made no calls. A child makes the calls of a few operators
and writes its position to shared memory. If a signal ends it, the interrupted call is repeated
alone, and the next child continues after it.
"""

from __future__ import annotations

import contextlib
import dataclasses
import faulthandler
import mmap
import os
import resource
import signal
import struct
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import IO

MAX_DATA_BYTES = 300_000_000
"""Memory that one call may add to its process."""
MAX_KEPT_BYTES = 1_000_000_000
"""Memory that calls may leave behind before a new process makes the remaining calls."""
CALL_TIMEOUT_S = 3.0
"""Processor time of one call; it may wait thirty times as long."""
_TIMEOUTS = (signal.SIGALRM, signal.SIGPROF)
_TEXT = 2000
_MAX_FRAMES = 12

CALLS_PER_CHILD, OPERATORS_PER_CHILD = 2000, 40
_HEAD = struct.Struct("<qq")
_COUNT = struct.Struct("<qdqd")
"""Accepted calls of an operator, their processor time in s, the slowest call and its time in s."""
_COUNTS = 4096


@dataclasses.dataclass
class Outcome:
    """Results of the calls of one operator; `slow` and `deaths` contain the calls themselves.

    A death also lists the Python frames of the thread that received the signal, innermost first.
    """

    calls: int = 0
    accepted: int = 0
    cpu_s: float = 0.0
    slowest_s: float = 0.0
    slowest_call: int | None = None
    slow: list[str] = dataclasses.field(default_factory=list)
    deaths: list[dict[str, object]] = dataclasses.field(default_factory=list)


AT_END: list[Callable[[], None]] = []
"""Functions that a child calls before it ends, for servers that its calls have started."""

Attempt = Callable[[str, int], tuple[str, Callable[[], bool]]]
"""Maps an operator and a number to the text of a call and a function that makes the call.

The function returns whether the call was accepted.
"""


def run_operators(
    names: Sequence[str],
    attempt: Attempt,
    num_calls: int,
    max_deaths: int = 3,
    call_timeout_s: float = CALL_TIMEOUT_S,
) -> Iterator[tuple[str, Outcome]]:
    """Make calls 0 to `num_calls` - 1 of each operator; an operator stops after `max_deaths`."""
    size = max(1, min(CALLS_PER_CHILD // num_calls, OPERATORS_PER_CHILD))
    for begin in range(0, len(names), size):
        chunk = names[begin : begin + size]
        yield from _run_chunk(chunk, attempt, num_calls, max_deaths, call_timeout_s)


def _run_chunk(
    names: Sequence[str], attempt: Attempt, num_calls: int, max_deaths: int, timeout_s: float
) -> Iterator[tuple[str, Outcome]]:
    outcomes = [Outcome() for _ in names]
    begin, end = 0, len(names) * num_calls

    def job(position: int) -> tuple[int, str, Callable[[], bool]]:
        at, number = divmod(position, num_calls)
        return at, *attempt(names[at], number)

    with mmap.mmap(-1, _COUNTS + _COUNT.size * len(names)) as board:
        while begin < end:
            status, position, text, counts, trace = _child(
                job, begin, end, board, len(names), timeout_s
            )
            for outcome, (accepted, cpu_s, slowest_call, slowest_s) in zip(
                outcomes, counts, strict=True
            ):
                outcome.accepted += accepted
                outcome.cpu_s = round(outcome.cpu_s + cpu_s, 3)
                if slowest_s > outcome.slowest_s:
                    outcome.slowest_s = round(slowest_s, 3)
                    outcome.slowest_call = slowest_call % num_calls
            for call in range(begin, position):
                outcomes[call // num_calls].calls += 1
            if status == 0:
                begin = position  # before `end` if the process has grown too much
                continue
            at = position // num_calls
            outcome = outcomes[at]
            outcome.calls += 1
            begin = position + 1
            if status < 0:  # otherwise the child ran out of memory between two calls
                alone, *_ = _child(job, position, position + 1, board, len(names), timeout_s)
                is_slow = -alone in _TIMEOUTS
                if -status not in _TIMEOUTS:
                    outcome.deaths.append(
                        {
                            "signal": _name(status),
                            "call": text,
                            "number": position % num_calls,
                            "alone": alone < 0 and not is_slow,
                            "trace": trace,
                        }
                    )
                elif is_slow:  # again, so that it was not the machine
                    outcome.slow.append(text)
            if len(outcome.deaths) + len(outcome.slow) >= max_deaths:
                begin = (at + 1) * num_calls
    yield from zip(names, outcomes, strict=True)


def ending(text: str, make: Callable[[], bool]) -> int:
    """Return how a process ends that makes one call: minus a signal, 0 if it survives."""
    with mmap.mmap(-1, _COUNTS + _COUNT.size) as board:
        status, *_ = _child(lambda _: (0, text, make), 0, 1, board, 1)
    return status


Job = Callable[[int], tuple[int, str, Callable[[], bool]]]
"""Maps a position to the index of its operator, the text of a call and a function that makes it."""


def _child(
    job: Job,
    begin: int,
    end: int,
    board: mmap.mmap,
    num_counts: int,
    timeout_s: float = CALL_TIMEOUT_S,
) -> tuple[int, int, str, list[tuple[int, float, int, float]], list[str]]:
    board[:] = bytes(len(board))
    _HEAD.pack_into(board, 0, begin, 0)
    with tempfile.TemporaryFile() as file:
        pid = os.fork()
        if pid == 0:
            code = 1
            try:
                _work(job, begin, end, board, timeout_s, file)
                code = 0
            finally:
                os._exit(code)
        _, status = os.waitpid(pid, 0)
        file.seek(0)
        lines = file.read().decode(errors="replace").splitlines()
        trace = [line.strip() for line in lines if line.startswith("  File")][:_MAX_FRAMES]
    position, length = _HEAD.unpack_from(board, 0)
    text = board[_HEAD.size : _HEAD.size + length].decode(errors="replace")
    counts = [_COUNT.unpack_from(board, _COUNTS + _COUNT.size * at) for at in range(num_counts)]
    return os.waitstatus_to_exitcode(status), position, text, counts, trace


def _work(
    job: Job, begin: int, end: int, board: mmap.mmap, timeout_s: float, trace: IO[bytes]
) -> None:
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    null = os.open(os.devnull, os.O_RDWR)
    os.dup2(null, 1)
    os.dup2(null, 2)
    for name in ("SIGSEGV", "SIGABRT", "SIGFPE", "SIGBUS", "SIGILL", "SIGALRM", "SIGPROF"):
        signal.signal(getattr(signal, name), signal.SIG_DFL)
    faulthandler.enable(trace, all_threads=False)
    try:
        _make_calls(job, begin, end, board, timeout_s)
    finally:
        for function in AT_END:
            function()


def _make_calls(job: Job, begin: int, end: int, board: mmap.mmap, timeout_s: float) -> None:
    hard_limit = resource.getrlimit(resource.RLIMIT_DATA)[1]
    most_bytes = _data_bytes() + MAX_KEPT_BYTES
    for position in range(begin, end):
        data_bytes = _data_bytes()
        if data_bytes > most_bytes and position > begin:
            _HEAD.pack_into(board, 0, position, 0)
            return
        # Caches that earlier calls filled do not count. Without memory, native code may crash.
        resource.setrlimit(resource.RLIMIT_DATA, (data_bytes + MAX_DATA_BYTES, hard_limit))
        at, text, make = job(position)
        data = text.encode(errors="replace")[:_TEXT]
        board[_HEAD.size : _HEAD.size + len(data)] = data
        _HEAD.pack_into(board, 0, position, len(data))
        signal.setitimer(signal.ITIMER_PROF, timeout_s)
        signal.setitimer(signal.ITIMER_REAL, 30 * timeout_s)
        begin_s, is_accepted = time.process_time(), False
        with contextlib.suppress(Exception):
            is_accepted = make()
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.setitimer(signal.ITIMER_REAL, 0)
        call_s = time.process_time() - begin_s
        place = _COUNTS + _COUNT.size * at
        accepted, cpu_s, slowest_call, slowest_s = _COUNT.unpack_from(board, place)
        if call_s > slowest_s:
            slowest_call, slowest_s = position, call_s
        _COUNT.pack_into(
            board, place, accepted + is_accepted, cpu_s + call_s, slowest_call, slowest_s
        )
    _HEAD.pack_into(board, 0, end, 0)


def _data_bytes() -> int:
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmData:"):
            return int(line.split()[1]) * 1024
    return 0


def _name(status: int) -> str:
    with contextlib.suppress(ValueError):
        return signal.Signals(-status).name
    return f"exit {status}"
