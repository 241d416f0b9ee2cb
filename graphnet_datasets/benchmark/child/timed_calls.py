"""Hooks of the timed calls: inputs are prepared before, and some outputs inspected after."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from ...frameworks.outputs import MAX_EXCERPT, OutputTypeError, append_described, write_described
from ...frameworks.protocols import Runtime
from ...isolation import Reporter, peak_memory_bytes, reset_peak_memory
from ...schema import Reason
from ..draw_plan import DrawPlan
from ..handover import (
    DRAWS,
    FIRST,
    JUDGED,
    MAX_JUDGED,
    MAX_SET,
    MAX_WHOLE,
    JudgedCall,
    judged_message,
)
from .arms import Arm, WatchedArm
from .around_calls import AroundCalls, draw_below
from .draws import choose_draws, hand_over_draws
from .kept_outputs import KEPT_BYTES, MIN_KEPT, KeptOutputs, Outputs, most_kept

JUDGING_S = 20.0
"""The time budget of judging, in seconds of eager's calls: every judged call is repeated."""


class OutputsRefusedError(Exception):
    """The outputs cannot be judged; the reason has already been reported."""


class TimedCalls(AroundCalls):
    """The `measure_pairs` hooks of one run, and the outputs that they stored."""

    CHANGING = AroundCalls.CHANGING | {
        *("_num_calls", "_num_whole", "_num_judged", "_peak_bytes", "_whole", "_excerpts"),
        *("_room", "_baseline_pair", "_sizes"),
    }

    def __init__(
        self,
        baseline: Arm,
        candidate: Arm,
        runtime: Runtime,
        reporter: Reporter,
        directory: Path,
        num_sets: int,
        again: Sequence[JudgedCall] = (),
        find_changed: Callable[[], str | None] = lambda: None,
    ) -> None:
        arms = {"baseline": baseline, "candidate": candidate}
        super().__init__(arms, runtime, reporter.stamps, num_sets, find_changed)
        self._reporter, self._directory = reporter, directory
        self._again = list(again)
        self._num_calls = 0
        self._num_whole, self._num_judged = MAX_WHOLE, MAX_JUDGED
        self._peak_bytes: int | None = None
        self._whole: list[tuple[JudgedCall, Outputs]] = []
        self._excerpts: list[tuple[JudgedCall, Outputs]] = []
        self._room: KeptOutputs | None = None
        self._baseline_pair = -1
        self._sizes: list[int] = []

    def before_each(self, arm: str, pair: int) -> None:
        """Prepare inputs: set 0 for the first call, then cycling sets; new sets for timed calls.

        Eager gets other inputs than the candidate, so a candidate that observes eager learns
        nothing about its own answers.
        """
        if arm == "candidate":
            self._num_calls += 1
        super().before_each(arm, pair)
        if arm == "candidate" and self._num_calls == 2:
            reset_peak_memory()
            self._runtime.reset_peak_memory()

    def _choose_set(self, arm: str, pair: int) -> int:
        if pair < 0:
            return (self._num_calls - 1) % self._num_sets
        if arm == "candidate" and pair < len(self._again):
            return self._again[pair].set_index
        return super()._choose_set(arm, pair)

    def after_each(self, arm: str, pair: int, result: Any) -> None:
        """Hand over the outputs of the first call; store an excerpt for each timed call.

        Eager's outputs are inspected as well, to measure how long the inspection takes.
        """
        self._take_outputs(arm, pair, result)
        if isinstance(candidate := self._arms[arm], WatchedArm):
            candidate.look_at_state()

    def _take_outputs(self, arm: str, pair: int, result: Any) -> None:
        del result
        start: int | None = draw_below(MAX_SET)
        if 0 <= pair < len(self._again) and self._again[pair].start is not None:
            start = self._again[pair].start
        excerpt, written = self._look(arm, pair, start)
        if arm != "candidate":
            self._baseline_pair = pair
            return
        self._check_input(written)
        outputs = self._arms[arm].results()
        if self._num_calls == 1:
            self._hand_over_first(outputs)
        elif self._num_calls == 2:
            self._peak_bytes = self._runtime.peak_memory_bytes() or peak_memory_bytes()
            # Storage allocated from here on does not count as the candidate's peak memory.
            num_bytes = sum(memoryview(data).nbytes for _, _, data in self._excerpt(outputs, 0))
            self._room = KeptOutputs(self._num_judged, num_bytes)
        if pair < 0:
            return
        is_first = self._baseline_pair != pair
        if pair < len(self._again):  # repeated run: judge the same calls as before
            call = JudgedCall(self._set_index, self._again[pair].start, is_first)
            if call.start is None:
                self._whole.append((call, self._excerpt(outputs, None)))
            else:
                self._keep(len(self._excerpts), call, excerpt)
            return
        # Reservoir sampling: each timed call is stored with the same probability.
        place = _place_in(self._whole, self._num_whole, pair)
        if place is not None:
            call = JudgedCall(self._set_index, None, is_first)
            self._whole[place : place + 1] = [(call, self._excerpt(outputs, None))]
        place = _place_in(self._excerpts, self._num_judged, pair)
        if place is not None:
            self._keep(place, JudgedCall(self._set_index, start, is_first), excerpt)

    def _hand_over_first(self, outputs: Any) -> None:
        """Hand over all outputs of the first call, and decide how many calls can be stored."""
        excerpt = self._excerpt(outputs, None)
        self._sizes = [math.prod(shape) for _, shape, _ in excerpt]
        described = write_described(excerpt, self._directory / FIRST)
        self._reporter.send({f"outputs {FIRST}": described})
        if sum(len(data) for _, _, data in excerpt) > KEPT_BYTES / MAX_WHOLE:
            self._num_whole = 1
        most = MAX_EXCERPT // max(1, len(excerpt))
        if all(math.prod(shape) <= most for _, shape, _ in excerpt):
            self._num_whole = 0  # the excerpt of a small output is the whole output
        self._num_judged = most_kept([data for _, _, data in excerpt])
        self._check_input(self._arms["candidate"].find_foreign_write())

    def _keep(self, place: int, call: JudgedCall, excerpt: Outputs) -> None:
        entry = excerpt if self._room is None else self._room.put(place, excerpt)
        self._excerpts[place : place + 1] = [(call, entry)]

    def _excerpt(self, outputs: Any, start: int | None) -> Outputs:
        try:
            return self._runtime.excerpt(outputs, start)
        except OutputTypeError as error:
            self.refuse(Reason.TYPE, str(error))
            raise OutputsRefusedError from error

    def _check_input(self, written: str | None) -> None:
        """Reject a candidate that wrote to an input that eager does not write to."""
        if written is not None:
            self.refuse(Reason.MUTATION, f"The candidate wrote to the input `{written}`.")
            raise OutputsRefusedError

    def _check_harness(self) -> None:
        """Reject a candidate that changed the harness, even for a single call."""
        if changed := self._find_changed():
            self.refuse_replaced(changed)
            raise OutputsRefusedError

    def refuse_replaced(self, name: str) -> None:
        """Report the part of the harness that the candidate replaced."""
        self.refuse(Reason.TAMPERING, f"The candidate replaced `{name}`, a part of what times it.")

    def hand_over_timed(self, baseline_ms: Sequence[float]) -> None:
        """Hand over the stored outputs of timed calls; slow calls have fewer."""
        repeated_ms = max(statistics.median(baseline_ms), 1e-6)
        most = max(MIN_KEPT, int(1000 * JUDGING_S / repeated_ms))
        excerpts = list(self._excerpts)
        while len(excerpts) > most:
            excerpts.pop(draw_below(len(excerpts)))
        whole = self._whole[:1] if len(self._excerpts) > most else self._whole
        with (self._directory / JUDGED).open("wb") as file:
            for number, (_, outputs) in enumerate([*whole, *excerpts]):
                self._reporter.send({judged_message(number): append_described(outputs, file)})
        self._reporter.send({"judged": [call.to_json() for call, _ in [*whole, *excerpts]]})

    def hand_over_draws(self, plan: DrawPlan) -> None:
        """Hand over the candidate's outputs in repeated calls on inputs that it has not seen."""
        arm = self._arms["candidate"]
        calls = choose_draws(plan, self._sizes, self._num_sets)
        if calls is None:
            return
        path = self._directory / DRAWS
        try:
            hand_over_draws(arm, self._runtime, self._reporter, path, calls, DRAWS)
        except OutputTypeError as error:
            self.refuse(Reason.TYPE, str(error))
            raise OutputsRefusedError from error
        self._check_input(arm.find_foreign_write())

    def refuse(self, reason: Reason, message: str) -> None:
        """Report that the outputs are wrong, whatever their values."""
        self._reporter.send({"refused": {"reason": str(reason), "message": message}})

    def candidate_peak_bytes(self, resident_bytes: int) -> int | None:
        """Return the peak memory of the second call, without `resident_bytes`."""
        if self._peak_bytes is None:
            return None
        return max(self._peak_bytes - resident_bytes, 0)


def _place_in(entries: Sequence[Any], most: int, number: int) -> int | None:
    """Return the place of call `number` among at most `most` stored calls, or None to skip it."""
    place = len(entries) if len(entries) < most else draw_below(number + 1)
    return place if place < most else None
