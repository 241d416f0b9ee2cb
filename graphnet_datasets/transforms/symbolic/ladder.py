"""One graph at several sizes."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator

from ...errors import GraphNetError, TransformError, raises_only
from ...sample import Sample
from .reify import reify
from .sizes import DEFAULT_MEMORY_BYTES, spread_sizes
from .symbolise import symbolise
from .verifying import run_concrete


@raises_only(TransformError)
def make_ladder(
    sample: Sample,
    count: int = 9,
    *,
    memory_limit_bytes: int = DEFAULT_MEMORY_BYTES,
    check: bool = True,
    allow_unchecked_operators: bool = False,
) -> Iterator[Sample | TransformError]:
    """Yield a graph at up to `count` sizes, from small to large, evenly spaced in log.

    A graph without symbols is symbolised first. With `check`, each result runs on the CPU in this
    process; a failure is yielded as an error. `spread_sizes` determines the sizes.

    Raises:
        TransformError: no dimension of the graph can vary.
        SampleError: even the smallest sizes need more than `memory_limit_bytes`.
        UnknownOperatorError, MaterializeError: the sample cannot be walked without running it.

    >>> from graphnet_datasets.sample import Input, Op, Value
    >>> from graphnet_datasets.sample.arguments import Ref
    >>> lines = Sample("example/lines", "torch", "other",
    ...     (Input("input", Value("float32", (8, 1))),), (Op("torch.relu", (Ref(0),)),), Ref(1))
    >>> [rung.inputs[0].value.shape[0] for rung in make_ladder(lines, 4)]
    [1, 8, 64, 512]
    """
    symbolic = sample
    if not sample.is_dynamic:
        symbolic = symbolise(
            sample, check=check, allow_unchecked_operators=allow_unchecked_operators
        ).sample
    for sizes in spread_sizes(symbolic, count, memory_limit_bytes=memory_limit_bytes):
        rung = reify(symbolic, sizes)
        rung = dataclasses.replace(
            rung, provenance=dataclasses.replace(rung.provenance, parent_id=sample.id)
        )
        try:
            if check:
                run_concrete(rung, allow_unchecked_operators=allow_unchecked_operators)
        except GraphNetError as error:
            yield TransformError(
                f"`{symbolic.id}` does not run at {sizes}: {error}",
                reason=f"it does not run at other sizes ({type(error).__name__})",
            )
        else:
            yield rung
