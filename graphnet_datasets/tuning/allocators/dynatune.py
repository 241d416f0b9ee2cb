"""DynaTune: operators as arms of a bandit, with a belief over how their curves go on.

Zhang et al., "DynaTune: Dynamic Tensor Program Optimization in Deep Neural Network Compilation",
ICLR 2021. Each slot goes to the operator with the largest

    mu_o + c * sigma_o * sqrt(2 ln N / n_o)

where mu_o and sigma_o are mean and standard deviation of the belief over the gain of one more slot,
w_o * (L_o(t) - L_o(t + 1)); N counts all slots, n_o those of o.

The belief is over saturating curves L(t) = floor + drop * f(t; theta), f one of

    power law     (t)^-theta
    exponential   e^(-theta (t - 1))
    Weibull       e^(-(theta (t - 1))^k)

Ours: the paper samples parameters with Markov chains. Given theta (and k) the curve is linear in
floor and drop, so that their posterior is that of a conjugate linear regression, in closed form,
and theta runs over a grid, each point weighed by its marginal likelihood. That is the same belief
without sampling noise, in a millisecond. The noise is never believed to be below 2 %: best-so-far
curves are steps, and a long flat stretch does not say that there is no step to come. Curves are
normalised by their first value, and the prior of the floor is around the last value seen: a tuned
operator hardly halves again. Gains are in weighted ms per second of slot, since slots differ in
length, and never negative, though a fitted tail may rise within its noise: mean and deviation are
those of the positive part of each member of the mixture.

Of the mean one half is that belief, the other what operators gain in general: a share of the last
value, `TYPICAL_GAIN` n_o^-`TYPICAL_DECAY`. Best-so-far curves of a few slots are steps that come by
luck: over the slots of real operators what their own curve promised and what came were
uncorrelated (-0.1 to 0.25), and what told them apart was the number of the slot. c = 0.3.

Ours, too: the paper gives every operator a slot before it chooses. Here a first slot competes with
second and third ones of others, since an operator that is a thousandth of the total can wait: its
gain is `FIRST_GAIN` times the latency that is expected of it, which is that of the tasks of its
family that were measured, in proportion to flops and bytes. What the budget still has is looked at
before each slot, so that every operator gets one.
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
"""Of Weibull; 1 is the exponential."""

FIRST_GAIN = 2.0
"""What the first slot gains, as a multiple of the best that it finds: schedules drawn at random, or
none at all, are that much slower."""
TYPICAL_GAIN, TYPICAL_DECAY = 0.24, 1.3
"""What the slot after the first gains of an operator's latency, and with which power of the number
of slots that falls: the mean over operators of real graphs, each slot four trials."""
_FLOPS_PER_BYTE = 4
"""How many operations a byte of memory counts for where latencies are not known."""

_FLOOR_MEAN, _FLOOR_STD = 0.6, 0.4
"""Prior of the floor, as a share of the last value seen; of the drop, around what was seen."""
_DROP_STD = 1.0
_NOISE_SHAPE, _NOISE_SCALE = 2.0, 2.0 * 0.03**2
"""Inverse gamma prior of the noise's variance: about 3 % of the first value."""
_LEAST_NOISE = 0.02**2


def _bases(times: np.ndarray) -> np.ndarray:
    """Return f(t; theta) of every member of the families, float64 [members, t]; t counts from 1."""
    power = times[None, :] ** -_POWERS[:, None]
    scaled = _RATES[:, None] * (times - 1)[None, :]
    return np.concatenate([power, np.exp(-scaled), *(np.exp(-(scaled**k)) for k in _SHAPES)])


