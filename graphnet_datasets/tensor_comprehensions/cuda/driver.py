"""Bindings of the CUDA driver with ctypes: devices, modules and launches, without the toolkit."""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Sequence
from typing import Any

from ...errors import KernelCompileError

_MAJOR, _MINOR = 75, 76
"""Device attributes of the compute capability."""
_JIT_ERROR_LOG, _JIT_ERROR_LOG_BYTES = 5, 6


@functools.cache
def _library() -> Any:
    """Load and initialise the driver.

    Raises:
        KernelCompileError: there is no driver or no device.
    """
    try:
        library = ctypes.CDLL("libcuda.so.1")
    except OSError as error:
        raise KernelCompileError(
            "There is no CUDA driver on this machine (`libcuda.so.1`). Compile for the CPU "
            "by passing CPU tensors."
        ) from error
    _check(library, library.cuInit(0), "finding a device")
    return library


def architecture(device: int) -> str:
    """Return the compute architecture of a device, such as `compute_90`."""
    library, version = _library(), []
    for attribute in (_MAJOR, _MINOR):
        value = ctypes.c_int()
        status = library.cuDeviceGetAttribute(ctypes.byref(value), attribute, device)
        _check(library, status, f"querying the compute capability of device {device}")
        version.append(value.value)
    return f"compute_{version[0]}{version[1]}"


class Module:
    """CUDA functions loaded in the primary context of a device, which frameworks use too."""

    def __init__(self, ptx: str, device: int) -> None:
        library = self._library = _library()
        self._context = ctypes.c_void_p()
        status = library.cuDevicePrimaryCtxRetain(ctypes.byref(self._context), device)
        _check(library, status, f"using device {device}")
        self._enter()
        self._module = ctypes.c_void_p()
        log = ctypes.create_string_buffer(8192)
        names = (ctypes.c_int * 2)(_JIT_ERROR_LOG, _JIT_ERROR_LOG_BYTES)
        values = (ctypes.c_void_p * 2)(ctypes.addressof(log), len(log))
        status = library.cuModuleLoadDataEx(
            ctypes.byref(self._module), ptx.encode(), 2, names, values
        )
        message = log.value.decode(errors="replace").strip()
        _check(library, status, f"loading the generated code: {message}".rstrip(": "))
        self._functions: dict[str, ctypes.c_void_p] = {}

    def launch(
        self,
        name: str,
        grid: Sequence[int],
        block: Sequence[int],
        addresses: Sequence[int],
        stream: int,
    ) -> None:
        """Launch a function whose arguments are all addresses."""
        self._enter()
        pointers = [ctypes.c_void_p(address) for address in addresses]
        arguments = (ctypes.c_void_p * max(1, len(pointers)))(
            *(ctypes.cast(ctypes.byref(pointer), ctypes.c_void_p) for pointer in pointers)
        )
        status = self._library.cuLaunchKernel(
            self._function(name),
            *(ctypes.c_uint(extent) for extent in (*grid, *block)),
            ctypes.c_uint(0),
            ctypes.c_void_p(stream),
            arguments,
            None,
        )
        _check(self._library, status, f"launching `{name}`")

    def synchronise(self) -> None:
        """Wait for the device to finish."""
        self._enter()
        _check(self._library, self._library.cuCtxSynchronize(), "waiting for the device")

    def _enter(self) -> None:
        """Make this context current on the calling thread."""
        _check(self._library, self._library.cuCtxSetCurrent(self._context), "entering its context")

    def _function(self, name: str) -> ctypes.c_void_p:
        if name not in self._functions:
            function = ctypes.c_void_p()
            status = self._library.cuModuleGetFunction(
                ctypes.byref(function), self._module, name.encode()
            )
            _check(self._library, status, f"finding `{name}` in the generated code")
            self._functions[name] = function
        return self._functions[name]


def _check(library: Any, status: int, action: str) -> None:
    if status:
        text = ctypes.c_char_p()
        library.cuGetErrorString(status, ctypes.byref(text))
        message = (text.value or b"an unknown error").decode(errors="replace")
        raise KernelCompileError(f"CUDA failed at {action}: {message} (error {status}).")
