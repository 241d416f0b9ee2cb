"""Tensor Comprehensions: operators written as index formulas and compiled to kernels.

Example::

    from graphnet_datasets import tensor_comprehensions as tc

    layer = tc.define(
        "def mlp(float(B,M) I, float(M,N) W, float(N) C) -> (O) {"
        "  O(b,n) +=! I(b,m) * W(m,n)  O(b,n) = fmax(O(b,n) + C(n), 0) }"
    )
    layer.mlp(inputs, weights, bias)
"""

from .cache import TuningCache
from .calling import BoundKernel
from .definition import Definition, define
from .language import Inference, PreconditionWarning, register_function
from .options import Options
from .presets import PRESETS, preset
from .tuner import TunerConfig

__all__ = [
    "PRESETS",
    "BoundKernel",
    "Definition",
    "Inference",
    "Options",
    "PreconditionWarning",
    "TunerConfig",
    "TuningCache",
    "define",
    "preset",
    "register_function",
]
