"""A sample as a callable that walks its operators."""

from __future__ import annotations

from typing import Any

from graphnet_datasets.sample import Sample
from graphnet_datasets.sample.arguments import Ref
from graphnet_datasets.sample.vocabulary import WEIGHT_ROLES

from .operators import TABLE, lookup
from .tensors import make_inputs


class ToyGraph:
    def __init__(self, sample: Sample, weights: dict[str, Any]) -> None:
        self.sample, self.weights = sample, weights
        for op in sample.ops:
            lookup(op.target)

    def __call__(self, **inputs: Any) -> Any:
        given = {**self.weights, **inputs}
        values = [given[name] for name in self.sample.input_names]
        for op in self.sample.ops:
            arguments = [values[each.index] if isinstance(each, Ref) else each for each in op.args]
            values.append(TABLE[op.target](*arguments))
        outputs = self.sample.outputs
        assert isinstance(outputs, Ref)
        return values[outputs.index]


def materialize(
    sample: Sample, *, weights: str = "inputs", seed: int = 0, mode: Any = "replay", **options: Any
) -> ToyGraph:
    held = {}
    if weights == "parameters":
        is_held = [each.role in WEIGHT_ROLES for each in sample.inputs]
        names = [name for name, held in zip(sample.input_names, is_held, strict=True) if held]
        held = {name: make_inputs(sample, seed, mode)[name] for name in names}
    return ToyGraph(sample, held)
