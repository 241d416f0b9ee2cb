"""Shapes, dtypes and memory of every value of a sample, without running it.

The graph is walked on fake tensors, which have a shape, a dtype and a storage size but no memory.
What depends on elements (`item`, `nonzero`) is known where the elements are: 0-d inputs are real.
Everything else of that kind becomes a symbolic integer or stays unknown.
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
    """Return what each operator gives: one `Value` per tensor, or None where it is unknown.

    `sizes` maps the sample's symbols to integers (default: those it was captured with).

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
    """Return shapes and memory of a sample for the given sizes of its symbols.

    `observer` sees each operator before and after its call. With `is_quick`, and no observer,
    common operators are answered by rules of this library (`walking.rules`), many times faster;
    the strides of axes of one element may then differ from torch's. No kernel runs but harmless
    ones, on single elements (see `confined_fakes`), whatever the sample stores. Of unchecked
    operators not even the shapes are asked for, unless they are allowed: what the sample records
    stands in.

    Raises:
        MemoryLimitError: inputs and live values would take more than `limit_bytes`, or an operator
            would build a huge integer, list or text.
        TimeLimitError: it takes longer than `time_limit_s` (default: `DEFAULT_TIME_LIMIT_S`).
        UnknownOperatorError: an operator is not in the table.
        MaterializeError: a region stays open, or an argument has no meaning in torch.
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
    """Return the footprint of a sample, after comparing it with a limit.

    The limit is that of this machine's memory unless given. A sample that was walked before is not
    walked again.

    Raises:
        MemoryLimitError: it needs more; the message names the operator.
        TimeLimitError: finding out takes longer than `time_limit_s`.
        UncheckedOperatorError: an operator takes a number that only a run tells and that its kernel
            trusts, and `allow_unchecked_operators` is false.
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
