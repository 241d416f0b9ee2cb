"""DynaTune: a bandit over operators, with a belief about how their tuning curves continue.

Zhang et al., "DynaTune: Dynamic Tensor Program Optimization in Deep Neural Network Compilation",
ICLR 2021. Each slot goes to the operator with the largest

    mu_o + c * sigma_o * sqrt(2 ln N / n_o)

where mu_o and sigma_o are the mean and standard deviation of the believed gain of one more slot,
w_o * (L_o(t) - L_o(t + 1)). N counts all slots, n_o those of o.

Beliefs are distributions over saturating curves L(t) = floor + drop * f(t; theta), with f one of

    power law     (t)^-theta
    exponential   e^(-theta (t - 1))
    Weibull       e^(-(theta (t - 1))^k)

Differences from the paper:

The paper samples parameters with Markov chains. For a fixed theta (and k) the curve is linear in
floor and drop, so their posterior is that of a conjugate linear regression, in closed form. Theta
takes the values of a grid, weighted by marginal likelihood. The belief is the same without sampling
noise and takes a millisecond. The noise is at least 2 %: best-so-far curves are step functions, and
a long flat stretch does not rule out another step. Curves are normalised by their first value, and
the prior of the floor is centred near the last observed value, since a tuned operator rarely
becomes twice as fast. Gains are in weighted ms per second of slot, since slots differ in length.
They are never negative, although a fitted tail may rise within its noise: mean and deviation refer
to the positive part of each component of the mixture.

Half of the mean is this belief, and half is the typical gain of an operator: a share of the last
value, `TYPICAL_GAIN` n_o^-`TYPICAL_DECAY`. Steps in the first slots are due to chance: on real
operators, the gain predicted from the operator's own curve was uncorrelated with the actual gain
(-0.1 to 0.25), while the slot number predicted it well. c = 0.3.

The paper assigns every operator a slot before it chooses. Here first slots compete with later slots
of other operators, since an operator that takes a thousandth of the total time can wait. The gain
of a first slot is `FIRST_GAIN` times the operator's expected latency, extrapolated from measured
tasks of its family in proportion to flops and bytes. The remaining budget is checked before each
slot, so that every operator still gets one.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence

import numpy as np
from scipy.special import gammaln, ndtr

from ...errors import TuningError
from ..interfaces import Slot
from ..task import Task
from .base import DEFAULT_SLOT_TRIALS, CurveAllocator

_POWERS = np.geomspace(0.1, 4.0, 12)
_RATES = np.geomspace(0.02, 2.0, 12)
_SHAPES = (0.5, 1.5)
"""Exponents of the Weibull family; 1 would be the exponential."""

FIRST_GAIN = 2.0
"""Gain of a first slot, as a multiple of the best latency it finds: unscheduled programs and random
schedules are that much slower."""
TYPICAL_GAIN, TYPICAL_DECAY = 0.24, 1.3
"""Relative gain of the slot after the first, and the exponent of its decay over further slots. Both
are means over operators of real graphs with slots of four trials."""
_FLOPS_PER_BYTE = 4
"""Weight of a byte of memory traffic in operations, for operators without measured latencies."""

_FLOOR_MEAN, _FLOOR_STD = 0.6, 0.4
"""Prior mean of the floor as a share of the last value, and its standard deviation."""
_DROP_STD = 1.0
_NOISE_SHAPE, _NOISE_SCALE = 2.0, 2.0 * 0.03**2
"""Inverse gamma prior of the noise variance, about 3 % of the first value."""
_LEAST_NOISE = 0.02**2


def _bases(times: np.ndarray) -> np.ndarray:
    """Return f(t; theta) for all family members, float64 [members, t]; t starts at 1."""
    power = times[None, :] ** -_POWERS[:, None]
    scaled = _RATES[:, None] * (times - 1)[None, :]
    return np.concatenate([power, np.exp(-scaled), *(np.exp(-(scaled**k)) for k in _SHAPES)])


def believed_gain(curve: Sequence[float], ahead: float = 1.0) -> tuple[float, float]:
    """Return the mean and standard deviation of a curve's decrease over the next `ahead` slots.

    `curve` is the best value after each slot, finite and non-increasing. The gain has its unit.

    >>> falling = [10.0, 7.0, 5.2, 4.1]
    >>> flat = [4.0, 4.0, 4.0, 4.0]
    >>> believed_gain(falling)[0] > 3 * believed_gain(flat)[0]
    True
    """
    values = np.asarray(curve, np.float64)
    scale = values[0]
    y = values / scale
    count = len(y)
    times = np.arange(1, count + 1, dtype=np.float64)
    bases = _bases(np.append(times, count + ahead))  # [members, count + 1]
    design = np.stack([np.ones_like(bases), bases], axis=-1)
    seen, now, then = design[:, :-1], design[:, count - 1], design[:, -1]
    # Conjugate normal and inverse gamma regression (Gelman et al., Bayesian Data Analysis, ch. 14).
    last = y[-1]
    prior_mean = np.array([_FLOOR_MEAN * last, max(1.0 - _FLOOR_MEAN * last, 0.1)])
    noise = _NOISE_SCALE / _NOISE_SHAPE
    prior_precision = np.diag([noise / (_FLOOR_STD * last) ** 2, noise / _DROP_STD**2])
    precision = prior_precision + np.einsum("mti,mtj->mij", seen, seen)
    right = prior_precision @ prior_mean + np.einsum("mti,t->mi", seen, y)
    mean = np.linalg.solve(precision, right[..., None])[..., 0]
    shape = _NOISE_SHAPE + count / 2
    quadratic = np.einsum("mi,mij,mj->m", mean, precision, mean)
    rest = y @ y + prior_mean @ prior_precision @ prior_mean - quadratic
    scales = _NOISE_SCALE + np.maximum(rest, 0.0) / 2
    log_evidence = -0.5 * np.linalg.slogdet(precision)[1] - shape * np.log(scales) + gammaln(shape)
    weights = np.exp(log_evidence - log_evidence.max())
    weights /= weights.sum()
    # The gain is also linear in floor and drop, and thus normal in each component.
    slope = now - then
    gain = np.einsum("mi,mi->m", slope, mean)
    variances = np.maximum(scales / (shape - 1), _LEAST_NOISE)
    covariance = np.linalg.inv(precision) * variances[:, None, None]
    std = np.sqrt(np.maximum(np.einsum("mi,mij,mj->m", slope, covariance, slope), 1e-18))
    first, second = _positive_part(gain, std)
    expected = float(weights @ first)
    variance = max(float(weights @ second) - expected**2, 0.0)
    return float(expected * scale), float(math.sqrt(variance) * scale)


def _positive_part(mean: np.ndarray, std: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the first two moments of max(X, 0) for a normal X."""
    z = mean / std
    density = np.exp(-0.5 * z**2) / math.sqrt(2 * math.pi)
    first = mean * ndtr(z) + std * density
    second = (mean**2 + std**2) * ndtr(z) + mean * std * density
    return first, second


