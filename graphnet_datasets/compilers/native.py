"""Candidates in C++ and CUDA: a function with C linkage in one source file.

The file is compiled in the process that runs the candidate. The function

    extern "C" void candidate(const Tensor* inputs, Tensor* outputs)

reads all inputs of the graph in order, weights included, and fills contiguous outputs. Numbers
among the inputs are int64 or float64 tensors of rank 0. `#include "graphnet.h"` declares `Tensor`,
and the numeric arguments of the graph's operators as constants such as `op0_dim`. A CUDA function
also receives the stream, as `void* stream`.
"""

from __future__ import annotations

import ctypes
import importlib.util
import math
import re
import shutil
import subprocess
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from ..errors import CandidateError

ENTRY = "candidate"
"""Name of the function that a native candidate defines."""
COMMANDS: Mapping[str, tuple[str, ...]] = {
    ".cpp": ("g++", "-O3", "-march=native", "-std=c++20", "-fopenmp", "-fPIC", "-shared", "-Wall"),
    ".cu": ("nvcc", "-O3", "-std=c++17", "-Xcompiler", "-fPIC", "-shared"),
}
"""Commands that compile a file to a shared library, by suffix."""
HEADER = """\
#pragma once
#include <cstdint>
#include <limits>

struct Tensor {
    void* data;
    int64_t rank;
    const int64_t* sizes;
    const int64_t* strides;  // in elements
};
"""
MAX_LOG = 4000
"""Maximum number of characters of a build log, which is the output of `g++` or `nvcc`."""
_IDENTIFIER = re.compile(r"op[0-9]+_[A-Za-z0-9_]+")
BUILD_LOG = "build: "
"""The beginning of the warning with the build log in a run's record."""


