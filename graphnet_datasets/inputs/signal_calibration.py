"""Calibration for signal: outputs that depend on the data, and attention that selects.

With initialised weights, attention is often uniform, and biases, shifts of normalizations and
learned positions often determine the outputs, whatever the data are. Each run here executes the
graph on two draws of the data. It scales query and key projections so that the entropy of their
attention reaches the middle of its interval, reduces shifts that outweigh the part of a value that
depends on the data, and scales the operands of saturated or flat activations. Scaled weights take
effect in the next run, since earlier values depend on them.
"""

from __future__ import annotations

import collections
import dataclasses
import math
from collections.abc import Callable, Iterable, Iterator

from ..errors import CalibrationError, MemoryLimitError
from ..operators import OperatorNames
from ..sample import Op, Sample, Statistics
from ..sample.arguments import iterate_refs
from .attention import find_attention, find_factor, relative_entropy, scores_of, weights_behind
from .calibration import SEEDS, Backend, CalibrationRun, fit_sizes, scaled
from .consumers import operand, ref_of, short_name
from .rules import rules_of
from .sensitivity import (
    LEAST_SENSITIVITY,
    SignalFigures,
    changes_of,
    draw_data,
    output_arrays,
)
from .signals import with_signals
from .terms import ADDING, SUBTRACTING, is_whole
from .weights import Norm

_MAX_RUNS = 5
_DATA_SEEDS = (0, 3)

_WEAK_CHANGE = 0.6
"""Values that change less between two draws of the data are examined; independent values of zero
mean change by sqrt(2)."""

_MAX_SHIFT = 0.2
"""Accepted root mean square of a shift, relative to the part that depends on the data."""

_MAX_FACTOR = 256.0
"""Largest change of a weight in one run."""

_INNER_ENTROPY = (0.3, 0.7)
"""Attention outside of this interval is changed: other draws of the data may differ."""

_ACTIVATIONS = {
    "softmax": 1.0, "sigmoid": 1.0, "hardsigmoid": 1.0, "tanh": 1.0, "log_softmax": 3.0,
    "cross_entropy": 3.0, "cross_entropy_with_softmax": 3.0,
}  # fmt: skip
"""Functions whose results change little if their operands do, with the size of the part of the
operand that should depend on the data."""

_SATURATED = 4.0
_JOINING = frozenset({"cat", "concat", "concatenate"})
_STATISTICS_NORMS = OperatorNames("statistics_norm")


def calibrate_by(
    sample: Sample,
    start: Callable[[Sample, int], Backend],
    on_end: Callable[[list[tuple[int, int]]], None] | None = None,
) -> Sample:
    """Return a sample with signals, and with calibrated statistics where they are needed.

    If the graph fails on data with the structure of natural data, its data are drawn as before.
    `start` creates a backend with the inputs of a sample drawn from a seed. `on_end` receives, for
    each output of the last run, the number of NaN and of infinite elements that calibration could
    not remove.
    """
    inputs = tuple(
        dataclasses.replace(sample_input, calibrated=None, signal="")
        for sample_input in sample.inputs
    )
    plain = dataclasses.replace(sample, inputs=inputs, calibration="")
    structured = with_signals(plain)
    try:
        fitted, backend = _calibrate(structured, start)
    except CalibrationError:
        if structured == plain:
            raise
        fitted, backend = _calibrate(plain, start)
    if on_end is not None and backend is not None:
        on_end([backend.count_not_finite(ref) for ref in iterate_refs(sample.outputs)])
    is_changed = any(sample_input.calibrated is not None for sample_input in fitted.inputs)
    return dataclasses.replace(fitted, calibration="calibrated" if is_changed else "unneeded")


def _calibrate(
    sample: Sample, start: Callable[[Sample, int], Backend]
) -> tuple[Sample, Backend | None]:
    sized, backend = fit_sizes(sample, start)
    if not any(sample_input.role == "input" for sample_input in sample.inputs):
        return sized, backend
    try:
        best = _reach_targets(sized, start)
    except (CalibrationError, MemoryLimitError):  # on other data, or on two draws at once
        return sized, backend
    return (best, backend) if best is sized else fit_sizes(best, start, SEEDS[1:])


def _reach_targets(sample: Sample, start: Callable[[Sample, int], Backend]) -> Sample:
    """Return the sample of the run that is closest to both targets."""
    fitted = best = sample
    least = math.inf
    for _ in range(_MAX_RUNS):
        backends = []
        for seed in _DATA_SEEDS:
            backends.append(start(fitted, SEEDS[0]))
            draw_data(fitted, backends[-1], seed)
        run = _SignalRun(fitted, *backends)
        fitted = run.run()
        if (missed := run.missed()) < least:
            best, least = fitted, missed
        if not missed or not run.factors:
            break
        fitted = run.with_factors()
    return best


