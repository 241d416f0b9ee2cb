"""Calibration of input statistics in one pass over a graph.

Recorded statistics describe each tensor in isolation. If independently drawn channel variances are
too small, or drawn kernels differ too much from the trained kernels, values grow or vanish from
layer to layer until they overflow. In a trained network they do neither. Calibration therefore runs
the graph once, one operator at a time. Where the input of a normalization does not match its
statistics, they are replaced with those of the input. Where a product leaves the usual range, its
weight is rescaled, as in data-dependent initialization (Krähenbühl et al. 2015, Data-dependent
initializations of convolutional neural networks; Mishkin and Matas 2015, All you need is a good
init).

If the outputs hardly depend on the data, or attention is uniform or one-hot, further runs on two
draws of the data scale the weights that cause it (`signal_calibration`).

The results are statistics of whole tensors, not elements: inputs are still drawn at random from
them.
"""

from __future__ import annotations

import copy
import dataclasses
import math
from collections.abc import Callable, Iterable
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from ..sample import Sample, Statistics
from ..sample.arguments import iterate_refs
from .arrays import Mode
from .consumers import short_name
from .defaults import default_statistics
from .terms import is_whole
from .weights import Norm, find_weight_uses

LOWEST, HIGHEST = 3e-3, 8.0
"""Accepted range of the root mean square of a product."""

HELD_UP = 1 / 64
"""If data contribute a smaller share of a product, the contribution itself must reach `LOWEST`."""

RAISED, LOWERED = 3e-2, 1.0
"""Targets for products that are too small or too large. The target for small products is below
1, because a product may be small only because most of its input is zero, and rescaled weights
change that."""

SEEDS = (0, 1, 2)
"""The seeds with which a graph is run in turn, since weights that suit one seed may overflow
with another."""

NORMALISED = (0.25, 4.0)
"""Accepted range of the root mean square after a normalization, before its scale and shift."""

_MAX_SPREAD = 0.5
"""Maximum standard deviation of a calibrated running variance, relative to its mean."""

_DIGITS = 4
_ATTEMPTS = 3
_NORMALISING = ("norm", "rsqrt")
_OTHER_SEED = 3


@dataclasses.dataclass(frozen=True, slots=True)
class Moments:
    """Statistics of a value with channels.

    The mean and the standard deviation over channels of the channel means, and the same of the
    channel variances. Only finite elements count.
    """

    mean: float
    spread_of_means: float
    variance: float
    spread_of_variances: float


class Backend(Protocol):
    """The operations that calibration requires of a framework; values are numbered as in the
    sample."""

    def run(self, position: int) -> None:
        """Run the operator at `position`, even if it has run before, and keep its result."""

    def make_input(
        self, sample: Sample, index: int, seed: int | None = None, mode: Mode = "replay"
    ) -> None:
        """Schedule input `index` to be drawn again, from its statistics in `sample`.

        Without `seed`, the seed of the other inputs is used.
        """

    def array(self, value: int) -> npt.NDArray[np.float32] | None:
        """Return a floating-point or boolean tensor as float32, or None for other values."""

    def root_mean_square(self, value: int) -> float | None:
        """Return the root mean square of the finite elements, or None if not a floating-point
        tensor."""

    def distance(self, value: int, other: Any) -> float | None:
        """Return the root mean square of the difference to the same value in another backend.

        Returns None if the values are not floating-point tensors or differ in shape.
        """

    def channel_moments(self, value: int) -> Moments | None:
        """Return the moments of a value over its channel axis (the second axis, or Paddle's
        layout)."""

    def count_not_finite(self, value: int) -> tuple[int, int]:
        """Return the number of NaN and of infinite elements of a value."""
        ...

    def free(self, value: int) -> None:
        """Free a value. A value computed from weights alone is recomputed if it is read again."""


def fit_sizes(
    sample: Sample, start: Callable[[Sample, int], Backend], seeds: Iterable[int] = SEEDS
) -> tuple[Sample, Backend | None]:
    """Return a sample with calibrated statistics where values would grow or vanish, and the last
    run.

    `start` creates a backend with the inputs of a sample drawn from a seed. The first run makes all
    adjustments. Later runs with other seeds only reduce values that are too large, until a run
    changes nothing.
    """
    fitted = sample
    backend: Backend | None = None
    is_plain = _is_plain(fitted)
    for seed in seeds:
        before = fitted
        backend, is_first = start(fitted, seed), seed == SEEDS[0]
        other = _with_other_data(fitted, start(fitted, seed)) if is_first and is_plain else None
        fitted = CalibrationRun(fitted, backend, other, is_first=is_first).run()
        if seed != SEEDS[0] and fitted is before:
            break
    return fitted, backend


