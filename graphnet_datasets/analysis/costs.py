"""The cost of running a graph, estimated without running it."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

from ..errors import GraphNetError, SampleError, raises_only
from ..frameworks import module
from ..sample import Sample


@dataclasses.dataclass(frozen=True)
class Costs:
    """The cost of one eager run of a graph at particular sizes.

    `flops` counts a multiplication and an addition as two operations, like
    `torch.utils.flop_counter`, and an elementwise operator as one operation per output element.
    `flops_coverage` is the share of operators that were counted; the others add nothing.
    `bytes_moved` is the memory traffic of eager kernels if each kernel reads and writes each
    operand once; views add nothing. `peak_memory_bytes` is the maximum size of inputs, weights and
    live values if each value is freed after its last use. It excludes the workspace of kernels.
    """

    flops: int
    flops_coverage: float
    bytes_moved: int
    peak_memory_bytes: int

    @property
    def arithmetic_intensity(self) -> float | None:
        """Operations per byte moved; None if no bytes are moved."""
        return self.flops / self.bytes_moved if self.bytes_moved else None


@raises_only(SampleError)
def measure_costs(sample: Sample, sizes: Mapping[str, int] | None = None) -> Costs | None:
    """Return the cost of a run for these sizes of the sample's symbols (default: its hints).

    Returns None if the cost is unknown: the framework is not installed, the graph cannot be walked
    without running it, or a tensor's size depends on data.

    >>> from graphnet_datasets.sample.arguments import Ref
    >>> from graphnet_datasets.sample import Input, Op, Value
    >>> tensor, weight = Value("float32", (8, 16)), Value("float32", (4, 16))
    >>> product = Sample("example/product", "torch", "other",
    ...     (Input("input", tensor), Input("parameter", weight)),
    ...     (Op("torch.nn.functional.linear", (Ref(0), Ref(1), None)),), Ref(2))
    >>> measure_costs(product)
    Costs(flops=1024, flops_coverage=1.0, bytes_moved=896, peak_memory_bytes=896)
    """
    try:
        walked = module(sample.framework, "costs").measure(sample, sizes)
    except GraphNetError:  # includes frameworks that are not installed or do not support counting
        return None
    if not getattr(walked, "is_sized", True):
        return None
    return Costs(
        walked.flops, walked.flops_coverage, walked.bytes_moved, walked.footprint.peak_bytes
    )
