"""Statistics of the values of a Paddle sample in one run on its inputs."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import paddle

from ...sample import Sample
from ..results import Observed
from .materialize import materialize
from .statistics import elements_to_store, measure
from .stepping import Stepper


@contextlib.contextmanager
def stepping(
    sample: Sample, seed: int = 0, *, emulates: bool = False, **options: Any
) -> Iterator[Stepper]:
    """Yield a stepper that runs the operators of a sample one at a time.

    `options` are passed to `materialize`.

    Raises:
        UnknownOperatorError, MemoryLimitError, MaterializeError: as `materialize`.
    """
    layer = materialize(sample, **options)
    with paddle.no_grad():
        yield Stepper(layer.plan, sample, seed, emulates)


def look_at(tensor: paddle.Tensor) -> Observed:
    """Return statistics of a tensor, and its elements if the results depend on their values."""
    return Observed(measure(tensor), elements_to_store(tensor, "input"))
