"""Bugs of ONNX Runtime and of torch's exporter to ONNX."""

from __future__ import annotations

import numpy as np
import torch
from torch.nn import functional

from .bug import Catalog, normals

NAN = float("nan")
WINDOWS = [NAN, 1, 2, 3, 4, 5, 6, 7, 8, 9, -1, 9, 1, -1, NAN, 0]

catalog = Catalog("onnxruntime")
add = catalog.add

add(
    "avg-pool-divisor", "avg_pool2d ignores divisor_override", "pytorch/pytorch/issues/105349",
    "torch 1.9.1 to 2.0.1 (an error), 2.13.0 (ignored)",
    "The sum of each window is divided by `divisor_override`. The exported model divides by the "
    "size of the window.",
    lambda x: functional.avg_pool2d(x, 3, 2, 1, divisor_override=2), normals(1, 2, 8, 8),
)  # fmt: skip
add(
    "floor-divide-float", "floor_divide is off by one", "microsoft/onnxscript/issues/989",
    "onnxscript of 2023-08",
    "The floor of 1 / 0.1 in float32 is 9, since 0.1 is slightly more than a tenth. The exported "
    "model first rounds the quotient to 10.",
    lambda x, y: torch.div(x, y, rounding_mode="floor"),
    [1.0, 0.3, -0.3, 7.0, -7.0], [0.1, 0.1, 0.1, -2.0, 2.0],
)  # fmt: skip
add(
    "max-pool-nan", "Max pooling returns a number for a window with NaN",
    "microsoft/onnxruntime/issues/24819", "reported 2025-05",
    "The maximum of a window with NaN is NaN. ONNX Runtime returns another element.",
    lambda x: functional.max_pool2d(x, 2),
    np.array(WINDOWS, np.float32).reshape(1, 1, 4, 4),
)  # fmt: skip
add(
    "reduce-max-nan", "The maximum of three NaNs and a number is the number",
    "microsoft/onnxruntime/issues/10514", "1.10.0",
    "The maximum is NaN. ONNX Runtime returned the number if three NaNs precede it.",
    lambda x: torch.amax(x, 0), [NAN, NAN, NAN, 42.0],
)  # fmt: skip
add(
    "max-pool-ceil", "Max pooling with ceil_mode returns large numbers",
    "microsoft/onnxruntime/issues/16350", "1.14.2",
    "Windows that extend beyond the edge ignore the padding. ONNX Runtime returned large numbers "
    "there.",
    lambda x: functional.max_pool2d(x, 3, 2, ceil_mode=True), normals(1, 2, 6, 6, seed=1),
)  # fmt: skip
add(
    "avg-pool-ceil", "avg_pool2d with ceil_mode counts elements outside the input",
    "microsoft/onnxscript/pull/754", "ONNX Runtime of 2023-05",
    "The sum of a window that extends beyond the edge is divided by the size of its part inside. "
    "ONNX Runtime divided by the size of the whole window.",
    lambda x: functional.avg_pool2d(x, 3, 2, ceil_mode=True),
    np.arange(1, 17, dtype=np.float32).reshape(1, 1, 4, 4),
)  # fmt: skip
add(
    "avg-pool-ceil-mode", "ceil_mode of avg_pool2d is lost", "pytorch/pytorch/issues/99424",
    "torch 2.0.0",
    "With `ceil_mode` the output has 4 rows. The exported model of torch 2.0 had 3.",
    lambda x: functional.avg_pool2d(x, 4, 2, ceil_mode=True), normals(1, 3, 9, 9, seed=2),
)  # fmt: skip
add(
    "fmod-promotion", "fmod of integers and a float is not promoted",
    "pytorch/pytorch/issues/48739", "torch of 2020-12",
    "`fmod` of integers and 2.5 is float32. The exporter of torch 1.8 did not promote the "
    "integers.",
    lambda x: torch.fmod(x, 2.5), [2, 3, 4, 5, -7],
)  # fmt: skip
add(
    "remainder-promotion", "remainder of integers and a float is not promoted",
    "pytorch/pytorch/issues/48739", "torch of 2020-12",
    "`remainder` of integers and 2.5 is float32. The exporter of torch 1.8 did not promote the "
    "integers.",
    lambda x: torch.remainder(x, 2.5), [2, 3, 4, 5, -7],
)  # fmt: skip
add(
    "avg-pool-stride", "avg_pool2d without a stride is exported without strides",
    "pytorch/pytorch/issues/105183", "torch of 2023-07",
    "The stride is the size of the window. The exported model was invalid.",
    lambda x: functional.avg_pool2d(x, 4), normals(1, 2, 8, 8, seed=3),
)  # fmt: skip
add(
    "logaddexp-overflow", "logaddexp overflows", None, "none known",
    "`logaddexp(1000, 1000)` is 1000.69. The exported model computes exponentials of the inputs "
    "and returns infinity.",
    torch.logaddexp, [1000.0, 1.0, 90.0, -3.0], [1000.0, 2.0, 91.0, 5.0],
)  # fmt: skip
add(
    "sum-int64", "Sums of int64 are rounded", None, "none known",
    "2**53 + 1 + 1 + 1 is 9007199254740995. ONNX Runtime returns 9007199254740996.",
    lambda x: x.sum(), [2**53, 1, 1, 1],
)  # fmt: skip
add(
    "remainder-infinite", "remainder by infinity is NaN", None, "none known",
    "The remainder of 1 divided by infinity is 1. The exported model multiplies infinity by 0.",
    torch.remainder, [1.0, 5.0, 0.5, 7.0], [float("inf"), float("inf"), 3.0, float("inf")],
)  # fmt: skip
