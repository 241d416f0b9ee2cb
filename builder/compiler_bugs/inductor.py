"""Bugs of TorchInductor and TorchDynamo on the CPU."""

from __future__ import annotations

import numpy as np
import torch
from torch.nn import functional

from .bug import Catalog, normals

catalog = Catalog("inductor")
add = catalog.add

REPOSITORY = "pytorch/pytorch/issues"

add(
    "cast-uint8-negative", "Casts of negative floats to uint8 return 0", f"{REPOSITORY}/156788",
    "reported 2025-06",
    "Eager wraps: -2.2 becomes 254. Inductor returns 0.",
    lambda x: x.to(torch.uint8), [1.54, -0.29, -2.18, 0.57, -1.08, 3.0, -4.5, -7.9],
)  # fmt: skip
add(
    "byte", "byte() of negative floats returns 0", f"{REPOSITORY}/131910", "reported 2024-07",
    "Eager wraps: -1.5 becomes 255. Inductor returned 0.",
    lambda x: x.byte(), normals(20, seed=1) * np.float32(2),
)  # fmt: skip
add(
    "half-round-trip", "Casts to float16 and back are dropped", f"{REPOSITORY}/185337",
    "reported 2026-05",
    "Rounding to float16 changes the elements. Inductor keeps the float32 elements, so the "
    "difference is 0.",
    lambda x: (x.half().float() - x) * 4096.0,
    (np.arange(20, dtype=np.float32) / 7).reshape(5, 4),
)  # fmt: skip
add(
    "half-overflow", "A product in float16 does not overflow", f"{REPOSITORY}/183607", "2.11.0",
    "The square of 5000 is infinite in float16, and its reciprocal is 0. Inductor multiplies in "
    "float32.",
    lambda x: 1e6 / (x.half() * x.half()).float(), [5000.0, 2.0, 300.0, 1.5],
)  # fmt: skip
add(
    "uint8-sum-int16", "A uint8 sum does not wrap before a cast", f"{REPOSITORY}/105264",
    "2.1.dev20230714",
    "128 + 128 is 0 in uint8 and stays 0 in int16. Inductor returned 256.",
    lambda x: (x + x).to(torch.int16), np.array([128, 200, 3, 255], np.uint8),
)  # fmt: skip
add(
    "int32-sum-int64", "An int32 sum does not wrap before a cast", f"{REPOSITORY}/108520",
    "2.1.0a0",
    "The int32 sum wraps before the cast to int64. Inductor added in 64 bits.",
    lambda x: (x + x).to(torch.int64), np.array([2**31 - 1, 5, -(2**31), 7], np.int32),
)  # fmt: skip


def _slices(
    long: torch.Tensor, y: torch.Tensor, alpha: torch.Tensor, beta: torch.Tensor
) -> torch.Tensor:
    x = long[..., 16]
    shape = functional.softplus(x) + 1e-4
    rate = functional.softplus(y) + 1e-4
    terms = [
        torch.special.gammaln(shape + alpha),
        torch.special.erf(x * beta),
        torch.special.xlogy(shape, rate),
    ]
    return torch.stack(terms, dim=-1)


add(
    "slice-stack", "Stacked terms of a strided slice are wrong", f"{REPOSITORY}/185702",
    "2.13.0.dev20260521",
    "The last dimension contains the three terms of each element. Inductor vectorized across the "
    "strided slice and returned the terms of other elements.",
    _slices,
    normals(4, 8, 24), normals(4, 8, seed=1), np.abs(normals(8, seed=2)), normals(8, seed=3),
)  # fmt: skip
add(
    "denormal", "Denormal products become 0", f"{REPOSITORY}/126848", "2.4.dev20240521",
    "0.1875 times 2**-124 is the denormal number 8.8e-39. Compiled code flushed it to 0.",
    lambda x: (x * 2.0**-124) * 2.0**124, [0.1875, 0.5, 0.0625, 0.03],
)  # fmt: skip


def _normalised(x: torch.Tensor, scale: torch.Tensor) -> torch.Tensor:
    terms = torch.exp(-torch.einsum("i...,i->i...", x, scale))
    total = torch.einsum("i...->i", terms)
    return torch.einsum("i,i...->i...", 1 / total, terms)


