"""Decompositions of backward operators whose kernels write to unchecked indices.

The operator table excludes these kernels (`operators/unsafe.py`). The decompositions compute the
same sums in the same order, with operators that check their indices.
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
"""Operators that promise valid indices, and equivalent operators without that promise."""


_RESAMPLING = (
    *("upsample_linear1d", "upsample_bilinear2d", "upsample_trilinear3d", "upsample_bicubic2d"),
    *(f"upsample_nearest{rank}d" for rank in (1, 2, 3)),
    *(f"_upsample_nearest_exact{rank}d" for rank in (1, 2, 3)),
    *("_upsample_bilinear2d_aa", "_upsample_bicubic2d_aa"),
)
_NORMS = ("backward", "ortho", "forward")
"""Normalization modes of Fourier transforms, by ATen's number."""


def public_transform(target: Any, args: Sequence[Any], source: Any) -> tuple[Any, Any] | None:
    """Return the checked equivalent of an ATen Fourier transform, or None for other calls.

    `source` is the transformed tensor, needed for its sizes.

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
        # The inverse is the transform that normalizes by default.
        return _ATEN.fft_ifftn.default, (args[0], None, args[1], _NORMS[2 - args[2]])
    if target is _ATEN._fft_c2r.default:
        sizes = [source.shape[dim] for dim in args[1][:-1]] + [args[3]]
        return _ATEN.fft_irfftn.default, (args[0], sizes, args[1], _NORMS[2 - args[2]])
    return None


@contextlib.contextmanager
def native_kernels() -> Iterator[None]:
    """Trace resampling as eager's operators instead of torch's decompositions.

    The decompositions add in another order and do not match a real training step.
    """
    operators = [
        getattr(getattr(_ATEN, packet), overload)
        for packet in _RESAMPLING
        for overload in ("default", "vec")
    ]
    saved_kernels = [dict(operator.py_kernels) for operator in operators]
    for operator in operators:
        for key in (DispatchKey.Autograd, DispatchKey.CompositeImplicitAutograd):
            operator.py_kernels.pop(key, None)
        operator._dispatch_cache.clear()
    try:
        yield
    finally:
        for operator, kernels in zip(operators, saved_kernels, strict=True):
            operator.py_kernels.update(kernels)
            operator._dispatch_cache.clear()


def make_rules() -> dict[Any, Callable[..., Any]]:
    """Return the decompositions used while tracing gradients, by overload."""
    written = get_decompositions(
        [_ATEN.nll_loss_backward, _ATEN.nll_loss2d_backward, _ATEN.unfold_backward]
    )
    return {
        **written,
        _ATEN.embedding_dense_backward.default: _embedding,
        _ATEN._embedding_bag.default: _embedding_bag,
        _ATEN._embedding_bag_backward.default: _embedding_bag_backward,
        _ATEN._embedding_bag_per_sample_weights_backward.default: _bag_weights,
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


def make_rules_of_unknown_sizes() -> dict[Any, Callable[..., Any]]:
    """Return decompositions that also replace kernels without operand size checks.

    Data-dependent sizes cannot be checked before the graph runs.
    """
    trusting = [
        _ATEN._softmax_backward_data,
        _ATEN._log_softmax_backward_data,
        _ATEN.native_layer_norm_backward,
        _ATEN.native_group_norm_backward,
    ]
    return {**make_rules(), **get_decompositions(trusting)}


_SUM, _MEAN, _MAX = 0, 1, 2
"""Modes of an embedding bag, by ATen's number."""


def _embedding_bag(
    table: torch.Tensor,
    indices: torch.Tensor,
    offsets: torch.Tensor,
    scale_by_frequency: bool = False,
    mode: int = _SUM,
    sparse: bool = False,
    weights: torch.Tensor | None = None,
    include_last_offset: bool = False,
    padding_index: int = -1,
) -> Any:
    if sparse or scale_by_frequency or mode == _MAX:
        return NotImplemented
    num_bags = offsets.shape[0] - include_last_offset
    bags, is_inside = _find_bags(indices, offsets, num_bags, padding_index)
    sizes = _count(bags, is_inside, num_bags)
    rows = table[indices]
    if weights is not None:
        rows = rows * weights.unsqueeze(-1)
    rows = rows.masked_fill(~is_inside.unsqueeze(-1), 0)
    sums = table.new_zeros((num_bags, table.shape[-1])).index_put([bags], rows, accumulate=True)
    if mode == _MEAN:
        sums = sums / sizes.clamp(min=1).unsqueeze(-1)
    return sums, bags, sizes, torch.zeros_like(sizes)


def _embedding_bag_backward(
    gradient: torch.Tensor,
    indices: torch.Tensor,
    offsets: torch.Tensor,
    _bag_of_index: torch.Tensor,
    _bag_sizes: torch.Tensor,
    _largest: torch.Tensor,
    num_weights: int,
    scale_by_frequency: bool,
    mode: int,
    sparse: bool,
    weights: torch.Tensor | None,
    padding_index: int = -1,
) -> Any:
    if sparse or scale_by_frequency or mode == _MAX:
        return NotImplemented
    bags, is_inside = _find_bags(indices, offsets, gradient.shape[0], padding_index)
    if mode == _MEAN:
        sizes = _count(bags, is_inside, gradient.shape[0]).clamp(min=1)
        gradient = gradient * sizes.to(gradient.dtype).reciprocal().unsqueeze(-1)
    parts = gradient[bags]
    if weights is not None:
        parts = parts * weights.unsqueeze(-1)
    parts = parts.masked_fill(~is_inside.unsqueeze(-1), 0)
    zeros = gradient.new_zeros((num_weights, gradient.shape[-1]))
    return zeros.index_put([indices], parts, accumulate=True)


def _bag_weights(
    gradient: torch.Tensor,
    table: torch.Tensor,
    indices: torch.Tensor,
    offsets: torch.Tensor,
    _bag_of_index: torch.Tensor,
    mode: int,
    padding_index: int = -1,
) -> Any:
    if mode != _SUM:  # eager rejects weights in other modes
        return NotImplemented
    bags, is_inside = _find_bags(indices, offsets, gradient.shape[0], padding_index)
    return (gradient[bags] * table[indices]).sum(-1).masked_fill(~is_inside, 0)


def _find_bags(
    indices: torch.Tensor, offsets: torch.Tensor, num_bags: int, padding_index: int
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the bag of each index, and whether the index is not padding.

    If the end of the last bag is included, there is one more offset than bags.
    """
    places = torch.arange(indices.shape[0], device=indices.device)
    bags = torch.searchsorted(offsets.to(torch.int64), places, right=True) - 1
    return bags.clamp(0, num_bags - 1), indices != padding_index


def _count(bags: torch.Tensor, is_inside: torch.Tensor, num_bags: int) -> torch.Tensor:
    counts = is_inside.to(bags.dtype)
    return bags.new_zeros((num_bags,)).index_put([bags], counts, accumulate=True)


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
    """Add each element of a gradient at the image position given by its index."""
    zeros = gradient.new_zeros((*shape[:-spatial], math.prod(shape[-spatial:])))
    flat, at = gradient.flatten(-spatial), indices.flatten(-spatial)
    return zeros.scatter_add(-1, at, flat).view(shape)