class _SignalRun(CalibrationRun):
    """A run on two draws of the data that finds factors of weights for the next run."""

    def __init__(self, sample: Sample, backend: Backend, other: Backend) -> None:
        super().__init__(sample, backend, other, is_first=True)
        self.pair = backend, other
        self.factors: dict[int, list[float]] = collections.defaultdict(list)
        self.entropies: list[float] = []
        self.attentions = find_attention(sample)

    def missed(self) -> float:
        """Return how far the finished run is from both targets; 0 if it reaches them."""
        outputs = [output_arrays(self.sample, backend) for backend in self.pair]
        figures = SignalFigures.of(self.sample, changes_of(*outputs), self.entropies)
        sensitivity, entropy = figures.input_sensitivity, figures.attention_entropy
        missed = 0.0
        if sensitivity is not None:
            missed += max(0.0, 1 - sensitivity / (1.2 * LEAST_SENSITIVITY))
        if entropy is not None:
            low, high = _INNER_ENTROPY
            missed += max(0.0, low - entropy, entropy - high) / low
        return missed

    def with_factors(self) -> Sample:
        """Return the sample with the geometric mean of the factors applied to each weight."""
        inputs = list(self.sample.inputs)
        for index, factors in self.factors.items():
            mean = math.exp(math.fsum(map(math.log, factors)) / len(factors))
            statistics = scaled(self.statistics_of(index), mean)
            inputs[index] = dataclasses.replace(inputs[index], calibrated=statistics)
        return dataclasses.replace(self.sample, inputs=tuple(inputs))

    def fit_norm(self, norm: Norm) -> None:
        """Adapt the variance of a normalization, and remove its mean, to the size of its input.

        A mean that is drawn independently of the means of the channels would be another shift.
        """
        if norm.mean in self.met_data or norm.variance in self.met_data:
            return
        moments = self.backend.channel_moments(norm.value)
        if moments is None or self.fits(norm, moments):
            return
        square = moments.variance + moments.mean**2 + moments.spread_of_means**2
        if 0 < square < math.inf:
            self.change(norm.mean, Statistics(0.0, 0.0))
            self.change(norm.variance, scaled(Statistics(1.0, 0.05, 0.5, 2.0), square))

    def observe(self, position: int) -> None:
        """Find factors for the weights of an operator that has run."""
        if position in self.attentions:
            self._observe_attention(position)
            return
        own = len(self.sample.inputs) + position
        size, varying = self._parts(own)
        if not 0 < varying * math.sqrt(2) < _WEAK_CHANGE * size:
            return
        op = self.sample.ops[position]
        for value, weights in self._shifts(position, op):
            shift = self.backend.root_mean_square(value) or 0.0
            if shift > _MAX_SHIFT * varying:
                self._scale(weights, _MAX_SHIFT * varying / shift)
        wanted = _ACTIVATIONS.get(short_name(op.target))
        source = ref_of(op.args[0]) if op.args else None
        if wanted is not None and source is not None:
            size, varying = self._parts(source)
            if 0 < varying < wanted and size < _SATURATED * wanted:
                self._scale(weights_behind(self.sample, source), wanted / varying)
            elif size > _SATURATED * wanted:
                self._scale(weights_behind(self.sample, source), wanted / size)

    def _observe_attention(self, position: int) -> None:
        attention = self.attentions[position]
        scores = scores_of(attention, self.backend.array)
        entropy = None if scores is None else relative_entropy(scores)
        if scores is None or entropy is None:
            return
        self.entropies.append(entropy)
        low, high = _INNER_ENTROPY
        if low <= entropy <= high or (factor := find_factor(scores)) is None:
            return
        sides = [side for side in (attention.query_weights, attention.key_weights) if side]
        for side in sides:
            self._scale(side, factor ** (1 / len(sides)))
        if not sides:
            self._scale(attention.score_weights, factor)

    def _parts(self, value: int) -> tuple[float, float]:
        """Return the root mean square of a value, and of its part that depends on the data."""
        size = self.backend.root_mean_square(value)
        apart = self.pair[0].distance(value, self.pair[1])
        if size is None or apart is None or not math.isfinite(size + apart):
            return 0.0, 0.0
        return size, apart / math.sqrt(2)

    def _shifts(self, position: int, op: Op) -> Iterator[tuple[int, Iterable[int]]]:
        """Yield the operands that an operator adds whatever the data are, with their weights."""
        name, rules = short_name(op.target), rules_of(self.sample.framework)
        refs: list[int | None] = []
        if name in ADDING or name in SUBTRACTING or name in _JOINING:
            refs += self.sample.op_refs[position]
        elif name in _STATISTICS_NORMS and (places := rules.norm(op)) is not None:
            bias = 2 if places[1] == 3 else 4
            refs += [ref_of(operand(op, (bias, "bias")))]
            refs += [ref_of(operand(op, (places[1], "running_mean")))]
        elif (place := rules.bias(op)) is not None:
            refs.append(ref_of(operand(op, (place, "bias"))))
        elif name in ("addmm", "baddbmm") and op.args:
            refs.append(ref_of(op.args[0]))
        for ref in refs:
            if ref is None:
                continue
            if ref in self.uses.weight_only:
                yield ref, self.roots_of.get(ref, ())
            elif ref >= len(self.sample.inputs) and self._parts(ref)[1] == 0:
                yield ref, weights_behind(self.sample, ref)

    def _scale(self, weights: Iterable[int], factor: float) -> None:
        factor = min(max(factor, 1 / _MAX_FACTOR), _MAX_FACTOR)
        for index in weights:
            sample_input = self.sample.inputs[index]
            is_variance = index in self.uses.positive
            is_stored = sample_input.data is not None and sample_input.role != "parameter"
            if not (is_variance or is_stored or is_whole(sample_input.value.dtype or "bool")):
                self.factors[index].append(factor)
