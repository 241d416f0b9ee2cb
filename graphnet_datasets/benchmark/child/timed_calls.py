"""What happens around the timed calls: inputs laid out before, a look at some outputs after."""

from __future__ import annotations

import os
import random
import statistics
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ...isolation import Reporter, peak_memory_bytes, reset_peak_memory
from ...schema import Reason
from ..handover import FIRST, MAX_SET, MAX_TIMED, timed_file
from .arms import Arm
from .outputs import OutputTypeError
from .runtimes import Runtime

SLOW_CALL_MS = 1000.0
"""Of calls that take longer than this, one is judged besides the first: eager has to repeat it."""
KEPT_BYTES = 256 * 2**20
"""Outputs of timed calls that are held until the end; where they take more, those of one call."""


class OutputsRefusedError(Exception):
    """The outputs cannot be judged; why has been reported."""


class TimedCalls:
    """The hooks of `measure_pairs` for one run, and the outputs that they kept."""

    def __init__(
        self,
        baseline: Arm,
        candidate: Arm,
        runtime: Runtime,
        reporter: Reporter,
        directory: Path,
        num_sets: int,
    ) -> None:
        self._arms = {"baseline": baseline, "candidate": candidate}
        self._runtime, self._reporter = runtime, reporter
        self._directory, self._num_sets = directory, num_sets
        # Not seeded: which timed call is judged cannot be foreseen.
        self._draw = random.Random(os.urandom(16)).random  # noqa: S311
        self._num_calls = 0
        self._num_kept = MAX_TIMED
        self._peak_bytes: int | None = None
        self._kept: list[tuple[int, Any]] = []
        self._pair, self._set_index = -1, 0

    def before_each(self, arm: str, pair: int) -> None:
        """Lay out the inputs: set 0 for the first call, then in turn; new ones for each pair.

        Both arms of a pair take the same values, which nothing could have known before.
        """
        if arm == "candidate":
            self._num_calls += 1
        if pair < 0:
            self._set_index = (self._num_calls - 1) % self._num_sets
        elif pair != self._pair:
            self._pair = pair
            self._set_index = self.draw_set()
        self._arms[arm].prepare(self._set_index)
        if arm == "candidate" and self._num_calls == 2:
            reset_peak_memory()
            self._runtime.reset_peak_memory()

    def draw_set(self) -> int:
        """Return the number of a set of inputs that cannot be foreseen."""
        return self._num_sets + int(self._draw() * (MAX_SET - self._num_sets))

    def after_each(self, arm: str, pair: int, result: Any) -> None:
        """Hand over what the first call gave; keep what some of the timed calls gave."""
        del result
        if arm != "candidate":
            return
        candidate = self._arms[arm]
        if self._num_calls == 1:
            if self._hand_over(0, candidate.results(), FIRST) > KEPT_BYTES / MAX_TIMED:
                self._num_kept = 1
            self._check_inputs(candidate)
        elif self._num_calls == 2:
            self._peak_bytes = self._runtime.peak_memory_bytes() or peak_memory_bytes()
        if pair < 0:
            return
        # Each timed call is kept with the same probability: a reservoir.
        place = len(self._kept)
        if place == self._num_kept:
            place = int(self._draw() * (pair + 1))
        if place < self._num_kept:
            self._check_inputs(candidate)
            outputs = self._runtime.clone_outputs(candidate.results())
            self._kept[place : place + 1] = [(self._set_index, outputs)]

    def _check_inputs(self, candidate: Arm) -> None:
        if name := candidate.find_foreign_write():
            self.refuse(Reason.MUTATION, f"The candidate wrote to the input `{name}`.")
            raise OutputsRefusedError

    def hand_over_timed(self, candidate_ms: Sequence[float]) -> None:
        """Hand over the outputs of the timed calls that were kept; of slow ones, of one."""
        is_slow = statistics.median(candidate_ms) > SLOW_CALL_MS
        for number, (set_index, outputs) in enumerate(self._kept[: 1 if is_slow else None]):
            self._hand_over(set_index, outputs, timed_file(number))

    def refuse(self, reason: Reason, message: str) -> None:
        """Report that the outputs are not what eager gives, whatever their values."""
        self._reporter.send({"refused": {"reason": str(reason), "message": message}})

    def candidate_peak_bytes(self, resident_bytes: int) -> int | None:
        """Return the peak memory of the second call, without what was there before the sample."""
        if self._peak_bytes is None or self._runtime.peak_memory_bytes() is not None:
            return self._peak_bytes
        return max(self._peak_bytes - resident_bytes, 0)

    def _hand_over(self, set_index: int, outputs: Any, name: str) -> int:
        """Write outputs down for the parent and return how many bytes they take."""
        path = self._directory / name
        try:
            described = self._runtime.write_outputs(outputs, path)
        except OutputTypeError as error:
            self.refuse(Reason.TYPE, str(error))
            raise OutputsRefusedError from error
        self._reporter.send({f"outputs {name}": described, f"set {name}": set_index})
        return path.stat().st_size
