"""C implementations of the language's functions: from libm, our own, and vectorised.

Vectors use glibc's libmvec if it has the function (error up to 4 ulp); it treats NaN, infinities
and ends of ranges like libm. Other functions call libm for each lane.
"""

from __future__ import annotations

import platform

from ...errors import TensorComprehensionError
from ..language.builtins import BUILTIN_ARITIES, registered_function
from ..language.types import ScalarType
from .machine import Machine

_OWN_WORDS = """
cospi sinpi cyl_bessel_i0 cyl_bessel_i1 erfcinv erfcx erfinv fdivide norm3d norm4d normcdf
normcdfinv rcbrt rhypot rnorm3d rnorm4d rsqrt exp10 j0 j1 y0 y1
"""
_OWN_NAMES = frozenset(_OWN_WORDS.split())

_LIBMVEC_WORDS = """
acos acosh asin asinh atan atanh cbrt cos cosh erf erfc exp exp10 exp2 expm1 log log10 log1p
log2 sin sinh tan tanh atan2 hypot pow
"""
_LIBMVEC = frozenset(_LIBMVEC_WORDS.split())

# F is float or double; x(f) is the libm function f for that type.
_OWN = {
    "rsqrt": "return 1 / x(sqrt)(a);",
    "rcbrt": "return 1 / x(cbrt)(a);",
    "fdivide": "return a / b;",
    "rhypot": "return 1 / x(hypot)(a, b);",
    "norm3d": "return x(hypot)(x(hypot)(a, b), c);",
    "norm4d": "return x(hypot)(x(hypot)(a, b), x(hypot)(c, d));",
    "rnorm3d": "return 1 / x(hypot)(x(hypot)(a, b), c);",
    "rnorm4d": "return 1 / x(hypot)(x(hypot)(a, b), x(hypot)(c, d));",
    "normcdf": "return (F)(0.5 * erfc(-(double)a * 0.70710678118654752440));",
    "exp10": "return (F)pow(10.0, (double)a);",
    "j0": "return (F)j0((double)a);",
    "j1": "return (F)j1((double)a);",
    "y0": "return (F)y0((double)a);",
    "y1": "return (F)y1((double)a);",
    # Exact reduction of the argument to [-1/4, 1/4], so that integers have exact results.
    "sinpi": """double t = (double)a, n = nearbyint(2 * t);
  double r = (t - n / 2) * 3.14159265358979323846;
  if (t - t != 0) return (F)(t - t);
  switch ((int)fmod(n, 4) & 3) {
    case 0: return (F)sin(r);
    case 1: return (F)cos(r);
    case 2: return (F)-sin(r);
    default: return (F)-cos(r);
  }""",
    "cospi": """double t = (double)a, n = nearbyint(2 * t);
  double r = (t - n / 2) * 3.14159265358979323846;
  if (t - t != 0) return (F)(t - t);
  switch ((int)fmod(n, 4) & 3) {
    case 0: return (F)cos(r);
    case 1: return (F)-sin(r);
    case 2: return (F)-cos(r);
    default: return (F)sin(r);
  }""",
    # Newton's iteration on erf from Winitzki's approximation; erfc near 1, where erf loses digits.
    "erfinv": "return (F)tc_erfinv((double)a, 1 - (double)a);",
    "erfcinv": "return (F)tc_erfinv(1 - (double)a, (double)a);",
    "normcdfinv": (
        "return (F)(-1.41421356237309504880 * tc_erfinv(1 - 2 * (double)a, 2 * (double)a));"
    ),
    "erfcx": "return (F)tc_erfcx((double)a);",
    "cyl_bessel_i0": "return (F)tc_bessel_i((double)a, 0);",
    "cyl_bessel_i1": "return (F)tc_bessel_i((double)a, 1);",
}

_SHARED = {
    "tc_erfinv": """\
// The inverse of erf at y, where c is 1 - y without loss of digits.
TC_INLINE double tc_erfinv(double y, double c) {
  if (!(c >= 0 && c <= 2)) return NAN;
  if (c == 0 || c == 2) return c == 0 ? INFINITY : -INFINITY;
  double sign = y < 0 ? -1 : 1, tail = y < 0 ? 2 - c : c, size = y < 0 ? -y : y;
  double l = log(tail) + log1p(size), p = 4.33074675 + l / 2;
  double x = sqrt(sqrt(p * p - l / 0.147) - p);
  for (int i = 0; i < 6; ++i) {
    double error = size < 0.5 ? erf(x) - size : tail - erfc(x);
    double step = error * exp(x * x) * 0.88622692545275801365;
    x -= step / (1 + x * step);
  }
  return sign * x;
}
""",
    "tc_erfcx": """\
TC_INLINE double tc_erfcx(double x) {
  if (x < 5) return exp(x * x) * erfc(x);
  if (x > 1e8) return 0.56418958354775628695 / x;
  double f = 0;  // Laplace's continued fraction
  for (int k = 60; k > 0; --k) f = k / 2.0 / (x + f);
  return 0.56418958354775628695 / (x + f);
}
""",
    "tc_bessel_i": """\
// The modified Bessel function of order n, 0 or 1: its series, or its expansion for large x.
TC_INLINE double tc_bessel_i(double x, int n) {
  double size = fabs(x), term, sum;
  if (size < 30) {
    term = sum = n ? size / 2 : 1;
    for (int k = 1; k < 120; ++k) sum += term *= size * size / 4 / ((double)k * (k + n));
  } else {
    term = sum = 1;
    for (int k = 1; k < 14; ++k)
      sum += term *= -(4.0 * n * n - (2.0 * k - 1) * (2.0 * k - 1)) / (k * 8.0 * size);
    sum *= exp(size / 2) / sqrt(6.28318530717958647692 * size) * exp(size / 2);
  }
  return n && x < 0 ? -sum : sum;
}
""",
}


