"""What the values of a sample of torch are like in one run on its inputs."""

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
    """Yield what runs the operators of a sample one at a time; `options` are of `materialize`.

    Raises:
        UnknownOperatorError, MemoryLimitError, MaterializeError: as `materialize`.
    """
    prepared = prepare(sample, **options)
    with torch.random.fork_rng(devices=[]), torch.no_grad():
        yield Stepper(*prepared, sample, seed, emulates)


def look_at(tensor: torch.Tensor) -> Observed:
    """Return statistics of a tensor, and its elements where these decide what the graph does."""
    return Observed(measure(tensor), elements_to_store(tensor, "input"))
