"""Calibrate a sample of paddle: its graph, run operator by operator on the CPU."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import paddle

from ...errors import CalibrationError
from ...inputs.calibration import Moments, calibrate_by
from ...sample import Sample
from .materialize import materialize
from .plan import Plan, Step
from .tensors import make_input, make_inputs


def calibrate(
    sample: Sample,
    *,
    memory_limit_bytes: int | None = None,
    allow_unchecked_operators: bool = False,
    trust_remote_code: bool = False,  # noqa: ARG001 - its table refuses every custom operator
) -> Sample:
    """Return the sample with statistics that fit its graph; see `graphnet_datasets.calibrate`.

    Raises:
        CalibrationError: an operator of the graph fails.
        UnknownOperatorError, MemoryLimitError, MaterializeError: as `materialize`.
    """
    layer = materialize(
        sample,
        memory_limit_bytes=memory_limit_bytes,
        allow_unchecked_operators=allow_unchecked_operators,
    )
    with paddle.no_grad():
        return calibrate_by(sample, lambda each, seed: _Backend(layer.plan, each, seed))


class _Backend:
    """Runs single operators of a plan, with the lists of values that they take."""

    def __init__(self, plan: Plan, sample: Sample, seed: int) -> None:
        paddle.seed(seed)
        self.seed = seed
        self.sample = sample
        self.slots: list[Any] = [
            *make_inputs(sample, seed).values(), *plan.template[len(sample.inputs) :]
        ]  # fmt: skip
        self.groups: dict[int, list[Step]] = {}
        group: list[Step] = []
        first = len(sample.inputs)
        for step in plan.steps:
            group.append(step)
            if first <= step.own < first + sample.num_ops:
                self.groups[step.own - first] = group
                group = []

    def run(self, position: int) -> None:
        try:
            for call, arguments, own, _ in self.groups[position]:
                self.slots[own] = call(*arguments(self.slots))
        except Exception as error:
            op = self.sample.ops[position]
            lines = str(error).strip().splitlines() or [""]
            raise CalibrationError(
                f"Op {position} (`{op.target}`) of `{self.sample.id}` fails when it is run: "
                f"{type(error).__name__}: {lines[-1][:300]}"
            ) from error

    def make_input(self, sample: Sample, index: int) -> None:
        self.slots[index] = make_input(sample, index, self.seed)

    def root_mean_square(self, value: int) -> float | None:
        values = self._array(value)
        if values is None or not values.size:
            return None
        finite = values[np.isfinite(values)]
        return float(np.sqrt(np.square(finite, dtype=np.float64).mean())) if finite.size else None

    def channel_moments(self, value: int) -> Moments | None:
        values = self._array(value)
        if values is None or values.ndim < 2 or not values.size:
            return None
        axes = (0, *range(2, values.ndim))
        means = values.mean(axes, dtype=np.float64)
        variances = values.var(axes, dtype=np.float64)
        return Moments(
            float(means.mean()), float(means.std()), float(variances.mean()), float(variances.std())
        )

    def free(self, value: int) -> None:
        self.slots[value] = None

    def _array(self, value: int) -> npt.NDArray | None:
        tensor = self.slots[value]
        if not isinstance(tensor, paddle.Tensor) or not tensor.is_floating_point():
            return None
        return tensor.detach().astype("float32").numpy()
