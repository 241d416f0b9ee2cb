"""What the values of a sample of torch are like in one run on its inputs."""

from __future__ import annotations

from typing import Any

import torch

from ...sample import Sample
from ..results import Observed
from ..stepping import observe_by
from .materialize import materialize
from .statistics import elements_to_store, measure
from .stepping import Stepper


def observe(sample: Sample, seed: int = 0, **options: Any) -> dict[int, Observed]:
    """Return what a run shows of the tensors that operators give; see `frameworks.observe`.

    Raises:
        CalibrationError: an operator of the graph fails.
        UnknownOperatorError, MemoryLimitError, MaterializeError: as `materialize`.
    """
    module = materialize(sample, **options)
    with torch.random.fork_rng(devices=[]), torch.no_grad():
        return observe_by(Stepper(module, sample, seed), _look_at)


def _look_at(tensor: torch.Tensor) -> Observed:
    return Observed(measure(tensor), elements_to_store(tensor, "input"))
