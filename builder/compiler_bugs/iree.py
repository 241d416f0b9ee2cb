"""Bugs of IREE and torch-mlir."""

from __future__ import annotations

import numpy as np
import torch
from torch.nn import functional

from .bug import Catalog, normals

catalog = Catalog("iree")
add = catalog.add

REPOSITORY = "iree-org/iree/issues"
TORCH_MLIR = "llvm/torch-mlir"
NAN = float("nan")

add(
    "triu", "triu is not lowered", f"{REPOSITORY}/17415", "commit 71a9945",
    "`triu` keeps the upper triangle. IREE failed to legalize `torch.aten.arange.start_step`.",
    lambda x: torch.triu(x, 1), normals(8, 9),
)  # fmt: skip
add(
    "nll-loss", "The negative log likelihood is wrong on the CPU", f"{REPOSITORY}/14934",
    "reported 2023-09",
    "The loss is the mean of the selected elements. IREE returned a different number; IREE 3.13 "
    "does not compile the graph.",
    lambda x, y: functional.nll_loss(x, y), normals(8, 16, seed=1), np.arange(8) % 16,
    is_as_reported=False,
)  # fmt: skip
add(
    "gather-strided", "A gather of a strided slice is wrong", f"{REPOSITORY}/19749",
    "reported 2025-01",
    "The slice selects every second row. IREE read other rows.",
    lambda x, i: torch.index_select(x[:, 0], 0, i), normals(57, 2, 16, seed=2).astype(np.float16),
    [3, 41],
)  # fmt: skip
add(
    "uint8-widened", "uint8 elements are widened as signed integers", f"{TORCH_MLIR}/pull/4601",
    "main of 2026-06",
    "uint8 minus int32 is int32, and 200 stays 200. torch-mlir extended the sign, so 200 became "
    "-56. ONNX's `MatMulInteger` subtracts its zero points in this way.",
    torch.sub, np.array([0, 1, 127, 128, 200, 255], np.uint8),
    np.array([1000, 0, -5, 7, 0, -255], np.int32),
)  # fmt: skip
add(
    "uint8-sum", "uint8 elements are summed as signed integers", None, "none known",
    "The sum of 200, 100 and 255 is 555. IREE extends the signs and returns 43.",
    lambda x: x.sum(), np.array([200, 100, 255], np.uint8),
)  # fmt: skip
add(
    "sort-nan", "sort puts NaN first", f"{TORCH_MLIR}/pull/4654", "main of 2026",
    "NaN counts as larger than every number, so `sort` puts it last. In IREE, comparisons with "
    "NaN are false, and NaN stays first.",
    lambda x: torch.sort(x).values, [NAN, 3.0, -1.0, 2.0, NAN, 0.0],
)  # fmt: skip
add(
    "topk-nan", "topk ignores NaN", f"{TORCH_MLIR}/pull/4654", "main of 2026",
    "NaN is the largest element. IREE returns another element first.",
    lambda x: torch.topk(x, 3).values, [1.0, 7.0, NAN, 3.0, 5.0],
)  # fmt: skip
add(
    "pow-integer", "pow of integers and a float is not lowered", f"{TORCH_MLIR}/issues/2625",
    "main of 2023-12",
    "`pow` of int64 elements and 2.5 is float32. torch-mlir emits a conversion that its verifier "
    "rejects.",
    lambda x: torch.pow(x, 2.5), [1, 2, 3, 9],
)  # fmt: skip
add(
    "remainder-negative", "The remainder of negative integers has the wrong sign",
    f"{TORCH_MLIR}/issues/3575", "main of 2024-07",
    "The remainder has the sign of the divisor. In torch-mlir it had the sign of the dividend.",
    lambda x, y: torch.remainder(x, 2 * y + 1), [-7, -4, -1, 5, 9], [1, 2, 2, -2, -3],
)  # fmt: skip
add(
    "floor-divide-negative", "Floor division of integers truncates",
    f"{TORCH_MLIR}/issues/3142", "main of 2024-04",
    "The floor of -7 / 3 is -3. torch-mlir truncated to -2. The divisors are odd and therefore "
    "never 0.",
    lambda x, y: torch.floor_divide(x, 2 * y + 1), [-7, 7, -9, 8], [1, -2, 2, 1],
)  # fmt: skip
add(
    "avg-pool-ceil", "avg_pool2d with ceil_mode divides by the whole window",
    f"{TORCH_MLIR}/pull/4144", "main of 2025-04",
    "The sum of a window that extends beyond the edge is divided by the size of its part inside "
    "the padded image. torch-mlir divided by the size of the whole window.",
    lambda x: functional.avg_pool2d(x, 3, 2, padding=1, ceil_mode=True),
    normals(1, 2, 6, 6, seed=3),
)  # fmt: skip
add(
    "maximum-nan", "maximum drops NaN", None, "none known",
    "The maximum of NaN and a number is NaN. IREE returns the number if NaN is the first operand.",
    torch.maximum, [NAN, 1.0, 2.0, NAN], [0.0, NAN, 1.0, -3.0],
)  # fmt: skip
add(
    "argmax-nan", "argmax ignores NaN", None, "none known",
    "`argmax` returns the index of NaN, here 0 and 2. IREE returns the index of the largest "
    "number.",
    lambda x: torch.argmax(x, 1), [[NAN, 3.0, 1.0], [4.0, 2.0, NAN]],
)  # fmt: skip
add(
    "floor-divide-float", "floor_divide is off by one", None, "none known",
    "The floor of 1 / 0.1 in float32 is 9, since 0.1 is slightly more than a tenth. IREE first "
    "rounds the quotient to 10.",
    lambda x, y: torch.div(x, y, rounding_mode="floor"), [1.0, 0.3, 7.0], [0.1, 0.1, -2.0],
)  # fmt: skip
