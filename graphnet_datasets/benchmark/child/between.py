"""What happens between two calls of eager in a process without a candidate."""

from __future__ import annotations

from typing import Any

from ..handover import digest_of
from ..worker_job import WorkerJob
from .arms import Arm, Workload
from .harness_snapshot import HarnessSnapshot
from .setup import now_s
from .timed_calls import draw_set

STAND_IN_S = 0.02
"""Where calls take longer than this, what happened between them no longer shows in their times."""


class Between:
    """Does between two calls of eager what happens between them beside a candidate.

    A call that follows another at once finds the threads of the pool awake and the caches full of
    its own code: it is faster by 5 to 15 % than the same call after some milliseconds of something
    else, and by half where it takes a tenth of a millisecond. So inputs are drawn, outputs and
    harness looked at as in pairs, and a second eager, with weights of its own, is called in the
    candidate's place. Where eager and candidate take turns, neither finds the other between its
    calls: then there is none (`has_stand_in`).
    """

    def __init__(
        self, job: WorkerJob, arm: Arm, workload: Workload, *, has_stand_in: bool = True
    ) -> None:
        self._arm, self._stand_in = arm, None
        self._runtime, self._num_sets = workload.runtime, job.settings.num_input_sets
        self._snapshot = HarnessSnapshot()
        self._snapshot.hold(workload, arm, workload.runtime)
        if has_stand_in:
            own = workload.for_candidate()
            self._stand_in = Arm(own, own.module)
            self._snapshot.hold(own, self._stand_in)
        self._begun_s, self._is_long = 0.0, False

    def before_each(self, *_: Any) -> None:
        """Lay out inputs, after the stand-in has had its call where calls are short."""
        if self._stand_in is not None and not self._is_long:
            self._lay_out(self._stand_in)
            self._stand_in()
            self._look(self._stand_in)
        self._lay_out(self._arm)
        self._begun_s = now_s()

    def after_each(self, *_: Any) -> None:
        """Look at the outputs and at what the call may have written to."""
        self._is_long = now_s() - self._begun_s > STAND_IN_S
        self._look(self._arm)

    def _lay_out(self, arm: Arm) -> None:
        for each in (self._arm, self._stand_in):
            if each is not None:
                each.discard()
        arm.prepare(draw_set(self._num_sets))
        self._snapshot.find_changed()

    def _look(self, arm: Arm) -> None:
        self._snapshot.find_changed()
        digest_of(elements for _, _, elements in self._runtime.excerpt(arm.results(), 0))
        arm.find_foreign_write()
