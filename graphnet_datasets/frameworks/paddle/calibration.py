"""Calibration of Paddle samples: run the graph one operator at a time on the CPU."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator

import numpy as np
import numpy.typing as npt
import paddle

from ...errors import CalibrationError
from ...inputs.calibration import Moments
from ...sample import Sample
from .materialize import materialize
from .stepping import Stepper


@contextlib.contextmanager
def starting(
    sample: Sample,
    *,
    device: str = "cpu",
    memory_limit_bytes: int | None = None,
    allow_unchecked_operators: bool = False,
    trust_remote_code: bool = False,  # noqa: ARG001 - custom operators are rejected
) -> Iterator[Callable[[Sample, int], _Backend]]:
    """Yield a function that starts a run of a sample with the inputs of a seed.

    Raises:
        CalibrationError: an operator of the graph fails, or the device is not the CPU.
        UnknownOperatorError, MemoryLimitError, MaterializeError: as `materialize`.
    """
    if device != "cpu":
        raise CalibrationError(
            f"`{sample.id}` is a sample of paddle, which is calibrated on the CPU, not on "
            f"{device[:40]!r}. Leave `device` out."
        )
    layer = materialize(
        sample,
        memory_limit_bytes=memory_limit_bytes,
        allow_unchecked_operators=allow_unchecked_operators,
    )
    with paddle.no_grad():
        yield lambda changed, seed: _Backend(layer.plan, changed, seed)


class _Backend(Stepper):
    """Statistics of a run's intermediate values, for the calibration."""

    def root_mean_square(self, value: int) -> float | None:
        values = self._array(value)
        return None if values is None else _root_mean_square(values)

    def distance(self, value: int, other: _Backend) -> float | None:
        first, second = self._array(value), other._array(value)
        if first is None or second is None or first.shape != second.shape:
            return None
        return _root_mean_square(first - second)

    def array(self, value: int) -> npt.NDArray[np.float32] | None:
        tensor = self.tensor(value)
        if tensor is not None and tensor.dtype == paddle.bool:
            return tensor.detach().astype("float32").numpy()
        return self._array(value)

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

    def _array(self, value: int) -> npt.NDArray | None:
        tensor = self.tensor(value)
        if tensor is None or not tensor.is_floating_point():
            return None
        return tensor.detach().astype("float32").numpy()


def _root_mean_square(values: npt.NDArray) -> float | None:
    finite = values[np.isfinite(values)]
    return float(np.sqrt(np.square(finite, dtype=np.float64).mean())) if finite.size else None
