"""Definitions at small sizes that tests of the Triton generator share."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

import numpy as np

from benchmarks.tc import paper
from graphnet_datasets.tensor_comprehensions.language import Instance
from graphnet_datasets.tensor_comprehensions.options import Options

from ..kernels import inputs_of, instance_of


@dataclasses.dataclass(frozen=True)
class Case:
    """A definition, the shapes of its inputs, and options of its generation.

    `gathers` bounds the values of inputs of subscripts, and `tolerance` the difference relative to
    the scale of an output.
    """

    source: str
    shapes: tuple[tuple[int, ...], ...]
    options: Options = dataclasses.field(default_factory=Options)
    gathers: Mapping[int, int] = dataclasses.field(default_factory=dict)
    tolerance: float = 2e-6
    check_bounds: bool = False

    def make(self) -> tuple[Instance, list[np.ndarray], dict[str, np.ndarray]]:
        """Return the instance, its inputs, and the initial contents of accumulated outputs."""
        instance = instance_of(self.source, *self.shapes, check_bounds=self.check_bounds)
        generator = np.random.default_rng(1)
        inputs = [_exact(array) for array in inputs_of(instance, dict(self.gathers))]
        start = {
            tensor.name: generator.integers(0, 9, tensor.shape).astype(
                "float32" if tensor.dtype.name == "bfloat16" else tensor.dtype.name
            )
            for tensor in instance.outputs
            if tensor.is_updated
        }
        return instance, inputs, start


def _exact(array: np.ndarray) -> np.ndarray:
    """Return floats that 16 bits represent."""
    if array.dtype.kind != "f":
        return array
    return (np.round(array.astype(np.float32) * 32) / 32).astype(array.dtype)


_TABLE = ((20, 16), (9, 5))
_C3 = ((9, 20), (33, 20))
_MLP1 = ((9, 24), (24, 17), (17,))
_LAYERS = ((16, 17), (16,), (12, 16), (12,), (2, 12), (2,))
_WAVENET = ((1, 9, 21), (9, 9, 2), (9,), (9, 9, 2), (9,), (9, 9), (9,), (10, 9), (10,))
_SMALL: dict[str, tuple[tuple[int, ...], ...]] = {
    "tmm 128,256,32": ((9, 8), (17, 8)),
    "tmm 128,1024,1024": ((33, 40), (18, 40)),
    "tmm 128,16384,4096": ((16, 16), (40, 16)),
    "tbmm 500,26,72,26": ((3, 11, 18), (3, 18, 9)),
    "gconv 4,56": ((2, 2, 4, 6, 6), (2, 4, 4, 3, 3), (2, 4)),
    "gconv 8,28": ((2, 2, 8, 6, 6), (2, 8, 8, 3, 3), (2, 8)),
    "gconv 16,14": ((1, 2, 16, 5, 5), (2, 16, 16, 3, 3), (2, 16)),
    "gconv 32,7": ((2, 1, 32, 5, 5), (1, 32, 32, 3, 3), (1, 32)),
    "1LUT 128,64,50": _TABLE,
    "2LUT 128,64,50": _TABLE * 2,
    "C3 128,1000,1024": _C3,
    "MLP1 128,2000,128": _MLP1,
    "MLP3 128,128,64,32,2": ((9, 17), *_LAYERS),
    "production 128": (*_TABLE, *_TABLE, *_C3, *_MLP1, *_LAYERS),
    "Kronecker3 32,32,32": ((9, 8), (9, 8), (9, 8), (2, 8, 8, 8)),
    "Kronecker3 64,64,64": ((8, 10), (8, 10), (8, 10), (2, 10, 10, 10)),
    "Kronecker3 64,128,128": ((8, 9), (8, 12), (8, 12), (1, 9, 12, 12)),
    "moments 128,2304": ((3, 37),),
    "moments 1024,36864": ((2, 300),),
    "group norm 4,512,12,12": ((2, 2, 3, 4, 5), (2, 3), (2, 3)),
    "group norm 32,512,48,48": ((2, 3, 2, 5, 5), (3, 2), (3, 2)),
    "WaveNet d1": (*_WAVENET, (1,)),
    "WaveNet d32": (*_WAVENET, (3,)),
    "layer norm 1024,1024": ((5, 37), (37,), (37,)),
}
"""Small shapes of the inputs of every kernel of the paper."""


def _paper(kernel: paper.PaperKernel) -> Case:
    shapes = _SMALL[kernel.label]
    gathers = {place: shapes[place - 1][0] for place, _ in kernel.gathers}
    return Case(kernel.source, shapes, gathers=gathers, tolerance=1e-5)


def _elementwise(dtype: str, value: str) -> Case:
    return Case(
        f"def f({dtype}(N,M) A, {dtype}(N,M) B) -> (O) {{ O(i,j) = {value} }}", ((5, 9),) * 2
    )


def _reduced(operator: str, dtype: str, options: Options | None = None) -> Case:
    source = f"def f({dtype}(N,K) A) -> (O) {{ O(n) {operator} A(n,k) }}"
    return Case(source, ((7, 70),), options or Options())


PRODUCT = "def f({0}(M,K) A, {0}(K,N) B) -> (O) {{ O(m,n) +=! A(m,k) * B(k,n) }}"
_PADDED = """def f({0}(N,C,H,W) X, {0}(F,C,P,Q) Y) -> (O) {{
    O(n,f,h,w) +=! (h+p-1 >= 0 && h+p-1 < H && w+q-1 >= 0 && w+q-1 < W
        ? X(n,c,h+p-1,w+q-1) : {0}(0)) * Y(f,c,p,q) where h in 0:H, w in 0:W }}"""
_SOFTMAX = """def f(float(N,K) I) -> (O) {
    largest(n) max=! I(n,k)
    shifted(n,k) = exp(I(n,k) - largest(n))
    total(n) +=! shifted(n,k)
    O(n,k) = shifted(n,k) / total(n) }"""
_SPLIT = Options().with_triton(split=3, reduction=(4, 16), product=(16, 16, 16))
_WIDE = Options().with_triton(reduction=(8, 1), pointwise=16)

PAPER = {kernel.label: _paper(kernel) for kernel in paper.kernels()}
NATURAL: dict[str, Case] = {
    "transposed": Case("def f(float(N,M) A) -> (O) { O(i,j) = A(j,i) * 2 }", ((17, 40),)),
    "broadcast": Case(
        "def f(float(N) A, float(M) B, float c) -> (O) { O(i,j) = A(i) * B(j) + c }",
        ((5,), (9,), ()),
    ),
    "scalar": Case("def f(float a, float b) -> (O) { O = a / b }", ((), ())),
    "size 0": Case("def f(float(N,M) A) -> (O) { O(i,j) = A(i,j) + 1 }", ((0, 5),)),
    "sum of nothing": Case("def f(float(N,K) A) -> (O) { O(n) +=! A(n,k) }", ((5, 0),)),
    "in place": Case("def f(float(N) A) -> (O) { O(i) += A(i) }", ((70,),)),
    "maximum in place": Case("def f(int32(N,K) A) -> (O) { O(i) max= A(i,k) }", ((9, 33),)),
    "sum in place, split": Case(
        "def f(float(N,K) A) -> (O) { O(i) += A(i,k) }", ((5, 99),), _SPLIT
    ),
    "sum to a scalar": Case("def f(float(N,K) A) -> (O) { O +=! A(n,k) }", ((9, 33),)),
    "sum to a scalar, split": Case(
        "def f(float(N) A) -> (S, O) { S +=! A(n) \n O = S * 2 }", ((99,),), _SPLIT
    ),
    "sum of columns": Case("def f(float(N,K) A) -> (O) { O(k) +=! A(n,k) }", ((70, 33),)),
    "one term at a time": _reduced("+=!", "float", _WIDE),
    "product of terms": Case("def f(double(N,K) A) -> (O) { O(n) *=! A(n,k) }", ((5, 6),)),
    **{
        f"{operator} of {dtype}": _reduced(operator, dtype)
        for operator, dtype in (
            ("min=!", "float"),
            ("max=!", "double"),
            ("max=!", "int8"),
            ("min=!", "uint8"),
            ("+=!", "int64"),
            ("+=!", "int16"),
            ("max=!", "bfloat16"),
            ("+=!", "float16"),
        )
    },
    "softmax": Case(_SOFTMAX, ((6, 21),)),
    "signed division": _elementwise("int32", "A(i,j) / B(i,j) + A(i,j) % B(i,j)"),
    "narrow division": _elementwise("int8", "A(i,j) / B(i,j) - A(i,j) % B(i,j)"),
    "unsigned division": _elementwise("uint8", "A(i,j) / B(i,j) + A(i,j) % B(i,j)"),
    "float remainder": _elementwise("float", "A(i,j) % B(i,j)"),
    "overflow": _elementwise("int8", "A(i,j) * B(i,j) - 100"),
    "conditions": _elementwise(
        "float", "(A(i,j) > 0.0 && !(B(i,j) < 0.5) || i == j ? min(A(i,j), B(i,j)) : -B(i,j))"
    ),
    "conversions": _elementwise("float16", "float16(int32(A(i,j) * 3) + uint8(i*100) + j / 2)"),
    "functions": _elementwise(
        "float", "tanh(A(i,j)) + fmax(B(i,j), 0.5) + sqrt(fabs(A(i,j))) + pow(2.0, B(i,j))"
    ),
    "double": _elementwise("double", "0.1 * A(i,j) / (fabs(B(i,j)) + 0.3)"),
    "bool": Case(
        "def f(bool(N) A, float(N) B) -> (O) { O(i) = A(i) ? B(i) : -B(i) }", ((33,),) * 2
    ),
    "bool result": Case("def f(float(N) A) -> (bool O) { O(i) = A(i) > 0.0 }", ((33,),)),
    "shifted": Case(
        "def f(float(N) X) -> (O) { O(i) = X(i) + (i % 3 == 1 ? X(i-1) : 0.0) }", ((70,),)
    ),
    "guard in parts": Case(
        "def f(float(N,C) X) -> (O) { O(t,c) = (t >= 4 ? X(t-4,c) : 0.0) where t in 0:N }",
        ((9, 5),),
        Options().with_triton(split_guards=True),
    ),
    "guard by data": Case(
        "def f(float(N) X, int32(N) S, float(M) Y) -> (O) "
        "{ O(i,j) = (S(i) > 0 && i > 0 ? X(i-1) : 0.0) + Y(j) }",
        ((9,), (9,), (5,)),
    ),
    "guard of a column": Case(
        "def f(float(N) X, float(M) Y) -> (O) { O(i,j) = Y(j) * (i > j ? X(i-j) : 0.0) }",
        ((9,), (5,)),
    ),
    "causal window": Case(
        "def f(float(T,C) X) -> (O) { O(t,c) +=! (t-k >= 0 ? X(t-k,c) : 0.0) "
        "where t in 0:T, k in 0:4 }",
        ((13, 9),),
    ),
    "pooling": Case(
        "def f(float(H,W) X) -> (O) { O(h,w) max=! X(2*h+p,2*w+q) where p in 0:2, q in 0:2 }",
        ((8, 10),),
    ),
    "clamped gather": Case(
        "def f(float(E,D) L, int32(N) I) -> (O) { O(n,d) = L(I(n),d) }",
        ((7, 9), (8,)),
        check_bounds=True,
    ),
    "reshaped": Case("def f(float(N,M) A) -> (O) { O(i) = A(i/6,i%6) where i in 0:30 }", ((5, 6),)),
    "lower bound": Case("def f(float(N) A) -> (O) { O(i) = A(i-1) where i in 3:9 }", ((9,),)),
    "product": Case(PRODUCT.format("float"), ((9, 33), (33, 20))),
    "product, split": Case(PRODUCT.format("float"), ((9, 70), (70, 20)), _SPLIT),
    "product of tiles": Case(
        PRODUCT.format("float"),
        ((33, 20), (20, 40)),
        Options().with_triton(product=(16, 16, 16)),
    ),
    "product in double": Case(PRODUCT.format("double"), ((9, 12), (12, 10))),
    "product in int32": Case(PRODUCT.format("int32"), ((9, 12), (12, 10))),
    "product in bfloat16": Case(PRODUCT.format("bfloat16"), ((17, 33), (33, 20)), tolerance=6e-3),
    "product in float16": Case(PRODUCT.format("float16"), ((17, 33), (33, 20)), tolerance=1e-3),
    "product of functions": Case(
        "def f(float(M,K) A, float(K,N) B) -> (O) { O(m,n) +=! exp(A(m,k)) * (B(k,n) + 1.0) }",
        ((9, 21), (21, 10)),
    ),
    "product in place": Case(
        "def f(float(M,K) A, float(K,N) B) -> (O) { O(m,n) += A(m,k) * B(k,n) }", ((9, 9), (9, 9))
    ),
    "convolution": Case(_PADDED.format("float"), ((2, 3, 5, 6), (9, 3, 3, 3))),
    "convolution in float16": Case(
        _PADDED.format("float16"), ((2, 3, 5, 6), (9, 3, 3, 3)), tolerance=1e-3
    ),
    "two products": Case(
        "def f(float(M,K) A, float(K,N) B, float(K,N) C) -> (O, P) "
        "{ O(m,n) +=! A(m,k) * B(k,n) \n P(m,n) +=! A(m,k) * C(k,n) }",
        ((9, 12), (12, 10), (12, 10)),
    ),
}
CASES = {**PAPER, **NATURAL}
