"""KernelBench problems: the source of a model with its own weights and example inputs."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..frameworks import print_source
from ..inputs.arrays import make_array
from ..sample import Sample
from ..sample.vocabulary import WEIGHT_ROLES
from ..scores.formats import decode

_FLOATS = ("float16", "bfloat16", "float32", "float64")
_MODEL = """

class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.graph = GraphModule()
{weights}
    def forward(self, {data}):
        return self.graph({arguments})


def get_inputs():
    return [
{inputs}    ]


def get_init_inputs():
    return []
"""


def print_problem(sample: Sample) -> str:
    """Return the source of a KernelBench problem for a graph of torch.

    `Model` has the weights of the sample as parameters and buffers, by their canonical names.
    `forward` takes the remaining inputs in order. Elements are drawn with the mean and standard
    deviation of the sample's elements, and integers from their range; for exact elements, copy them
    from `make_inputs`.
    """
    weight_roles = {
        name: item.role
        for name, item in zip(sample.input_names, sample.inputs, strict=True)
        if item.role in WEIGHT_ROLES
    }
    drawn = {name: _draw(sample, place) for place, name in enumerate(sample.input_names)}
    weights = "".join(
        f"        self.{name} = torch.nn.Parameter({drawn[name]}, requires_grad=False)\n"
        if role == "parameter"
        else f'        self.register_buffer("{name}", {drawn[name]})\n'
        for name, role in weight_roles.items()
    )
    data = [name for name in sample.input_names if name not in weight_roles]
    return (
        print_source(sample).strip()
        + "\n"
        + _MODEL.format(
            weights=weights,
            data=", ".join(data) or "*_",
            arguments=", ".join(
                f"self.{name}" if name in weight_roles else name for name in sample.input_names
            ),
            inputs="".join(f"        {drawn[name]},\n" for name in data),
        )
    )


def _draw(sample: Sample, place: int) -> str:
    """Return an expression that draws a tensor like an input, or a number."""
    item = sample.inputs[place]
    array = make_array(sample, place, 0)
    if item.role in ("symbol", "scalar"):
        return repr(array.item())
    dtype = item.value.dtype or "float32"
    shape = array.shape
    numbers = decode(array, dtype)
    if dtype == "bool":
        share = float(numbers.mean()) if numbers.size else 0.5
        return f"torch.rand({shape}) < {share:.6g}"
    if dtype in _FLOATS:
        mean, deviation = _moments(numbers)
        return f"(torch.randn({shape}) * {deviation:.6g} + {mean:.6g}).to(torch.{dtype})"
    if "complex" in dtype:
        return f"torch.randn({shape}, dtype=torch.complex64).to(torch.{dtype})"
    if not np.issubdtype(numbers.dtype, np.integer):
        return f"torch.zeros({shape}).to(torch.{dtype})"
    low, high = (int(numbers.min()), int(numbers.max())) if numbers.size else (0, 0)
    return f"torch.randint({low}, {high + 1}, {shape}).to(torch.{dtype})"


def _moments(numbers: Any) -> tuple[float, float]:
    wide = numbers.astype(np.float64)
    finite = wide[np.isfinite(wide)]
    if not finite.size:
        return 0.0, 1.0
    mean, deviation = float(finite.mean()), float(finite.std())
    if float(finite.min()) >= 0 and mean > 0:
        # Variances and other positive elements must not become negative.
        deviation = min(deviation, mean / 6)
    return mean, deviation
