"""Distinguish intentional non-finite outputs from failures.

A mask of infinities that a graph writes itself may reach its outputs. Any other NaN or infinity
means that the graph computes nothing useful on these inputs, so that any output of a compiler would
pass.
"""

from __future__ import annotations

import collections
import math
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from ..inputs.roles import stored_elements
from ..sample import Sample
from ..sample.arguments import DictArg, ListArg, Named, Ref

NAN, INFINITE = "NaN", "infinite"

_FLOATS = frozenset({"float16", "float32", "float64"})


def explain_not_finite(counted: Iterable[tuple[int, int]], sample: Sample) -> tuple[str, bool]:
    """Return a description of a sample's non-finite outputs and whether they are intentional.

    `counted` contains the number of NaN and of infinite elements of each output. If all outputs are
    finite, the description is "" and the second item is True.

    >>> from graphnet_datasets.sample import Op
    >>> fill = Op("torch.full", ((2,), float("-inf")))
    >>> mask = Sample("a", "torch", "other", (), (fill,), Ref(0))
    >>> explain_not_finite([(0, 3)], mask)
    ('The outputs hold 3 infinite elements; the graph itself writes infinities (a mask).', True)
    >>> explain_not_finite([(0, 3), (1, 0)], mask)
    ('The outputs hold 1 NaN, 3 infinite elements.', False)
    """
    counts: collections.Counter[str] = collections.Counter()
    for num_nan, num_infinite in counted:
        counts.update({NAN: num_nan, INFINITE: num_infinite})
    counts = +counts
    if not counts:
        return "", True
    listing = ", ".join(f"{count} {kind}" for kind, count in sorted(counts.items()))
    if counts.keys() <= written_by(sample):
        elements = "NaN" if NAN in counts else "infinities (a mask)"
        return f"The outputs hold {listing} elements; the graph itself writes {elements}.", True
    return f"The outputs hold {listing} elements.", False


def written_by(sample: Sample) -> set[str]:
    """Return which non-finite values the graph contains in literals or stored elements.

    >>> from graphnet_datasets.sample import Op
    >>> written_by(Sample("a", "torch", "other", (), (Op("torch.full", ((2,), math.nan)),), Ref(0)))
    {'NaN'}
    """
    kinds: set[str] = set()
    for op in sample.iterate_ops():
        for value in _literals((op.args, op.kwargs)):
            if isinstance(value, float) and not math.isfinite(value):
                kinds.add(NAN if math.isnan(value) else INFINITE)
    for item in sample.inputs:
        if item.data is None or item.value.dtype not in _FLOATS:
            continue
        elements = stored_elements(sample, item)
        if elements is not None and not np.isfinite(elements).all():
            if np.isnan(elements).any():
                kinds.add(NAN)
            if np.isinf(elements).any():
                kinds.add(INFINITE)
    return kinds


def _literals(arg: Any) -> Iterator[Any]:
    if isinstance(arg, tuple):
        for item in arg:
            yield from _literals(item)
    elif isinstance(arg, ListArg | DictArg):
        yield from _literals(arg.items)
    elif not isinstance(arg, Ref | Named):
        yield arg
