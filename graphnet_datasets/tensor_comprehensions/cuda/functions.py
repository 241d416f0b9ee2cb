"""Functions and prelude of CUDA C; NVRTC includes only its own built-ins."""

from __future__ import annotations

from ...errors import TensorComprehensionError
from ..codegen.functions import FunctionTable
from ..codegen.machine import Machine
from ..codegen.prelude import INTEGERS
from ..language.builtins import BUILTIN_ARITIES, registered_function
from ..language.types import ScalarType

_TYPES = """\
typedef signed char int8_t; typedef unsigned char uint8_t;
typedef short int16_t; typedef unsigned short uint16_t;
typedef int int32_t; typedef unsigned int uint32_t;
typedef long long int64_t; typedef unsigned long long uint64_t;
#define INT64_C(x) x##ll
#define UINT64_C(x) x##ull
#define INT32_MIN (-2147483647 - 1)
#define INT64_MIN (-9223372036854775807ll - 1)
#define TC_INLINE static __device__ __forceinline__
#define __builtin_inff() __int_as_float(0x7f800000)
#define __builtin_inf() __longlong_as_double(0x7ff0000000000000ll)
#define __builtin_nanf(x) __int_as_float(0x7fc00000)
#define __builtin_nan(x) __longlong_as_double(0x7ff8000000000000ll)
"""
_EXTREMES = """\
TC_INLINE float vf_min1(float a, float b) { return a < b ? a : b; }
TC_INLINE float vf_max1(float a, float b) { return a > b ? a : b; }
TC_INLINE double vd_min1(double a, double b) { return a < b ? a : b; }
TC_INLINE double vd_max1(double a, double b) { return a > b ? a : b; }
"""

PRELUDE = _TYPES + INTEGERS + _EXTREMES


GPU = Machine("cuda", "cuda", 4, 255)
"""GPU as seen by the C printers: a single lane, because threads take the place of lanes."""


class CudaFunctions(FunctionTable):
    """Names of functions in CUDA C, which has all built-ins of the language."""

    def __init__(self) -> None:
        super().__init__(GPU)

    def scalar(self, name: str, scalar: ScalarType) -> str:
        """Return the CUDA name of a function of `scalar`, float32 or float64."""
        if name in BUILTIN_ARITIES:
            if name == "fdivide":
                return (
                    "fdividef"
                    if scalar.bits == 32
                    else self._define("tc_fdivide", "double", 2, "x0 / x1")
                )
            return name if scalar.bits == 64 else f"{name}f"
        registered = registered_function(name)
        if registered is None:
            raise TensorComprehensionError(
                f"The function `{name}` is unknown in this process. Call `register_function` in "
                "the process that compiles the kernel."
            )
        real = "double" if scalar.bits == 64 else "float"
        body = registered.cuda or registered.c
        return self._define(f"tc_{name}_{scalar.name}", real, registered.arity, body)

    def _define(self, c_name: str, real: str, arity: int, body: str) -> str:
        arguments = ", ".join(f"real x{place}" for place in range(arity))
        self._definitions[c_name] = (
            f"#define real {real}\nTC_INLINE real {c_name}({arguments}) {{ return {body}; }}\n"
            "#undef real\n"
        )
        return c_name
