"""Refusal of samples with bodies by transforms that rewrite operators."""

from __future__ import annotations

from ..errors import TransformError
from ..sample import Sample


def check_no_bodies(sample: Sample) -> None:
    """Check that no operator of a sample has bodies, such as a branch or a loop.

    Raises:
        TransformError: an operator has bodies.

    >>> check_no_bodies(Sample("example/empty", "torch", "other", (), (), ()))
    """
    if sample.bodies:
        position = min(sample.bodies)
        target = sample.ops[position].target
        raise TransformError(
            f"Op {position} (`{target}`) of `{sample.id}` has bodies, which this transform does "
            "not rewrite. Leave the sample out.",
            operator=target,
            reason="an operator has bodies, which the transform does not rewrite",
        )
