"""Bugs of OpenVINO: its CPU plugin and its frontend for torch."""

from __future__ import annotations

import numpy as np
import torch
from torch.nn import functional

from .bug import Catalog

NAN = float("nan")

catalog = Catalog("openvino")
add = catalog.add

REPOSITORY = "openvinotoolkit/openvino/issues"
V1 = "2026.1.0"

add(
    "relu-nan", "ReLU of NaN is 0", f"{REPOSITORY}/35649", V1,
    "ReLU of NaN is NaN. OpenVINO returns 0.", torch.relu, [NAN, -1.0, 0.0, 1.0, NAN, 3.0],
)  # fmt: skip
add(
    "max-pool-all-nan", "Max pooling of NaN is the lowest float", f"{REPOSITORY}/35935", V1,
    "The maximum of a window of NaN is NaN. OpenVINO returns -3.4e38.",
    lambda x: functional.max_pool2d(x, 3, 1), np.full((1, 1, 3, 3), NAN, np.float32),
)  # fmt: skip
add(
    "argmin-nan", "argmin ignores NaN", f"{REPOSITORY}/35886", V1,
    "`argmin` returns the index of NaN, here 2. OpenVINO returns the index of the smallest number.",
    lambda x: torch.argmin(x), [4.0, 2.0, NAN, 6.0, 1.0, 3.0],
)  # fmt: skip
add(
    "amin-nan", "The minimum of a tensor with NaN is another element", f"{REPOSITORY}/35928", V1,
    "The minimum is NaN. OpenVINO returns 5, which is not even the smallest number.",
    lambda x: torch.amin(x), [2.0, 8.0, NAN, 5.0, 6.0],
)  # fmt: skip
add(
    "uint8-add", "Addition of uint8 saturates", f"{REPOSITORY}/35647", V1,
    "Sums of uint8 wrap modulo 256. OpenVINO returns 255.",
    torch.add, np.array([200, 100, 255, 128, 3], np.uint8),
    np.array([100, 200, 10, 200, 4], np.uint8),
)  # fmt: skip
add(
    "uint8-multiply", "Multiplication of uint8 saturates", f"{REPOSITORY}/35646", V1,
    "Products of uint8 wrap modulo 256. OpenVINO returns 255.",
    torch.mul, np.array([200, 100, 50, 10], np.uint8), np.array([200, 3, 6, 30], np.uint8),
)  # fmt: skip
add(
    "uint8-subtract", "Subtraction of uint8 saturates", f"{REPOSITORY}/33518", "reported 2026-01",
    "Differences of uint8 wrap modulo 256. OpenVINO returns 0.",
    torch.sub, np.array([10, 100, 0, 128], np.uint8), np.array([100, 200, 1, 3], np.uint8),
)  # fmt: skip
add(
    "floor-divide-negative", "Floor division of integers truncates", f"{REPOSITORY}/38248",
    "2026.4.0",
    "The floor of -5 / 2 is -3. OpenVINO returns -2.",
    lambda x, y: torch.div(x, y, rounding_mode="floor"),
    [-5, 5, -7, 7, 9, -9], [2, 2, 3, 3, 4, 4],
)  # fmt: skip
add(
    "power-int64", "Power of int64 is computed in float32", f"{REPOSITORY}/35838", V1,
    "13 to the power of 8 is 815730721. OpenVINO returns a number close to it.",
    torch.pow, [13, 17, 19, 23], [8, 7, 7, 6],
)  # fmt: skip
add(
    "divide-int32", "Division of int32 is computed in float32", f"{REPOSITORY}/35830", V1,
    "Integer division is exact. OpenVINO returns numbers close to the quotients.",
    lambda x, y: torch.div(x, y, rounding_mode="trunc"),
    np.array([777777777, 1111111111, 1900000000, -1999999999], np.int32),
    np.array([11, 11, 11, 11], np.int32),
)  # fmt: skip
add(
    "remainder-int64", "Remainder of int64 is computed in float32", f"{REPOSITORY}/35829", V1,
    "Remainders are exact. OpenVINO returns wrong numbers, some of them negative.",
    torch.remainder, [3, 1234567890, 999999999, 1999999993, 1500000001], [13, 13, 13, 13, 13],
)  # fmt: skip
add(
    "divide-int64", "Division of int64 is computed in 32 bits", f"{REPOSITORY}/37766", V1,
    "The quotient of 2**40 and 11 is 99955602525. OpenVINO narrows the inputs to int32.",
    lambda x, y: torch.div(x, y, rounding_mode="trunc"),
    [2**62, 2**40, 2**31, 2**31 - 1, 99], [11, 11, 11, 11, 11],
)  # fmt: skip
add(
    "sum-int64", "int64 elements are narrowed to int32", f"{REPOSITORY}/37766", V1,
    "The largest element is 2**40. OpenVINO computes int64 in int32, so the sum overflows.",
    lambda x: x.sum(), [2**40, 2**33, -5, 17],
)  # fmt: skip
add(
    "logsumexp-overflow", "logsumexp overflows", f"{REPOSITORY}/35648", V1,
    "The largest element is subtracted before the exponential, so the result is finite. "
    "OpenVINO's `ReduceLogSumExp` returns infinity.",
    lambda x: torch.logsumexp(x, 1), [[100.0, 88.0, 50.0], [200.0, -10.0, 1.0]],
)  # fmt: skip
