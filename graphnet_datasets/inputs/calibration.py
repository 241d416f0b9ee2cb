"""Statistics that fit the values that arrive, found in one pass over a graph.

Recorded statistics say what each tensor was like, not how the tensors fit together: channels whose
drawn variance is too small or kernels whose drawn elements agree too little make values grow or
vanish from layer to layer until they overflow. In a trained network they do neither. So the graph
is run once, operator by operator; where what arrives does not fit the statistics of a
normalisation, they are replaced by those of what arrives, and where a product leaves the usual
range, its weight is scaled, as data-dependent initialisation does (Krähenbühl et al. 2015,
Data-dependent initializations of convolutional neural networks; Mishkin and Matas 2015, All you
need is a good init).

What is found are statistics of whole tensors, not elements: later draws are draws as before.
"""

from __future__ import annotations

import copy
import dataclasses
import math
from collections.abc import Callable, Iterable
from typing import Any, Protocol

from ..sample import Sample, Statistics
from ..sample.arguments import iterate_refs
from .consumers import short_name
from .defaults import default_statistics
from .terms import is_whole
from .weights import Norm, find_weight_uses

LOWEST, HIGHEST = 3e-3, 8.0
"""Root mean square of what a product may give."""

HELD_UP = 1 / 64
"""Where the data decide a smaller share of a product than this, that part has to be `LOWEST`."""

RAISED, LOWERED = 3e-2, 1.0
"""What a product is brought to that gives less or more. What is small may be so because few of the
values that arrive are not zero, and other weights let more of them through: hence not higher."""

SEEDS = (0, 1, 2)
"""The draws that a graph is run on in turn: what fits one draw may overflow with another."""

NORMALISED = (0.25, 4.0)
"""Root mean square that values may have after a normalisation, before its scale and shift."""

_MAX_SPREAD = 0.5
"""Standard deviation of a calibrated running variance, as a share of its mean, at most."""

_DIGITS = 4
_ATTEMPTS = 3
_NORMALISING = ("norm", "rsqrt")
_OTHER_SEED = 3


@dataclasses.dataclass(frozen=True, slots=True)
class Moments:
    """Of a value with channels: mean and standard deviation over the channels of their means and
    of their variances, and the root mean square of all elements that are finite."""

    mean: float
    spread_of_means: float
    variance: float
    spread_of_variances: float


class Backend(Protocol):
    """What a framework does for the calibration; values are numbered as in the sample."""

    def run(self, position: int) -> None:
        """Run operator `position`, once more if it has run, and keep its result."""

    def make_input(self, sample: Sample, index: int, seed: int | None = None) -> None:
        """Have input `index` made anew from the statistics that it has in `sample`.

        It is drawn by the seed of all inputs unless there is another `seed`.
        """

    def root_mean_square(self, value: int) -> float | None:
        """Return it over the finite elements; None for what is not a floating-point tensor."""

    def distance(self, value: int, other: Any) -> float | None:
        """Return the root mean square of the difference to a value of another backend.

        None where there is none: not floating-point tensors, or of different shapes.
        """

    def channel_moments(self, value: int) -> Moments | None:
        """Return the moments of a value whose second axis, or in paddle another, has channels."""

    def count_not_finite(self, value: int) -> tuple[int, int]:
        """Return how many elements of a value are NaN, and how many are infinite."""
        ...

    def free(self, value: int) -> None:
        """Forget a value; one of weights alone is made again where it is read once more."""


