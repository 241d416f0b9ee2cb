"""A graph at smaller sizes, with a given share of its operations."""

from __future__ import annotations

import math

from ...errors import TransformError, raises_only
from ...sample import Sample
from .dimensions import DimensionKind, kind_of_symbol
from .reify import reify
from .sizes import nearest_size
from .symbolise import symbolise

_LEAST: tuple[tuple[DimensionKind, float, int], ...] = (
    ("batch", 0.0, 1),
    ("sequence", 1 / 16, 16),
    ("spatial", 1 / 4, 32),
)
"""Kinds of dimensions in the order in which they shrink, and the smallest share and size of each.
A smaller batch leaves the computation per sample unchanged. Fewer tokens change attention, and maps
of few pixels have no meaningful statistics, so these shrink later."""

_NEAR = 0.5
"""If its own symbols bring a graph this near to the share, no further symbols are added."""


@raises_only(TransformError)
def at_smaller_sizes(
    sample: Sample,
    share: float,
    *,
    time_limit_s: float | None = None,
    allow_unchecked_operators: bool = False,
) -> Sample:
    """Return a graph at sizes with about `share` of its operations, or more.

    The batch shrinks first, then sequences, then heights and widths, limited by `_LEAST`. The
    number of operations is assumed to be linear in each size, although attention grows faster. If a
    graph has too few symbols, it is symbolised first (by `symbolise`, without running it, within
    `time_limit_s`). Inputs keep their order, and weights their shapes.

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
    sizes, left = _choose(sample, share) if sample.is_dynamic else (sample.hints, 0.0)
    if left < _NEAR:
        try:
            symbolised = symbolise(
                sample,
                check=False,
                time_limit_s=time_limit_s,
                allow_unchecked_operators=allow_unchecked_operators,
            ).sample
        except TransformError:
            if sizes == sample.hints:
                raise
        else:
            sample = symbolised
            sizes, _ = _choose(sample, share)
    if sizes == sample.hints:
        raise TransformError(f"`{sample.id}` has no sizes smaller than those of its capture.")
    return reify(sample, sizes)


def _choose(sample: Sample, share: float) -> tuple[dict[str, int], float]:
    """Return sizes of all symbols, and the share that remains to be saved."""
    sizes: dict[str, int] = dict(sample.hints)
    for kind, least_share, least in _LEAST:
        hints = {n: sample.hints[n] for n in sizes if kind_of_symbol(sample, n) == kind}
        if kind == "spatial":
            groups = [[name] for name in hints]
        else:  # equal sizes are mostly the same dimension
            largest_first = sorted(set(hints.values()), reverse=True)
            groups = [[n for n in hints if hints[n] == hint] for hint in largest_first]
        for done, names in enumerate(groups):
            hint = hints[names[0]]
            part = share ** (1 / (len(groups) - done)) if kind == "spatial" else share
            wanted = max(least, math.floor(hint * max(part, least_share)))
            size = nearest_size(sample, sizes, names, min(hint, wanted))
            if size is not None and size < hint:
                sizes |= dict.fromkeys(names, size)
                share = min(1.0, share * hint / size)
    return sizes, share
