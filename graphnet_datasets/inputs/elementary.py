"""Logarithm and exponential function with bitwise identical results on every machine.

NumPy's functions may differ in the last bit between processors. These use only operations that IEEE
754 rounds correctly (+ - * / sqrt) and exact operations (frexp, ldexp, rint).
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

_LOG2_HIGH = 0.693147180369123816490
"""The upper bits of log 2; the product with a small integer is exact (Cody and Waite 1980)."""
_LOG2_LOW = 1.90821492927058770002e-10


def polynomial(coefficients: tuple[float, ...], x: npt.NDArray) -> npt.NDArray[np.float64]:
    """Evaluate a polynomial with the coefficients in ascending order, by Horner's scheme."""
    total = np.full_like(x, coefficients[-1], np.float64)
    for coefficient in coefficients[-2::-1]:
        total = total * x + coefficient
    return total


def log(x: npt.NDArray) -> npt.NDArray[np.float64]:
    """Return the natural logarithm of positive numbers, from its series.

    >>> bool(np.allclose(log(np.array([1e-30, 0.7, 5.0])), np.log([1e-30, 0.7, 5.0]), rtol=1e-14))
    True
    """
    mantissa, exponent = np.frexp(x)
    is_small = mantissa < math.sqrt(0.5)
    mantissa = np.where(is_small, mantissa * 2, mantissa)
    exponent = exponent - is_small
    ratio = (mantissa - 1) / (mantissa + 1)
    odd_terms = tuple(2.0 / power for power in range(1, 25, 2))
    return ratio * polynomial(odd_terms, ratio * ratio) + exponent * math.log(2)


def exp(x: npt.NDArray) -> npt.NDArray[np.float64]:
    """Return e to the power of `x`, with x clipped to ±700, from its series.

    >>> bool(np.allclose(exp(np.array([-30.0, 0.3, 9.0])), np.exp([-30.0, 0.3, 9.0]), rtol=1e-14))
    True
    """
    x = np.clip(np.asarray(x, np.float64), -700, 700)
    exponent = np.rint(x / _LOG2_HIGH)
    rest = (x - exponent * _LOG2_HIGH) - exponent * _LOG2_LOW
    terms = tuple(1.0 / math.factorial(power) for power in range(15))
    return np.ldexp(polynomial(terms, rest), exponent.astype(np.int32))
