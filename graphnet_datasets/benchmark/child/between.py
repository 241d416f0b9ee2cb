"""Work between two calls of eager in a process without a candidate."""

from __future__ import annotations

from typing import Any

from ...frameworks.protocols import Clock
from ...isolation import Reporter
from ..worker_job import WorkerJob
from .arms import Arm, Workload
from .around_calls import AroundCalls
from .harness_snapshot import HeldObjects
from .kept_outputs import KeptOutputs, Outputs, most_kept
from .setup import now_s

STAND_IN_S = 0.02
"""Length of calls in seconds above which the work between them does not affect their times."""


class Between(AroundCalls):
    """Reproduce, between two calls of eager, the work that happens next to a candidate.

    A second eager with its own weights takes the place of the candidate. For pairs, it is also
    called in the candidate's place (`is_called`). When eager and the candidate take turns, neither
    runs between the calls of the other.
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
        harness_objects = HeldObjects()
        harness_objects.hold(workload, arm, runtime, clock, reporter)
        arms = {"baseline": arm, "candidate": self._stand_in}
        num_sets = job.settings.num_input_sets
        super().__init__(arms, runtime, reporter.stamps, num_sets, harness_objects.find_changed)
        self._begun_s, self._is_long = 0.0, False
        self._room: KeptOutputs | None = None
        self.on_begin = harness_objects.hold
        harness_objects.hold(own, self._stand_in, self, clock)
        if reporter.stamps is not None:
            harness_objects.hold(reporter.stamps)

    def before_each(self, arm: str, pair: int) -> None:
        """Prepare inputs, after a call of the stand-in if calls are short."""
        if self._is_called and not self._is_long:
            super().before_each("candidate", pair)
            self._stand_in()
            super().after_each("candidate", pair, None)
        super().before_each(arm, pair)
        self._begun_s = now_s()

    def after_each(self, arm: str, pair: int, result: Any) -> None:
        """Inspect the outputs and the inputs that the call may have written to."""
        self._is_long = now_s() - self._begun_s > STAND_IN_S
        if self._room is None:
            outputs = self._arms[arm].results()
            whole, most = (
                [data for _, _, data in self._excerpt(outputs, start)] for start in (None, 0)
            )
            num_bytes = sum(memoryview(data).nbytes for data in most)
            self._room = KeptOutputs(most_kept(whole), num_bytes)
        super().after_each(arm, pair, result)

    def _look(self, arm: str, pair: int, start: int | None) -> tuple[Outputs, str | None]:
        """Inspect outputs and copy them if a candidate's outputs would be copied."""
        excerpt, written = super()._look(arm, pair, start)
        if self._room is not None and pair >= 0 and (arm == "candidate" or not self._is_called):
            self._room.put(pair, excerpt)
        return excerpt, written