add(
    "einsum-buffer", "A local buffer is too small", f"{REPOSITORY}/159154", "reported 2025-07",
    "Each row sums to 1. The generated code wrote past the end of a buffer of 32 elements.",
    _normalised, normals(5, 1, 16, 16, seed=4), normals(5, seed=5),
)  # fmt: skip
add(
    "index-add-alpha", "index_add returns zeros", f"{REPOSITORY}/108963", "reported 2023-09",
    "The sources are multiplied by `alpha` and added. Inductor returned zeros.",
    lambda x, s: torch.zeros(3).index_add(0, torch.tensor([0, 2]), s, alpha=2.0) / 2.0 + x,
    normals(3, seed=6), normals(2, seed=7),
)  # fmt: skip
add(
    "index-add", "index_add broadcasts along the wrong dimension", f"{REPOSITORY}/94778",
    "2.0.0.dev20230213",
    "Each source row is added to the row that its index selects. Inductor returned wrong sums.",
    lambda x, s: torch.index_add(x, 0, torch.tensor([4, 1, 2, 0, 3]), s),
    normals(5, 5, seed=8), normals(5, 5, seed=9),
)  # fmt: skip
add(
    "slice-sum-order", "A sum depends on the order of the outputs", f"{REPOSITORY}/113015",
    "reported 2023-11",
    "The sum must not depend on the order of the outputs. Inductor's sum did.",
    lambda x: (torch.max(x[:1], -x[::5]), x[::5].sum(0)), normals(40, 3, seed=10),
)  # fmt: skip
add(
    "tan-of-half", "tan and sin of float16 are wrong after a mean", f"{REPOSITORY}/160730",
    "reported 2025-08",
    "Every float16 operation rounds. Inductor kept intermediate results in float32, so sines of "
    "large numbers differ.",
    lambda x: torch.sin(torch.tan(x).expand(4, 6, 3) * 1.5),
    np.linspace(0.1, 9.7, 24).reshape(4, 6, 1).astype(np.float16),
)  # fmt: skip
add(
    "divide-subtract", "A difference changes when a concatenation is returned too",
    f"{REPOSITORY}/113629", "reported 2023-11",
    "The quotients minus their sums must not depend on other outputs.",
    lambda x, y: (torch.cat([(y / x).sum(1)] * 3), (y / x) - (y / x).sum(1)),
    np.abs(normals(8, 8, seed=11)) + np.float32(0.5), normals(8, 8, seed=12),
)  # fmt: skip
add(
    "clamp-nan", "clamp_min and maximum drop NaN", f"{REPOSITORY}/93784", "torchdynamo of 2022-07",
    "NaN stays NaN. Inductor returned the bound.",
    lambda x, y: (torch.clamp_min(x, 0.5), torch.maximum(x, y)),
    [1.0, float("nan"), -2.0, 3.0], [float("nan"), 2.0, 1.0, -1.0],
)  # fmt: skip
add(
    "accumulate-rows", "x[i] += x[i] with repeated indices adds twice", f"{REPOSITORY}/138908",
    "2.4.0",
    "Repeated indices write the same sum. Inductor added it again for each repetition.",
    lambda x, i: x.clone().index_put((i,), x[i] + x[i]), normals(3, 16, seed=13), [0, 0, 2],
)  # fmt: skip
add(
    "arange-product", "int64 products overflow 32 bits", f"{REPOSITORY}/183901",
    "2.12.0.dev20260407",
    "8 times 1500000000 is 12000000000. On a GPU, Inductor computed in 32 bits.",
    lambda x: torch.arange(0, 9) * x, [1500000000],
)  # fmt: skip
add(
    "integer-to-float", "Casts of int32 to float do not compile", f"{REPOSITORY}/97124",
    "reported 2023-03",
    "The int32 sum is cast to float32 and multiplied. The generated C++ did not compile.",
    lambda x: (x + x).to(torch.float32) * 0.8, np.array([1, 2, -7, 40], np.int32),
)  # fmt: skip
add(
    "interpolate-bfloat16", "Nearest interpolation of bfloat16 selects the wrong pixels",
    f"{REPOSITORY}/170688", "reported 2025-12",
    "Interpolation copies pixels. On a GPU, Inductor computed their positions in lower precision.",
    lambda x: functional.interpolate(
        x.bfloat16(), scale_factor=(2.0, 3.0), mode="nearest", recompute_scale_factor=True
    ),
    normals(1, 1, 50, 75, seed=14),
)  # fmt: skip
add(
    "conv2d", "conv2d differs in the last bits", f"{REPOSITORY}/141561", "2.6.0.dev20241115",
    "A different order of summation is not an error: differences of 4e-7 are right at t = -3.",
    lambda x, w: functional.conv2d(x, w, padding=1), normals(1, 4, 16, 16, seed=15),
    normals(1, 4, 3, 3, seed=16),
)  # fmt: skip
add(
    "fill-diagonal-item", "fill_diagonal_ with a tensor element fails", f"{REPOSITORY}/163420",
    "reported 2025-09",
    "The element is written to the diagonal. Inductor failed.",
    lambda x, y: torch.diagonal_scatter(x, y.expand(3)), normals(3, 3, seed=17),
    normals(1, seed=18),
)  # fmt: skip
add(
    "associative-product", "abs of a product depends on the factors' order", f"{REPOSITORY}/113144",
    "reported 2023-11",
    "Products in a different order differ only by rounding.",
    lambda x, y: (torch.abs((x * y) * x), torch.abs(x * (y * x))), normals(16, seed=19),
    normals(16, seed=20),
)  # fmt: skip


