"""Calling the arms: hooks, clock, stamps and the record of each call."""

from __future__ import annotations

import contextlib
import gc
from collections.abc import Callable, Iterator
from typing import Any, Literal, TypeAlias

from ..errors import RunError
from ..frameworks.protocols import Clock, Reading
from ..isolation import StampSender
from .disturbance import PairedSpeedup, paired_speedup
from .usage import Usage, UsageMeter

Arm: TypeAlias = Literal["baseline", "candidate"]
ARMS: tuple[Arm, Arm] = ("baseline", "candidate")
Call: TypeAlias = Callable[[], Any]
BeforeEach: TypeAlias = Callable[[Arm, int], None]
AfterEach: TypeAlias = Callable[[Arm, int, Any], None]


class ArmFailedError(RunError):
    """An arm raised during warm-up or timing; the original error is the `__cause__`."""

    def __init__(self, arm: Arm, pair: int, cause: BaseException) -> None:
        when = f"in pair {pair}" if pair >= 0 else "while warming up"
        super().__init__(f"The {arm} raised {type(cause).__name__} {when}.")
        self.arm = arm
        self.pair = pair


class Calls:
    """Call the arms with their hooks and record the times."""

    CHANGING = frozenset({"is_candidate_first"})

    def __init__(
        self,
        baseline: Call,
        candidate: Call,
        clock: Clock,
        before_each: BeforeEach | None,
        after_each: AfterEach | None = None,
        evict_caches: Callable[[], None] | None = None,
        stamps: StampSender | None = None,
    ) -> None:
        self._stamps, self._meter = stamps, UsageMeter()
        self._calls: dict[Arm, Call] = {"baseline": baseline, "candidate": candidate}
        self._before_each = before_each
        self._after_each = after_each
        self._evict_caches = evict_caches
        self.clock = clock
        self.times: dict[Arm, list[float]] = {"baseline": [], "candidate": []}
        self.wall_times: dict[Arm, list[float]] = {"baseline": [], "candidate": []}
        self.usage: dict[Arm, list[Usage]] = {"baseline": [], "candidate": []}
        self.is_candidate_first: list[bool] = []

    def call(self, arm: Arm, pair: int) -> tuple[Reading, Usage]:
        """Call an arm once; hooks run outside of the timed window.

        Raises:
            ArmFailedError: the arm raised.
        """
        if self._before_each is not None:
            self._before_each(arm, pair)
        if self._evict_caches is not None and pair >= 0:
            self._evict_caches()
        call, meter, measure = self._calls[arm], self._meter, self.clock.measure
        try:
            if self._stamps is None or pair < 0:
                meter.begin()
                reading = measure(call)
            else:
                began, ended = map(self._stamps.encode, (f"+{arm} {pair}", f"-{arm} {pair}"))
                send = self._stamps.send
                self._stamps.wait_for_room()
                meter.begin()
                send(began)
                reading = measure(call)
                send(ended)
            usage = meter.end()
        except Exception as error:
            raise ArmFailedError(arm, pair, error) from error
        if self._after_each is not None:
            self._after_each(arm, pair, reading.result)
        return reading, usage

    def pair(self, index: int, is_candidate_first: bool) -> None:
        """Call both arms and record their times."""
        for arm in reversed(ARMS) if is_candidate_first else ARMS:
            reading, usage = self.call(arm, index)
            self.times[arm].append(reading.elapsed_ms)
            self.wall_times[arm].append(reading.wall_ms)
            self.usage[arm].append(usage)
        self.is_candidate_first.append(is_candidate_first)

    def speedup(self) -> PairedSpeedup:
        """Return the speedup of the pairs so far."""
        counts = [[usage.num_preemptions for usage in self.usage[arm]] for arm in ARMS]
        times = self.times["baseline"], self.times["candidate"]
        return paired_speedup(*times, self.is_candidate_first, counts[0], counts[1])


@contextlib.contextmanager
def no_garbage_collection() -> Iterator[None]:
    """Disable Python's garbage collector during the timed calls."""
    was_enabled = gc.isenabled()
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()
