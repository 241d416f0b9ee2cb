"""Compiled CPU kernels, called with NumPy arrays or with raw addresses."""

from __future__ import annotations

import ctypes
import dataclasses
import statistics
import struct
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import KernelCompileError, KernelInputError
from .codegen.general import parameter_array
from .codegen.program import ENTRY
from .language.instance import Instance, Tensor
from .options import Options
from .polyhedral.schedule import Schedule

Array = np.ndarray[Any, Any]


@dataclasses.dataclass(frozen=True, slots=True)
class Profile:
    """Latencies of kernel calls in milliseconds."""

    times_ms: tuple[float, ...]

    @property
    def median_ms(self) -> float:
        """Median latency."""
        return statistics.median(self.times_ms)

    @property
    def least_ms(self) -> float:
        """Smallest latency."""
        return min(self.times_ms)


class Kernel:
    """An instance compiled for this machine.

    Attributes:
        instance: the computation and its sizes.
        options: options of the compilation.
        source: generated C source.
        schedule: execution order, checked against the dependences; prints as a tree.
        threads: number of threads.
        seconds: duration of each compilation step.

    A kernel may be called from several threads at once: temporaries are thread-local.
    """

    def __init__(
        self,
        instance: Instance,
        options: Options,
        source: str,
        schedule: Schedule,
        path: Path,
        threads: int,
        seconds: Mapping[str, float] | None = None,
        parameters: tuple[int, ...] = (),
    ) -> None:
        self.instance, self.options, self.source = instance, options, source
        self.schedule, self.threads, self.path = schedule, threads, path
        self.seconds = dict(seconds or {})
        _provide_threads()
        try:
            library = ctypes.CDLL(str(path))
        except OSError as error:
            raise KernelCompileError(
                f"The compiled kernel `{path}` cannot be loaded: {error}"
            ) from error
        self._function = getattr(library, ENTRY)
        self._function.argtypes = [ctypes.c_void_p, ctypes.c_long]
        self._function.restype = None
        self._local = threading.local()
        self._has_temporaries = bool(instance.temporaries)
        # Packing into bytes is ten times as fast as building a ctypes array.
        num_addresses = len(instance.tensors) + bool(parameters)
        self._pack = struct.Struct(f"{max(1, num_addresses)}P").pack
        self._parameters = parameter_array(parameters)
        self._more = (ctypes.addressof(self._parameters),) if parameters else ()

    def __call__(
        self,
        *arrays: Any,
        outputs: Mapping[str, Any] | Sequence[Any] | None = None,
        unchecked: bool = False,
    ) -> tuple[Array, ...]:
        """Compute the outputs.

        Args:
            arrays: inputs with exactly the instance's shapes, dtypes and strides. Objects that
                NumPy converts without copying are accepted.
            outputs: arrays to write to, by name or all in order; missing ones are allocated.
                Required for outputs that are accumulated into.
            unchecked: skip the checks; wrong arguments then corrupt memory.

        Raises:
            KernelInputError: an argument has the wrong shape, dtype, strides or memory.
        """
        buffers = self._outputs(outputs)
        inputs = [array if isinstance(array, np.ndarray) else np.asarray(array) for array in arrays]
        if not unchecked:
            self._check(inputs, buffers)
        results = [
            np.empty(tensor.shape, storage_dtype(tensor)) if buffer is None else buffer
            for tensor, buffer in zip(self.instance.outputs, buffers, strict=True)
        ]
        self.launch([array.ctypes.data for array in (*inputs, *results)])
        return tuple(results)

    def launch(self, addresses: Sequence[int]) -> None:
        """Run the kernel on raw memory addresses: the inputs, then the outputs, in order.

        Nothing is checked. The caller guarantees that the memory stays alive and has the sizes and
        strides of the instance, and that outputs do not overlap any other argument.
        """
        self._function(self._pack(*addresses, *self._temporaries(), *self._more), self.threads)

    def profile(self, *arrays: Any, num_runs: int = 10, num_warm_up: int = 2) -> Profile:
        """Time repeated calls of the kernel, without allocation."""
        inputs = [np.asarray(array) for array in arrays]
        outputs = [
            np.zeros(tensor.shape, storage_dtype(tensor)) for tensor in self.instance.outputs
        ]
        self._check(inputs, outputs)
        addresses = [array.ctypes.data for array in (*inputs, *outputs)]
        return Profile(tuple(self.times_ms(addresses, num_runs, num_warm_up)))

    def times_ms(self, addresses: Sequence[int], num_runs: int, num_warm_up: int) -> list[float]:
        """Time repeated launches on raw memory addresses, in milliseconds."""
        times = []
        for run in range(num_warm_up + num_runs):
            start = time.perf_counter()
            self.launch(addresses)
            if run >= num_warm_up:
                times.append((time.perf_counter() - start) * 1e3)
        return times

    def __repr__(self) -> str:
        shapes = ", ".join(f"{tensor.name}{list(tensor.shape)}" for tensor in self.instance.inputs)
        return f"Kernel({self.instance.name}: {shapes}; {self.threads} threads)"

    def _temporaries(self) -> Sequence[int]:
        if not self._has_temporaries:
            return ()
        try:
            return self._local.addresses
        except AttributeError:
            arrays = [
                np.empty(tensor.shape, storage_dtype(tensor))
                for tensor in self.instance.temporaries
            ]
            self._local.arrays = arrays
            self._local.addresses = [array.ctypes.data for array in arrays]
            return self._local.addresses

    def _outputs(self, outputs: Mapping[str, Any] | Sequence[Any] | None) -> list[Array | None]:
        tensors = self.instance.outputs
        if outputs is None:
            return [None] * len(tensors)
        if isinstance(outputs, Mapping):
            names = {tensor.name for tensor in tensors}
            for name in outputs:
                if name not in names:
                    raise KernelInputError(
                        f"`{self.instance.name}` has no output `{name}`; choose from "
                        f"{', '.join(sorted(names))}."
                    )
            return [outputs.get(tensor.name) for tensor in tensors]
        if len(outputs) != len(tensors):
            raise KernelInputError(
                f"`{self.instance.name}` has {len(tensors)} outputs, got {len(outputs)}. Pass one "
                "array for each output."
            )
        return list(outputs)

    def _check(self, inputs: Sequence[Array], outputs: Sequence[Array | None]) -> None:
        tensors = self.instance.inputs
        if len(inputs) != len(tensors):
            raise KernelInputError(
                f"`{self.instance.name}` takes {len(tensors)} inputs, got {len(inputs)}. Pass one "
                "array for each input."
            )
        for tensor, array in zip(tensors, inputs, strict=True):
            _check_array(tensor, array, "input")
        for tensor, array in zip(self.instance.outputs, outputs, strict=True):
            if array is None:
                if tensor.is_updated:
                    raise KernelInputError(
                        f"The output `{tensor.name}` is accumulated into, so it needs initial "
                        "contents. "
                        f"Pass `outputs={{'{tensor.name}': array}}`."
                    )
                continue
            _check_array(tensor, array, "output")
            if not array.flags.writeable:
                raise KernelInputError(
                    f"The output `{tensor.name}` is a read-only array. Pass a writable copy."
                )
        results = [array for array in outputs if array is not None]
        for place, array in enumerate(results):
            for other in (*inputs, *results[:place]):
                if np.may_share_memory(array, other):
                    raise KernelInputError(
                        "An output array shares memory with another argument. Pass separate memory."
                    )


