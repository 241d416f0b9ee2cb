"""Special functions."""

ENTRIES = """
airy_ai bessel_y0 bessel_y1 chebyshev_polynomial_t chebyshev_polynomial_u chebyshev_polynomial_v
    chebyshev_polynomial_w gammainc hermite_polynomial_h hermite_polynomial_he laguerre_polynomial_l
    legendre_polynomial_p modified_bessel_i0 modified_bessel_i1 modified_bessel_k0
    modified_bessel_k1 scaled_modified_bessel_k0 scaled_modified_bessel_k1
    shifted_chebyshev_polynomial_t shifted_chebyshev_polynomial_u shifted_chebyshev_polynomial_v
    shifted_chebyshev_polynomial_w: special
bessel_i0 bessel_i0e bessel_i1 bessel_i1e: prims
bessel_j0 bessel_j1 spherical_bessel_j0 zeta: prims special
digamma: aten* prims torch special Tensor* checked paddle* paddle_grad paddle_args=t
    paddle_flops=pointwise
entr expit log_ndtr ndtr psi xlog1py: special checked
erfcx ndtri: prims special checked
gammaincc: special paddle* paddle_grad paddle_args=t.t paddle_flops=pointwise paddle_alike
gammaln: special checked paddle* paddle_grad paddle_args=t paddle_flops=pointwise
i0: aten* torch* special Tensor* checked paddle* paddle_grad paddle_args=t paddle_flops=pointwise
i0e i1 i1e: special checked paddle paddle_grad paddle_args=t paddle_flops=pointwise
igamma igammac: aten* prims torch Tensor*
lgamma: aten* prims torch Tensor* math foreach* checked paddle* paddle_grad paddle_args=t
    paddle_flops=pointwise
multigammaln: special limit=loops
mvlgamma: aten* torch Tensor* limit=loops
polygamma: aten* torch special Tensor* flops=pointwise limit=loops paddle* paddle_grad
    paddle_flops=pointwise
special_airy_ai special_bessel_j0 special_bessel_j1 special_bessel_y0 special_bessel_y1
    special_chebyshev_polynomial_t special_chebyshev_polynomial_u special_chebyshev_polynomial_v
    special_chebyshev_polynomial_w special_digamma special_entr special_erf special_erfc
    special_erfinv special_exp2 special_expit special_expm1 special_gammainc special_gammaincc
    special_gammaln special_hermite_polynomial_h special_hermite_polynomial_he special_i0
    special_i0e special_i1 special_i1e special_laguerre_polynomial_l special_legendre_polynomial_p
    special_log1p special_log_ndtr special_log_softmax special_logit special_logsumexp
    special_modified_bessel_i0 special_modified_bessel_i1 special_modified_bessel_k0
    special_modified_bessel_k1 special_multigammaln special_ndtr special_ndtri special_polygamma
    special_psi special_round special_scaled_modified_bessel_k0 special_scaled_modified_bessel_k1
    special_shifted_chebyshev_polynomial_t special_shifted_chebyshev_polynomial_u
    special_shifted_chebyshev_polynomial_v special_shifted_chebyshev_polynomial_w special_sinc
    special_softmax special_spherical_bessel_j0 special_xlog1py special_xlogy special_zeta: aten
special_erfcx: aten flops=pointwise
xlogy: aten* torch* special Tensor* checked kind=pointwise
"""
