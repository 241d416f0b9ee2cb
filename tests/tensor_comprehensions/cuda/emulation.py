"""CUDA C executed on the processor: a block's threads are OpenMP's, a barrier is OpenMP's barrier.

What runs is the generated text itself, so that subscripts, guards, copies and barriers are checked
without a device; speed and memory spaces are not.
"""

from __future__ import annotations

import ctypes
import re
import subprocess
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from graphnet_datasets.tensor_comprehensions.cuda import CudaProgram
from graphnet_datasets.tensor_comprehensions.language import Instance

_HEAD = """\
#include <math.h>
#include <omp.h>
typedef struct { int x, y, z; } dim3;
static _Thread_local dim3 threadIdx;
static dim3 blockIdx, blockDim, gridDim;
#define __device__
#define __forceinline__ inline __attribute__((always_inline, unused))
#define __shared__ static
#define __ldg(p) (*(p))
#define __syncthreads() _Pragma("omp barrier")
#define rsqrtf(x) (1 / sqrtf(x))
static inline float __int_as_float(int i) { union { int i; float f; } v = {i}; return v.f; }
static inline double __longlong_as_double(long long i) {
  union { long long i; double f; } v = {i};
  return v.f;
}
"""


_DRIVER = """\
#include <string.h>
typedef void Call(const int *grid, const int *block, void **arguments);
typedef struct { const char *name; Call *call; int count; } Entry;
static const Entry entries[];
static int num_current;
int cuInit(unsigned flags) { return 0; }
int cuGetErrorString(int status, const char **text) { *text = "a refusal"; return 0; }
int cuDeviceGetAttribute(int *value, int which, int device) {
  *value = which == 75 ? 8 : 0;
  return 0;
}
int cuDevicePrimaryCtxRetain(void **context, int device) { *context = (void *)7; return 0; }
int cuCtxSetCurrent(void *context) { num_current += context == (void *)7; return 0; }
int cuCtxSynchronize(void) { return 0; }
int cuModuleLoadDataEx(void **module, const char *ptx, unsigned n, int *names, void **values) {
  *module = (void *)ptx;
  return strstr(ptx, ".visible .entry") ? 0 : 218;
}
int cuModuleGetFunction(void **function, void *module, const char *name) {
  for (const Entry *e = entries; e->name; ++e)
    if (!strcmp(e->name, name)) { *function = (void *)e; return 0; }
  return 500;
}
int cuLaunchKernel(void *function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,
                   unsigned bz, unsigned shared, void *stream, void **arguments, void **extra) {
  const Entry *e = function;
  int grid[3] = {gx, gy, gz}, block[3] = {bx, by, bz};
  void *a[64];
  if (!num_current || stream != (void *)5) return 201;
  for (int i = 0; i < e->count; ++i) a[i] = *(void **)arguments[i];
  e->call(grid, block, a);
  return 0;
}
"""


def driver(instance: Instance, program: CudaProgram, folder: Path) -> ctypes.CDLL:
    """Return a driver that executes the kernels of one program on the processor.

    It checks that a context is entered, and that all is launched on the stream 5.
    """
    count = len(instance.tensors)
    entries = "".join(f'{{"{each.name}", call_{each.name}, {count}}}, ' for each in program.kernels)
    table = f"static const Entry entries[] = {{ {entries}{{0}} }};\n"
    return _compiled(_kernels(instance, program) + _DRIVER + table, folder, "driver")


def run(
    instance: Instance, program: CudaProgram, inputs: Sequence[np.ndarray], folder: Path
) -> list[np.ndarray]:
    """Return the outputs of a program; blocks run one after the other."""
    calls = "".join(
        f"call_{each.name}((int[]){{{_listed(each.grid)}}}, (int[]){{{_listed(each.block)}}}, a);\n"
        for each in program.kernels
    )
    main = f"void run(void **a) {{\n{calls}}}\n"
    library = _compiled(_kernels(instance, program) + main, folder, "kernel")
    given = iter(inputs)
    arrays = [
        next(given) if each.role == "input" else np.zeros(each.shape, each.dtype.name)
        for each in instance.tensors
    ]
    pointers = (ctypes.c_void_p * len(arrays))(*(each.ctypes.data for each in arrays))
    library.run(pointers)
    return [
        array
        for tensor, array in zip(instance.tensors, arrays, strict=True)
        if tensor.role == "output"
    ]


def _kernels(instance: Instance, program: CudaProgram) -> str:
    """Return C with a function `call_NAME(grid, block, arguments)` for each kernel."""
    source = program.source
    for name in ("int8_t", "uint8_t", "int16_t", "uint16_t", "int32_t", "uint32_t", "int64_t"):
        assert f" {name};" in source
    text = re.sub(r"(?m)^typedef .*_t;$", "", source)
    text = re.sub(r"(?m)^#define (U?INT\d+_(C|MIN)|__builtin_).*$", "", text)
    text = re.sub(r'extern "C" __global__ void __launch_bounds__\(\d+\)', "static void", text)
    arguments = ", ".join(f"a[{place}]" for place in range(len(instance.tensors)))
    calls = [
        f"static void call_{kernel.name}(const int *grid, const int *block, void **a) {{\n"
        "blockDim = (dim3){block[0], block[1], block[2]};\n"
        "gridDim = (dim3){grid[0], grid[1], grid[2]};\n"
        "for (int b = 0; b < grid[0] * grid[1] * grid[2]; ++b) {\n"
        "  blockIdx = (dim3){b % grid[0], b / grid[0] % grid[1], b / (grid[0] * grid[1])};\n"
        '  _Pragma("omp parallel num_threads(block[0] * block[1] * block[2])")\n'
        "  {\n"
        "    int t = omp_get_thread_num();\n"
        "    threadIdx = (dim3){t % blockDim.x, t / blockDim.x % blockDim.y,"
        " t / (blockDim.x * blockDim.y)};\n"
        f"    {kernel.name}({arguments});\n"
        "  }\n}\n}\n"
        for kernel in program.kernels
    ]
    return "#include <stdint.h>\n" + _HEAD + text + "".join(calls)


def _listed(values: Sequence[int]) -> str:
    return ", ".join(map(str, values))


def _compiled(text: str, folder: Path, name: str) -> ctypes.CDLL:
    (folder / f"{name}.c").write_text(text)
    flags = ["-O1", "-w", "-shared", "-fPIC", "-fopenmp"]
    subprocess.run(["gcc", *flags, "-o", f"{name}.so", f"{name}.c", "-lm"], cwd=folder, check=True)
    return ctypes.CDLL(str(folder / f"{name}.so"))