def storage_dtype(tensor: Tensor) -> np.dtype[Any]:
    """Return the NumPy dtype of a tensor; bfloat16, which NumPy lacks, is stored as uint16."""
    return np.dtype("uint16" if tensor.dtype.name == "bfloat16" else tensor.dtype.name)


def _check_array(tensor: Tensor, array: Array, role: str) -> None:
    expected = storage_dtype(tensor)
    is_same = array.dtype == expected or (
        tensor.dtype.name == "bfloat16" and str(array.dtype) == "bfloat16"
    )
    if not is_same:
        raise KernelInputError(
            f"The {role} `{tensor.name}` has dtype {array.dtype}; the kernel was compiled for "
            f"{tensor.dtype.name}. Convert the array first."
        )
    if array.shape != tensor.shape:
        raise KernelInputError(
            f"The {role} `{tensor.name}` has shape {array.shape}; the kernel was compiled for "
            f"{tensor.shape}. Compile a kernel for the new shape."
        )
    steps = tuple(stride * array.itemsize for stride in tensor.strides)
    if array.size and any(
        have != want
        for have, want, size in zip(array.strides, steps, array.shape, strict=True)
        if size > 1
    ):
        raise KernelInputError(
            f"The {role} `{tensor.name}` has strides {array.strides} bytes; the kernel was "
            f"compiled for {steps}. Pass a contiguous copy (`numpy.ascontiguousarray`)."
        )


_threads_lock = threading.Lock()
_has_threads = False


def _provide_threads() -> None:
    """Share one OpenMP runtime among kernels: torch's if it is loaded, otherwise the system's.

    With two runtimes, the idle threads of both would spin on the same cores.
    """
    global _has_threads
    with _threads_lock:
        if _has_threads:
            return
        if "torch" in sys.modules:
            for line in Path("/proc/self/maps").read_text().splitlines():
                path = line.partition("/")[2]
                if "libgomp" in path:
                    ctypes.CDLL("/" + path, mode=ctypes.RTLD_GLOBAL)
                    break
        _has_threads = True
