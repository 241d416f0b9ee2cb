"""A graph run operator by operator, with a look at what each gives."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from ..sample import Sample
from .results import Observed


class Stepper(Protocol):
    """Runs the operators of a sample one at a time; values are numbered as in the sample."""

    sample: Sample

    def run(self, position: int) -> None:
        """Run operator `position` and keep its result."""

    def tensor(self, value: int) -> Any:
        """Return a value, None where it is no tensor or has been freed."""

    def free(self, value: int) -> None:
        """Forget a value."""


def observe_by(stepper: Stepper, look_at: Callable[[Any], Observed]) -> dict[int, Observed]:
    """Run the whole graph and return what each operator gave, before anything wrote to it."""
    sample = stepper.sample
    num_inputs = len(sample.inputs)
    dying: list[list[int]] = [[] for _ in sample.ops]
    for value, last_use in enumerate(sample.last_uses):
        if 0 <= last_use < sample.num_ops:
            dying[last_use].append(value)
    found = {}
    for position in range(sample.num_ops):
        stepper.run(position)
        tensor = stepper.tensor(num_inputs + position)
        if tensor is not None:
            found[num_inputs + position] = look_at(tensor)
        for value in dying[position]:
            stepper.free(value)
    return found
