"""Functions that definitions can call, and their arities."""

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
"""Arity of each built-in by its CUDA name; arguments and result are float32 or float64."""


@dataclasses.dataclass(frozen=True, slots=True)
class RegisteredFunction:
    """A function registered by the user.

    Attributes:
        c: C expression of the arguments `x0`, `x1`, …; `real` is the type (float or double).
        cuda: CUDA expression; "" means the C expression.
        numpy: implementation on NumPy arrays for the interpreter, or None.
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
    """Register a function that definitions can call as `name`.

    The expressions become part of generated source code, so pass only expressions you trust.

    Args:
        name: name of the function in definitions.
        arity: number of arguments, at least 1.
        c: C expression of `x0`, `x1`, … (all of type `real`, float or double), such as
            `"x0 / (1 + (x0 < 0 ? -x0 : x0))"`.
        cuda: CUDA expression; by default the C expression.
        numpy: implementation for the interpreter, on float32 or float64 arrays.
        replace: whether to replace an earlier registration; built-ins cannot be replaced.

    Raises:
        TensorComprehensionError: the name is taken or invalid, or `arity` is below 1.
    """
    if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name) or name in WORDS or name in SPELLINGS:
        raise TensorComprehensionError(
            f"A function cannot be named {name!r}. Choose a name of letters, digits and `_` that "
            "the language does not reserve."
        )
    if name in BUILTIN_ARITIES or (name in _registered and not replace):
        conflict = "is built in" if name in BUILTIN_ARITIES else "is already registered"
        raise TensorComprehensionError(f"The function `{name}` {conflict}. Choose another name.")
    if arity < 1:
        raise TensorComprehensionError(f"The function `{name}` needs at least one argument.")
    _registered[name] = RegisteredFunction(name, arity, c, cuda, numpy)
    return _registered[name]


def registered_function(name: str) -> RegisteredFunction | None:
    """Return a registered function by name, or None."""
    return _registered.get(name)


def arity_of(name: str) -> int | None:
    """Return the number of arguments of a function, or None if there is no such function.

    >>> arity_of("atan2"), arity_of("system")
    (2, None)
    """
    if name in BUILTIN_ARITIES:
        return BUILTIN_ARITIES[name]
    return _registered[name].arity if name in _registered else None