def _work(task: Task) -> int:
    """Return an amount of work roughly proportional to the task's latency."""
    return max(task.flops + _FLOPS_PER_BYTE * task.bytes, 1)


class DynaTune(CurveAllocator):
    """An allocator that maximises an upper confidence bound of the weighted gain per second.

    `exploration` is c. `own_share` is the weight of the operator's own curve in the mean; it is 1
    in the paper.

    Raises:
        TuningError: `own_share` is not between 0 and 1, or `exploration` is negative.
    """

    def __init__(
        self,
        tasks: Sequence[Task],
        *,
        seed: int = 0,
        slot_trials: int = DEFAULT_SLOT_TRIALS,
        exploration: float = 0.3,
        own_share: float = 0.5,
    ) -> None:
        super().__init__(tasks, seed=seed, slot_trials=slot_trials)
        if not 0 <= own_share <= 1 or exploration < 0:
            raise TuningError(
                f"`own_share` must be from 0 to 1 and `exploration` at least 0, got {own_share} "
                f"and {exploration}."
            )
        self.exploration, self.own_share = exploration, own_share
        self._beliefs: dict[tuple[float, ...], tuple[float, float]] = {}
        self._trials_left = math.inf

    def reserve(self, trials_left: int) -> None:
        """Store the number of trials left, to keep a slot for every task."""
        self._trials_left = trials_left

    def next(self) -> Slot | None:
        """Return a slot for the operator with the largest bound, even for a first slot."""
        live = [index for index, is_live in enumerate(self.is_live) if is_live]
        if not live:
            return None
        waiting = [index for index in live if not self.curves[index]]
        is_last_chance = self._trials_left < (len(waiting) + 1) * self.slot_trials
        chosen = self.pick(waiting if waiting and is_last_chance else live)
        return Slot(self.tasks[chosen], self.slot_trials)

    def first_gain(self, index: int) -> float:
        """Return the expected gain of an operator's first slot, in weighted ms per second."""
        rates: dict[str, list[float]] = {}
        for task, curve in zip(self.tasks, self.curves, strict=True):
            if curve and math.isfinite(curve[0]):
                rates.setdefault(task.family, []).append(curve[0] / _work(task))
        task = self.tasks[index]
        everything = [rate for family_rates in rates.values() for rate in family_rates]
        rate = statistics.median(rates.get(task.family) or everything or [1.0])
        slots = [
            self.seconds_per_slot(position) for position, curve in enumerate(self.curves) if curve
        ]
        seconds = statistics.median(slots or [1.0])
        return FIRST_GAIN * task.weight * rate * _work(task) / seconds

    def pick(self, live: list[int]) -> int:
        """Return the operator with the largest bound."""
        return live[int(np.argmax([self.bound(index) for index in live]))]

    def bound(self, index: int) -> float:
        """Return mu + c * sigma * sqrt(2 ln N / n), in weighted ms per second of slot."""
        if not self.curves[index]:
            return self.first_gain(index)
        curve = [latency for latency in self.curves[index] if math.isfinite(latency)]
        if not curve:
            return math.inf  # no success yet: highest priority until the loop ends the task
        own, std = self._believed(tuple(curve))
        count = len(self.curves[index])
        typical = curve[-1] * TYPICAL_GAIN * count**-TYPICAL_DECAY
        mean = self.own_share * own + (1 - self.own_share) * typical
        slots = sum(len(history) for history in self.curves)
        spread = math.sqrt(2 * math.log(max(slots, 2)) / count)
        gain = self.tasks[index].weight * (mean + self.exploration * std * spread)
        return gain / self.seconds_per_slot(index)

    def _believed(self, curve: tuple[float, ...]) -> tuple[float, float]:
        """Return `believed_gain`, cached per curve, since a slot changes only one curve."""
        if curve not in self._beliefs:
            if len(self._beliefs) > 4 * len(self.tasks):
                self._beliefs.clear()
            self._beliefs[curve] = believed_gain(curve)
        return self._beliefs[curve]
