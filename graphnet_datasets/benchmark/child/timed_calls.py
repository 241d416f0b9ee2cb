"""What happens around the timed calls: inputs laid out before, a look at some outputs after."""

from __future__ import annotations

import math
import os
import statistics
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeAlias

from ...frameworks.outputs import MAX_EXCERPT, OutputTypeError, write_described
from ...frameworks.runtime import Runtime
from ...isolation import Reporter, peak_memory_bytes, reset_peak_memory
from ...schema import Reason
from ..handover import (
    FIRST,
    LAYOUT,
    LOOK,
    MAX_JUDGED,
    MAX_OUTPUTS,
    MAX_SET,
    MAX_WHOLE,
    JudgedCall,
    digest_of,
    judged_file,
)
from .arms import Arm

_Outputs: TypeAlias = list[tuple[str, list[int], Any]]

JUDGING_S = 20.0
"""Seconds of eager's calls that judging may cost: it repeats each call that is judged."""
MIN_JUDGED = 16
"""Calls that are judged however long they take."""
KEPT_BYTES = 256 * 2**20
"""Whole outputs that are held until the end; where they take more, those of one call."""
_urandom = os.urandom
"""Held here, and drawn from for each call: what has a state could be read, and foreseen."""


class OutputsRefusedError(Exception):
    """The outputs cannot be judged; why has been reported."""


