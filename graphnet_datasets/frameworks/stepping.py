"""Execution of a graph one operator at a time, with access to each result."""

from __future__ import annotations

import abc
import contextlib
from collections.abc import Callable, Iterator
from typing import Any

from ..errors import UnknownOperatorError
from ..inputs import Mode
from ..inputs.keeping import once_per_sample
from ..inputs.weights import find_weight_uses
from ..sample import Op, Sample
from .contract import module
from .results import Observed


class Stepper(abc.ABC):
    """Runs the operators of a sample one at a time; values are numbered as in the sample.

    An input is generated when an operator first reads it and freed after its last use, like all
    other values. A run therefore holds the weights of a few operators instead of all weights. A
    freed value that depends only on weights may be read again later; it is then regenerated or
    recomputed. If an operator writes to such a value, the value and all values that share a weight
    with it are never freed.
    """

    def __init__(self, sample: Sample, seed: int) -> None:
        self.sample = sample
        self.seed = seed
        self._drawn_as: dict[int, tuple[Sample, int, Mode]] = {}
        self._freed: set[int] = set()

    @abc.abstractmethod
    def run(self, position: int) -> None:
        """Run the operator at `position`, even if it has run before, and keep its result.

        Raises:
            CalibrationError: the operator fails.
        """

    @abc.abstractmethod
    def tensor(self, value: int) -> Any:
        """Return a value, or None if it is not a tensor or has been freed."""

    @abc.abstractmethod
    def is_finite(self, value: int) -> bool:
        """Return whether all elements of a value are finite; true for values that are not
        floating-point."""

    @abc.abstractmethod
    def holds(self, value: int) -> bool:
        """Return whether a value is available."""

    @abc.abstractmethod
    def draw(self, sample: Sample, index: int, seed: int, mode: Mode = "replay") -> None:
        """Generate input `index` from its statistics in `sample`, and keep it."""

    @abc.abstractmethod
    def discard(self, value: int) -> None:
        """Free a value, if it is available."""

    def make_input(
        self, sample: Sample, index: int, seed: int | None = None, mode: Mode = "replay"
    ) -> None:
        """Schedule input `index` to be drawn again, from its statistics in `sample`."""
        self._drawn_as[index] = sample, self.seed if seed is None else seed, mode
        self.discard(index)

    def free(self, value: int) -> None:
        """Free a value after its last use."""
        if value not in _find_written(self.sample):
            self._freed.add(value)
            self.discard(value)

    def make(self, value: int) -> None:
        """Generate or recompute a value that is not available."""
        if value < len(self.sample.inputs):
            default = self.sample, self.seed, "replay"
            sample, seed, mode = self._drawn_as.get(value, default)
            self.draw(sample, value, seed, mode)
        else:
            self.run(value - len(self.sample.inputs))

    @contextlib.contextmanager
    def with_operands(self, position: int) -> Iterator[None]:
        """Make all operands of the operator at `position` available within the block."""
        missing = [value for value in self.sample.op_refs[position] if not self.holds(value)]
        for value in missing:
            if not self.holds(value):
                self.make(value)
        yield
        for value in self._freed.intersection(missing):
            self.discard(value)


@once_per_sample
def _find_written(sample: Sample) -> frozenset[int]:
    """Return the values, computed from weights alone, that are written to or related to written
    values.

    Two values are related if they depend on the same weight.
    """
    mutates = module(sample.framework, "operators").mutates
    uses = find_weight_uses(sample)
    num_inputs = len(sample.inputs)
    written: set[int] = set()
    for op, refs in zip(sample.ops, sample.op_refs, strict=True):
        if _may_write(mutates, op):
            written.update(refs)
    related: set[int] = set()
    for weight in uses.weight_only.intersection(range(num_inputs)):
        dependents = {
            weight,
            *(num_inputs + position for position in uses.dependents.get(weight, ())),
        }
        if not written.isdisjoint(dependents):
            related |= dependents
    return frozenset(related)


def _may_write(mutates: Callable[[Op], bool], op: Op) -> bool:
    try:
        return mutates(op)
    except UnknownOperatorError:  # a custom operator
        return True


def steps(stepper: Stepper) -> Iterator[int]:
    """Run the whole graph, and yield the value of each operator before anything writes to it."""
    sample = stepper.sample
    num_inputs = len(sample.inputs)
    for position, dying in enumerate(sample.dying_values):
        stepper.run(position)
        yield num_inputs + position
        for value in dying:
            stepper.free(value)


def observe(sample: Sample, seed: int = 0, **options: Any) -> dict[int, Observed]:
    """Run a sample once on the CPU, and return statistics of the tensors that its operators return.

    The keys are value numbers. Elements are stored where statistics do not suffice (small integers,
    indices, masks), by the rules of a capture. The options are those of `calibrate`.

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
    """Return the positions of operators that return NaN or infinity in a run.

    The options are those of `calibrate` and `emulates`: whether operators without a 16-bit CPU
    kernel are computed in float32 and rounded.

    Raises:
        CalibrationError and others: as `observe`.
    """
    with module(sample.framework, "observing").stepping(sample, seed, **options) as stepper:
        return [
            value - len(sample.inputs) for value in steps(stepper) if not stepper.is_finite(value)
        ]
