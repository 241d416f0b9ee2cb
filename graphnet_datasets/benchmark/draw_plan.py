"""Planning of the number of draws used to judge random outputs."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from ..analysis.randomness import random_inputs, random_outputs
from ..sample import Sample

BASE_DRAWS = 128
"""The number of draws of each arm, independent of the number of elements."""
MIN_DRAWS = 64
"""The number of draws of each arm below which no verdict is possible. Half as many pairs of
successive draws have a p-value of at least 2^-30, which is then multiplied by the number of
tests."""
FURTHER_DRAWS = 32
"""The number of additional draws of eager that are in neither sample."""
SCALAR_DRAWS = 4096
"""Additional draws for an output of one element; an output of n elements gets an n-th. A sum after
a dropout with a probability of 0.4 instead of 0.5 has 2/3 of the variance, which this number of
draws detects."""
OP_WORK = 1e5
"""The overhead of calling one operator, in floating-point operations."""
BYTE_WORK = 4.0
MOST_WORK = 1e12
"""The maximum work of all draws of one arm for the draws that every output gets."""
MOST_SMALL_WORK = 5e10
"""The maximum work of all draws of one arm for the additional draws of small outputs."""
MAX_ELEMENTS = 2**20
"""The maximum number of stored elements of one arm, over all draws and outputs."""
MAX_PER_DRAW = 2**13


@dataclasses.dataclass(frozen=True)
class DrawPlan:
    """The work of one call in floating-point operations, flags of the random outputs, and the names
    of inputs that the graph sets to random values.

    >>> DrawPlan(1e6, (True, False)).count([4096, 1])
    128
    >>> DrawPlan(1e6, (True,)).count([1]), DrawPlan(1e11, (True,)).count([1])
    (4224, 0)
    """

    work: float
    outputs: tuple[bool, ...]
    inputs: tuple[str, ...] = ()

    def with_written(self, names: Collection[str]) -> DrawPlan:
        """Return the plan for outputs that are followed by the inputs `names`, which eager changes.

        >>> plan = DrawPlan(1e6, (True,), inputs=("running_mean",))
        >>> plan.with_written(["running_mean", "num_batches_tracked"]).outputs
        (True, True, False)
        """
        written = tuple(name in self.inputs for name in names)
        return dataclasses.replace(self, outputs=self.outputs + written)

    def count(self, sizes: Sequence[int]) -> int:
        """Return the number of draws for outputs of `sizes` elements.

        The number is 0, or even and at least `MIN_DRAWS`. Outputs without a flag count as random.
        """
        listed = self.outputs if len(self.outputs) <= len(sizes) else ()
        flags = [*listed, *([True] * (len(sizes) - len(listed)))]
        least = min(
            (size for size, flag in zip(sizes, flags, strict=True) if flag and size), default=1
        )
        count = BASE_DRAWS + SCALAR_DRAWS // least
        count = int(min(count, max(BASE_DRAWS, MOST_SMALL_WORK / self.work)))
        count = int(min(count, MOST_WORK / self.work)) // 2 * 2
        return count if count >= MIN_DRAWS else 0


def plan_draws(row: Mapping[str, Any], sample: Sample) -> DrawPlan | None:
    """Return the draw plan of a sample with the columns of `row`, or None if nothing is random.

    >>> from graphnet_datasets.sample import Input, Op, Value
    >>> from graphnet_datasets.sample.arguments import Ref
    >>> noise = Op("torch.rand_like", (Ref(0),))
    >>> sample = Sample("example/noise", "torch", "other",
    ...     inputs=(Input("input", Value("float32", (2,))),), ops=(noise,), outputs=Ref(1))
    >>> plan_draws({"flops": 1000, "bytes_moved": None, "num_ops": 1}, sample)
    DrawPlan(work=101000.0, outputs=(True,), inputs=())
    """
    outputs, are_inputs_random = random_outputs(sample), random_inputs(sample)
    if not any(outputs) and not any(are_inputs_random):
        return None
    flops, num_bytes, num_ops = (row.get(name) for name in ("flops", "bytes_moved", "num_ops"))
    work = (flops or 0) + BYTE_WORK * (num_bytes or 0) + OP_WORK * max(num_ops or 0, 1)
    names = zip(sample.input_names, are_inputs_random, strict=True)
    return DrawPlan(float(work), outputs, tuple(name for name, is_random in names if is_random))


def elements_per_draw(count: int) -> int:
    """Return the number of stored elements per draw, over all outputs.

    >>> elements_per_draw(128), elements_per_draw(4224)
    (8192, 248)
    """
    return min(MAX_PER_DRAW, MAX_ELEMENTS // max(1, count))
