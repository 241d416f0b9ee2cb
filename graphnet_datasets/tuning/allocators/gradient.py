"""Ansor's task scheduler: the next slot goes to the task with the largest end-to-end gain.

Zheng et al., "Ansor: Generating High-Performance Tensor Programs for Deep Learning", OSDI 2020,
section 6. The objective is f = sum_i w_i g_i(t_i), g_i the best latency of task i after t_i slots.
The gain of one more slot is estimated as

    |df/dg_i * (alpha * (g_i(t_i) - g_i(t_i - D)) / D
                + (1 - alpha) * min(-g_i(t_i) / t_i,  beta * C_i / max_{k in N(i)} V_k - g_i(t_i)))|

where C_i are the flops of task i, and V_k the flop/s reached by a similar task k. The first term is
the gain over the last D slots. The second is the more optimistic of two estimates: with t_i more
slots the latency drops to zero, or it comes within beta of that of similar tasks.

Differences from the paper: tasks of the same family and dtype are similar (the paper leaves this
open), and tasks without a success come first until the loop ends them. alpha = 0.2, beta = 2, D = 3
and epsilon = 0.05 are the defaults of TVM's implementation, which MetaSchedule kept without the
term of similar tasks.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from ..task import Task
from .base import DEFAULT_SLOT_TRIALS, CurveAllocator


class GradientAllocator(CurveAllocator):
    """An allocator that picks the largest estimated gain, or a random task at rate `epsilon`."""

    def __init__(
        self,
        tasks: Sequence[Task],
        *,
        seed: int = 0,
        slot_trials: int = DEFAULT_SLOT_TRIALS,
        alpha: float = 0.2,
        beta: float = 2.0,
        window: int = 3,
        epsilon: float = 0.05,
        use_similarity: bool = True,
    ) -> None:
        super().__init__(tasks, seed=seed, slot_trials=slot_trials)
        self.alpha, self.beta, self.window, self.epsilon = alpha, beta, window, epsilon
        self.use_similarity = use_similarity

    def pick(self, live: list[int]) -> int:
        """Return the index of the task with the largest gain."""
        self.draws += 1
        rng = np.random.default_rng([self.seed, self.draws])
        if rng.random() < self.epsilon:
            return int(rng.choice(live))
        gains = [self.gain(index) for index in live]
        return live[int(np.argmax(gains))]

    def gain(self, index: int) -> float:
        """Return the estimated gain of one more slot in weighted ms, by the formula above."""
        curve = self.curves[index]
        best = curve[-1]
        if math.isinf(best):
            return math.inf
        slots = len(curve)
        earlier_best = curve[-1 - self.window] if slots > self.window else math.inf
        backward = 0.0 if math.isinf(earlier_best) else (best - earlier_best) / self.window
        forward = -best / slots
        fastest = self._similar_flops_per_ms(index)
        if self.use_similarity and fastest > 0:
            forward = min(forward, self.beta * self.tasks[index].flops / fastest - best)
        weighted = self.alpha * backward + (1 - self.alpha) * forward
        return abs(self.tasks[index].weight * weighted)

    def _similar_flops_per_ms(self, index: int) -> float:
        """Return the largest flops per ms of other tasks of its family and dtype, or 0."""
        own = self.tasks[index]
        return max(
            (
                other.flops / curve[-1]
                for position, (other, curve) in enumerate(zip(self.tasks, self.curves, strict=True))
                if position != index
                and (other.family, other.arg_dtypes[:1]) == (own.family, own.arg_dtypes[:1])
                and curve
                and math.isfinite(curve[-1])
            ),
            default=0.0,
        )
