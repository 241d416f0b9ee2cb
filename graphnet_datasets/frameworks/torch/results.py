"""What kind of thing each operator of a sample gives, found without running it."""

from __future__ import annotations

from typing import Any

import torch

from ...sample import Sample, Value
from ...sample.vocabulary import ITEM_SIZE_BYTES
from ..results import Result
from .building.entries import entries_of
from .shapes import Observer, measure_footprint, propagate


def find_results(sample: Sample) -> tuple[Result, ...]:
    """Return what each operator of a sample gives at the sizes of the capture.

    Raises:
        UnknownOperatorError, MaterializeError: as `shapes.measure_footprint`.

    >>> from graphnet_datasets.sample.arguments import Ref
    >>> from graphnet_datasets.sample import Input, Op
    >>> tensor = Input("input", Value("float32", (2, 3)))
    >>> [each.kind for each in find_results(Sample("example/size", "torch", "other", (tensor,),
    ...     (Op("torch.Tensor.size", (Ref(0), 0)), Op("torch.relu", (Ref(0),))), ()))]
    ['number', 'tensor']
    """
    recorder = _Recorder()
    measure_footprint(sample, observer=recorder)
    return tuple(recorder.results)


class _Recorder(Observer):
    def __init__(self) -> None:
        self.results: list[Result] = []

    def end(self, result: Any) -> None:
        """Note what an operator gave."""
        self.results.append(_describe(result))


def _describe(result: Any) -> Result:
    if type(result) in (bool, int, float):
        return Result("number", number=result)
    if not isinstance(result, torch.Tensor) or result.layout is not torch.strided:
        return Result("other")
    dtype = str(result.dtype).removeprefix("torch.")
    if dtype not in ITEM_SIZE_BYTES or any(type(size) is not int for size in result.shape):
        return Result("other")
    stride = None if result.is_contiguous() else tuple(result.stride())
    return Result("tensor", Value(dtype, tuple(result.shape), stride))


def find_unknown(sample: Sample) -> tuple[int, ...]:
    """Return the positions of the operators whose shapes or dtypes only a run would tell.

    Raises:
        UnknownOperatorError, MaterializeError: the sample cannot be walked.
    """
    entries_of(sample)
    return tuple(
        position
        for position, results in enumerate(propagate(sample))
        if results is None or any(each.dtype is None or each.shape is None for each in results)
    )