class TimedCalls:
    """The hooks of `measure_pairs` for one run, and the outputs that they kept."""

    CHANGING = frozenset(
        {"_num_calls", "_num_whole", "_num_judged", "_peak_bytes", "_whole", "_excerpts", "_drawn"}
        | {"_set_index", "_baseline_pair"}
    )

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
        self._arms = {"baseline": baseline, "candidate": candidate}
        self._runtime, self._reporter = runtime, reporter
        self._directory, self._num_sets = directory, num_sets
        self._again = list(again)
        self._find_changed = find_changed
        self._num_calls = 0
        self._num_whole, self._num_judged = MAX_WHOLE, MAX_JUDGED
        self._peak_bytes: int | None = None
        self._whole: list[tuple[JudgedCall, _Outputs]] = []
        self._excerpts: list[tuple[JudgedCall, _Outputs]] = []
        self._drawn: set[int] = set()
        self._set_index = 0
        self._baseline_pair = -1

    def before_each(self, arm: str, pair: int) -> None:
        """Lay out the inputs: set 0 for the first call, then in turn; new ones for each timed call.

        Nothing could have known them before, and eager's are others than the candidate's: whoever
        listens to eager learns nothing that it is asked for. Both arms' outputs are gone.
        """
        for each in self._arms.values():
            each.discard()
        if (stamps := self._reporter.stamps) is not None and pair >= 0:
            # From here to the call there are inputs that work could be done on ahead of the clock.
            stamps.wait_for_room()
            stamps.send(stamps.encode(f"{LAYOUT}{arm} {pair}"))
        if arm == "candidate":
            self._num_calls += 1
        if pair < 0:
            self._set_index = (self._num_calls - 1) % self._num_sets
        elif arm == "candidate" and pair < len(self._again):
            self._set_index = self._again[pair].set_index
        else:
            self._set_index = self._draw_set()
        self._arms[arm].prepare(self._set_index)
        if arm == "candidate" and self._num_calls == 2:
            reset_peak_memory()
            self._runtime.reset_peak_memory()
        self._check_harness()

    def _draw_set(self) -> int:
        """Return the number of a set of inputs, another one each time."""
        drawn = self._drawn
        while (number := draw_set(self._num_sets)) in drawn:
            pass
        drawn.add(number)
        return number

    def after_each(self, arm: str, pair: int, result: Any) -> None:
        """Hand over what the first call gave; keep an excerpt of what each timed call gave.

        One is taken of eager's outputs as well and its inputs are looked at too, so that the call
        after either arm's, which is more often the other's, finds the caches alike; and it is known
        how long that takes.
        """
        del result
        self._check_harness()
        outputs = self._arms[arm].results()
        start = _draw_below(MAX_SET)
        if 0 <= pair < len(self._again) and self._again[pair].start is not None:
            start = self._again[pair].start
        excerpt = [] if pair < 0 else self._look(arm, pair, outputs, start)
        if arm != "candidate":
            self._baseline_pair = pair
            if pair >= 0:
                self._arms[arm].find_foreign_write()
            return
        if self._num_calls == 1:
            taken = self._excerpt(outputs, None)
            described = write_described(taken, self._directory / FIRST)
            self._reporter.send({f"outputs {FIRST}": described})
            if sum(len(each) for _, _, each in taken) > KEPT_BYTES / MAX_WHOLE:
                self._num_whole = 1
            most = MAX_EXCERPT // max(1, len(taken))
            if all(math.prod(shape) <= most for _, shape, _ in taken):
                self._num_whole = 0  # an excerpt of these is the whole
            self._num_judged = _most_judged([each for _, _, each in taken])
            self._check_inputs()
        elif self._num_calls == 2:
            self._peak_bytes = self._runtime.peak_memory_bytes() or peak_memory_bytes()
        if pair < 0:
            return
        is_first = self._baseline_pair != pair
        if pair < len(self._again):  # a run that is repeated: the same calls are judged
            call = JudgedCall(self._set_index, self._again[pair].start, is_first)
            kept = self._whole if call.start is None else self._excerpts
            kept.append((call, self._excerpt(outputs, None) if call.start is None else excerpt))
            self._check_inputs()
            return
        # Each timed call is kept with the same probability: a reservoir.
        for kept, most, begin in (
            (self._whole, self._num_whole, None),
            (self._excerpts, self._num_judged, start),
        ):
            place = len(kept) if len(kept) < most else _draw_below(pair + 1)
            if place < most:
                taken = excerpt if begin is not None else self._excerpt(outputs, None)
                kept[place : place + 1] = [(JudgedCall(self._set_index, begin, is_first), taken)]
                self._check_inputs()

    def _look(self, arm: str, pair: int, outputs: Any, start: int | None) -> _Outputs:
        """Take an excerpt and have the kernel note its hash.

        Whatever is done for the outputs after the call has ended is done before that moment, and
        what is handed over has to have that hash.
        """
        taken = self._excerpt(outputs, start)
        if (stamps := self._reporter.stamps) is not None:
            digest = digest_of(elements for _, _, elements in taken)
            stamps.send(stamps.encode(f"{LOOK}{arm} {pair} {digest}"))
        return taken

    def _excerpt(self, outputs: Any, start: int | None) -> _Outputs:
        try:
            return self._runtime.excerpt(outputs, start)
        except OutputTypeError as error:
            self.refuse(Reason.TYPE, str(error))
            raise OutputsRefusedError from error

    def _check_inputs(self) -> None:
        if name := self._arms["candidate"].find_foreign_write():
            self.refuse(Reason.MUTATION, f"The candidate wrote to the input `{name}`.")
            raise OutputsRefusedError

    def _check_harness(self) -> None:
        """Refuse a candidate that changes what lays out or times calls, were it for one of them."""
        if changed := self._find_changed():
            self.refuse_replaced(changed)
            raise OutputsRefusedError

    def refuse_replaced(self, name: str) -> None:
        """Report which part of the harness is another one than before the candidate."""
        self.refuse(Reason.TAMPERING, f"The candidate replaced `{name}`, a part of what times it.")

    def hand_over_timed(self, baseline_ms: Sequence[float]) -> None:
        """Hand over the outputs of the timed calls that were kept; of slow ones, of fewer."""
        repeated_ms = max(statistics.median(baseline_ms), 1e-6)
        most = max(MIN_JUDGED, int(1000 * JUDGING_S / repeated_ms))
        excerpts = list(self._excerpts)
        while len(excerpts) > most:
            excerpts.pop(_draw_below(len(excerpts)))
        whole = self._whole[:1] if len(self._excerpts) > most else self._whole
        for number, (_, outputs) in enumerate([*whole, *excerpts]):
            name = judged_file(number)
            described = write_described(outputs, self._directory / name)
            self._reporter.send({f"outputs {name}": described})
        self._reporter.send({"judged": [call.to_json() for call, _ in [*whole, *excerpts]]})

    def refuse(self, reason: Reason, message: str) -> None:
        """Report that the outputs are not what eager gives, whatever their values."""
        self._reporter.send({"refused": {"reason": str(reason), "message": message}})

    def candidate_peak_bytes(self, resident_bytes: int) -> int | None:
        """Return the peak memory of the second call, without the bytes that were not its own."""
        if self._peak_bytes is None:
            return None
        return max(self._peak_bytes - resident_bytes, 0)


def _most_judged(outputs: Sequence[Any]) -> int:
    """Return of how many calls excerpts of such outputs can be held, and handed over."""
    num_bytes = min(sum(memoryview(each).nbytes for each in outputs), 8 * MAX_EXCERPT)
    most = min(MAX_OUTPUTS // max(1, len(outputs)), KEPT_BYTES // max(1, num_bytes))
    return max(MIN_JUDGED, min(MAX_JUDGED, most))


def draw_set(num_sets: int) -> int:
    """Return the number of a set of inputs, beyond the first, that cannot be foreseen."""
    return num_sets + _draw_below(MAX_SET - num_sets)


def _draw_below(number: int) -> int:
    """Return a whole number from 0 to `number` - 1 out of the system's source."""
    return int.from_bytes(_urandom(8), "little") % number
