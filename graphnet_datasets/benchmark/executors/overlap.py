"""Several samples under way at once, of which nothing runs while one of them is timed.

A run is one part waiting for the clock (pairs of calls, eager by itself, counts of the profiler)
and parts that no clock looks at: starting a process, loading, compiling, judging. On a
machine with two processors the latter of one sample may be done beside those of another. So there
are lanes, each of which takes a sample after another through all of its processes, and a gate
between them:

- A worker stops by itself before a section that is timed, and goes on when it is told to.
- Before it is told, all that the other lanes have started is stopped (SIGSTOP), and what this
  process does for them is finished. They are continued when the section has ended.
- The clocks of the other lanes stand still meanwhile, so no time limit counts it, and the times of
  compiling and loading are without it.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from ...errors import RunError
from ...isolation import ForkServer
from ...isolation.pausing import continue_descendants, stop_descendants

TIMED_PHASES = {
    "candidate": frozenset({"baseline", "run", "profile"}),
    "eager_alone": frozenset({"baseline", "run"}),
    "eager_in_turns": frozenset({"baseline", "compile", "run"}),
    "peaks": frozenset({"peaks"}),
}
"""The phases of each kind of job that the clock looks at, and eager's repeated calls.

Those run on all threads one after another. Beside other threads each call would wait for the one
that has lost its processor: what takes 0.3 s by itself took 27 s.
"""


class Lane:
    """The processes of one sample after another, and a clock that stands while they are stopped.

    `servers` gives those below which everything of the lane runs; `on_pause` is told when the lane
    is stopped, and when it goes on.
    """

    def __init__(
        self,
        gate: TimingGate,
        servers: Callable[[], Iterable[ForkServer]],
        on_pause: Callable[[bool], None],
    ) -> None:
        self.gate, self.servers, self.on_pause = gate, servers, on_pause
        self._paused_since: float | None = None
        self._paused_s = 0.0
        self.pauses: list[tuple[float, float]] = []
        self.num_working = 0
        self.need_bytes = 0
        self.had_company = False

    def now_s(self) -> float:
        """Return seconds, without those for which the lane was stopped."""
        since, paused_s = self._paused_since, self._paused_s
        return (time.monotonic() if since is None else since) - paused_s

    @property
    def is_timed(self) -> bool:
        """Whether everything else stands still for this lane."""
        return self.gate.timed_lane is self

    def pause(self) -> None:
        """Note that the lane stands still; its processes are stopped by the gate."""
        if self._paused_since is None:
            self._paused_since = time.monotonic()
            self.on_pause(True)

    def go_on(self) -> None:
        """Note that the lane goes on."""
        if self._paused_since is not None:
            now = time.monotonic()
            self.pauses.append((self._paused_since, now))
            self._paused_s += now - self._paused_since
            self._paused_since = None
            self.on_pause(False)


class TimingGate:
    """Lets one lane be timed while all others stand still.

    The thread of a lane is at work (`begin_work`) except while it waits for a process, or in here.
    `capacity_bytes` is what the samples under way may need together; one alone may need more.
    """

    def __init__(self, capacity_bytes: float = float("inf")) -> None:
        self._changed = threading.Condition()
        self._capacity_bytes = capacity_bytes
        self._lanes: list[Lane] = []
        self._timed: Lane | None = None
        self._depth = 0
        self._alone: Lane | None = None
        self._is_closed = False

    def lane(
        self,
        servers: Callable[[], Iterable[ForkServer]],
        on_pause: Callable[[bool], None] = lambda _: None,
    ) -> Lane:
        """Return a new lane through this gate."""
        lane = Lane(self, servers, on_pause)
        with self._changed:
            self._lanes.append(lane)
        return lane

    @property
    def timed_lane(self) -> Lane | None:
        """The lane that is timed."""
        return self._timed

    def close(self) -> None:
        """Let everything go on, and whoever waits here end with an error."""
        with self._changed:
            self._is_closed = True
            for lane in self._lanes:
                self._continue(lane)
            self._changed.notify_all()

    @contextlib.contextmanager
    def timed(self, lane: Lane) -> Iterator[None]:
        """Have everything of the other lanes stand still; a lane may do so within itself again."""
        self.begin_timed(lane)
        try:
            yield
        finally:
            self.end_timed(lane)

    def begin_timed(self, lane: Lane) -> None:
        """Wait for the turn of `lane`, and stop the others.

        Raises:
            RunError: the gate was closed.
        """
        with self._changed:
            others = [each for each in self._lanes if each is not lane]

            def is_free() -> bool:
                is_working = any(each.num_working for each in others)
                return self._timed in (None, lane) and not is_working

            if not is_free():
                # What waits here does not work: two at work would wait for each other for ever.
                num_working, lane.num_working = lane.num_working, 0
                self._changed.notify_all()
                lane.pause()
                try:
                    self._wait_for(is_free)
                finally:
                    lane.num_working += num_working
                    lane.go_on()
            self._timed = lane
            self._depth += 1
            if self._depth == 1:
                for other in others:
                    for server in other.servers():
                        server.be_still(True)
                        if server.pid is not None:
                            stop_descendants(server.pid)
                    other.pause()

    def end_timed(self, lane: Lane) -> None:
        """Let the others go on."""
        with self._changed:
            if self._timed is not lane:
                return
            self._depth -= 1
            if self._depth == 0:
                self._timed = None
                for other in self._lanes:
                    if other is not lane:
                        self._continue(other)
                self._changed.notify_all()

    def begin_work(self, lane: Lane) -> None:
        """Have no other lane timed until `end_work`.

        For what this process does itself and what is being started, which cannot be stopped.
        """
        with self._changed:
            self._changed.wait_for(lambda: self._is_closed or self._timed in (None, lane))
            lane.num_working += 1

    def end_work(self, lane: Lane) -> None:
        """Say that only processes that can be stopped are under way in `lane`."""
        with self._changed:
            lane.num_working -= 1
            self._changed.notify_all()

    @contextlib.contextmanager
    def idle(self, lane: Lane) -> Iterator[None]:
        """Wait for something, within work."""
        self.end_work(lane)
        try:
            yield
        finally:
            self.begin_work(lane)

    @contextlib.contextmanager
    def admitted(self, lane: Lane, need_bytes: int) -> Iterator[None]:
        """Hold what a sample may need of the memory, once there is room for it."""
        with self.idle(lane), self._changed:
            self._wait_for(lambda: self._has_room(lane, need_bytes))
            lane.need_bytes, lane.had_company = need_bytes, False
            self._note_company()
        try:
            yield
        finally:
            with self._changed:
                lane.need_bytes = 0
                self._changed.notify_all()

    @contextlib.contextmanager
    def alone(self, lane: Lane) -> Iterator[None]:
        """Have no other sample under way: those of the other lanes are finished first."""
        with self.idle(lane), self._changed:
            held, lane.need_bytes = lane.need_bytes, 0  # two that wait for each other would hang
            self._wait_for(lambda: self._alone is None)
            self._alone = lane
            try:
                self._wait_for(lambda: not any(each.need_bytes for each in self._lanes))
            except RunError:
                self._alone = None
                raise
            lane.need_bytes, lane.had_company = max(held, 1), False
        try:
            yield
        finally:
            with self._changed:
                self._alone = None
                self._changed.notify_all()

    def _has_room(self, lane: Lane, need_bytes: int) -> bool:
        held = [each.need_bytes for each in self._lanes if each is not lane and each.need_bytes]
        is_barred = self._alone not in (None, lane)
        return not is_barred and (not held or sum(held) + need_bytes <= self._capacity_bytes)

    def _note_company(self) -> None:
        under_way = [each for each in self._lanes if each.need_bytes]
        for each in under_way if len(under_way) > 1 else ():
            each.had_company = True

    def _continue(self, lane: Lane) -> None:
        lane.go_on()
        for server in lane.servers():
            if server.pid is not None:
                continue_descendants(server.pid)
            server.be_still(False)

    def _wait_for(self, condition: Callable[[], Any]) -> None:
        self._changed.wait_for(lambda: self._is_closed or condition())
        if self._is_closed:
            raise RunError("The run was ended while a sample waited for its turn.")