# Functions made of a few vector operations. If one argument is NaN, fmax and fmin return the other.
_WHOLE = {
    "fmax": "V_select(b != b, a, V_max(a, b))",
    "fmin": "V_select(b != b, a, V_min(a, b))",
    "fdivide": "a / b",
    "fma": "a * b + c",
    "fabs": "V_select(a < 0, -a, a + 0)",
}


class FunctionTable:
    """Collects the functions that a file calls and returns their C names."""

    def __init__(self, machine: Machine) -> None:
        self._machine = machine
        self._definitions: dict[str, str] = {}
        self.needs_libmvec = False

    @property
    def text(self) -> str:
        """C source of all functions used so far."""
        return "".join(self._definitions.values())

    def scalar(self, name: str, scalar: ScalarType) -> str:
        """Return the C name of a function for `scalar`, float32 or float64."""
        suffix = "" if scalar.bits == 64 else "f"
        if name in BUILTIN_ARITIES and name not in _OWN_NAMES:
            return f"{name}{suffix}"
        c_name = f"tc_{name}_{scalar.name}"
        if c_name in self._definitions:
            return c_name
        real = "double" if scalar.bits == 64 else "float"
        if name in _OWN:
            arguments = ", ".join(f"{real} {letter}" for letter in "abcd"[: BUILTIN_ARITIES[name]])
            body = _OWN[name]
            for shared, text in _SHARED.items():
                if shared in body:
                    self._definitions.setdefault(shared, text)
            for function in ("sqrt", "cbrt", "hypot"):
                body = body.replace(f"x({function})", function + suffix)
            body = body.replace("(F)", f"({real})")
            self._definitions[c_name] = f"TC_INLINE {real} {c_name}({arguments}) {{\n  {body}\n}}\n"
            return c_name
        registered = registered_function(name)
        if registered is None:
            raise TensorComprehensionError(
                f"The function `{name}` is unknown in this process. Call `register_function` in "
                "the process that compiles the kernel."
            )
        arguments = ", ".join(f"real x{place}" for place in range(registered.arity))
        self._definitions[c_name] = (
            f"#define real {real}\n"
            f"TC_INLINE real {c_name}({arguments}) {{ return {registered.c}; }}\n"
            "#undef real\n"
        )
        return c_name

    def vector(self, name: str, scalar: ScalarType, arity: int) -> str:
        """Return the C name of a function for whole vectors."""
        vector = "vd" if scalar.bits == 64 else "vf"
        c_name = f"{vector}_{name}"
        if c_name in self._definitions:
            return c_name
        letters = "abcd"[:arity]
        arguments = ", ".join(f"{vector} {letter}" for letter in letters)
        symbol = self._libmvec_symbol(name, scalar, arity)
        if symbol:
            self.needs_libmvec = True
            self._definitions[c_name] = (
                f"extern {vector} {symbol}({arguments});\n"
                f"TC_INLINE {vector} {c_name}({arguments}) {{\n"
                f"  return {symbol}({', '.join(letters)});\n}}\n"
            )
            return c_name
        if name in _WHOLE:
            body = _WHOLE[name].replace("V", vector)
            self._definitions[c_name] = (
                f"TC_INLINE {vector} {c_name}({arguments}) {{ return {body}; }}\n"
            )
            return c_name
        scalar_name = self.scalar(name, scalar)
        lanes = self._machine.lanes(scalar.itemsize)
        real = "double" if scalar.bits == 64 else "float"
        call = ", ".join(f"x{letter}[l]" for letter in letters)
        copies = " ".join(
            f"{real} x{letter}[{lanes}]; __builtin_memcpy(x{letter}, &{letter}, sizeof x{letter});"
            for letter in letters
        )
        # Arrays, not vector subscripts, so that the compiler can vectorise functions such as sqrt.
        self._definitions[c_name] = (
            f"TC_INLINE {vector} {c_name}({arguments}) {{\n  {vector} v;\n"
            f"  {real} y[{lanes}];\n  {copies}\n"
            f"  for (int l = 0; l < {lanes}; ++l) y[l] = {scalar_name}({call});\n"
            "  __builtin_memcpy(&v, y, sizeof v);\n  return v;\n}\n"
        )
        return c_name

    def _libmvec_symbol(self, name: str, scalar: ScalarType, arity: int) -> str:
        if name not in _LIBMVEC or not has_libmvec() or self._machine.architecture != "x86_64":
            return ""
        letter = {"avx512": "e", "avx2": "d"}.get(self._machine.isa, "b")
        lanes = self._machine.lanes(scalar.itemsize)
        return f"_ZGV{letter}N{lanes}{'v' * arity}_{name}{'' if scalar.bits == 64 else 'f'}"


def has_libmvec() -> bool:
    """Return whether libmvec has all functions of `_LIBMVEC`, as glibc has since 2.35."""
    kind, version = platform.libc_ver()
    parts = version.split(".")
    return (
        kind == "glibc"
        and platform.machine() == "x86_64"
        and [int(part) for part in parts[:2] if part.isdigit()] >= [2, 35]
    )
