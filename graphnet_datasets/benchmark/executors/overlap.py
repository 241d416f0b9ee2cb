"""Overlapping samples, with the guarantee that nothing disturbs the one that is timed.

Some parts of a run are timed (pairs of calls, eager alone, counts of the profiler). Others are not:
starting a process, loading, compiling and judging. On a machine with two processors the untimed
parts of one sample can run next to those of another. Each lane takes one sample after another
through all of its processes. A gate coordinates the lanes:

- A worker waits before a timed section until it receives permission.
- Before it receives permission, everything that the other lanes have started is stopped
  (SIGSTOP), and this process finishes its work for them. They continue after the section.
- The clocks of the other lanes are paused meanwhile, so the section counts neither towards time
  limits nor towards compile and load times.

On a GPU, calls are timed by the GPU's clock, so other processors may work meanwhile. Only lanes
that could launch kernels are stopped: those in another phase than `QUIET_PHASES`. This process and
compilations continue.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from ...errors import RunError
from ...isolation import ForkServer
from ...isolation.pausing import continue_descendants, stop_descendants

TIMED_PHASES = {
    "candidate": frozenset({"baseline", "first", "run", "profile"}),
    "eager_alone": frozenset({"baseline", "run"}),
    "eager_in_turns": frozenset({"baseline", "compile", "run"}),
    "peaks": frozenset({"peaks"}),
}
"""The timed phases of each kind of job, and eager's repeated calls.

The repeated calls use all threads. With competing threads, each call waits for threads that lost
their processor: 0.3 s of calls took 27 s.
"""


TIMED_PHASES_OF_GPU = {
    "candidate": frozenset({"first", "run", "profile"}),
    "eager_alone": frozenset({"run"}),
    "eager_in_turns": frozenset({"baseline", "compile", "run"}),
    "peaks": frozenset({"peaks"}),
}
"""The same for a GPU. Untimed calls of eager take seconds there, and do not block each other."""
QUIET_PHASES = frozenset({"compile"})
"""The phases that launch no kernels."""


class Lane:
    """The processes of one sample after another, and a clock that excludes the time they are
    stopped.

    `servers` returns the servers that run everything in the lane. `on_pause` is called when the
    lane is stopped and when it continues.
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
        self.is_quiet = False
        self.need_bytes = 0
        self.had_company = False

    def now_s(self) -> float:
        """Return the time in seconds, excluding pauses of the lane."""
        since, paused_s = self._paused_since, self._paused_s
        return (time.monotonic() if since is None else since) - paused_s

    @property
    def timed_phases(self) -> Mapping[str, frozenset[str]]:
        """The phases of each kind of job in which other lanes are stopped."""
        return TIMED_PHASES_OF_GPU if self.gate.is_of_gpu else TIMED_PHASES

    @property
    def is_timed(self) -> bool:
        """True while all other lanes are stopped for this lane."""
        return self.gate.timed_lane is self

    def pause(self) -> None:
        """Record that the lane is stopped; the gate stops its processes."""
        if self._paused_since is None:
            self._paused_since = time.monotonic()
            self.on_pause(True)

    def go_on(self) -> None:
        """Record that the lane continues."""
        if self._paused_since is not None:
            now = time.monotonic()
            self.pauses.append((self._paused_since, now))
            self._paused_s += now - self._paused_since
            self._paused_since = None
            self.on_pause(False)