class CalibrationRun:
    """One calibration run over a graph, optionally in parallel with a run on `other` data."""

    def __init__(
        self, sample: Sample, backend: Backend, other: Backend | None, *, is_first: bool
    ) -> None:
        self.sample = sample
        self.backend = backend
        self.other = other
        self.backends = [backend] if other is None else [backend, other]
        self.is_first = is_first
        self.uses = find_weight_uses(self.sample)
        self.met_data: set[int] = set()
        self.has_run: set[int] = set()
        self.dead: set[int] = set()
        self.roots_of = self._roots_of()

    def run(self) -> Sample:
        """Run the graph, and return the sample with adjusted statistics."""
        num_inputs = len(self.sample.inputs)
        dying_values = self.sample.dying_values
        for position, op in enumerate(self.sample.ops):
            norm = self.uses.norms.get(position)
            if norm is not None:
                self.fit_norm(norm)
            self._step(position)
            self.has_run.add(position)
            if position in self.uses.products:
                self._fit_product(position)
            self.observe(position)
            if num_inputs + position not in self.uses.weight_only:
                for ref in iterate_refs((op.args, op.kwargs)):
                    self.met_data |= self.roots_of.get(ref, frozenset())
            self.dead.update(dying_values[position])
            self._free(dying_values[position])
        return self.sample

    def observe(self, position: int) -> None:
        """Inspect an operator that has run, before its operands are freed."""

    def _free(self, values: Iterable[int]) -> None:
        for value in values:
            for backend in self.backends:
                backend.free(value)

    def _step(self, position: int) -> None:
        for backend in self.backends:
            backend.run(position)

    def _roots_of(self) -> dict[int, frozenset[int]]:
        """Return, for each weight-only value, the weights that it is computed from."""
        num_inputs = len(self.sample.inputs)
        roots: dict[int, set[int]] = {
            value: {value} for value in self.uses.weight_only if value < num_inputs
        }
        for source, positions in self.uses.dependents.items():
            for position in positions:
                roots.setdefault(num_inputs + position, set()).add(source)
        return {value: frozenset(sources) for value, sources in roots.items()}

    def fit_norm(self, norm: Norm) -> None:
        """Replace the statistics of a normalization that do not fit its input."""
        if norm.mean in self.met_data or norm.variance in self.met_data:
            return
        moments = self.backend.channel_moments(norm.value)
        if moments is None or not math.isfinite(moments.variance):
            return
        if self.fits(norm, moments):
            return
        spread = moments.spread_of_means
        width = max(moments.variance + 2 * spread * spread, 1e-12)
        share = min(moments.spread_of_variances / width, _MAX_SPREAD)
        self.change(norm.mean, _rounded(moments.mean, spread, None, None))
        self.change(norm.variance, _rounded(width, share * width, width / 8, width * 8))

    def fits(self, norm: Norm, moments: Moments) -> bool:
        """Return whether the statistics of a normalization fit an input with these moments."""
        mean, variance = self.statistics_of(norm.mean), self.statistics_of(norm.variance)
        low, high = NORMALISED
        size = _normalised(moments, mean, variance, norm.epsilon)
        return size <= high and (size >= low or not self.is_first)

    def _fit_product(self, position: int) -> None:
        weight = self.uses.products[position]
        own = len(self.sample.inputs) + position
        for _ in range(_ATTEMPTS):
            size, varying = self._sizes(own)
            if size is None or not (size > HIGHEST or (self.is_first and varying < LOWEST)):
                return
            if weight in self.met_data:
                return  # earlier uses of the weight would change
            statistics = self.statistics_of(weight)
            if size == 0 and not statistics.std and not statistics.mean:
                sample_input = self.sample.inputs[weight]
                shape = self.sample.shape_of(sample_input.value) or ()
                changed = default_statistics(
                    sample_input.role,
                    sample_input.source_name,
                    shape,
                    sample_input.value.dtype or "float32",
                )
                changed = dataclasses.replace(changed, is_measured=True)
            elif size == 0 or math.isinf(size):
                return
            elif size > HIGHEST:
                changed = scaled(statistics, LOWERED / size)
            else:
                factor = min(RAISED / varying, LOWERED / size)
                if factor <= 1:
                    return
                changed = scaled(statistics, factor)
            self.change(weight, changed)
            self._step(position)

    def _sizes(self, value: int) -> tuple[float | None, float]:
        """Return the root mean square of a product, and that of the part determined by the data.

        The second number equals the first if it is unknown or at least the share `HELD_UP`. The
        difference of two independently drawn values is larger by a factor of sqrt(2) than the
        varying part of each.
        """
        size = self.backend.root_mean_square(value)
        apart = None if self.other is None else self.backend.distance(value, self.other)
        varying = apart / math.sqrt(2) if apart and math.isfinite(apart) else math.inf
        whole = size or 0.0
        return size, varying if varying < HELD_UP * whole else whole

    def statistics_of(self, index: int) -> Statistics:
        """Return the statistics that an input is drawn from."""
        sample_input = self.sample.inputs[index]
        shape = self.sample.shape_of(sample_input.value) or ()
        return (
            sample_input.calibrated
            or sample_input.statistics
            or default_statistics(
                sample_input.role,
                sample_input.source_name,
                shape,
                sample_input.value.dtype or "float32",
            )
        )

    def change(self, index: int, statistics: Statistics) -> None:
        """Set the statistics of a weight, and recompute the values that depend on it."""
        inputs = list(self.sample.inputs)
        inputs[index] = dataclasses.replace(inputs[index], calibrated=statistics)
        # Skip validation of the copy: only these numbers change, and this runs often.
        changed = copy.copy(self.sample)
        object.__setattr__(changed, "inputs", tuple(inputs))
        self.sample = changed
        for backend in self.backends:
            backend.make_input(self.sample, index)
        num_inputs = len(inputs)
        again = [
            position for position in self.uses.dependents.get(index, ()) if position in self.has_run
        ]
        for position in again:
            self._step(position)
        self._free(self.dead.intersection(num_inputs + position for position in again))


