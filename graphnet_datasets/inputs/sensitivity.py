"""Figures of a graph's inputs: the sensitivity of its outputs to the data, and the entropy of its
attention.

If neither the outputs nor the attention depend on the data, the results of a wrong compiler may
equal those of a right one.
"""

from __future__ import annotations

import dataclasses
import statistics
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from ..sample import Sample
from ..sample.arguments import iterate_refs
from .attention import (
    LEAST_ENTROPY,
    MOST_ENTROPY,
    Array,
    find_attention,
    relative_entropy,
    scores_of,
)

if TYPE_CHECKING:
    from .calibration import Backend

LEAST_SENSITIVITY = 0.3
"""Smallest accepted sensitivity of the outputs."""

_MEASURED_SEEDS = (11, 12)
"""Seeds of the data on which figures are measured; calibration uses others."""

REACHED = "reached"


@dataclasses.dataclass(frozen=True, slots=True)
class SignalFigures:
    """The figures of a graph's inputs; None if a figure cannot be measured.

    `outcome` is `reached`, or the reasons why the inputs do not separate right from wrong results,
    joined by commas: `no data inputs`, `integer outputs`, `insensitive outputs`, `uniform
    attention`, `one-hot attention`.
    """

    input_sensitivity: float | None
    attention_entropy: float | None
    outcome: str

    @classmethod
    def of(
        cls, sample: Sample, changes: Iterable[float], entropies: Iterable[float]
    ) -> SignalFigures:
        """Return the medians of the relative changes of the outputs and of the entropies."""
        changes, entropies = list(changes), list(entropies)
        sensitivity = statistics.median(changes) if changes else None
        entropy = statistics.median(entropies) if entropies else None
        reasons = []
        if not any(sample_input.role == "input" for sample_input in sample.inputs):
            reasons.append("no data inputs")
        elif sensitivity is None:
            reasons.append("integer outputs")
        elif sensitivity < LEAST_SENSITIVITY:
            reasons.append("insensitive outputs")
        if entropy is not None and not LEAST_ENTROPY <= entropy <= MOST_ENTROPY:
            reasons.append("uniform attention" if entropy > _MIDDLE else "one-hot attention")
        return cls(sensitivity, entropy, ", ".join(reasons) or REACHED)

    def columns(self) -> dict[str, float | str | None]:
        """Return the columns of the figures in the `graphs` table, with three digits."""
        numbers = {
            "input_sensitivity": self.input_sensitivity,
            "attention_entropy": self.attention_entropy,
        }
        rounded = {
            name: None if number is None else round(number, 3) for name, number in numbers.items()
        }
        return {**rounded, "signal_outcome": self.outcome}


_MIDDLE = (LEAST_ENTROPY + MOST_ENTROPY) / 2


def relative_change(first: npt.NDArray, second: npt.NDArray) -> float | None:
    """Return the norm of the difference of two outputs, relative to the root mean square of their
    norms.

    It is 0 for equal outputs and about sqrt(2) for independent outputs of zero mean. Norms are not
    centred: a result passes if its error is small relative to the elements themselves, so a
    variation on top of a large constant, which a centred norm would count in full, cannot
    separate right from wrong results. Elements that are infinite or NaN in either output do not
    count. Returns None for outputs without other elements, and 1 for different shapes.

    >>> relative_change(np.array([3.0, 4.0]), np.array([3.0, 4.0]))
    0.0
    """
    if first.shape != second.shape:
        return 1.0
    is_finite = np.isfinite(first) & np.isfinite(second)
    if not is_finite.any():
        return None
    first, second = first[is_finite].astype(np.float64), second[is_finite].astype(np.float64)
    size = np.sqrt((np.square(first).sum() + np.square(second).sum()) / 2)
    return float(np.linalg.norm(first - second) / size) if size > 0 else 0.0


def measure_by(sample: Sample, start: Callable[[Sample, int], Backend]) -> SignalFigures:
    """Return the figures of a sample from two runs on different data with equal weights.

    `start` creates a backend with the inputs of a sample drawn from a seed. Random operators draw
    the same numbers in both runs.
    """
    attentions = find_attention(sample)
    entropies: list[float] = []
    outputs = []
    for seed in _MEASURED_SEEDS:
        backend = start(sample, 0)
        draw_data(sample, backend, seed)
        for position, dying in enumerate(sample.dying_values):
            backend.run(position)
            if seed == _MEASURED_SEEDS[0] and position in attentions:
                scores = scores_of(attentions[position], backend.array)
                entropy = None if scores is None else relative_entropy(scores)
                entropies += [] if entropy is None else [entropy]
            for value in dying:
                backend.free(value)
        outputs.append(output_arrays(sample, backend))
    return SignalFigures.of(sample, changes_of(*outputs), entropies)


def draw_data(sample: Sample, backend: Backend, seed: int) -> None:
    """Schedule all data inputs to be drawn from another seed, as for another call of the model."""
    for index, sample_input in enumerate(sample.inputs):
        if sample_input.role == "input":
            backend.make_input(sample, index, seed, "fresh")


def output_arrays(sample: Sample, backend: Backend) -> list[Array | None]:
    """Return the floating-point outputs of a finished run; None in place of others."""
    refs = dict.fromkeys(iterate_refs(sample.outputs))
    return [
        None if backend.root_mean_square(ref) is None else backend.array(ref)
        for ref in refs
        if ref >= len(sample.inputs)
    ]


def changes_of(first: list[Array | None], second: list[Array | None]) -> list[float]:
    """Return the relative changes of the outputs that are floating-point."""
    pairs = (
        relative_change(before, after)
        for before, after in zip(first, second, strict=True)
        if before is not None and after is not None
    )
    return [change for change in pairs if change is not None]
