"""Functions of the language in Triton, and helper functions of generated files."""

from __future__ import annotations

from collections.abc import Sequence

from ...errors import TensorComprehensionError
from ..language.builtins import BUILTIN_ARITIES
from ..language.types import ScalarType

_HELPERS = {
    "tc_div_signed": """\
def tc_div_signed(a, b):
    divisor = tl.where((b == 0) | (b == -1), 1, b).to(a.dtype)
    quotient = a // divisor
    rest = a - quotient * divisor
    is_below = (rest != 0) & ((rest < 0) != (divisor < 0))
    floor = tl.where(is_below, quotient - 1, quotient)
    return tl.where(b == 0, 0, tl.where(b == -1, 0 - a, floor)).to(a.dtype)
""",
    "tc_mod_signed": """\
def tc_mod_signed(a, b):
    divisor = tl.where((b == 0) | (b == -1), 1, b).to(a.dtype)
    rest = a - (a // divisor) * divisor
    is_below = (rest != 0) & ((rest < 0) != (divisor < 0))
    return tl.where(is_below, rest + divisor, rest).to(a.dtype)
""",
    "tc_div_unsigned": """\
def tc_div_unsigned(a, b):
    divisor = tl.where(b == 0, 1, b).to(a.dtype)
    return tl.where(b == 0, 0, a // divisor).to(a.dtype)
""",
    "tc_mod_unsigned": """\
def tc_mod_unsigned(a, b):
    divisor = tl.where(b == 0, 1, b).to(a.dtype)
    return (a - (a // divisor) * divisor).to(a.dtype)
""",
    "tc_mod_float": """\
def tc_mod_float(a, b):
    rest = libdevice.fmod(a, b)
    return tl.where((rest != 0) & ((rest < 0) != (b < 0)), rest + b, rest)
""",
    "tc_multiply": """\
def tc_multiply(a, b):
    return a * b
""",
}
"""Helper functions by name. Integers round towards minus infinity; division by 0 returns 0."""

_NATIVE = {"fabs": "tl.abs", "fmax": "tl.maximum", "fmin": "tl.minimum", "fma": "tl.fma"}


class Helpers:
    """The helper functions that a generated file uses."""

    def __init__(self) -> None:
        self._used: dict[str, str] = {}

    def use(self, name: str) -> str:
        """Add a helper function to the file and return its name."""
        self._used[name] = _HELPERS[name]
        return name

    @property
    def text(self) -> str:
        """Definitions of the used functions."""
        return "".join(f"\n\n@triton.jit\n{body}" for body in self._used.values())


def function_code(name: str, scalar: ScalarType, arguments: Sequence[str]) -> str:
    """Return a call of a built-in function.

    CUDA's libdevice has nearly all functions under the names of the language. The faster functions
    of Triton itself are approximations.

    >>> from graphnet_datasets.tensor_comprehensions.language.types import FLOAT32
    >>> function_code("tanh", FLOAT32, ["x"]), function_code("fmax", FLOAT32, ["x", "y"])
    ('libdevice.tanh(x)', 'tl.maximum(x, y)')

    Raises:
        TensorComprehensionError: the function was registered, so only its C and CUDA are known.
    """
    listed = ", ".join(arguments)
    if name not in BUILTIN_ARITIES:
        raise TensorComprehensionError(
            f"The function `{name}` was registered with expressions in C and CUDA, which Triton "
            'cannot call. Use built-in functions, or compile with `Options(gpu="nvrtc")`.'
        )
    if name == "fdivide":
        return f"tl.div_rn({listed})" if scalar.bits == 32 else f"({' / '.join(arguments)})"
    if name == "sqrt" and scalar.bits == 32:
        return f"tl.sqrt_rn({listed})"
    return f"{_NATIVE.get(name, f'libdevice.{name}')}({listed})"
