"""Operators that compute on tensors and are left out all the same: they can corrupt memory.

Most kernels of torch compare indices and sizes with the tensors that they read and write. These do
not, or are not known to, so a sample made for it could write wherever it likes. Two were called
with indices out of range and took them (`embedding_dense_backward` and
`max_pool2d_with_indices_backward`, torch 2.13, CPU); the others are left out for the same pattern.
A kernel that only reads too far is not listed.
"""

from __future__ import annotations

from collections.abc import Mapping

from .words import words

TRUSTED_INDICES = words(
    """
    _batch_norm_with_update _batch_norm_with_update_functional _cummax_helper _cummin_helper
    _ctc_loss_backward _embedding_bag_backward _embedding_bag_dense_backward
    _embedding_bag_per_sample_weights_backward _embedding_bag_sparse_backward
    _thnn_fused_gru_cell_backward _thnn_fused_lstm_cell_backward
    _thnn_fused_lstm_cell_backward_impl adaptive_max_pool2d_backward adaptive_max_pool3d_backward
    batch_norm_gather_stats batch_norm_gather_stats_with_counts batch_norm_update_stats
    embedding_backward embedding_dense_backward embedding_sparse_backward
    fractional_max_pool2d_backward fractional_max_pool3d_backward fused_moving_avg_obs_fake_quant
    ldl_solve linalg_ldl_solve linalg_lu_solve lu_solve max_pool2d_backward
    max_pool2d_with_indices_backward max_pool3d_with_indices_backward multi_margin_loss_backward
    multilabel_margin_loss_backward nll_loss2d_backward nll_loss_backward unfold_backward
    """
)
"""They write, or hand to LAPACK, at positions that an operand names without looking at them."""

SPARSE = words(
    """
    _coalesce _indices _indices_copy _sparse_csr_prod _sparse_csr_sum _to_sparse _to_sparse_bsc
    _to_sparse_bsr _to_sparse_csc _to_sparse_csr _values _values_copy ccol_indices
    ccol_indices_copy coalesce col_indices col_indices_copy crow_indices crow_indices_copy hspmm
    indices indices_copy row_indices row_indices_copy sparse_bsc_tensor sparse_bsr_tensor
    sparse_compressed_tensor sparse_coo_tensor sparse_csc_tensor sparse_csr_tensor sparse_mask
    spdiags to_sparse to_sparse_bsc to_sparse_bsr to_sparse_coo to_sparse_csc to_sparse_csr values
    values_copy
    """
)
"""They make sparse tensors, whose indices nobody checks again, or hand out those indices."""

REASONS: Mapping[str, frozenset[str]] = {
    "its kernel does not compare indices or sizes with the tensors that it writes to": (
        TRUSTED_INDICES
    ),
    "the indices of sparse tensors are not compared with the tensors that they write to": SPARSE,
}


def why_left_out(last: str) -> str | None:
    """Return why an operator whose name (without namespace and overload) is `last` is left out.

    >>> why_left_out("relu") is None, why_left_out("embedding_dense_backward") is None
    (True, False)
    """
    for reason, names in REASONS.items():
        if last in names:
            return reason
    return None
