"""Work around every timed call, the same for each arm and process.

This work affects the times. A call directly after another finds the threads of the pool awake and
its code in the caches. After half a millisecond of other work it takes 5 to 15 % longer, and up to
three times as long if memory was allocated meanwhile. The same code therefore prepares inputs and
inspects outputs for all arms: for pairs, for eager alone and in turns.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import Any

from ...frameworks.protocols import Runtime
from ...isolation import StampSender
from ..handover import LAYOUT, LOOK, MAX_SET, digest_of
from .arms import Arm
from .kept_outputs import Outputs

_urandom = os.urandom
"""Bound at import and read for each call: a generator with state could be read and predicted."""


class AroundCalls:
    """Prepare inputs before each call of an arm and inspect the outputs after it."""

    CHANGING = frozenset({"_drawn", "_set_index"})

    def __init__(
        self,
        arms: Mapping[str, Arm],
        runtime: Runtime,
        stamps: StampSender | None,
        num_sets: int,
        find_changed: Callable[[], str | None],
    ) -> None:
        self._arms = dict(arms)
        self._runtime, self._stamps, self._num_sets = runtime, stamps, num_sets
        self._find_changed = find_changed
        self._drawn: set[int] = set()
        self._set_index = 0

    def before_each(self, arm: str, pair: int) -> None:
        """Prepare unpredictable inputs; the outputs of all arms are discarded first."""
        for other in self._arms.values():
            other.discard()
        if self._stamps is not None and pair >= 0:
            # The inputs exist from here on, so a candidate could work on them before the clock
            # starts.
            self._stamps.wait_for_room()
            self._stamps.send(self._stamps.encode(f"{LAYOUT}{arm} {pair}"))
        self._set_index = self._choose_set(arm, pair)
        self._arms[arm].prepare(self._set_index)
        self._check_harness()

    def after_each(self, arm: str, pair: int, result: Any) -> None:
        """Inspect the outputs of a timed call and the inputs that it may have written to."""
        del result
        self._look(arm, pair, draw_below(MAX_SET))

    def _look(self, arm: str, pair: int, start: int | None) -> tuple[Outputs, str | None]:
        """Return an excerpt of a timed call's outputs, and the name of an input that it wrote to.

        The kernel records the hash of the excerpt. Any work on the outputs after the call must be
        finished by that moment, because the outputs handed over must match the hash.
        """
        self._check_harness()
        if pair < 0:
            return [], None
        excerpt = self._excerpt(self._arms[arm].results(), start)
        digest = digest_of(elements for _, _, elements in excerpt)
        if self._stamps is not None:
            self._stamps.send(self._stamps.encode(f"{LOOK}{arm} {pair} {digest}"))
        return excerpt, self._arms[arm].find_foreign_write()

    def _choose_set(self, arm: str, pair: int) -> int:
        """Return the number of the next input set; it differs each time."""
        del arm, pair
        while (number := draw_set(self._num_sets)) in self._drawn:
            pass
        self._drawn.add(number)
        return number

    def _excerpt(self, outputs: Any, start: int | None) -> Outputs:
        return self._runtime.excerpt(outputs, start)

    def _check_harness(self) -> None:
        self._find_changed()


def draw_set(num_sets: int) -> int:
    """Return an unpredictable number of an input set other than set 0."""
    return num_sets + draw_below(MAX_SET - num_sets)


def draw_below(number: int) -> int:
    """Return an integer from 0 to `number` - 1 from the system's random source."""
    return int.from_bytes(_urandom(8), "little") % number