class _Tensor(ctypes.Structure):
    _fields_ = (
        ("data", ctypes.c_void_p),
        ("rank", ctypes.c_int64),
        ("sizes", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
    )


class NativeCandidate:
    """A candidate in C++ or CUDA, with the name and the text of its file."""

    def __init__(self, name: str, text: str) -> None:
        self.path, self._text = Path(name), text

    def compile_for(
        self,
        module: Callable[..., Any],
        graph_inputs: Mapping[str, Any],
        attributes: Mapping[str, Any],
        directory: Path,
    ) -> tuple[Callable[..., Any], str]:
        """Compile the file into `directory`; return a function of all inputs and the build log.

        The function infers the sizes of the outputs from the graph `module` on fake tensors, once
        for each combination of input sizes.

        Raises:
            CandidateError: The compiler is missing, reports an error, or the file does not define
                `candidate`.
        """
        directory.mkdir(parents=True, exist_ok=True)
        path = directory / self.path.name
        path.write_text(self._text)
        library, log = build_library(path, attributes)
        try:
            function = getattr(ctypes.CDLL(str(library)), ENTRY)
        except (OSError, AttributeError) as error:
            raise CandidateError(
                f'`{self.path.name}` defines no `extern "C"` function `{ENTRY}`: {error}. Define '
                f'`extern "C" void {ENTRY}(const Tensor* inputs, Tensor* outputs)`.'
            ) from error
        function.restype = None
        outputs_of = _OutputSizes(module, graph_inputs)
        is_cuda = self.path.suffix == ".cu"

        def call(*inputs: Any) -> Any:
            import torch

            values = [
                value if isinstance(value, torch.Tensor) else torch.tensor(value)
                for value in inputs
            ]
            if is_cuda and not any(value.is_cuda for value in values):
                raise CandidateError(
                    f"`{self.path.name}` is CUDA source, but its inputs are on the CPU. Judge it "
                    "with `--device cuda`."
                )
            spec, rebuild = outputs_of(inputs)
            outputs = [
                torch.empty(size, dtype=dtype, device=device) for size, dtype, device in spec
            ]
            described = [_as_array(values), _as_array(outputs)]
            if is_cuda:
                stream = torch.cuda.current_stream().cuda_stream
                described.append(ctypes.c_void_p(stream))
            function(*described)
            return rebuild(outputs)

        return call, log


def declare_constants(attributes: Mapping[str, Any]) -> str:
    """Return C++ declarations of the numeric arguments of a graph's operators.

    Arguments whose names are not C identifiers are left out.

    >>> print(declare_constants({"op0_dim": -1, "op1_arg2": 0.5, "op2_stride": (1, 2)}))
    constexpr int64_t op0_dim = -1;
    constexpr double op1_arg2 = 0.5;
    constexpr int64_t op2_stride[] = {1, 2};
    """
    lines = []
    for name, value in attributes.items():
        if not _IDENTIFIER.fullmatch(name):
            continue
        numbers = value if isinstance(value, tuple) else (value,)
        is_whole = all(type(number) is int and abs(number) < 2**63 for number in numbers)
        kind = "int64_t" if is_whole else "double"
        words = [str(number) if is_whole else _literal(float(number)) for number in numbers]
        if isinstance(value, tuple):
            lines.append(f"constexpr {kind} {name}[] = {{{', '.join(words)}}};")
        else:
            lines.append(f"constexpr {kind} {name} = {words[0]};")
    return "\n".join(lines)


def _literal(number: float) -> str:
    if math.isfinite(number):
        return repr(number)
    name = "quiet_NaN" if math.isnan(number) else "infinity"
    return f"{'-' * (number < 0)}std::numeric_limits<double>::{name}()"


def nvcc() -> str | None:
    """Return the path of NVIDIA's compiler, on the PATH or in the wheel `nvidia-cuda-nvcc`."""
    return shutil.which("nvcc") or next(iter(nvidia_files("*/bin/nvcc")), None)


def nvidia_files(pattern: str) -> list[str]:
    """Return the paths of files in NVIDIA's wheels that match a pattern, newest version first."""
    spec = importlib.util.find_spec("nvidia")
    folders = (spec.submodule_search_locations or []) if spec is not None else []
    return [
        path
        for folder in folders
        for path in sorted(map(str, Path(folder).glob(pattern)), reverse=True)
    ]


def build_library(path: Path, attributes: Mapping[str, Any]) -> tuple[Path, str]:
    """Compile a C++ or CUDA file to a library beside it; return its path and the compiler's output.

    Raises:
        CandidateError: The compiler is missing or reports an error.
    """
    compiler, *options = COMMANDS[path.suffix]
    program = nvcc() if compiler == "nvcc" else shutil.which(compiler)
    if program is None:
        installs = {
            ".cpp": "a C++ compiler, for example with `apt install g++`",
            ".cu": "the CUDA toolkit, for example with `pip install graphnet-datasets[kernels]`",
        }
        raise CandidateError(
            f"`{path.name}` needs `{compiler}`, which is not on the PATH. Install "
            f"{installs[path.suffix]}, or write the solution in Python."
        )
    (path.parent / "graphnet.h").write_text(f"{HEADER}\n{declare_constants(attributes)}\n")
    library = path.with_suffix(".so")
    words = [program, *options, f"-I{path.parent}", str(path), "-o", str(library)]
    process = subprocess.run(  # noqa: S603 - a compiler, in the process that runs the candidate
        words, capture_output=True, text=True, errors="replace", check=False
    )
    log = process.stderr.replace(f"{path.parent}/", "")[:MAX_LOG].strip()
    if process.returncode:
        raise CandidateError(f"`{compiler}` cannot compile `{path.name}`:\n{log}")
    return library, log


class _OutputSizes:
    """Sizes, dtypes and devices of a graph's outputs for given inputs."""

    def __init__(self, module: Callable[..., Any], graph_inputs: Mapping[str, Any]) -> None:
        self._module = module
        self._names = tuple(graph_inputs)
        self._passed = {name for name, value in graph_inputs.items() if value is None}
        self._specs: dict[Any, Any] = {}

    def __call__(self, inputs: Sequence[Any]) -> tuple[list[Any], Callable[[list[Any]], Any]]:
        import torch

        key = tuple(
            tuple(value.shape) if isinstance(value, torch.Tensor) else value for value in inputs
        )
        if key not in self._specs:
            self._specs[key] = self._infer(inputs)
        return self._specs[key]

    def _infer(self, inputs: Sequence[Any]) -> tuple[list[Any], Callable[[list[Any]], Any]]:
        import torch
        from torch._subclasses.fake_tensor import FakeTensorMode
        from torch.utils import _pytree as pytree

        mode = FakeTensorMode(allow_non_fake_inputs=True)
        named = dict(zip(self._names, inputs, strict=True))
        fake = {
            name: mode.from_tensor(value) if isinstance(value, torch.Tensor) else value
            for name, value in named.items()
            if name in self._passed
        }
        with mode:
            leaves, structure = pytree.tree_flatten(self._module(**fake))
        if not all(isinstance(leaf, torch.Tensor) for leaf in leaves):
            raise CandidateError(
                "The graph has outputs that are not tensors. Write the solution in Python."
            )
        spec = [(tuple(leaf.shape), leaf.dtype, leaf.device) for leaf in leaves]
        return spec, lambda outputs: pytree.tree_unflatten(outputs, structure)


def _as_array(tensors: Sequence[Any]) -> Any:
    """Return C structures that describe tensors."""
    array = (_Tensor * max(1, len(tensors)))()
    for place, tensor in enumerate(tensors):
        rank = tensor.dim()
        integers = ctypes.c_int64 * max(1, rank)
        array[place] = _Tensor(
            tensor.data_ptr(), rank, integers(*tensor.shape), integers(*tensor.stride())
        )
    return array
