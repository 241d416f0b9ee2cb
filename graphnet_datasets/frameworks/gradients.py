"""The graphs of a sample's gradients, as any framework makes them."""

from __future__ import annotations

import dataclasses
from typing import Any, Literal, TypeAlias, get_args

from ..sample import Sample
from .choices import check_choice
from .contract import module

Of: TypeAlias = Literal["auto", "parameters", "all"]
"""What gradients are computed of: the weights, the data inputs as well, or whatever fits."""
Partition: TypeAlias = Literal["default", "min_cut"]
"""How a joint graph is cut in two: as autograd saves tensors, or with little to save."""


@dataclasses.dataclass(frozen=True)
class Gradients:
    """A graph with its gradients: all at once, and cut into a forward and a backward graph.

    `largest_t` is the tolerance at which the worst gradient equals that of the framework's own
    autograd, None where that was not tried; -inf where all are equal bit for bit.
    """

    joint: Sample
    forward: Sample
    backward: Sample
    largest_t: float | None = None


def differentiate(
    sample: Sample,
    *,
    of: Of = "auto",
    partition: Partition = "default",
    seed: int = 0,
    check: bool = True,
    allow_unchecked_operators: bool = False,
) -> Gradients:
    """Return the graphs of a sample's gradients; see `transforms.differentiate`.

    Raises:
        GradientError: there are none, or they are not what autograd computes.
        UnknownOperatorError, UncheckedOperatorError, MemoryLimitError, MaterializeError: as
            `materialize`.
        MissingExtraError: the sample's framework is not installed.
    """
    check_choice("of", of, get_args(Of))
    check_choice("partition", partition, get_args(Partition))
    gradients: Any = module(sample.framework, "gradients", "Computing gradients")
    return gradients.differentiate(
        sample,
        of=of,
        partition=partition,
        seed=seed,
        check=check,
        allow_unchecked_operators=allow_unchecked_operators,
    )
