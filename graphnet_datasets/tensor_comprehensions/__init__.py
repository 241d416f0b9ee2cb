"""Tensor Comprehensions: operators written as index formulas and compiled to kernels.

Example::

    from graphnet_datasets import tensor_comprehensions as tc

    layer = tc.define(
        "def mlp(float(B,M) I, float(M,N) W, float(N) C) -> (O) {"
        "  O(b,n) +=! I(b,m) * W(m,n)  O(b,n) = fmax(O(b,n) + C(n), 0) }"
    )
    layer.mlp(inputs, weights, bias)

Names are imported on first use.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..lazy_names import attributes_on_first_use

if TYPE_CHECKING:
    from .cache import TuningCache
    from .calling import BoundKernel
    from .definition import Definition, define
    from .language import Inference, PreconditionWarning, register_function
    from .options import Options
    from .packages import load_package, save_package
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
    "load_package",
    "preset",
    "register_function",
    "save_package",
]

__getattr__ = attributes_on_first_use(
    __name__,
    {
        "BoundKernel": "calling",
        "Definition": "definition",
        "Inference": "language",
        "Options": "options",
        "PRESETS": "presets",
        "PreconditionWarning": "language",
        "TunerConfig": "tuner",
        "TuningCache": "cache",
        "define": "definition",
        "load_package": "packages",
        "preset": "presets",
        "register_function": "language",
        "save_package": "packages",
    },
)
