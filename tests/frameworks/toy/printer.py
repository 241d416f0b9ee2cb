"""Text of a sample."""

from __future__ import annotations

from graphnet_datasets.frameworks.text_form import TextForm
from graphnet_datasets.sample import Sample

FORM = TextForm()


def print_source(sample: Sample, names: str = "canonical") -> str:
    return "\n".join(f"{op.target}" for op in sample.ops)


print_model = print_source


def argument_names(sample: Sample, names: str) -> tuple[str, ...]:
    return sample.input_names
