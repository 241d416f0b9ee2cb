"""What happens around every call that is timed, whichever arm's and in whichever process.

It shows in the times. A call that follows another at once finds the threads of the pool awake and
the caches full of its own code; after half a millisecond of something else it takes 5 to 15 %
longer, and where memory has been taken meanwhile up to three times as long. So one piece of code
lays out inputs and looks at outputs for all arms: for pairs, for eager alone, and in turns.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import Any

from ...frameworks.runtime import Runtime
from ...isolation import StampSender
from ..handover import LAYOUT, LOOK, MAX_SET, digest_of
from .arms import Arm
from .kept_outputs import Outputs

_urandom = os.urandom
"""Held here, and drawn from for each call: what has a state could be read, and foreseen."""


class AroundCalls:
    """Lays out inputs before each call of an arm, and looks at its outputs after it."""

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
        """Lay out inputs that nothing could have known before; all arms' outputs are gone."""
        for each in self._arms.values():
            each.discard()
        if self._stamps is not None and pair >= 0:
            # From here to the call there are inputs that work could be done on ahead of the clock.
            self._stamps.wait_for_room()
            self._stamps.send(self._stamps.encode(f"{LAYOUT}{arm} {pair}"))
        self._set_index = self._choose_set(arm, pair)
        self._arms[arm].prepare(self._set_index)
        self._check_harness()

    def after_each(self, arm: str, pair: int, result: Any) -> None:
        """Look at the outputs of a timed call, and at the inputs that it may have written to."""
        del result
        self._look(arm, pair, draw_below(MAX_SET))

    def _look(self, arm: str, pair: int, start: int | None) -> tuple[Outputs, str | None]:
        """Return an excerpt of a timed call's outputs, and the name of an input that it wrote to.

        The kernel notes the hash of the excerpt: whatever is done for the outputs after the call
        has ended is done before that moment, and what is handed over has to have that hash.
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
        """Return the number of a set of inputs, another one each time."""
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
    """Return the number of a set of inputs, beyond the first, that cannot be foreseen."""
    return num_sets + draw_below(MAX_SET - num_sets)


def draw_below(number: int) -> int:
    """Return a whole number from 0 to `number` - 1 out of the system's source."""
    return int.from_bytes(_urandom(8), "little") % number