class TimingGate:
    """A gate that stops all other lanes, or those that may launch kernels, while one is timed.

    The thread of a lane is at work (`begin_work`) except while it waits for a process or for the
    gate. `capacity_bytes` limits the memory of the running samples together; a single sample may
    need more. `is_of_gpu` chooses the rules for a GPU.
    """

    def __init__(self, capacity_bytes: float = float("inf"), *, is_of_gpu: bool = False) -> None:
        self.is_of_gpu = is_of_gpu
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
        """Return a new lane of this gate."""
        lane = Lane(self, servers, on_pause)
        with self._changed:
            self._lanes.append(lane)
        return lane

    @property
    def timed_lane(self) -> Lane | None:
        """The lane that is being timed."""
        return self._timed

    def close(self) -> None:
        """Continue all lanes; threads that wait for the gate raise an error."""
        with self._changed:
            self._is_closed = True
            for lane in self._lanes:
                self._continue(lane)
            self._changed.notify_all()

    @contextlib.contextmanager
    def timed(self, lane: Lane) -> Iterator[None]:
        """Stop all other lanes during the context; a lane may nest it."""
        self.begin_timed(lane)
        try:
            yield
        finally:
            self.end_timed(lane)

    def begin_timed(self, lane: Lane) -> None:
        """Wait for the turn of `lane` and stop the others.

        Raises:
            RunError: the gate was closed.
        """
        with self._changed:
            others = [other for other in self._lanes if other is not lane]

            def is_free() -> bool:
                is_working = any(other.num_working for other in others)
                return self._timed in (None, lane) and (self.is_of_gpu or not is_working)

            if not is_free():
                # A waiting lane does not count as working; otherwise two lanes would wait for each
                # other forever.
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
                self._stop(*(other for other in others if not (self.is_of_gpu and other.is_quiet)))

    def end_timed(self, lane: Lane) -> None:
        """Let the others continue."""
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

    def enter(self, lane: Lane, phase: str) -> None:
        """Note the phase that a lane's job enters, before the job may continue.

        On a GPU, a lane that leaves a quiet phase while another one is timed is stopped.
        """
        with self._changed:
            was_quiet, lane.is_quiet = lane.is_quiet, phase in QUIET_PHASES
            is_other_timed = self._timed not in (None, lane)
            if self.is_of_gpu and is_other_timed and was_quiet and not lane.is_quiet:
                self._stop(lane)

    def begin_job(self, lane: Lane) -> None:
        """Stop a process that has just started on a GPU while another lane is timed."""
        with self._changed:
            lane.is_quiet = False
            if self.is_of_gpu and self._timed not in (None, lane):
                self._stop(lane)

    def begin_work(self, lane: Lane) -> None:
        """Prevent timing of other lanes until `end_work`, unless they are timed on a GPU.

        This covers work of this process and processes being started, which cannot be stopped.
        """
        with self._changed:
            if not self.is_of_gpu:
                self._changed.wait_for(lambda: self._is_closed or self._timed in (None, lane))
            lane.num_working += 1

    def end_work(self, lane: Lane) -> None:
        """Declare that only stoppable processes are running in `lane`."""
        with self._changed:
            lane.num_working -= 1
            self._changed.notify_all()

    @contextlib.contextmanager
    def idle(self, lane: Lane) -> Iterator[None]:
        """Wait for something during work."""
        self.end_work(lane)
        try:
            yield
        finally:
            self.begin_work(lane)

    @contextlib.contextmanager
    def admitted(self, lane: Lane, need_bytes: int) -> Iterator[None]:
        """Reserve the memory that a sample may need, once it is available."""
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
        """Run no other sample during the context; the samples of other lanes finish first."""
        with self.idle(lane), self._changed:
            # Otherwise two lanes would wait for each other forever.
            reserved_bytes, lane.need_bytes = lane.need_bytes, 0
            self._wait_for(lambda: self._alone is None)
            self._alone = lane
            try:
                self._wait_for(lambda: not any(other.need_bytes for other in self._lanes))
            except RunError:
                self._alone = None
                raise
            lane.need_bytes, lane.had_company = max(reserved_bytes, 1), False
        try:
            yield
        finally:
            with self._changed:
                self._alone = None
                self._changed.notify_all()

    def _has_room(self, lane: Lane, need_bytes: int) -> bool:
        sizes = [peer.need_bytes for peer in self._lanes if peer is not lane and peer.need_bytes]
        is_barred = self._alone not in (None, lane)
        return not is_barred and (not sizes or sum(sizes) + need_bytes <= self._capacity_bytes)

    def _note_company(self) -> None:
        under_way = [peer for peer in self._lanes if peer.need_bytes]
        for peer in under_way if len(under_way) > 1 else ():
            peer.had_company = True

    def _stop(self, *lanes: Lane) -> None:
        servers = [server for lane in lanes for server in lane.servers()]
        for server in servers:
            server.be_still(True)
        stop_descendants(*(server.pid for server in servers if server.pid is not None))
        for lane in lanes:
            lane.pause()

    def _continue(self, lane: Lane) -> None:
        lane.go_on()
        for server in lane.servers():
            if server.pid is not None:
                continue_descendants(server.pid)
            server.be_still(False)

    def _wait_for(self, condition: Callable[[], Any]) -> None:
        self._changed.wait_for(lambda: self._is_closed or condition())
        if self._is_closed:
            raise RunError("The run ended while a sample waited for its turn.")
