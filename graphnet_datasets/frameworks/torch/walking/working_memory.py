"""Temporary memory of kernels, beyond their operands and results.

Kernels sort copies, convert elements to a wider dtype, repack operands or allocate LAPACK work
arrays. Shapes do not reveal these buffers, so the factors below estimate them for torch 2.13 on a
CPU. Only a process limit is an exact bound (`materialize(isolated=True)`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import torch

from ..operators import Operator
from ..operators.words import words
from .forms import Form
from .live_memory import tensors_in


class _Buffers(NamedTuple):
    """Buffer sizes as multiples of operands and results, plus bytes per element."""

    operands: float = 0.0
    results: float = 0.0
    element_bytes: int = 0


_KINDS: tuple[tuple[frozenset[str], _Buffers], ...] = (
    # A copy of the elements, and their indices.
    (
        words("sort argsort msort topk kthvalue median nanmedian mode quantile nanquantile isin"),
        _Buffers(operands=1, element_bytes=8),
    ),
    # A hash table of distinct elements.
    (
        words("unique _unique _unique2 unique_dim unique_consecutive unique_dim_consecutive"),
        _Buffers(operands=1, element_bytes=24),
    ),
    # Both operands repacked with two more columns, and the product.
    (words("cdist _cdist_forward _euclidean_dist pdist"), _Buffers(operands=3, results=1)),
    # Operands with permuted dimensions.
    (
        words("einsum tensordot bilinear kron chain_matmul multi_dot linalg_multi_dot"),
        _Buffers(operands=1, results=1),
    ),
    # The operand, both factors, and a LAPACK work array.
    (
        words(
            "svd linalg_svd svdvals linalg_svdvals _linalg_svd pinv linalg_pinv pinverse "
            "matrix_rank linalg_matrix_rank cond linalg_cond matrix_norm linalg_matrix_norm "
            "nuclear_norm lstsq linalg_lstsq eig linalg_eig eigvals linalg_eigvals eigh "
            "linalg_eigh eigvalsh linalg_eigvalsh _linalg_eigh matrix_exp linalg_matrix_exp "
            "matrix_power linalg_matrix_power"
        ),
        _Buffers(operands=6),
    ),
    (
        words(
            "qr linalg_qr geqrf householder_product linalg_householder_product ormqr lu linalg_lu "
            "lu_factor linalg_lu_factor linalg_lu_factor_ex _lu_with_info lu_solve linalg_lu_solve "
            "lu_unpack inv inverse linalg_inv linalg_inv_ex solve linalg_solve linalg_solve_ex "
            "_linalg_solve_ex det logdet linalg_det _linalg_det slogdet linalg_slogdet "
            "_linalg_slogdet cholesky linalg_cholesky linalg_cholesky_ex cholesky_inverse "
            "cholesky_solve triangular_solve solve_triangular linalg_solve_triangular ldl_factor "
            "linalg_ldl_factor linalg_ldl_factor_ex ldl_solve linalg_ldl_solve tensorinv "
            "tensorsolve"
        ),
        _Buffers(operands=2),
    ),
    # Complex copies, possibly padded to a length with small factors.
    (
        words(
            "fft ifft rfft irfft hfft ihfft fft2 ifft2 rfft2 irfft2 hfft2 ihfft2 fftn ifftn rfftn "
            "irfftn hfftn ihfftn fft_fft fft_ifft fft_rfft fft_irfft fft_hfft fft_ihfft fft_fft2 "
            "fft_ifft2 fft_rfft2 fft_irfft2 fft_fftn fft_ifftn fft_rfftn fft_irfftn _fft_c2c "
            "_fft_r2c _fft_c2r stft istft"
        ),
        _Buffers(operands=2, results=2),
    ),
    (words("grid_sample grid_sampler ctc_loss index_put _index_put_impl"), _Buffers(operands=1)),
)
_BUFFERS = {name: buffers for names, buffers in _KINDS for name in names}

_ADDING = words("sum nansum prod mean cumsum cumprod trapezoid")
"""Operators that convert booleans and integers to int64 before adding them."""

_CONVOLUTIONS = words(
    "conv1d conv2d conv3d conv_transpose1d conv_transpose2d conv_transpose3d convolution "
    "_convolution mkldnn_convolution slow_conv3d thnn_conv2d conv_depthwise3d "
    "convolution_overrideable conv_tbc _convolution_mode"
)
_LONG_BYTES = 8
_BLOCK = 16
"""Channels are padded to a multiple of this number."""


def workspace_bytes(operator: Operator, operands: Sequence[Any], result_bytes: int) -> int:
    """Return the bytes that a kernel may allocate beside its operands and results.

    >>> from ..operators import lookup
    >>> matrix = Form((1000, 1000), (1000, 1), torch.float32)
    >>> workspace_bytes(lookup("torch.add"), [matrix, matrix], 4_000_000)
    0
    >>> workspace_bytes(lookup("torch.linalg.svd"), [matrix], 8_004_000)
    24000000
    """
    packet = operator.packet_name.rstrip("_")
    buffers = _BUFFERS.get(packet)
    if buffers is None and packet not in _ADDING and packet not in _CONVOLUTIONS:
        return 0
    tensors = _sizes_in(operands)
    if not tensors:
        return 0
    if packet in _ADDING:
        first = tensors[0]
        is_converted = not first.dtype.is_floating_point and first.dtype.itemsize < 8
        return _LONG_BYTES * first.num_elements if is_converted else 0
    if buffers is None:
        return _convolution_bytes(tensors, result_bytes)
    num_bytes = sum(size.num_bytes for size in tensors)
    most_elements = max(size.num_elements for size in tensors)
    return int(
        buffers.operands * num_bytes
        + buffers.results * result_bytes
        + buffers.element_bytes * most_elements
    )


def full_bytes(value: Any) -> int:
    """Return the bytes of all elements of the tensors in a value, as if they were contiguous."""
    return sum(size.num_bytes for size in _sizes_in(value))


class _Size(NamedTuple):
    shape: tuple[int, ...]
    num_elements: int
    num_bytes: int
    dtype: torch.dtype


def _sizes_in(value: Any) -> list[_Size]:
    return [size for tensor in tensors_in(value) if (size := _size_of(tensor)) is not None]


def _size_of(tensor: Any) -> _Size | None:
    if type(tensor) is not Form and not isinstance(tensor, torch.Tensor):
        return None
    try:
        shape = tuple(tensor.shape)
        if not all(type(length) is int for length in shape):
            return None
        count = math.prod(shape)
        return _Size(shape, count, count * tensor.dtype.itemsize, tensor.dtype)
    except (RuntimeError, NotImplementedError, AttributeError):
        return None


def _convolution_bytes(tensors: Sequence[_Size], result_bytes: int) -> int:
    """Return the bytes for repacked operands, or for one column per window.

    oneDNN repacks float32, float16 and bfloat16 operands in blocks of channels. Other dtypes are
    unfolded, with each input window as a column.
    """
    if len(tensors) < 2:
        return 0
    image, weight = tensors[:2]
    num_bytes = _blocked_bytes(image) + _blocked_bytes(weight) + result_bytes
    if image.dtype in (torch.float32, torch.float16, torch.bfloat16):
        return num_bytes
    out_channels, *rest = weight.shape or (1,)
    windows = result_bytes // max(1, out_channels * image.dtype.itemsize)
    return num_bytes + windows * math.prod(rest) * image.dtype.itemsize


def _blocked_bytes(tensor: _Size) -> int:
    if len(tensor.shape) < 3:
        return tensor.num_bytes
    channels = max(1, tensor.shape[1])
    return tensor.num_bytes * -(-channels // _BLOCK) * _BLOCK // channels
