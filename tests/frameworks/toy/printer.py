"""Text of a sample."""

from __future__ import annotations

from graphnet_datasets.sample import Sample


def print_source(sample: Sample, names: str = "canonical") -> str:
    return "\n".join(f"{op.target}" for op in sample.ops)
