"""Gradients that are written out, since their kernels write wherever an operand tells them to.

The table of operators leaves those kernels out (`operators/unsafe.py`). What stands here gives the
same sums in the same order, by operators that compare indices with what they write to.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import torch
from torch._C import DispatchKey
from torch._decomp import get_decompositions

_ATEN = torch.ops.aten

SAME: Mapping[Any, Any] = {
    _ATEN._unsafe_index.Tensor: _ATEN.index.Tensor,
    _ATEN._unsafe_index_put.default: _ATEN.index_put.default,
}
"""Operators that promise more than others of the same kernel, and those others."""


_RESAMPLING = (
    *("upsample_linear1d", "upsample_bilinear2d", "upsample_trilinear3d", "upsample_bicubic2d"),
    *(f"upsample_nearest{rank}d" for rank in (1, 2, 3)),
    *(f"_upsample_nearest_exact{rank}d" for rank in (1, 2, 3)),
    *("_upsample_bilinear2d_aa", "_upsample_bicubic2d_aa"),
)
_NORMS = ("backward", "ortho", "forward")
"""How a Fourier transform divides, by the number that ATen's own operators have for it."""


def public_transform(target: Any, args: Sequence[Any], source: Any) -> tuple[Any, Any] | None:
    """Return the checked operator that computes what one of ATen's Fourier transforms does.

    `source` is what is transformed, for its sizes. None where the call is none of them.

    >>> transform, args = public_transform(_ATEN._fft_r2c.default, ("x", [1], 0, True), None)
    >>> transform.name(), args
    ('aten::fft_rfftn', ('x', None, [1], 'backward'))
    """
    if target is _ATEN._fft_r2c.default:
        name = _ATEN.fft_rfftn.default if args[3] else _ATEN.fft_fftn.default
        return name, (args[0], None, args[1], _NORMS[args[2]])
    if target is _ATEN._fft_c2c.default:
        if args[3]:
            return _ATEN.fft_fftn.default, (args[0], None, args[1], _NORMS[args[2]])
        # The inverse is the one that divides where nothing is said.
        return _ATEN.fft_ifftn.default, (args[0], None, args[1], _NORMS[2 - args[2]])
    if target is _ATEN._fft_c2r.default:
        sizes = [source.shape[dim] for dim in args[1][:-1]] + [args[3]]
        return _ATEN.fft_irfftn.default, (args[0], sizes, args[1], _NORMS[2 - args[2]])
    return None


@contextlib.contextmanager
def native_kernels() -> Iterator[None]:
    """Trace resampling as the operator that eager calls, which torch writes out while it traces.

    What is written out adds in another order, and is not what a step of training runs.
    """
    found = [
        getattr(getattr(_ATEN, packet), overload)
        for packet in _RESAMPLING
        for overload in ("default", "vec")
    ]
    held = [dict(operator.py_kernels) for operator in found]
    for operator in found:
        for key in (DispatchKey.Autograd, DispatchKey.CompositeImplicitAutograd):
            operator.py_kernels.pop(key, None)
        operator._dispatch_cache.clear()
    try:
        yield
    finally:
        for operator, kernels in zip(found, held, strict=True):
            operator.py_kernels.update(kernels)
            operator._dispatch_cache.clear()


def make_rules() -> dict[Any, Callable[..., Any]]:
    """Return what stands in the place of operators while gradients are traced, by overload."""
    written = get_decompositions(
        [_ATEN.nll_loss_backward, _ATEN.nll_loss2d_backward, _ATEN.unfold_backward]
    )
    return {
        **written,
        _ATEN.embedding_dense_backward.default: _embedding,
        _ATEN.max_pool2d_with_indices_backward.default: _max_pool2d,
        _ATEN.max_pool3d_with_indices_backward.default: _max_pool3d,
        _ATEN.adaptive_max_pool2d_backward.default: _adaptive_max_pool2d,
        _ATEN.adaptive_max_pool3d_backward.default: _adaptive_max_pool3d,
    }


def _embedding(
    gradient: torch.Tensor,
    indices: torch.Tensor,
    num_weights: int,
    padding_index: int,
    scale_by_frequency: bool,
) -> Any:
    if scale_by_frequency:
        return NotImplemented
    if padding_index >= 0:
        gradient = gradient.masked_fill((indices == padding_index).unsqueeze(-1), 0)
    zeros = gradient.new_zeros((num_weights, gradient.shape[-1]))
    return zeros.index_put([indices], gradient, accumulate=True)


def _max_pool2d(
    gradient: torch.Tensor, source: torch.Tensor, *arguments: Any, **_keywords: Any
) -> torch.Tensor:
    return _scatter(gradient, source.shape, arguments[-1], 2)


def _max_pool3d(
    gradient: torch.Tensor, source: torch.Tensor, *arguments: Any, **_keywords: Any
) -> torch.Tensor:
    return _scatter(gradient, source.shape, arguments[-1], 3)


def _adaptive_max_pool2d(
    gradient: torch.Tensor, source: torch.Tensor, indices: torch.Tensor
) -> torch.Tensor:
    return _scatter(gradient, source.shape, indices, 2)


def _adaptive_max_pool3d(
    gradient: torch.Tensor, source: torch.Tensor, indices: torch.Tensor
) -> torch.Tensor:
    return _scatter(gradient, source.shape, indices, 3)


def _scatter(
    gradient: torch.Tensor, shape: Sequence[int], indices: torch.Tensor, spatial: int
) -> torch.Tensor:
    """Add each element of a gradient to where in its image the index points."""
    zeros = gradient.new_zeros((*shape[:-spatial], math.prod(shape[-spatial:])))
    flat, at = gradient.flatten(-spatial), indices.flatten(-spatial)
    return zeros.scatter_add(-1, at, flat).view(shape)