def calibrate_by(
    sample: Sample,
    start: Callable[[Sample, int], Backend],
    on_end: Callable[[list[tuple[int, int]]], None] | None = None,
) -> Sample:
    """Return a sample with calibrated statistics where they are needed.

    `start` gives a backend that holds the inputs of a sample drawn by a seed. The first run
    settles everything; those after it only lower what is too large with other draws, until a run
    changes nothing. `on_end` is given how many elements of each output of the last run are NaN and
    how many are infinite: what statistics cannot mend.
    """
    inputs = tuple(dataclasses.replace(each, calibrated=None) for each in sample.inputs)
    fitted = dataclasses.replace(sample, inputs=inputs, calibration="")
    backend: Backend | None = None
    is_plain = _is_plain(fitted)
    for seed in SEEDS:
        before = fitted
        backend, is_first = start(fitted, seed), seed == SEEDS[0]
        other = _with_other_data(fitted, start(fitted, seed)) if is_first and is_plain else None
        fitted = _Calibration(fitted, backend, other, is_first=is_first).run()
        if seed != SEEDS[0] and fitted is before:
            break
    if on_end is not None and backend is not None:
        on_end([backend.count_not_finite(ref) for ref in iterate_refs(sample.outputs)])
    is_changed = any(each.calibrated is not None for each in fitted.inputs)
    return dataclasses.replace(fitted, calibration="calibrated" if is_changed else "unneeded")


class _Calibration:
    """One run over a graph, and over the same on `other` data beside it if that is given."""

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
        num_inputs = len(self.sample.inputs)
        dying_values = self.sample.dying_values
        for position, op in enumerate(self.sample.ops):
            norm = self.uses.norms.get(position)
            if norm is not None:
                self._fit_norm(norm)
            self._step(position)
            self.has_run.add(position)
            if position in self.uses.products:
                self._fit_product(position)
            if num_inputs + position not in self.uses.weight_only:
                for ref in iterate_refs((op.args, op.kwargs)):
                    self.met_data |= self.roots_of.get(ref, frozenset())
            self.dead.update(dying_values[position])
            self._free(dying_values[position])
        return self.sample

    def _free(self, values: Iterable[int]) -> None:
        for value in values:
            for each in self.backends:
                each.free(value)

    def _step(self, position: int) -> None:
        for each in self.backends:
            each.run(position)

    def _roots_of(self) -> dict[int, frozenset[int]]:
        """Return for each weight-only value the weights that it is made of."""
        num_inputs = len(self.sample.inputs)
        made: dict[int, set[int]] = {
            value: {value} for value in self.uses.weight_only if value < num_inputs
        }
        for source, positions in self.uses.dependents.items():
            for position in positions:
                made.setdefault(num_inputs + position, set()).add(source)
        return {value: frozenset(sources) for value, sources in made.items()}

    def _fit_norm(self, norm: Norm) -> None:
        if norm.mean in self.met_data or norm.variance in self.met_data:
            return
        moments = self.backend.channel_moments(norm.value)
        if moments is None or not math.isfinite(moments.variance):
            return
        mean = self._statistics(norm.mean)
        variance = self._statistics(norm.variance)
        low, high = NORMALISED
        size = _normalised(moments, mean, variance, norm.epsilon)
        if size <= high and (size >= low or not self.is_first):
            return
        spread = moments.spread_of_means
        width = max(moments.variance + 2 * spread * spread, 1e-12)
        share = min(moments.spread_of_variances / width, _MAX_SPREAD)
        self._change(norm.mean, _rounded(moments.mean, spread, None, None))
        self._change(norm.variance, _rounded(width, share * width, width / 8, width * 8))

    def _fit_product(self, position: int) -> None:
        weight = self.uses.products[position]
        own = len(self.sample.inputs) + position
        for _ in range(_ATTEMPTS):
            size, varying = self._sizes(own)
            if size is None or not (size > HIGHEST or (self.is_first and varying < LOWEST)):
                return
            if weight in self.met_data:
                return  # what it gave before would no longer be what it gives
            held = self._statistics(weight)
            if size == 0 and not held.std and not held.mean:
                each = self.sample.inputs[weight]
                shape = self.sample.shape_of(each.value) or ()
                changed = default_statistics(
                    each.role, each.source_name, shape, each.value.dtype or "float32"
                )
                changed = dataclasses.replace(changed, is_measured=True)
            elif size == 0 or math.isinf(size):
                return
            elif size > HIGHEST:
                changed = _scaled(held, LOWERED / size)
            else:
                factor = min(RAISED / varying, LOWERED / size)
                if factor <= 1:
                    return
                changed = _scaled(held, factor)
            self._change(weight, changed)
            self._step(position)

    def _sizes(self, value: int) -> tuple[float | None, float]:
        """Return the root mean square of a product, and of what of it the data decide.

        All of it, where that is not known or at least a share of it (`HELD_UP`). Of two values that
        are drawn alike the difference is the root of two times as large as what varies of each.
        """
        size = self.backend.root_mean_square(value)
        apart = None if self.other is None else self.backend.distance(value, self.other)
        varying = apart / math.sqrt(2) if apart and math.isfinite(apart) else math.inf
        whole = size or 0.0
        return size, varying if varying < HELD_UP * whole else whole

    def _statistics(self, index: int) -> Statistics:
        each = self.sample.inputs[index]
        shape = self.sample.shape_of(each.value) or ()
        return (
            each.calibrated
            or each.statistics
            or default_statistics(each.role, each.source_name, shape, each.value.dtype or "float32")
        )

    def _change(self, index: int, statistics: Statistics) -> None:
        """Give a weight other statistics, and make anew whatever was made of it."""
        inputs = list(self.sample.inputs)
        inputs[index] = dataclasses.replace(inputs[index], calibrated=statistics)
        # A copy that is not checked again: only these numbers differ, and there are many of them.
        changed = copy.copy(self.sample)
        object.__setattr__(changed, "inputs", tuple(inputs))
        self.sample = changed
        for each in self.backends:
            each.make_input(self.sample, index)
        num_inputs = len(inputs)
        again = [each for each in self.uses.dependents.get(index, ()) if each in self.has_run]
        for position in again:
            self._step(position)
        self._free(self.dead.intersection(num_inputs + position for position in again))


