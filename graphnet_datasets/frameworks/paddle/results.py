"""Kinds of the results of a sample's operators, inferred without running the sample."""

from __future__ import annotations

import dataclasses
from typing import Any

from ...sample import Op, Sample, Value
from ...sample.arguments import iterate_refs
from ..results import Result
from .operators import GETITEM
from .shapes import Limits, Unknown, describe, is_tensor, walk


def find_results(sample: Sample) -> tuple[Result, ...]:
    """Return the result kind of each operator of a sample at the sizes of the capture.

    If Paddle cannot infer a tensor's size, the size recorded in the sample is used.

    Raises:
        UnknownOperatorError, MaterializeError: as `Plan`.

    >>> from graphnet_datasets.sample.arguments import Ref
    >>> from graphnet_datasets.sample import Input, Op, Value
    >>> tensor = Input("input", Value("float32", (2, 3)))
    >>> [each.kind for each in find_results(Sample("example/split", "paddle", "other", (tensor,),
    ...     (Op("paddle._C_ops.split_with_num", (Ref(0), 3, 1)),
    ...      Op("operator.getitem", (Ref(1), 0))), ()))]
    ['other', 'tensor']
    """
    results = [Result("other")] * sample.num_ops

    def note(position: int, result: Any) -> None:
        results[position] = _result(sample, sample.ops[position], result)

    walk(sample, note)
    return tuple(results)


def find_unknown(sample: Sample, *, allow_unchecked_operators: bool = False) -> tuple[int, ...]:
    """Return the positions of operators that return a tensor of unknown shape or dtype.

    A tensor is known if Paddle infers it at the sizes of the capture or the sample records it. For
    an operator with several results only the used results count: `batch_norm` has a result that
    does not exist during shape inference.

    Raises:
        UnknownOperatorError, MaterializeError: as `Plan`.

    >>> from graphnet_datasets.sample.arguments import Ref
    >>> from graphnet_datasets.sample import Input, Op, Value
    >>> tensor = Input("input", Value("float32", (2, 3)))
    >>> find_unknown(Sample("example/nonzero", "paddle", "other", (tensor,),
    ...     (Op("paddle._C_ops.abs", (Ref(0),)), Op("paddle._C_ops.nonzero", (Ref(1),))), Ref(2)))
    (1,)
    """
    unknown = []
    whole = _used_whole(sample)

    def note(position: int, result: Any) -> None:
        recorded = sample.ops[position].results or ()
        if isinstance(result, list | tuple):
            # Items that `operator.getitem` selects are checked at that operator.
            is_known = position not in whole or all(
                _is_known(item, recorded[index : index + 1]) for index, item in enumerate(result)
            )
        else:
            is_known = _is_known(result, recorded)
        if not is_known:
            unknown.append(position)

    walk(sample, note, None, Limits(allow_unchecked_operators=allow_unchecked_operators))
    return tuple(unknown)


def _used_whole(sample: Sample) -> set[int]:
    """Return the operators whose result is used other than by selecting items."""
    refs = {
        ref
        for op in sample.ops
        if not _takes_item(op)
        for ref in iterate_refs((op.args, op.kwargs))
    }
    refs.update(iterate_refs(sample.outputs))
    return {ref - len(sample.inputs) for ref in refs}


def _takes_item(op: Op) -> bool:
    return op.target == GETITEM and len(op.args) == 2 and type(op.args[1]) is int


def _is_known(result: Any, recorded: tuple[Value, ...]) -> bool:
    if isinstance(result, list | tuple):
        return all(_is_known(item, ()) for item in result)
    if is_tensor(result):
        values = (describe(result), *recorded)
    elif isinstance(result, Unknown):
        values = recorded
    else:
        return True  # a number, a dtype or None
    return any(value.dtype is not None and value.shape is not None for value in values)


def _result(sample: Sample, op: Op, result: Any) -> Result:
    if type(result) in (bool, int, float):
        return Result("number", number=result)
    if isinstance(result, list | tuple):
        return Result("other")
    value = describe(result)
    if value.dtype is not None and value.shape is None and op.results and len(op.results) == 1:
        value = dataclasses.replace(value, shape=sample.shape_of(op.results[0]))
    if value.dtype is None or value.shape is None:
        return Result("other")
    return Result("tensor", value)
