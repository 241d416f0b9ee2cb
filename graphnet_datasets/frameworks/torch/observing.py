"""Statistics of a torch sample's values in a run on its inputs."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import torch

from ...sample import Sample
from ..results import Observed
from .statistics import elements_to_store, measure
from .stepping import Stepper, prepare


@contextlib.contextmanager
def stepping(
    sample: Sample, seed: int = 0, *, emulates: bool = False, **options: Any
) -> Iterator[Stepper]:
    """Yield a stepper that runs a sample's operators one at a time.

    `options` are those of `materialize`.

    Raises:
        UnknownOperatorError, MemoryLimitError, MaterializeError: As in `materialize`.
    """
    prepared = prepare(sample, **options)
    with torch.random.fork_rng(devices=[]), torch.no_grad():
        yield Stepper(*prepared, sample, seed, emulates)


def look_at(tensor: torch.Tensor) -> Observed:
    """Return statistics of a tensor, and its elements if the statistics cannot replace them."""
    return Observed(measure(tensor), elements_to_store(tensor, "input"))
