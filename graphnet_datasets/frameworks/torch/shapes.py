"""Shapes, dtypes and memory of every value of a sample, without running it.

The graph is walked on fake tensors, which have a shape, a dtype and a storage size but no memory.
Data-dependent results (`item`, `nonzero`) are known only if the elements are known, which is the
case for zero-dimensional inputs. Otherwise they become symbolic integers or stay unknown.
"""

from __future__ import annotations

from collections.abc import Mapping

from ...collector import collecting_seldom
from ...errors import UncheckedOperatorError
from ...sample import Sample
from ...sample.per_sample import PerSample
from ..deadline import Deadline
from ..input_limits import memory_limit
from .building.regions import check_regions
from .walking.footprint import Footprint, Results
from .walking.observer import Observer
from .walking.walk import Walk

__all__ = ["Footprint", "Observer", "Results", "check_memory", "measure_footprint", "propagate"]


def propagate(sample: Sample, sizes: Mapping[str, int] | None = None) -> Results:
    """Return the results of each operator: one `Value` per tensor, or None if unknown.

    `sizes` maps the sample's symbols to integers (default: their captured sizes).

    >>> from graphnet_datasets.sample.arguments import Ref
    >>> from graphnet_datasets.sample import Input, Op, Sample, Value
    >>> tensor = Input("input", Value("float32", (2, 3)))
    >>> sample = Sample("example/sum", "torch", "other", (tensor,),
    ...     (Op("torch.Tensor.sum", (Ref(0), 1)),), Ref(1))
    >>> propagate(sample)
    ((Value(dtype='float32', shape=(2,), stride=None),),)
    """
    return measure_footprint(sample, sizes).results


def measure_footprint(
    sample: Sample,
    sizes: Mapping[str, int] | None = None,
    limit_bytes: int | None = None,
    observer: Observer | None = None,
    time_limit_s: float | None = None,
    *,
    allow_unchecked_operators: bool = False,
    is_quick: bool = False,
) -> Footprint:
    """Return the shapes and memory of a sample for the given symbol sizes.

    `observer` is notified before and after each operator. With `is_quick` and no observer, common
    operators use this library's rules (`walking.rules`), which are many times faster; strides of
    size-1 axes may then differ from torch's. Only harmless kernels on single elements run (see
    `confined_fakes`), whatever the sample contains. For unchecked operators, the recorded shapes
    are used unless `allow_unchecked_operators` is true.

    Raises:
        MemoryLimitError: If inputs and live values would exceed `limit_bytes`, or an operator would
            build a huge integer, list or string.
        TimeLimitError: If it takes longer than `time_limit_s` (default: `DEFAULT_TIME_LIMIT_S`).
        UnknownOperatorError: If an operator is not in the table.
        MaterializeError: If a region stays open, or torch has no equivalent of an argument.
    """
    check_regions(sample)
    sizes = sample.hints if sizes is None else sizes
    limits = (limit_bytes, observer, Deadline(time_limit_s), allow_unchecked_operators)
    with collecting_seldom():
        return Walk(sample, sizes, *limits, is_quick=is_quick).run()


def check_memory(
    sample: Sample,
    limit_bytes: int | None = None,
    time_limit_s: float | None = None,
    *,
    allow_unchecked_operators: bool = False,
) -> Footprint:
    """Return the footprint of a sample after checking it against a memory limit.

    The default limit is the memory of this machine. Footprints are cached per sample.

    Raises:
        MemoryLimitError: If it needs more memory; the message names the operator.
        TimeLimitError: If the check takes longer than `time_limit_s`.
        UncheckedOperatorError: If an operator uses a run-time number that its kernel does not
            check, and `allow_unchecked_operators` is false.
    """
    limit = memory_limit(limit_bytes)
    footprint = _WALKED.get(sample)
    if footprint is None or footprint.working_bytes > limit:
        footprint = measure_footprint(
            sample,
            None,
            limit,
            time_limit_s=time_limit_s,
            allow_unchecked_operators=allow_unchecked_operators,
            is_quick=True,
        )
        _WALKED.put(sample, footprint)
    if footprint.unchecked and not allow_unchecked_operators:
        raise UncheckedOperatorError(footprint.unchecked)
    return footprint


_WALKED = PerSample[Footprint]()
