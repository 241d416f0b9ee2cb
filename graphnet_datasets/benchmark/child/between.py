"""What happens between two calls of eager in a process without a candidate."""

from __future__ import annotations

from typing import Any

from ...isolation import Reporter
from ...timing.clocks import Clock
from ..worker_job import WorkerJob
from .arms import Arm, Workload
from .around_calls import AroundCalls
from .harness_snapshot import HeldObjects
from .kept_outputs import KeptOutputs, Outputs, most_kept
from .setup import now_s

STAND_IN_S = 0.02
"""Where calls take longer than this, what happened between them no longer shows in their times."""


class Between(AroundCalls):
    """Does between two calls of eager what happens between them beside a candidate.

    A second eager, on weights of its own, has the place of the candidate. In pairs it is called in
    its place too (`is_called`); where eager and candidate take turns neither finds the other
    between its calls.
    """

    CHANGING = AroundCalls.CHANGING | {"_begun_s", "_is_long", "_room"}

    def __init__(
        self,
        job: WorkerJob,
        arm: Arm,
        workload: Workload,
        clock: Clock,
        reporter: Reporter,
        *,
        is_called: bool,
    ) -> None:
        own, runtime = workload.for_candidate(), workload.runtime
        self._stand_in = Arm(own, own.module)
        self._is_called = is_called
        held = HeldObjects()
        held.hold(workload, arm, runtime, clock, reporter)
        arms = {"baseline": arm, "candidate": self._stand_in}
        num_sets = job.settings.num_input_sets
        super().__init__(arms, runtime, reporter.stamps, num_sets, held.find_changed)
        self._begun_s, self._is_long = 0.0, False
        self._room: KeptOutputs | None = None
        self.on_begin = held.hold
        held.hold(own, self._stand_in, self, clock)
        if reporter.stamps is not None:
            held.hold(reporter.stamps)

    def before_each(self, arm: str, pair: int) -> None:
        """Lay out inputs, after the stand-in has had its call where calls are short."""
        if self._is_called and not self._is_long:
            super().before_each("candidate", pair)
            self._stand_in()
            super().after_each("candidate", pair, None)
        super().before_each(arm, pair)
        self._begun_s = now_s()

    def after_each(self, arm: str, pair: int, result: Any) -> None:
        """Look at the outputs and at what the call may have written to."""
        self._is_long = now_s() - self._begun_s > STAND_IN_S
        if self._room is None:
            outputs = self._arms[arm].results()
            whole, most = (
                [each for _, _, each in self._excerpt(outputs, start)] for start in (None, 0)
            )
            num_bytes = sum(memoryview(each).nbytes for each in most)
            self._room = KeptOutputs(most_kept(whole), num_bytes)
        super().after_each(arm, pair, result)

    def _look(self, arm: str, pair: int, start: int | None) -> tuple[Outputs, str | None]:
        """Look at outputs, and copy where a candidate's would be kept what is kept of those."""
        excerpt, written = super()._look(arm, pair, start)
        if self._room is not None and pair >= 0 and (arm == "candidate" or not self._is_called):
            self._room.put(pair, excerpt)
        return excerpt, written
