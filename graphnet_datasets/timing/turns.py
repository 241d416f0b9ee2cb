"""Timing two arms in two processes that alternate in blocks.

Pairs in one process are meaningless if loading one arm slows the other: a second OpenMP runtime
slows eager by 20 to 40 times. In two processes, the arms share only the machine and the time of
day.
"""

from __future__ import annotations

import dataclasses
import os
import select
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Self

from ..errors import RunError
from ..frameworks.protocols import Clock
from ..isolation import StampSender
from .calls import AfterEach, Arm, BeforeEach, Call, Calls, no_garbage_collection
from .pairs import TimingSettings
from .usage import Usage, describe_machine, read_machine

MIN_BLOCK_S, MAX_BLOCK_S = 0.03, 0.1
"""Bounds of the duration of a block, in seconds; see `block_s`. A block has at least one call."""
MAX_CALLS = 50
"""The maximum number of calls in a block."""
PAUSE_S = 0.02
"""The pause before each block, in seconds: threads of the other process may still be spinning."""
MIN_ROUNDS, MAX_ROUNDS, FEW_ROUNDS = 10, 40, 3
WAIT_S = 1800.0
"""The maximum time to wait for the other process, in seconds; it may be compiling."""
_GO, _END = b"g", b"e"


def block_s(settings: TimingSettings) -> float:
    """Return the duration of a block in seconds.

    `MIN_ROUNDS` blocks of an arm fill the budget, within the bounds of a block's duration.

    >>> block_s(TimingSettings(budget_s=0.5)), block_s(TimingSettings(budget_s=10))
    (0.05, 0.1)
    """
    return min(max(settings.budget_s / MIN_ROUNDS, MIN_BLOCK_S), MAX_BLOCK_S)


class Turn:
    """A turn that two processes pass back and forth as one byte through two named pipes.

    Raises:
        RunError: the other process did not answer in time.
    """

    def __init__(self, mine: str | Path, theirs: str | Path) -> None:
        # Opening a named pipe for reading and writing does not block.
        self._mine, self._theirs = (os.open(path, os.O_RDWR) for path in (mine, theirs))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self._mine)
        os.close(self._theirs)

    def wait(self, timeout_s: float = WAIT_S) -> bool:
        """Wait for the turn; return False if the other process ended the measurement."""
        poller = select.poll()
        poller.register(self._mine, select.POLLIN)
        if not poller.poll(timeout_s * 1000):
            raise RunError(f"The other process did not return the turn within {timeout_s:g} s.")
        return os.read(self._mine, 1) != _END

    def give(self, *, is_last: bool = False) -> None:
        """Pass the turn to the other process, or end the measurement."""
        os.write(self._theirs, _END if is_last else _GO)


@dataclasses.dataclass(frozen=True, slots=True)
class TurnTimes:
    """The times of one arm in blocks, in milliseconds, with the operating system's statistics."""

    times_ms: tuple[float, ...]
    wall_ms: tuple[float, ...]
    usage: tuple[Usage, ...]
    block_lengths: tuple[int, ...]
    first_call_s: float
    machine: dict[str, Any]


def measure_turns(
    arm: Arm,
    call: Call,
    turn: Turn,
    *,
    settings: TimingSettings,
    clock: Clock,
    before_each: BeforeEach | None = None,
    after_each: AfterEach | None = None,
    num_compilations: Callable[[], int] | None = None,
    evict_caches: Callable[[], None] | None = None,
    stamps: StampSender | None = None,
    on_begin: Callable[[Calls], None] | None = None,
) -> TurnTimes:
    """Time one arm in blocks while another process times the other arm in between.

    The baseline waits until the candidate has warmed up and passed the turn; the caller does this
    before calling this function. The baseline decides when to stop: after `MIN_ROUNDS` blocks per
    arm and `settings.budget_s`, or after `FEW_ROUNDS` blocks and the hard budget. `on_begin`
    receives the `Calls` object before the first call.

    Raises:
        ArmFailedError: the arm raised.
        RunError: the other process did not answer in time.
    """
    calls = Calls(call, call, clock, before_each, after_each, evict_caches, stamps)
    if on_begin is not None:
        on_begin(calls)
    times: list[float] = []
    walls: list[float] = []
    usage: list[Usage] = []
    lengths: list[int] = []

    longest_s = block_s(settings)

    def block() -> None:
        time.sleep(PAUSE_S)
        calls.call(arm, -1)
        started_s, num_before = clock.now_s(), len(times)
        while len(times) == num_before or (
            len(times) - num_before < MAX_CALLS and clock.now_s() - started_s < longest_s
        ):
            reading, used = calls.call(arm, len(times))
            times.append(reading.elapsed_ms)
            walls.append(reading.wall_ms)
            usage.append(used)
        lengths.append(len(times) - num_before)

    with no_garbage_collection():
        first_call_s = _warm_up(calls, arm, settings, num_compilations or (lambda: 0))
        is_next = True
        if arm == "candidate":
            turn.give()
            is_next = turn.wait()
        machine, started_s = read_machine(), clock.now_s()
        while is_next:
            block()
            elapsed_s = clock.now_s() - started_s
            is_last = arm == "baseline" and (
                (len(lengths) >= MIN_ROUNDS and elapsed_s >= settings.budget_s)
                or (len(lengths) >= FEW_ROUNDS and elapsed_s >= settings.hard_budget_s)
                or len(lengths) >= MAX_ROUNDS
            )
            turn.give()
            is_next = turn.wait()
            if is_last:
                turn.give(is_last=True)
                break
        activity = describe_machine(machine, read_machine())
    return TurnTimes(
        tuple(times), tuple(walls), tuple(usage), tuple(lengths), first_call_s, activity
    )


def _warm_up(
    calls: Calls, arm: Arm, settings: TimingSettings, num_compilations: Callable[[], int]
) -> float:
    """Call until compilation has settled, then for `warmup_s`; return the first call's seconds."""
    clock = calls.clock
    started_s = clock.now_s()
    first_call_s = calls.call(arm, -1)[0].elapsed_ms / 1000
    num_compiled, rested_s, num_calls = num_compilations(), clock.now_s(), 0
    while clock.now_s() - started_s < settings.max_warmup_s:
        if num_calls >= settings.min_warmup_calls and (
            clock.now_s() - rested_s >= settings.warmup_s
        ):
            break
        calls.call(arm, -1)
        num_calls += 1
        if num_compilations() != num_compiled:
            num_compiled, rested_s, num_calls = num_compilations(), clock.now_s(), 0
    return first_call_s
