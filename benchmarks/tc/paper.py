"""Kernels and sizes of the Tensor Comprehensions paper (Vasilache et al., 2018) and its code."""

from __future__ import annotations

import dataclasses

Shape = tuple[int, ...]


@dataclasses.dataclass(frozen=True, slots=True)
class PaperKernel:
    """A kernel at one size.

    Attributes:
        name: name of the kernel in the paper and its code.
        size: label of the size.
        source: source of a single definition.
        shapes: shapes of the inputs, in order.
        gathers: `(input, bound)` for each input of subscripts, whose values are below `bound`.
    """

    name: str
    size: str
    source: str
    shapes: tuple[Shape, ...]
    gathers: tuple[tuple[int, int], ...] = ()

    @property
    def label(self) -> str:
        """The kernel and its size, such as `tmm 128,256,32`."""
        return f"{self.name} {self.size}"


TMM = """
def tmm(float(M, K) A, float(N, K) B) -> (C) {
    C(m, n) +=! A(m, k) * B(n, k)
}"""
TBMM = """
def tbmm(float(B, N, M) X, float(B, M, K) Y) -> (Z) {
    Z(b, n, k) +=! X(b, n, m) * Y(b, m, k)
}"""
GROUP_CONVOLUTION = """
def group_convolution(float(N, G, C, H, W) I, float(G, F, C, KH, KW) W1, float(G, F) B) -> (O) {
    O(n, g, f, h, w) +=! I(n, g, c, h + kh, w + kw) * W1(g, f, c, kh, kw)
    O(n, g, f, h, w) = O(n, g, f, h, w) + B(g, f)
}"""
LUT1 = """
def lut1(float(E, D) L, int64(B, K) I) -> (O) {
    O(b, d) +=! L(I(b, k), d)
}"""
LUT2 = """
def lut2(float(E1, D) L1, int64(B, K1) I1, float(E2, D) L2, int64(B, K2) I2) -> (O1, O2) {
    O1(b, d) +=! L1(I1(b, k), d)
    O2(b, d) +=! L2(I2(b, k), d)
}"""
C3 = """
def c3(float(B, X) I, float(Y, X) W) -> (O) {
    O(b, y) +=! I(b, x) * W(y, x)
}"""
MLP1 = """
def mlp1(float(B, M) I, float(M, N) W1, float(N) B1) -> (O1) {
    O1(b, n) +=! I(b, m) * W1(m, n)
    O1(b, n) = O1(b, n) + B1(n)
    O1(b, n) = fmax(O1(b, n), 0)
}"""
MLP3 = """
def mlp3(float(B, N) I, float(O, N) W2, float(O) B2, float(P, O) W3, float(P) B3,
         float(Q, P) W4, float(Q) B4) -> (O2, O3, O4) {
    O2(b, o) +=! I(b, n) * W2(o, n)
    O2(b, o) = O2(b, o) + B2(o)
    O2(b, o) = fmax(O2(b, o), 0)
    O3(b, p) +=! O2(b, o) * W3(p, o)
    O3(b, p) = O3(b, p) + B3(p)
    O3(b, p) = fmax(O3(b, p), 0)
    O4(b, q) +=! O3(b, p) * W4(q, p)
    O4(b, q) = O4(b, q) + B4(q)
    O4(b, q) = fmax(O4(b, q), 0)
}"""
PRODUCTION = """
def production(float(E1, D) L1, int64(B, K1) I1, float(E2, D) L2, int64(B, K2) I2,
               float(B, X) I3, float(Y, X) W,
               float(B, M) I4, float(M, N) W1, float(N) B1,
               float(O, N) W2, float(O) B2, float(P, O) W3, float(P) B3, float(Q, P) W4,
               float(Q) B4) -> (O1, O2, C3, R1, R2, R3, R4) {
    O1(b, d) +=! L1(I1(b, k), d)
    O2(b, d) +=! L2(I2(b, k), d)
    C3(b, y) +=! I3(b, x) * W(y, x)
    R1(b, n) +=! I4(b, m) * W1(m, n)
    R1(b, n) = R1(b, n) + B1(n)
    R1(b, n) = fmax(R1(b, n), 0)
    R2(b, o) +=! R1(b, n) * W2(o, n)
    R2(b, o) = R2(b, o) + B2(o)
    R2(b, o) = fmax(R2(b, o), 0)
    R3(b, p) +=! R2(b, o) * W3(p, o)
    R3(b, p) = R3(b, p) + B3(p)
    R3(b, p) = fmax(R3(b, p), 0)
    R4(b, q) +=! R3(b, p) * W4(q, p)
    R4(b, q) = R4(b, q) + B4(q)
    R4(b, q) = fmax(R4(b, q), 0)
}"""
KRONECKER3 = """
def kronecker3(float(D0, N0) W0, float(D1, N1) W1, float(D2, N2) W2,
               float(M, N0, N1, N2) X) -> (Y, XW1, XW2) {
    XW2(m, n0, n1, d2) +=! X(m, n0, n1, r) * W2(d2, r)
    XW1(m, n0, d1, d2) +=! XW2(m, n0, r, d2) * W1(d1, r)
    Y(m, d0, d1, d2) +=! XW1(m, r, d1, d2) * W0(d0, r)
}"""
MOMENTS = """
def moments(float(N, K) I) -> (sum, mean, sum2, variance) {
    sum(n) +=! I(n, k)
    sum2(n) +=! I(n, k) * I(n, k)
    mean(n) = sum(n) / float(K)
    variance(n) = sum2(n) / float(K) - mean(n) * mean(n)
}"""
GROUP_NORM = """
def group_norm(float(N, G, D, H, W) I, float(G, D) gamma, float(G, D) beta) -> (O, sum, sum2) {
    sum(n, g) +=! I(n, g, d, h, w)
    sum2(n, g) +=! I(n, g, d, h, w) * I(n, g, d, h, w)
    O(n, g, d, h, w) = gamma(g, d)
        * (I(n, g, d, h, w) - sum(n, g) / float(D * H * W))
        * rsqrt(sum2(n, g) / float(D * H * W)
                - (sum(n, g) / float(D * H * W)) * (sum(n, g) / float(D * H * W)) + 0.00001)
        + beta(g, d)
}"""
WAVENET = """
def wavenet(float(B, R, T) Data, float(D, R, 2) FilterWeight, float(D) FilterBias,
            float(D, R, 2) GateWeight, float(D) GateBias, float(R, D) ResWeight, float(R) ResBias,
            float(S, D) SkipWeight, float(S) SkipBias, float(DILATION) Dilation)
            -> (FilterOut, GateOut, NonLin, Res, Skip) {
    FilterOut(b, d, t) = FilterBias(d) where b in 0:B, t in 0:T
    FilterOut(b, d, t) += Data(b, r, t) * FilterWeight(d, r, 1)
        + (t >= DILATION ? Data(b, r, t - DILATION) * FilterWeight(d, r, 0) : float(0))
        where t in 0:T
    GateOut(b, d, t) = GateBias(d) where b in 0:B, t in 0:T
    GateOut(b, d, t) += Data(b, r, t) * GateWeight(d, r, 1)
        + (t >= DILATION ? Data(b, r, t - DILATION) * GateWeight(d, r, 0) : float(0))
        where t in 0:T
    NonLin(b, d, t) = tanh(FilterOut(b, d, t)) * (float(1) / (float(1) + exp(-GateOut(b, d, t))))
    Res(b, r, t) = Data(b, r, t) + ResBias(r)
    Res(b, r, t) += NonLin(b, d, t) * ResWeight(r, d)
    Skip(b, s, t) = SkipBias(s) where b in 0:B, t in 0:T
    Skip(b, s, t) += NonLin(b, d, t) * SkipWeight(s, d)
}"""
LAYER_NORM = """
def layer_norm(float(N, K) I, float(K) gamma, float(K) beta) -> (O, mean, variance) {
    mean(n) +=! I(n, k)
    mean(n) = mean(n) / float(K)
    variance(n) +=! (I(n, k) - mean(n)) * (I(n, k) - mean(n))
    variance(n) = variance(n) / float(K)
    O(n, k) = (I(n, k) - mean(n)) * rsqrt(variance(n) + 0.00001) * gamma(k) + beta(k)
}"""