def _unrolled(x: torch.Tensor) -> torch.Tensor:
    total = torch.zeros_like(x)
    for step in range(4):
        total = total + x * float(step)
        x = torch.sin(total) + x
    return total


add(
    "unrolled-loop", "An unrolled loop returns a wrong result", f"{REPOSITORY}/96064",
    "reported 2023-03",
    "The loop has four steps. Compiled code returned different numbers.",
    _unrolled, normals(6, seed=21),
)  # fmt: skip


def _clamped(boxes: torch.Tensor) -> torch.Tensor:
    moved = boxes - torch.tensor([3.0, 7.0, 3.0, 7.0])
    moved[..., 0::2].clamp_(min=0, max=5)
    moved[..., 1::2].clamp_(min=0, max=3)
    return moved


add(
    "clamp-strides", "Two in-place clamps of strided slices overlap", f"{REPOSITORY}/113641",
    "2.2.0.dev20231114",
    "The columns of a box are clamped to its width or its height. Inductor clamped the last "
    "column to 0.",
    _clamped, [[0.0, 1.0, 10.0, 14.0], [4.0, 9.0, 7.0, 8.5]],
)  # fmt: skip
add(
    "stale-clamp", "clamp uses an old value of a number that became dynamic",
    f"{REPOSITORY}/194976", "2.8 to the nightly of 2026-08",
    "Each call clamps to its own number. From the third number on, Inductor clamps to an earlier "
    "one.",
    lambda x: torch.clamp(x * 3.0, max=1.5) * 1.5, normals(8, 16, seed=22),
    num_variations=3,
)  # fmt: skip
add(
    "bfloat16-round-trip", "Casts to bfloat16 and back are dropped", f"{REPOSITORY}/176565",
    "reported 2026-03",
    "Rounding to bfloat16 changes the elements. Inductor keeps the float32 elements, so the "
    "difference is 0.",
    lambda x: (x.bfloat16().float() - x) * 512.0, normals(4, 4, seed=23),
)  # fmt: skip
add(
    "floor-of-half", "floor of a cosine in float16 is off by one", f"{REPOSITORY}/145466",
    "2.7.0.dev20250122",
    "Cosines near 1 round to 1 in float16, and their floor is 1. Inductor takes the floor of the "
    "cosine in float32, which is 0.",
    lambda x: torch.floor(torch.cos(x)),
    np.linspace(0.001, 0.015, 24).reshape(4, 6).astype(np.float16),
)  # fmt: skip
add(
    "matmul-cast-add", "A cast to bfloat16 between a product and a sum is dropped",
    f"{REPOSITORY}/181568", "reported 2026-04",
    "The product is rounded to bfloat16 before the sum. Inductor adds to the product in float32.",
    lambda x, w, b: (((x @ w).bfloat16() + b) - (x @ w + b)) * 128.0,
    normals(8, 32, seed=24), normals(32, 16, seed=25), normals(16, seed=26),
)  # fmt: skip
add(
    "ties-of-bfloat16", "Quotients in bfloat16 are compared unrounded", f"{REPOSITORY}/195214",
    "reported 2026-08, on a GPU",
    "Each row has at least one maximum. Inductor compares quotients in float32 with the maximum "
    "in bfloat16 and finds no match.",
    lambda x: (
        (x.bfloat16() / 3.0) == (x.bfloat16() / 3.0).amax(1, keepdim=True)
    ).sum(1, keepdim=True) * x,
    normals(256, 64, seed=27),
)  # fmt: skip
