"""A graph at sizes so small that it takes no more than a share of its operations."""

from __future__ import annotations

import math

from ...errors import TransformError
from ...sample import Sample
from .dimensions import DimensionKind, kind_of_symbol
from .reify import reify
from .sizes import nearest_size
from .symbolise import symbolise

_LEAST: tuple[tuple[tuple[DimensionKind, ...], float, int], ...] = (
    (("batch",), 0.0, 1),
    (("sequence",), 1 / 16, 16),
    (("spatial",), 1 / 4, 32),
)
"""Kinds of dimensions in the order in which they get smaller, and what stays of each at least, as a
share and as a number. What a layer sees of a batch is as it was; tokens attend to fewer others, and
maps of few pixels have no statistics."""


def at_smaller_sizes(
    sample: Sample,
    share: float,
    *,
    time_limit_s: float | None = None,
    allow_unchecked_operators: bool = False,
) -> Sample:
    """Return a graph at sizes at which it takes about `share` of its operations, or more.

    First the batch gets smaller, then sequences, then heights and widths, each no further than
    `_LEAST` says. The operations are taken to grow with each size as it does, where attention grows
    faster. A graph of fixed sizes is given symbols first (`symbolise`, without running it, for
    which `time_limit_s` holds). Inputs keep their order, and weights their shapes.

    Raises:
        TransformError: no size can vary, or none can be smaller.
        TimeLimitError, UnknownOperatorError, MaterializeError: as `symbolise`.
        MissingExtraError: the sample's framework is not installed.

    >>> from graphnet_datasets.sample import Input, Op, Value
    >>> from graphnet_datasets.sample.arguments import Ref
    >>> whole = Sample("example/flat", "torch", "other",
    ...     (Input("input", Value("float32", (16, 64, 3))),),
    ...     (Op("torch.Tensor.view", (Ref(0), 16, 192)),), Ref(1))
    >>> small = at_smaller_sizes(whole, 1 / 32)
    >>> small.inputs[0].value.shape, small.ops[0].args[1:]
    ((1, 32, 3), (1, 96))
    """
    if not sample.is_dynamic:
        sample = symbolise(
            sample,
            check=False,
            time_limit_s=time_limit_s,
            allow_unchecked_operators=allow_unchecked_operators,
        ).sample
    sizes = dict(sample.hints)
    for kinds, least_share, least in _LEAST:
        names = [name for name in sizes if kind_of_symbol(sample, name) in kinds]
        for done, name in enumerate(names):
            hint = sample.hints[name]
            # What is left to do is shared by the symbols of a kind.
            wanted = max(hint * share ** (1 / (len(names) - done)), hint * least_share)
            wanted = min(hint, max(least, math.floor(wanted)))
            size = nearest_size(sample, sizes, name, wanted)
            if size is not None and size < hint:
                sizes[name] = size
                share = min(1.0, share * hint / size)
    if sizes == sample.hints:
        raise TransformError(f"`{sample.id}` has no sizes smaller than those of its capture.")
    return reify(sample, sizes)
