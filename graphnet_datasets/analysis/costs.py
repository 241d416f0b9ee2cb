"""What running a graph costs, counted without running it."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

from ..errors import GraphNetError, SampleError, raises_only
from ..frameworks import module
from ..sample import Sample


@dataclasses.dataclass(frozen=True)
class Costs:
    """The cost of one eager run of a graph at given sizes.

    `flops` counts a multiplication and an addition as two (as `torch.utils.flop_counter` does) and
    an elementwise operator as one per output element; `flops_coverage` is the share of the graph's
    operators that were counted, and the rest count as nothing. `bytes_moved` is what the kernels of
    eager read and write if each operand of each comes from memory once; views move nothing.
    `peak_memory_bytes` is the most that inputs, weights and live values take at one time when a
    value dies at its last use; the working memory inside a kernel is not in it.
    """

    flops: int
    flops_coverage: float
    bytes_moved: int
    peak_memory_bytes: int

    @property
    def arithmetic_intensity(self) -> float | None:
        """Operations per byte moved; None where nothing moves."""
        return self.flops / self.bytes_moved if self.bytes_moved else None


@raises_only(SampleError)
def measure_costs(sample: Sample, sizes: Mapping[str, int] | None = None) -> Costs | None:
    """Return what a run costs for the given sizes of the sample's symbols (default: its hints).

    None where it cannot be told: where the sample's framework is not installed, for graphs that
    cannot be walked without running them, and where elements decide the size of a tensor.

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
    except GraphNetError:  # also where the framework is not installed, or counts nothing
        return None
    if not getattr(walked, "is_sized", True):
        return None
    return Costs(
        walked.flops, walked.flops_coverage, walked.bytes_moved, walked.footprint.peak_bytes
    )
