"""Factorizations, solvers and other linear algebra."""

ENTRIES = """
cholesky: aten torch linalg Tensor checked paddle paddle_grad paddle_args=t.b
cholesky_ex inv_ex pinv solve_ex solve_triangular tensorinv tensorsolve vecdot: linalg checked
cholesky_inverse geqrf orgqr ormqr: aten torch Tensor
cholesky_solve: aten torch Tensor paddle paddle_grad
_cholesky_solve_helper linalg__powsum linalg_cholesky linalg_cond linalg_det linalg_diagonal
    linalg_eig linalg_eigh _linalg_eigvals linalg_eigvals linalg_eigvalsh linalg_householder_product
    linalg_inv linalg_inv_ex linalg_ldl_factor linalg_ldl_factor_ex linalg_lstsq linalg_lu
    linalg_lu_factor linalg_lu_factor_ex linalg_matmul linalg_matrix_exp linalg_matrix_rank
    linalg_multi_dot linalg_pinv linalg_qr linalg_slogdet linalg_solve linalg_solve_ex
    linalg_solve_triangular linalg_svd linalg_svdvals linalg_tensorinv linalg_tensorsolve
    linalg_vander linalg_vecdot: aten
det: aten torch linalg Tensor checked paddle paddle_grad paddle_args=t
eig: linalg paddle paddle_grad
eigh eigvalsh solve svdvals: linalg checked paddle paddle_grad
eigvals lstsq: linalg paddle
householder_product ldl_factor ldl_factor_ex lu_factor lu_factor_ex: linalg
inv: linalg checked canonical=logic
inverse: aten torch Tensor checked paddle paddle_grad paddle_args=t
ldl_solve linalg_ldl_solve linalg_lu_solve: left_out=trusts_indices
linalg_cholesky_ex: aten flops=cholesky
linalg_cross: aten flops=pointwise
_linalg_det _linalg_eigh _linalg_slogdet _linalg_solve_ex _linalg_svd _lu_with_info: aten torch
linalg_matrix_power: aten loops_by_number
lobpcg: torch random limit=loops
logdet pinverse: aten torch Tensor checked
lu: torch linalg Tensor public paddle* paddle_grad
lu_solve: left_out=trusts_indices paddle
lu_unpack: aten torch paddle
matrix_H: aten checked
matrix_exp: aten torch linalg Tensor
matrix_power: aten torch linalg Tensor checked limit=loops loops_by_number paddle paddle_grad
    paddle_args=t.i
matrix_rank: linalg checked paddle
matrix_rank_atol_rtol matrix_rank_tol slogdet_v2: paddle
multi_dot: linalg checked limit=chain paddle paddle_grad canonical=mm
pca_lowrank svd_lowrank: torch public random limit=loops
qr: aten torch linalg Tensor paddle paddle_grad
slogdet: aten torch linalg Tensor checked paddle paddle_grad
svd: aten prims torch linalg Tensor paddle paddle_grad
triangular_solve: aten torch Tensor paddle paddle_grad paddle_args=t.t.b.b.b
vander: aten torch linalg
"""
