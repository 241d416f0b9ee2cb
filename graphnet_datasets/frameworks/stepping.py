"""A graph run operator by operator, with a look at what each gives."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Protocol

from ..sample import Sample
from .contract import module
from .results import Observed


class Stepper(Protocol):
    """Runs the operators of a sample one at a time; values are numbered as in the sample."""

    sample: Sample

    def run(self, position: int) -> None:
        """Run operator `position` and keep its result.

        Raises:
            CalibrationError: it fails.
        """

    def tensor(self, value: int) -> Any:
        """Return a value, None where it is no tensor or has been freed."""

    def is_finite(self, value: int) -> bool:
        """Tell whether a value is no tensor of floating-point numbers or has finite ones only."""
        ...

    def free(self, value: int) -> None:
        """Forget a value."""


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
