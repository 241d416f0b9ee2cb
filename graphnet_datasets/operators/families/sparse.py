"""Operators on sparse tensors."""

ENTRIES = """
ccol_indices ccol_indices_copy _coalesce coalesce col_indices col_indices_copy crow_indices
    crow_indices_copy _indices _indices_copy indices_copy row_indices row_indices_copy
    _sparse_csr_prod _sparse_csr_sum sparse_mask spdiags _to_sparse to_sparse _to_sparse_bsc
    to_sparse_bsc _to_sparse_bsr to_sparse_bsr to_sparse_coo _to_sparse_csc to_sparse_csc
    _to_sparse_csr to_sparse_csr _values _values_copy values_copy: left_out=sparse_indices
_dimI _dimV _nnz sparse_dim: aten Tensor
dsmm saddmm spmm: torch
indices values: left_out=sparse_indices shares
is_coalesced to_padded_tensor: Tensor
is_sparse is_sparse_csr: attribute
sampled_addmm spsolve: sparse
smm sspaddmm: aten torch Tensor
_sparse_addmm _sparse_log_softmax _sparse_mm _sparse_mm_reduce_impl sparse_sampled_addmm
    _sparse_softmax _sparse_sparse_matmul _spsolve: aten
sparse_bsc_tensor sparse_bsr_tensor sparse_compressed_tensor sparse_coo_tensor sparse_csc_tensor
    sparse_csr_tensor: left_out=sparse_indices factory
_sparse_sum: aten torch
"""
