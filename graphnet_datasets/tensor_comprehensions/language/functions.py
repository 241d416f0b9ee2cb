"""NumPy implementations of the built-in functions, computed in float64."""

from __future__ import annotations

import ctypes
import ctypes.util
import functools
import math
import statistics
from collections.abc import Callable
from typing import Any

import numpy as np

from .builtins import registered_function

Function = Callable[..., Any]

_NORMAL = statistics.NormalDist()
_ANGLES = np.arange(512) * (2 * np.pi / 512)


def numpy_function(name: str) -> Function | None:
    """Return the implementation of a function on float64 arrays, or None.

    >>> float(numpy_function("exp2")(3.0))
    8.0
    """
    registered = registered_function(name)
    if registered is not None:
        return registered.numpy
    return _FUNCTIONS.get(name)


def _elementwise(function: Callable[..., float], arity: int = 1) -> Function:
    """Vectorise a function of numbers; a domain error becomes NaN."""

    def guarded(*numbers: float) -> float:
        try:
            return function(*(float(number) for number in numbers))
        except (ValueError, statistics.StatisticsError):
            return math.nan
        except OverflowError:
            return math.inf

    vectorised = np.frompyfunc(guarded, arity, 1)

    def apply(*arrays: Any) -> Any:
        return np.asarray(vectorised(*arrays), dtype=np.float64)

    return apply


@functools.cache
def _libm(name: str) -> Function:
    library = ctypes.CDLL(ctypes.util.find_library("m"))
    function = getattr(library, name)
    function.argtypes, function.restype = [ctypes.c_double], ctypes.c_double
    return _elementwise(function)


def _from_libm(name: str) -> Function:
    return lambda x: _libm(name)(x)


def _tgamma(x: float) -> float:
    if x == 0:
        return math.copysign(math.inf, x)
    return math.gamma(x)


def _lgamma(x: float) -> float:
    return math.inf if x <= 0 and x == math.floor(x) else math.lgamma(x)


def _erfinv(x: float) -> float:
    if abs(x) >= 1:
        return math.copysign(math.inf, x) if abs(x) == 1 else math.nan
    if abs(x) < 1e-8:
        return x * math.sqrt(math.pi) / 2
    guess = _NORMAL.inv_cdf((x + 1) / 2) / math.sqrt(2)
    # One step of Newton: the quantile loses digits where (x + 1) / 2 is rounded.
    return guess - (math.erf(guess) - x) * math.sqrt(math.pi) / 2 * math.exp(guess * guess)


def _erfcinv(x: float) -> float:
    if x in (0, 2):
        return math.inf if x == 0 else -math.inf
    return -_NORMAL.inv_cdf(x / 2) / math.sqrt(2) if x < 0.5 else _erfinv(1 - x)


def _normcdfinv(x: float) -> float:
    if x in (0, 1):
        return -math.inf if x == 0 else math.inf
    return _NORMAL.inv_cdf(x)


def _erfcx(x: float) -> float:
    if x < 25:
        return math.exp(x * x) * math.erfc(x)
    # Asymptotic series, Abramowitz and Stegun 7.1.23; four terms leave 1e-12 at 25.
    square = 1 / (2 * x * x)
    series = 1 - square + 3 * square**2 - 15 * square**3 + 105 * square**4
    return series / (x * math.sqrt(math.pi))


def _bessel_i(order: int) -> Function:
    def apply(x: Any) -> Any:
        """Bessel's integral by the trapezoidal rule, which is exact for periodic functions."""
        size = np.abs(np.asarray(x, dtype=np.float64))[..., None]
        mean = np.mean(np.exp(size * (np.cos(_ANGLES) - 1)) * np.cos(order * _ANGLES), axis=-1)
        return np.exp(size[..., 0]) * mean * (np.sign(x) if order else 1)

    return apply


def _logb(x: Any) -> Any:
    exponent = np.frexp(x)[1] - 1.0
    return np.where(x == 0, -np.inf, np.where(np.isinf(x), np.inf, exponent + 0 * np.abs(x)))


def _round(x: Any) -> Any:
    whole = np.trunc(x)
    return np.where(np.abs(x - whole) >= 0.5, whole + np.sign(x), whole)


def _norm(*arrays: Any) -> Any:
    return functools.reduce(np.hypot, arrays)


_SAME_NAME = """
cbrt ceil cos cosh exp exp2 expm1 fabs floor log log10 log1p log2 sin sinh sqrt tan tanh trunc
copysign fmax fmin fmod hypot nextafter
"""
_FUNCTIONS: dict[str, Function] = {
    **{name: getattr(np, name) for name in _SAME_NAME.split()},
    "acos": np.arccos,
    "acosh": np.arccosh,
    "asin": np.arcsin,
    "asinh": np.arcsinh,
    "atan": np.arctan,
    "atan2": np.arctan2,
    "atanh": np.arctanh,
    **{name: _from_libm(name) for name in ("j0", "j1", "y0", "y1")},
    "cospi": lambda x: np.cos(np.pi * np.remainder(x, 2.0)),
    "cyl_bessel_i0": _bessel_i(0),
    "cyl_bessel_i1": _bessel_i(1),
    "erf": _elementwise(math.erf),
    "erfc": _elementwise(math.erfc),
    "erfcinv": _elementwise(_erfcinv),
    "erfcx": _elementwise(_erfcx),
    "erfinv": _elementwise(_erfinv),
    "exp10": lambda x: np.power(10.0, x),
    "fdim": lambda x, y: np.where(x > y, x - y, np.where(np.isnan(x + y), np.nan, 0.0)),
    "fdivide": lambda x, y: np.divide(x, y),
    "fma": lambda x, y, z: x * y + z,
    "lgamma": _elementwise(_lgamma),
    "logb": _logb,
    "norm3d": _norm,
    "norm4d": _norm,
    "normcdf": _elementwise(lambda x: 0.5 * math.erfc(-x / math.sqrt(2))),
    "normcdfinv": _elementwise(_normcdfinv),
    "pow": np.power,
    "rcbrt": lambda x: 1 / np.cbrt(x),
    "remainder": _elementwise(math.remainder, 2),
    "rhypot": lambda x, y: 1 / np.hypot(x, y),
    "rnorm3d": lambda *xs: 1 / _norm(*xs),
    "rnorm4d": lambda *xs: 1 / _norm(*xs),
    "round": _round,
    "rsqrt": lambda x: 1 / np.sqrt(x),
    "sinpi": lambda x: np.sin(np.pi * np.remainder(x, 2.0)),
    "tgamma": _elementwise(_tgamma),
}