def _is_plain(sample: Sample) -> bool:
    """Tell whether there are convolutions and nothing that normalises.

    Then it is biases that hold the size of values up, while what the data decide of them vanishes:
    by the usual initialisers to a third in each layer, so that the outputs of a network of 26 are
    the same for all inputs.
    """
    names = [short_name(op.target) for op in sample.ops]
    return any("conv" in name for name in names) and not any(
        word in name for name in names for word in _NORMALISING
    )


def _with_other_data(sample: Sample, backend: Backend) -> Backend:
    for index, each in enumerate(sample.inputs):
        if each.role == "input" and not is_whole(each.value.dtype or "bool"):
            backend.make_input(sample, index, _OTHER_SEED)
    return backend


def _normalised(moments: Moments, mean: Statistics, variance: Statistics, epsilon: float) -> float:
    """Return the root mean square that is to be expected after the normalisation."""
    held_mean, held_spread = mean.mean or 0.0, mean.std or 0.0
    width = max(variance.mean if variance.mean is not None else 1.0, 0.0) + epsilon
    share = min((variance.std or 0.0) / width, 10.0)
    # The mean of 1 / v for a log-normal v is (1 + share^2) / mean of v.
    deviation = (moments.mean - held_mean) ** 2 + moments.spread_of_means**2 + held_spread**2
    return math.sqrt((moments.variance + deviation) * (1 + share * share) / width)


def _scaled(held: Statistics, factor: float) -> Statistics:
    mean, std, low, high = (
        None if each is None else _round(each * factor)
        for each in (held.mean, held.std, held.min, held.max)
    )
    return Statistics(mean, std, low, high)


def _rounded(mean: float, std: float, low: float | None, high: float | None) -> Statistics:
    return Statistics(
        _round(mean), _round(std),
        None if low is None else _round(low), None if high is None else _round(high),
    )  # fmt: skip


def _round(number: float) -> float:
    """Round to four significant digits, so that sums taken in another order mostly agree."""
    return float(f"{number:.{_DIGITS - 1}e}")