def believed_gain(curve: Sequence[float], ahead: float = 1.0) -> tuple[float, float]:
    """Return mean and standard deviation of how much lower a curve will be, `ahead` slots on.

    `curve` is the best value after each slot, finite and not rising; the gain is in its unit.

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
    # The gain is linear in floor and drop too, so that it is normal in each member.
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
    """Return the first two moments of max(X, 0), X normal."""
    z = mean / std
    density = np.exp(-0.5 * z**2) / math.sqrt(2 * math.pi)
    first = mean * ndtr(z) + std * density
    second = (mean**2 + std**2) * ndtr(z) + mean * std * density
    return first, second


def _work(task: Task) -> int:
    """Return a number to which the latency of a task should be about proportional."""
    return max(task.flops + _FLOPS_PER_BYTE * task.bytes, 1)


class DynaTune(CurveAllocator):
    """The operator with the largest upper confidence bound of weighted gain per second.

    `exploration` is c; `own_share` how much of the mean is the belief over the operator's own
    curve. The paper has 1.

    Raises:
        TuningError: the share is not between 0 and 1, or c is negative.
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
                f"`own_share` is {own_share} and `exploration` {exploration}. The first is a share "
                "from 0 to 1, the second is not negative."
            )
        self.exploration, self.own_share = exploration, own_share
        self._beliefs: dict[tuple[float, ...], tuple[float, float]] = {}
        self._trials_left = math.inf

    def reserve(self, trials_left: int) -> None:
        """Remember it, so that no task is left without a slot."""
        self._trials_left = trials_left

    def next(self) -> Slot | None:
        """Return a slot for the operator with the largest bound, measured before or not."""
        live = [index for index, is_live in enumerate(self.is_live) if is_live]
        if not live:
            return None
        waiting = [index for index in live if not self.curves[index]]
        is_last_chance = self._trials_left < (len(waiting) + 1) * self.slot_trials
        chosen = self.pick(waiting if waiting and is_last_chance else live)
        return Slot(self.tasks[chosen], self.slot_trials)

    def first_gain(self, index: int) -> float:
        """Return the weighted ms per second that the first slot of an operator should gain."""
        rates: dict[str, list[float]] = {}
        for task, curve in zip(self.tasks, self.curves, strict=True):
            if curve and math.isfinite(curve[0]):
                rates.setdefault(task.family, []).append(curve[0] / _work(task))
        task = self.tasks[index]
        everything = [rate for of_family in rates.values() for rate in of_family]
        rate = statistics.median(rates.get(task.family) or everything or [1.0])
        slots = [self.seconds_per_slot(each) for each, curve in enumerate(self.curves) if curve]
        seconds = statistics.median(slots or [1.0])
        return FIRST_GAIN * task.weight * rate * _work(task) / seconds

    def pick(self, live: list[int]) -> int:
        """Return the operator with the largest bound."""
        return live[int(np.argmax([self.bound(index) for index in live]))]

    def bound(self, index: int) -> float:
        """Return mu + c * sigma * sqrt(2 ln N / n), in weighted ms per second of slot."""
        if not self.curves[index]:
            return self.first_gain(index)
        curve = [each for each in self.curves[index] if math.isfinite(each)]
        if not curve:
            return math.inf  # never ok: until the loop ends it, nothing is worth more
        own, std = self._believed(tuple(curve))
        count = len(self.curves[index])
        typical = curve[-1] * TYPICAL_GAIN * count**-TYPICAL_DECAY
        mean = self.own_share * own + (1 - self.own_share) * typical
        slots = sum(len(each) for each in self.curves)
        spread = math.sqrt(2 * math.log(max(slots, 2)) / count)
        gain = self.tasks[index].weight * (mean + self.exploration * std * spread)
        return gain / self.seconds_per_slot(index)

    def _believed(self, curve: tuple[float, ...]) -> tuple[float, float]:
        """Return `believed_gain`, worked out once for each curve: a slot changes one of them."""
        if curve not in self._beliefs:
            if len(self._beliefs) > 4 * len(self.tasks):
                self._beliefs.clear()
            self._beliefs[curve] = believed_gain(curve)
        return self._beliefs[curve]
