"""A framework-independent check that the parts of a sample reproduce the outputs of the whole."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ..sample import Sample
from ..sample.arguments import Ref, iterate_refs
from ..transforms import decompose
from .reading import Failed, Skipped

NUM_PARTS = 4
"""Number of parts of a sample; fewer if it can be cut in fewer places."""


SEED = 0
"""The seed for inputs and random operators in every check."""


@dataclasses.dataclass(frozen=True, slots=True)
class Runner:
    """A framework's functions for running samples in a check process.

    `materialize` returns a callable that takes the inputs in order, `make_inputs` draws these
    inputs with a seed, and `seed` sets the generator of random operators. `tensor` is the
    framework's tensor class, and `is_same_tensor` compares two tensors bit by bit.
    """

    materialize: Callable[[Sample], Callable[[Sequence[Any]], Any]]
    make_inputs: Callable[[Sample, int], Mapping[str, Any]]
    seed: Callable[[int], object]
    tensor: type
    is_same_tensor: Callable[[Any, Any], bool]

    def run(self, sample: Sample) -> Any:
        """Run a sample on its own inputs and return the outputs."""
        run = self.materialize(sample)  # first: rejects samples that need too much memory
        inputs = self.make_inputs(sample, SEED)
        self.seed(SEED)
        return run(list(inputs.values()))

    def is_same(self, left: Any, right: Any) -> bool:
        """Compare outputs bit by bit, so that NaN equals itself."""
        if isinstance(left, self.tensor) and isinstance(right, self.tensor):
            return self.is_same_tensor(left, right)
        if isinstance(left, dict) and isinstance(right, dict):
            return list(left) == list(right) and all(
                self.is_same(left[key], right[key]) for key in left
            )
        if isinstance(left, tuple | list) and type(left) is type(right):
            return len(left) == len(right) and all(map(self.is_same, left, right))
        return type(left) is type(right) and repr(left) == repr(right)


def check_parts(sample: Sample, runner: Runner) -> str:
    """Check that disjoint parts, run in sequence, reproduce the outputs of the whole.

    Raises:
        Skipped: The sample has too few operators to cut.
        Failed: The sample cannot be cut, or an output differs in its bits.
    """
    if sample.num_ops < 2:
        raise Skipped(f"The sample is too small to cut: it has {sample.num_ops} operators.")
    parts = decompose(sample, NUM_PARTS).parts
    if len(parts) < 2:
        raise Failed(
            "The sample cannot be cut: at every operator, a tuple or a tensor of unknown size "
            "crosses, or a region (autocast, vmap) is open."
        )
    returned = tuple(dict.fromkeys(iterate_refs(sample.outputs)))
    expected = runner.run(dataclasses.replace(sample, outputs=tuple(map(Ref, returned))))
    values = dict(enumerate(runner.make_inputs(sample, SEED).values()))
    runner.seed(SEED)
    for part in parts:
        results = runner.materialize(part.sample)([values[value] for value in part.takes])
        values.update(zip(part.gives, results, strict=True))
    for place, (value, whole) in enumerate(zip(returned, expected, strict=True)):
        if not runner.is_same(values[value], whole):
            raise Failed(
                f"If the sample is cut into {len(parts)} parts, output {place} is no longer "
                "bit-equal."
            )
    return f"Cut into {len(parts)} parts."
