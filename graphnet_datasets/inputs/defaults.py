"""Default statistics for tensors without recorded statistics, similar to common initializations."""

from __future__ import annotations

import math

from ..sample import Statistics
from ..sample.vocabulary import Role


def default_statistics(
    role: Role, source_name: str, shape: tuple[int, ...], dtype: str
) -> Statistics:
    """Return the default statistics of a tensor.

    Data inputs are standard normal. Scales and variances of normalizations are positive and near
    one. Matrices and kernels have variance 1 / fan-in. Other tensors are near zero. Integers are
    zero or one and booleans are True, which is valid for every index and mask.

    >>> default_statistics("parameter", "layer.weight", (64, 16), "float32").std
    0.25
    """
    if dtype == "bool":
        return _unmeasured(1.0, 0.0, 1.0, 1.0)
    if "float" not in dtype and "complex" not in dtype:
        return _unmeasured(0.5, 0.5, 0.0, 1.0)
    if role in ("input", "scalar"):
        return _unmeasured(0.0, 1.0)
    name = source_name.lower()
    if "running_var" in name or "moving_variance" in name:
        return _unmeasured(1.0, 0.1, 0.5, 1.5)
    if "bias" in name or "running_mean" in name or "moving_mean" in name:
        return _unmeasured(0.0, 0.02)
    if len(shape) >= 2:
        fan_in = max(1, math.prod(shape[1:]))
        return _unmeasured(0.0, 1 / math.sqrt(fan_in))
    if role == "parameter" and shape:
        return _unmeasured(1.0, 0.1, 0.5, 1.5)
    return _unmeasured(0.0, 0.02)


def _unmeasured(
    mean: float, std: float, minimum: float | None = None, maximum: float | None = None
) -> Statistics:
    return Statistics(mean, std, minimum, maximum, is_measured=False)