def kernels(num_embeddings: int = 100_000) -> tuple[PaperKernel, ...]:
    """Return every kernel of the paper at every size (23 pairs), and layer norm.

    Args:
        num_embeddings: rows of each embedding table; the paper uses 10 million.

    >>> len(kernels()), kernels()[0].label
    (24, 'tmm 128,256,32')
    """
    kernels = [
        PaperKernel("tmm", f"{m},{n},{k}", TMM, ((m, k), (n, k)))
        for m, n, k in ((128, 256, 32), (128, 1024, 1024), (128, 16384, 4096))
    ]
    kernels.append(PaperKernel("tbmm", "500,26,72,26", TBMM, ((500, 26, 72), (500, 72, 26))))
    kernels += [
        PaperKernel(
            "gconv",
            f"{channels},{size}",
            GROUP_CONVOLUTION,
            ((32, 32, channels, size, size), (32, channels, channels, 3, 3), (32, channels)),
        )
        for channels, size in ((4, 56), (8, 28), (16, 14), (32, 7))
    ]
    rows = num_embeddings
    tables: tuple[Shape, ...] = ((rows, 64), (128, 50))
    kernels.append(PaperKernel("1LUT", "128,64,50", LUT1, tables, ((1, rows),)))
    kernels.append(PaperKernel("2LUT", "128,64,50", LUT2, tables * 2, ((1, rows), (3, rows))))
    c3: tuple[Shape, ...] = ((128, 1000), (1024, 1000))
    kernels.append(PaperKernel("C3", "128,1000,1024", C3, c3))
    mlp1: tuple[Shape, ...] = ((128, 2000), (2000, 128), (128,))
    kernels.append(PaperKernel("MLP1", "128,2000,128", MLP1, mlp1))
    layers: tuple[Shape, ...] = ((64, 128), (64,), (32, 64), (32,), (2, 32), (2,))
    kernels.append(PaperKernel("MLP3", "128,128,64,32,2", MLP3, ((128, 128), *layers)))
    production = (*tables, *tables, *c3, *mlp1, *layers)
    gathers = ((1, rows), (3, rows))
    kernels.append(PaperKernel("production", "128", PRODUCTION, production, gathers))
    for sizes in ((32, 32, 32), (64, 64, 64), (64, 128, 128)):
        weights = tuple((16, size) for size in sizes)
        kernels.append(
            PaperKernel(
                "Kronecker3", ",".join(map(str, sizes)), KRONECKER3, (*weights, (256, *sizes))
            )
        )
    kernels += [
        PaperKernel("moments", f"{n},{k}", MOMENTS, ((n, k),))
        for n, k in ((128, 2304), (1024, 36864))
    ]
    kernels += [
        PaperKernel(
            "group norm", f"{n},512,{s},{s}", GROUP_NORM, ((n, 32, 16, s, s), (32, 16), (32, 16))
        )
        for n, s in ((4, 12), (32, 48))
    ]
    kernels += [
        PaperKernel(
            "WaveNet",
            f"d{d}",
            WAVENET,
            (
                *((1, 32, 4000), (32, 32, 2), (32,), (32, 32, 2), (32,), (32, 32), (32,)),
                *((256, 32), (256,), (d,)),
            ),
        )
        for d in (1, 32)
    ]
    kernels.append(
        PaperKernel("layer norm", "1024,1024", LAYER_NORM, ((1024, 1024), (1024,), (1024,)))
    )
    return tuple(kernels)
