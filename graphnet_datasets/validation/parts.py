"""Whether the parts of a sample give what the whole gives, for any framework."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ..sample import Sample
from ..sample.arguments import Ref, iterate_refs
from ..transforms import decompose
from .reading import Failed, Skipped

NUM_PARTS = 4
"""Parts that a sample is cut into; fewer where there are fewer places to cut."""


SEED = 0
"""What inputs and random operators are drawn from in every check."""


@dataclasses.dataclass(frozen=True, slots=True)
class Runner:
    """How a framework runs samples, in the process of a check.

    `materialize` gives what takes the inputs in order, `make_inputs` gives these for a seed, `seed`
    sets the generator of random operators, `tensor` is the class of its tensors and
    `is_same_tensor` compares two of them bit by bit.
    """

    materialize: Callable[[Sample], Callable[[Sequence[Any]], Any]]
    make_inputs: Callable[[Sample, int], Mapping[str, Any]]
    seed: Callable[[int], object]
    tensor: type
    is_same_tensor: Callable[[Any, Any], bool]

    def run(self, sample: Sample) -> Any:
        """Return what a sample gives for its own inputs."""
        run = self.materialize(sample)  # first, since it refuses what needs too much memory
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
    """Check that disjoint parts, run one after the other, give what the whole gives.

    Raises:
        Skipped: there is nothing to cut.
        Failed: there is no place to cut, or an output has other bits.
    """
    if sample.num_ops < 2:
        raise Skipped(f"There is nothing to cut: the sample has {sample.num_ops} operators.")
    parts = decompose(sample, NUM_PARTS).parts
    if len(parts) < 2:
        raise Failed(
            "There is no place to cut: everywhere a tuple or a tensor of unknown size crosses, or "
            "a region (autocast, vmap) is open."
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
            raise Failed(f"Cut into {len(parts)} parts it gives other bits in output {place}.")
    return f"Cut into {len(parts)} parts."
