"""The functions that a definition can call, and how many arguments each takes."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

from ...errors import TensorComprehensionError
from .lexer import WORDS
from .types import SPELLINGS

_UNARY = """
acos acosh asin asinh atan atanh cbrt ceil cos cosh cospi cyl_bessel_i0 cyl_bessel_i1 erf erfc
erfcinv erfcx erfinv exp exp2 exp10 expm1 fabs floor j0 j1 lgamma log log10 log1p log2 logb
normcdf normcdfinv rcbrt round rsqrt sin sinh sinpi sqrt tan tanh tgamma trunc y0 y1
"""
_BINARY = "atan2 copysign fdim fdivide fmax fmin fmod hypot nextafter pow remainder rhypot"

BUILTIN_ARITIES: Mapping[str, int] = MappingProxyType(
    dict.fromkeys(_UNARY.split(), 1)
    | dict.fromkeys(_BINARY.split(), 2)
    | {"fma": 3, "norm3d": 3, "rnorm3d": 3, "norm4d": 4, "rnorm4d": 4}
)
"""CUDA's names; a function takes float32 or float64 and returns the same."""


@dataclasses.dataclass(frozen=True, slots=True)
class RegisteredFunction:
    """A function that the user added.

    Attributes:
        c: C expression of the arguments `x0`, `x1`, …; `real` is the type (float or double).
        cuda: the same for CUDA, "" if the C expression serves both.
        numpy: the function of NumPy arrays that the interpreter calls, None if it has none.
    """

    name: str
    arity: int
    c: str
    cuda: str = ""
    numpy: Callable[..., Any] | None = dataclasses.field(default=None, compare=False)


_registered: dict[str, RegisteredFunction] = {}


def register_function(
    name: str,
    arity: int,
    c: str,
    cuda: str = "",
    numpy: Callable[..., Any] | None = None,
    *,
    replace: bool = False,
) -> RegisteredFunction:
    """Let definitions call `name`.

    The expressions become part of generated source: they are code, so pass only your own.

    Args:
        name: the name in definitions.
        arity: the number of arguments, at least 1.
        c: a C expression of `x0`, `x1`, … (each of type `real`, float or double), such as
            `"x0 / (1 + (x0 < 0 ? -x0 : x0))"`.
        cuda: the same for CUDA where C's does not serve.
        numpy: what the interpreter calls instead, on float32 or float64 arrays.
        replace: whether an earlier registration may be overwritten; a built-in never is.

    Raises:
        TensorComprehensionError: the name is taken or no identifier, or `arity` is below 1.
    """
    if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name) or name in WORDS or name in SPELLINGS:
        raise TensorComprehensionError(
            f"A function cannot be named {name!r}. Take a name of letters, digits and `_` that "
            "the language does not reserve."
        )
    if name in BUILTIN_ARITIES or (name in _registered and not replace):
        what = "is built in" if name in BUILTIN_ARITIES else "is registered already"
        raise TensorComprehensionError(f"The function `{name}` {what}. Choose another name.")
    if arity < 1:
        raise TensorComprehensionError(f"The function `{name}` needs at least one argument.")
    _registered[name] = RegisteredFunction(name, arity, c, cuda, numpy)
    return _registered[name]


def registered_function(name: str) -> RegisteredFunction | None:
    """Return the function that was registered under this name, None if there is none."""
    return _registered.get(name)


def arity_of(name: str) -> int | None:
    """Return how many arguments a function takes, None if there is no such function.

    >>> arity_of("atan2"), arity_of("system")
    (2, None)
    """
    if name in BUILTIN_ARITIES:
        return BUILTIN_ARITIES[name]
    return _registered[name].arity if name in _registered else None
