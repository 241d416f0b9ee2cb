"""Derived columns of a row, computed from the sample."""

from __future__ import annotations

from typing import Any

from ..errors import SampleError, raises_only
from ..sample import Sample
from .costs import measure_costs
from .hashes import all_hashes
from .subtasks import subtask
from .tags import op_histogram, op_tags


@raises_only(SampleError)
def derived_columns(sample: Sample) -> dict[str, Any]:
    """Return the derived columns of a sample's row that do not require running it.

    Unknown values are None (see `measure_costs`).

    >>> from graphnet_datasets.sample import Input, Value
    >>> sample = Sample("example/identity", "torch", "other",
    ...     inputs=(Input("input", Value("float32", (2,))),), ops=(), outputs=None)
    >>> columns = derived_columns(sample)
    >>> columns["flops"], columns["peak_memory_bytes"], columns["op_tags"]
    (0, 8, [])
    """
    return {"subtask": subtask(sample), **hash_columns(sample), **cost_columns(sample)}


@raises_only(SampleError)
def hash_columns(sample: Sample) -> dict[str, str]:
    """Return the hash columns, which identify equal samples; needs no framework."""
    return all_hashes(sample)


@raises_only(SampleError)
def cost_columns(sample: Sample) -> dict[str, Any]:
    """Return the columns about the sample's operators and the cost of a run."""
    costs = measure_costs(sample)
    return {
        "flops": None if costs is None else costs.flops,
        "flops_coverage": None if costs is None else costs.flops_coverage,
        "bytes_moved": None if costs is None else costs.bytes_moved,
        "arithmetic_intensity": None if costs is None else costs.arithmetic_intensity,
        "peak_memory_bytes": None if costs is None else costs.peak_memory_bytes,
        "op_tags": op_tags(sample),
        "op_histogram": op_histogram(sample),
    }
