"""Bugs of TVM: Relax, its frontend for exported programs of torch, and TIR."""

from __future__ import annotations

import numpy as np
import torch
from torch.nn import functional

from .bug import Catalog, normals

NAN = float("nan")
EDGES = [NAN, 1.5, -2.0, 0.0, NAN, 3.0, -0.5, 7.0]
WINDOWS = [NAN, 1, 2, 3, 4, 5, 6, 7, 8, 9, -1, 9, 1, -1, NAN, 0]
OTHERS = [1.0, NAN, -1.0, 2.0, -3.0, 0.5, NAN, 6.0]

catalog = Catalog("tvm")
add = catalog.add

NAN_REPORT = "apache/tvm/issues/19579"
NAN_VERSIONS = "main of 2026-05"
SCAN_REPORT = "apache/tvm/pull/20374"
REDUCE_REPORT = "apache/tvm/pull/20376"
REDUCE_VERSIONS = "main of 2026-09"

add(
    "maximum-nan", "maximum drops NaN", NAN_REPORT, NAN_VERSIONS,
    "The maximum of NaN and a number is NaN. TVM returns the number if NaN is the first operand, "
    "as the instruction `maxss` does.",
    torch.maximum, EDGES, OTHERS,
)  # fmt: skip
add(
    "minimum-nan", "minimum drops NaN", NAN_REPORT, NAN_VERSIONS,
    "The minimum of NaN and a number is NaN. TVM returns the number if NaN is the first operand.",
    torch.minimum, EDGES, OTHERS,
)  # fmt: skip
add(
    "relu-nan", "ReLU of NaN is 0", NAN_REPORT, NAN_VERSIONS,
    "ReLU of NaN is NaN. TVM returns 0.", torch.relu, EDGES,
)  # fmt: skip
add(
    "clip-nan", "clamp replaces NaN with a bound", NAN_REPORT, NAN_VERSIONS,
    "`clamp` keeps NaN. TVM returns a bound.", lambda x: torch.clamp(x, -1.0, 1.0), EDGES,
)  # fmt: skip
add(
    "clamp-min-nan", "clamp_min replaces NaN with the bound", NAN_REPORT, NAN_VERSIONS,
    "`clamp_min` keeps NaN. TVM returns the bound.", lambda x: torch.clamp_min(x, 0.25), EDGES,
)  # fmt: skip
add(
    "relu6-nan", "ReLU6 of NaN is a bound", NAN_REPORT, NAN_VERSIONS,
    "ReLU6 of NaN is NaN. TVM returns a bound of the clip that it lowers to.",
    functional.relu6, EDGES,
)  # fmt: skip
add(
    "max-pool-nan", "Max pooling ignores NaN", NAN_REPORT, NAN_VERSIONS,
    "The maximum of a window with NaN is NaN. TVM ignores NaN at some positions of the window.",
    lambda x: functional.max_pool2d(x, 2),
    np.array(WINDOWS, np.float32).reshape(1, 1, 4, 4),
)  # fmt: skip
add(
    "pow-integers", "Power of integer tensors does not compile", "apache/tvm/issues/19550",
    "main of 2026-05",
    "Powers of integers are integers. TVM raises `power only applies to float`.",
    torch.pow, [1, 2, -3, 5, -1, 4], [3, 2, 3, 1, 4, 0],
)  # fmt: skip
add(
    "pow-constant-integer", "Constant power of an integer tensor does not compile",
    "apache/tvm/issues/19550", "main of 2026-05",
    "`x.pow(4)` of int64 is int64. TVM raised `power only applies to float`.",
    lambda x: x.pow(4), [-1, 1, 2, 3, -5, 7],
)  # fmt: skip
add(
    "avg-pool-divisor", "avg_pool2d ignores divisor_override", "apache/tvm/issues/14795",
    "0.13.dev0",
    "The sum of each window is divided by `divisor_override`. TVM divides by the size of the "
    "window.",
    lambda x: functional.avg_pool2d(x, 2, divisor_override=1), normals(1, 2, 4, 4),
)  # fmt: skip
add(
    "cumsum-int32", "cumsum of int32 stays int32", SCAN_REPORT, REDUCE_VERSIONS,
    "`cumsum` of integers accumulates in int64. TVM accumulates in int32, which overflows.",
    lambda x: torch.cumsum(x, 0), np.array([2**30, 2**30, 5, 2**30, -7], np.int32),
)  # fmt: skip
add(
    "cumsum-uint8", "cumsum of uint8 stays uint8", SCAN_REPORT, REDUCE_VERSIONS,
    "`cumsum` of integers accumulates in int64. TVM accumulates in uint8, which wraps.",
    lambda x: torch.cumsum(x, 0), np.array([200, 100, 50, 7], np.uint8),
)  # fmt: skip
add(
    "cumsum-bool", "cumsum of booleans does not compile", SCAN_REPORT, REDUCE_VERSIONS,
    "`cumsum` of booleans counts in int64. TVM raises an internal error.",
    lambda x: torch.cumsum(x > 0.0, 0), [0.5, -1.0, 2.0, 3.0],
)  # fmt: skip
add(
    "cumprod-int32", "cumprod of int32 stays int32", SCAN_REPORT, REDUCE_VERSIONS,
    "`cumprod` of integers accumulates in int64. TVM accumulates in int32, which overflows.",
    lambda x: torch.cumprod(x, 0), np.array([65536, 65536, 2, 3], np.int32),
)  # fmt: skip
add(
    "any-whole", "any() of a whole tensor is not imported", REDUCE_REPORT, REDUCE_VERSIONS,
    "`x.any()` is a boolean. TVM raises `Unsupported function types ['any.default']`.",
    lambda x: (x > 0.0).any(), [-0.5, -1.0, 2.0, -3.0],
)  # fmt: skip
add(
    "any-int32", "any along a dimension returns the maximum", REDUCE_REPORT, REDUCE_VERSIONS,
    "`x.any(1)` is boolean. TVM returns the largest element of each row in int32.",
    lambda x: x.any(1), np.array([[0, 0, 5], [0, 0, 0], [7, 1, 2]], np.int32),
)  # fmt: skip
add(
    "prod-dim", "prod along a dimension is not imported", REDUCE_REPORT, REDUCE_VERSIONS,
    "`x.prod(1)` multiplies each row. TVM raises `Unsupported function types ['prod.dim_int']`.",
    lambda x: x.prod(1), normals(3, 4, seed=1),
)  # fmt: skip
add(
    "prod-int32", "prod of int32 stays int32", REDUCE_REPORT, REDUCE_VERSIONS,
    "`prod` of integers accumulates in int64. TVM accumulates in int32, which overflows.",
    lambda x: x.prod(), np.array([2**20, 2**20, 2, 3], np.int32),
)  # fmt: skip
add(
    "mean-dtype", "mean ignores dtype", "apache/tvm/issues/20230", "main of 2026-08",
    "`mean(dtype=torch.float64)` returns float64. TVM returns the dtype of the input.",
    lambda x: torch.mean(x, 1, dtype=torch.float64), normals(3, 4, seed=2),
)  # fmt: skip
add(
    "index-negative", "Negative indices read outside the tensor", "apache/tvm/issues/19531",
    "0.14 to main of 2026-05",
    "An index of -1 selects the last row. TVM uses it as an offset and reads memory before the "
    "tensor.",
    lambda x, i: x[i], normals(5, 3, seed=3), [-1, 0, -5],
)  # fmt: skip
add(
    "index-negative-pairs", "Negative indices of two dimensions read outside the tensor",
    "apache/tvm/issues/20297", "main of 2026-09",
    "Negative indices count from the end. TVM uses them as offsets.",
    lambda x, i, j: x[i, j], normals(5, 3, seed=4), [-1, 2, -3], [0, -2, 1],
)  # fmt: skip
add(
    "index-separated", "Advanced indices on both sides of a slice form an outer product",
    "apache/tvm/pull/19732", "reported 2026-06",
    "Two index vectors of equal length select pairs: shape (2, 3). TVM applies one after the "
    "other, which returns an outer product of shape (2, 3, 2).",
    lambda x, i, j: x[i, :, j], normals(5, 3, 4, seed=5), [1, 2], [0, 3],
)  # fmt: skip
add(
    "index-put-batch", "Assignment by two index vectors after a slice crashes",
    "apache/tvm/issues/18355", "0.21.0",
    "The elements of a diagonal of each matrix are replaced. TVM 0.21 ended in a segmentation "
    "fault.",
    lambda x: torch.zeros(2, 5, 5).index_put(
        (torch.arange(2)[:, None], torch.arange(4), torch.arange(4) + 1), x
    ),
    normals(2, 4, seed=6),
)  # fmt: skip
add(
    "frac", "frac is not imported", "apache/tvm/issues/17959", "0.21.dev26",
    "`frac` returns the fractional part. TVM raised `Unsupported function types`.",
    torch.frac, normals(6, seed=7) * np.float32(3),
)  # fmt: skip
add(
    "fmod", "fmod is not imported", "apache/tvm/issues/17880", "0.21.dev26",
    "The result of `fmod` has the sign of the dividend. TVM raised `Unsupported function types`.",
    torch.fmod, normals(6, seed=8) * np.float32(5), [1.5, 2.0, -0.7, 3.0, 1.0, -2.0],
)  # fmt: skip
add(
    "logical-not-float", "logical_not of floats does not compile", "apache/tvm/issues/19553",
    "0.23.0",
    "`logical_not` of a float is true for 0. TVM 0.23 raised `Expected boolean argument`.",
    torch.logical_not, [0.0, 1.0, -2.5, 0.0],
)  # fmt: skip
add(
    "logical-and-float", "logical_and of floats does not compile", "apache/tvm/issues/19743",
    "main of 2026-06",
    "`logical_and` treats numbers other than 0 as true. TVM raised `Expected boolean argument`.",
    torch.logical_and, [1.0, 0.0, 2.0, 0.0], [1.0, 1.0, 0.0, 0.0],
)  # fmt: skip
add(
    "unbind-single", "unbind of one row fails", "apache/tvm/issues/18338", "0.21.0",
    "`unbind` of a dimension of size 1 returns one tensor. TVM 0.21 mistook the tuple for a "
    "tensor.",
    lambda x: torch.unbind(x, 0)[0], normals(1, 3, seed=9),
)  # fmt: skip
add(
    "sqrt-integers", "sqrt of integers is not imported", "apache/tvm/issues/18443", "0.23.dev0",
    "`sqrt` of integers is float32. TVM 0.23 required a float input.",
    torch.sqrt, [1, 4, 9, 2, 30],
)  # fmt: skip
add(
    "prod-bool", "prod in bool does not compile", "apache/tvm/issues/19551", "main of 2026-05",
    "The product of booleans in bool is their conjunction. TVM raised an internal error.",
    lambda x: torch.prod(x > 0.0, dtype=torch.bool), [0.5, 1.0, -2.0],
)  # fmt: skip
add(
    "bool-product", "Multiplication of booleans does not compile", "apache/tvm/issues/19551",
    "main of 2026-05",
    "The product of booleans is their conjunction. TVM raises an internal error when it lowers "
    "the multiplication.",
    lambda x, y: (x > 0.0) * (y > 0.0), [0.5, 1.0, -2.0], [1.0, -1.0, 1.0],
)  # fmt: skip
add(
    "threshold", "threshold is computed as ReLU", "apache/tvm/issues/14805", "0.13.dev0",
    "`threshold(x, 1, 3)` is 3 where x is at most 1. TVM computed ReLU.",
    lambda x: functional.threshold(x, 1.0, 3.0), [-1.0, 2.0, 0.5, 7.0, 1.0],
)  # fmt: skip
add(
    "resize-nearest", "Nearest interpolation selects the wrong pixels", "apache/tvm/issues/19570",
    "main of 2026-05",
    "The source of each pixel is the floor of its index times the scale. TVM selects other pixels "
    "if the scale is not an integer. The report is about the ONNX frontend.",
    lambda x: functional.interpolate(x, size=(7, 5), mode="nearest"), normals(1, 2, 4, 4, seed=10),
    is_as_reported=False,
)  # fmt: skip
add(
    "zero-times-infinity", "A product with the constant 0 is folded to 0",
    "tile-ai/tilelang/issues/2638", "TVM's `const_fold.h` of 2026-08",
    "Infinity and NaN times 0 are NaN. TVM's simplifier replaces the product by 0.",
    lambda x: x * 0.0, [NAN, float("inf"), 1.0, -2.0],
)  # fmt: skip
add(
    "add-alpha", "add ignores alpha", None, "none known",
    "`torch.add(x, y, alpha=3)` is x + 3 y. TVM returns x + y.",
    lambda x, y: torch.add(x, y, alpha=3), normals(6, seed=11), normals(6, seed=12),
)  # fmt: skip
add(
    "median-nan", "The median ignores NaN", None, "none known",
    "The median of a row with NaN is NaN. TVM returns a number.",
    lambda x: x.median(1).values, [[1.0, 4.0, 2.0, 3.0], [5.0, 5.0, NAN, 1.0]],
)  # fmt: skip
add(
    "bucketize-nan", "bucketize puts NaN into the first bucket", None, "none known",
    "NaN is larger than every boundary. TVM puts it into the first bucket.",
    torch.bucketize, [1.0, 2.5, NAN, 9.0], [1.0, 2.0, 3.0],
)  # fmt: skip
