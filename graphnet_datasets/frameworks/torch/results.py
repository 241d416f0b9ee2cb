"""Kinds of results of a sample's operators, found without running the sample."""

from __future__ import annotations

from typing import Any

import torch

from ...sample import Sample, Value
from ...sample.vocabulary import ITEM_SIZE_BYTES
from ..results import Result
from .building.entries import entries_of
from .shapes import Observer, measure_footprint, propagate


def find_results(sample: Sample) -> tuple[Result, ...]:
    """Return the result of each operator of a sample at the captured sizes.

    Raises:
        UnknownOperatorError, MaterializeError: As in `shapes.measure_footprint`.

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
        """Record the result of an operator."""
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
    """Return the positions of operators whose shapes or dtypes are known only at run time.

    Raises:
        UnknownOperatorError, MaterializeError: If the sample cannot be walked.
    """
    entries_of(sample)
    return tuple(
        position
        for position, results in enumerate(propagate(sample))
        if results is None
        or any(result.dtype is None or result.shape is None for result in results)
    )
