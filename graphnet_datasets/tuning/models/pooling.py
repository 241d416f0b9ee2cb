"""Fixed-length vectors of programs and of tasks, the inputs of cost models."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from ...errors import TuningError
from ..interfaces import Space
from ..measurement import Measurement
from ..task import Task

_MAX_ARGS, _MAX_RANK = 6, 5
_BYTES = {"float64": 8, "int64": 8, "float16": 2, "bfloat16": 2, "int8": 1, "uint8": 1, "bool": 1}


def pool_features(features: np.ndarray) -> np.ndarray:
    """Return float32 [2 f + 1]: the sum and maximum over stores, and the number of stores.

    >>> pool_features(np.array([[1.0, 2.0], [3.0, 0.0]], np.float32)).tolist()
    [4.0, 2.0, 3.0, 2.0, 2.0]
    """
    return np.concatenate(
        [features.sum(axis=0), features.max(axis=0), [len(features)]], dtype=np.float32
    )


def log_machine_code(code: np.ndarray) -> np.ndarray:
    """Return features of machine code on a logarithmic scale, log(1 + |x|).

    >>> log_machine_code(np.array([0.0, 1.0])).round(3).tolist()
    [0.0, 0.693]
    """
    return np.log1p(np.abs(code))


def task_vector(task: Task) -> np.ndarray:
    """Return float32 [44]: shapes and dtypes of the first six arguments, flops and bytes.

    Sizes, flops and bytes are encoded as log2(1 + x). Arguments after the sixth are ignored;
    dimensions from the fifth on are multiplied together.
    """
    sizes = np.zeros((_MAX_ARGS, _MAX_RANK + 2), np.float32)
    shapes = list(zip(task.arg_shapes, task.arg_dtypes, strict=True))[:_MAX_ARGS]
    for row, (shape, dtype) in enumerate(shapes):
        merged_shape = [
            *shape[: _MAX_RANK - 1],
            *([math.prod(shape[4:])] if len(shape) > 4 else []),
        ]
        sizes[row, : len(merged_shape)] = [math.log2(1 + size) for size in merged_shape]
        sizes[row, _MAX_RANK] = _BYTES.get(dtype, 4)
        sizes[row, _MAX_RANK + 1] = dtype.startswith(("float", "bfloat"))
    totals = [math.log2(1 + task.flops), math.log2(1 + task.bytes)]
    return np.concatenate([sizes.ravel(), totals], dtype=np.float32)


def features_of_rows(space: Space, rows: Sequence[Measurement]) -> list[np.ndarray | None]:
    """Return the features of each row: recorded, or else computed by the space, or None.

    Raises:
        TuningError: recorded features belong to another feature set than that of the space.
    """
    for row in rows:
        if row.features is not None and row.feature_set != space.feature_set:
            raise TuningError(
                f"A record has features of `{row.feature_set}`, but the space computes "
                f"`{space.feature_set}`. Train on records of a single feature set."
            )
    missing = [index for index, row in enumerate(rows) if row.features is None]
    computed = dict(
        zip(missing, space.features_of([rows[index].candidate for index in missing]), strict=True)
    )
    return [computed[i] if row.features is None else row.features for i, row in enumerate(rows)]
