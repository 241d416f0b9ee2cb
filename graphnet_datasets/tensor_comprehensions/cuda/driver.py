"""The CUDA driver through ctypes: devices, modules, launches. No toolkit is needed."""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Sequence
from typing import Any

from ...errors import KernelCompileError

_MAJOR, _MINOR = 75, 76
"""Numbers of the attributes that say which instructions a device has."""
_JIT_ERROR_LOG, _JIT_ERROR_LOG_BYTES = 5, 6


@functools.cache
def _library() -> Any:
    """Return the driver, initialised.

    Raises:
        KernelCompileError: there is none, or it finds no device.
    """
    try:
        library = ctypes.CDLL("libcuda.so.1")
    except OSError as error:
        raise KernelCompileError(
            "There is no CUDA driver on this machine (`libcuda.so.1`). Compile for the processor, "
            "by passing tensors that lie there."
        ) from error
    _check(library, library.cuInit(0), "finding a device")
    return library


def architecture(device: int) -> str:
    """Return what code for a device may use, such as `compute_90`."""
    library, found = _library(), []
    for attribute in (_MAJOR, _MINOR):
        value = ctypes.c_int()
        status = library.cuDeviceGetAttribute(ctypes.byref(value), attribute, device)
        _check(library, status, f"asking device {device} what it is")
        found.append(value.value)
    return f"compute_{found[0]}{found[1]}"


class Module:
    """Functions that were loaded to a device, in the context that its frameworks use."""

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
        said = log.value.decode(errors="replace").strip()
        _check(library, status, f"loading the generated code: {said}".rstrip(": "))
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
        held = [ctypes.c_void_p(each) for each in addresses]
        arguments = (ctypes.c_void_p * max(1, len(held)))(
            *(ctypes.cast(ctypes.byref(each), ctypes.c_void_p) for each in held)
        )
        status = self._library.cuLaunchKernel(
            self._function(name),
            *(ctypes.c_uint(each) for each in (*grid, *block)),
            ctypes.c_uint(0),
            ctypes.c_void_p(stream),
            arguments,
            None,
        )
        _check(self._library, status, f"launching `{name}`")

    def synchronise(self) -> None:
        """Wait until the device is done."""
        self._enter()
        _check(self._library, self._library.cuCtxSynchronize(), "waiting for the device")

    def _enter(self) -> None:
        """Make the context that of this thread, which may have none yet."""
        _check(self._library, self._library.cuCtxSetCurrent(self._context), "entering its context")

    def _function(self, name: str) -> ctypes.c_void_p:
        if name not in self._functions:
            found = ctypes.c_void_p()
            status = self._library.cuModuleGetFunction(
                ctypes.byref(found), self._module, name.encode()
            )
            _check(self._library, status, f"finding `{name}` in the generated code")
            self._functions[name] = found
        return self._functions[name]


def _check(library: Any, status: int, what: str) -> None:
    if status:
        text = ctypes.c_char_p()
        library.cuGetErrorString(status, ctypes.byref(text))
        said = (text.value or b"an unknown error").decode(errors="replace")
        raise KernelCompileError(f"CUDA failed at {what}: {said} (error {status}).")
