"""Bindings of NVRTC with ctypes: compile CUDA C to PTX, without a device."""

from __future__ import annotations

import contextlib
import ctypes
import functools
from typing import Any

from ...compilers.native import nvidia_files
from ...errors import KernelCompileError, MissingExtraError


@functools.cache
def _library() -> Any:
    """Load NVRTC from the package `nvidia-cuda-nvrtc`, from torch or from the system.

    Raises:
        MissingExtraError: NVRTC is not installed.
    """
    for path in _candidates():
        with contextlib.suppress(OSError):
            return ctypes.CDLL(path)
    raise MissingExtraError("nvidia-cuda-nvrtc", "tc-cuda", "Compiling CUDA code")


def _candidates() -> list[str]:
    paths = nvidia_files("*/lib/libnvrtc.so.*")
    names = ("libnvrtc.so", "libnvrtc.so.13", "libnvrtc.so.12")
    return [path for path in paths if "builtins" not in path] + list(names)


def compile_ptx(source: str, architecture: str = "compute_80") -> str:
    """Compile CUDA C to PTX.

    Args:
        architecture: target architecture, such as `compute_80`.

    Raises:
        MissingExtraError: NVRTC is not installed.
        KernelCompileError: the code does not compile; the message contains NVRTC's log.
    """
    library = _library()
    program = ctypes.c_void_p()
    _check(
        library,
        library.nvrtcCreateProgram(
            ctypes.byref(program), source.encode(), b"kernel.cu", 0, None, None
        ),
    )
    try:
        flags = [f"--gpu-architecture={architecture}".encode(), b"--fmad=true"]
        options = (ctypes.c_char_p * len(flags))(*flags)
        status = library.nvrtcCompileProgram(program, len(flags), options)
        if status:
            log = _text(library, program, "ProgramLog")
            raise KernelCompileError(f"NVRTC could not compile the generated code: {log[-4000:]}")
        return _text(library, program, "PTX")
    finally:
        library.nvrtcDestroyProgram(ctypes.byref(program))


def _text(library: Any, program: ctypes.c_void_p, name: str) -> str:
    size = ctypes.c_size_t()
    _check(library, getattr(library, f"nvrtcGet{name}Size")(program, ctypes.byref(size)))
    buffer = ctypes.create_string_buffer(size.value)
    _check(library, getattr(library, f"nvrtcGet{name}")(program, buffer))
    return buffer.value.decode(errors="replace")


def _check(library: Any, status: int) -> None:
    if status:
        library.nvrtcGetErrorString.restype = ctypes.c_char_p
        raise KernelCompileError(f"NVRTC: {library.nvrtcGetErrorString(status).decode()}")
