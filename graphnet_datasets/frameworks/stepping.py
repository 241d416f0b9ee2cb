"""A graph run operator by operator, with a look at what each gives."""

from __future__ import annotations

import abc
import contextlib
from collections.abc import Callable, Iterator
from typing import Any

from ..errors import UnknownOperatorError
from ..inputs.keeping import once_per_sample
from ..inputs.weights import find_weight_uses
from ..sample import Op, Sample
from .contract import module
from .results import Observed


class Stepper(abc.ABC):
    """Runs the operators of a sample one at a time; values are numbered as in the sample.

    An input is drawn when an operator reads it for the first time, and let go of with all other
    values, so that a run holds the weights of a few operators in place of those of the whole graph.
    What is made of weights alone may be read again after that; then it is made once more for its
    reader, an input drawn, the value of an operator computed. Where an operator writes to such a
    value, that and all that has to do with it stays.
    """

    def __init__(self, sample: Sample, seed: int) -> None:
        self.sample = sample
        self.seed = seed
        self._drawn_as: dict[int, tuple[Sample, int]] = {}
        self._freed: set[int] = set()

    @abc.abstractmethod
    def run(self, position: int) -> None:
        """Run operator `position`, once more if it has run, and keep its result.

        Raises:
            CalibrationError: it fails.
        """

    @abc.abstractmethod
    def tensor(self, value: int) -> Any:
        """Return a value, None where it is no tensor or has been freed."""

    @abc.abstractmethod
    def is_finite(self, value: int) -> bool:
        """Tell whether a value is no tensor of floating-point numbers or has finite ones only."""

    @abc.abstractmethod
    def holds(self, value: int) -> bool:
        """Tell whether a value is there."""

    @abc.abstractmethod
    def draw(self, sample: Sample, index: int, seed: int) -> None:
        """Make input `index` from the statistics that it has in `sample`, and keep it."""

    @abc.abstractmethod
    def discard(self, value: int) -> None:
        """Let go of a value, if it is there."""

    def make_input(self, sample: Sample, index: int, seed: int | None = None) -> None:
        """Have input `index` drawn anew from the statistics that it has in `sample`."""
        self._drawn_as[index] = sample, self.seed if seed is None else seed
        self.discard(index)

    def free(self, value: int) -> None:
        """Forget a value."""
        if value not in _find_written(self.sample):
            self._freed.add(value)
            self.discard(value)

    def make(self, value: int) -> None:
        """Make a value that is not there."""
        if value < len(self.sample.inputs):
            sample, seed = self._drawn_as.get(value, (self.sample, self.seed))
            self.draw(sample, value, seed)
        else:
            self.run(value - len(self.sample.inputs))

    @contextlib.contextmanager
    def with_operands(self, position: int) -> Iterator[None]:
        """Have all that operator `position` takes there while it runs."""
        wanted = [value for value in self.sample.op_refs[position] if not self.holds(value)]
        for value in wanted:
            if not self.holds(value):
                self.make(value)
        yield
        for value in self._freed.intersection(wanted):
            self.discard(value)


@once_per_sample
def _find_written(sample: Sample) -> frozenset[int]:
    """Return the values of weights alone that something writes to, and those they share one with.

    A value shares a weight with another where both are made of it.
    """
    mutates = module(sample.framework, "operators").mutates
    uses = find_weight_uses(sample)
    num_inputs = len(sample.inputs)
    written: set[int] = set()
    for op, refs in zip(sample.ops, sample.op_refs, strict=True):
        if _may_write(mutates, op):
            written.update(refs)
    kept: set[int] = set()
    for weight in uses.weight_only.intersection(range(num_inputs)):
        of_it = {weight, *(num_inputs + position for position in uses.dependents.get(weight, ()))}
        if not written.isdisjoint(of_it):
            kept |= of_it
    return frozenset(kept)


def _may_write(mutates: Callable[[Op], bool], op: Op) -> bool:
    try:
        return mutates(op)
    except UnknownOperatorError:  # a custom one
        return True


def steps(stepper: Stepper) -> Iterator[int]:
    """Run the whole graph and yield the value of each operator before anything writes to it."""
    sample = stepper.sample
    num_inputs = len(sample.inputs)
    for position, dying in enumerate(sample.dying_values):
        stepper.run(position)
        yield num_inputs + position
        for value in dying:
            stepper.free(value)


def observe(sample: Sample, seed: int = 0, **options: Any) -> dict[int, Observed]:
    """Run a sample once on the CPU and return what the tensors that its operators give are like.

    The keys are numbers of values. The elements are kept where statistics do not make up for them
    (small integers, indices, masks), by the rules of a capture. The options are those of
    `calibrate`.

    Raises:
        CalibrationError: an operator of the graph fails when it is run.
        UnknownOperatorError, UntrustedCodeError, MemoryLimitError, MaterializeError: as
            `materialize`.
        MissingExtraError: the sample's framework is not installed.

    >>> from graphnet_datasets.sample import Input, Op, Value
    >>> from graphnet_datasets.sample.arguments import Ref
    >>> sample = Sample("example/relu", "torch", "other",
    ...     (Input("input", Value("float32", (64, 64))),), (Op("torch.relu", (Ref(0),)),), Ref(1))
    >>> observe(sample)[1].statistics.min
    0.0
    """
    observing = module(sample.framework, "observing")
    with observing.stepping(sample, seed, **options) as stepper:
        return {
            value: observing.look_at(tensor)
            for value in steps(stepper)
            if (tensor := stepper.tensor(value)) is not None
        }


def find_not_finite(sample: Sample, seed: int = 0, **options: Any) -> list[int]:
    """Return the operators that give NaN or infinity in a run, by position.

    The options are those of `calibrate`, and `emulates`: whether what the CPU has no kernel for in
    a 16-bit format is computed in float32 and rounded.

    Raises:
        CalibrationError and others: as `observe`.
    """
    with module(sample.framework, "observing").stepping(sample, seed, **options) as stepper:
        return [
            value - len(sample.inputs) for value in steps(stepper) if not stepper.is_finite(value)
        ]