def _is_plain(sample: Sample) -> bool:
    """Return whether a graph has convolutions but no normalization.

    In such a graph, biases dominate the values while the contribution of the data vanishes: with
    common initializations it shrinks to a third in each layer, so that a network of 26 layers has
    the same outputs for all inputs.
    """
    names = [short_name(op.target) for op in sample.ops]
    return any("conv" in name for name in names) and not any(
        word in name for name in names for word in _NORMALISING
    )


def _with_other_data(sample: Sample, backend: Backend) -> Backend:
    for index, sample_input in enumerate(sample.inputs):
        if sample_input.role == "input" and not is_whole(sample_input.value.dtype or "bool"):
            backend.make_input(sample, index, _OTHER_SEED)
    return backend


def _normalised(moments: Moments, mean: Statistics, variance: Statistics, epsilon: float) -> float:
    """Return the expected root mean square after the normalization."""
    running_mean, running_spread = mean.mean or 0.0, mean.std or 0.0
    width = max(variance.mean if variance.mean is not None else 1.0, 0.0) + epsilon
    share = min((variance.std or 0.0) / width, 10.0)
    # The mean of 1 / v for a log-normal v is (1 + share^2) / mean of v.
    deviation = (moments.mean - running_mean) ** 2 + moments.spread_of_means**2 + running_spread**2
    return math.sqrt((moments.variance + deviation) * (1 + share * share) / width)


def scaled(statistics: Statistics, factor: float) -> Statistics:
    """Return the statistics of a scaled tensor, rounded to four digits."""
    mean, std, low, high = (
        None if number is None else _round(number * factor)
        for number in (statistics.mean, statistics.std, statistics.min, statistics.max)
    )
    return Statistics(mean, std, low, high)


def _rounded(mean: float, std: float, low: float | None, high: float | None) -> Statistics:
    return Statistics(
        _round(mean), _round(std),
        None if low is None else _round(low), None if high is None else _round(high),
    )  # fmt: skip


def _round(number: float) -> float:
    """Round to four significant digits, which hides most differences in summation order."""
    return float(f"{number:.{_DIGITS - 1}e}")
