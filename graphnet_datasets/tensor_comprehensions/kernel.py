"""A compiled kernel: called with arrays, or with addresses by those who have checked them."""

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
from .codegen.program import ENTRY
from .language.instance import Instance, Tensor
from .options import Options
from .polyhedral.schedule import Schedule

Array = np.ndarray[Any, Any]


@dataclasses.dataclass(frozen=True, slots=True)
class Profile:
    """How long calls of a kernel took, in milliseconds."""

    times_ms: tuple[float, ...]

    @property
    def median_ms(self) -> float:
        """The median."""
        return statistics.median(self.times_ms)

    @property
    def least_ms(self) -> float:
        """The shortest."""
        return min(self.times_ms)


class Kernel:
    """An instance compiled for this machine.

    Attributes:
        instance: what it computes, for which sizes.
        options: what it was compiled with.
        source: the generated C.
        schedule: the order of execution, checked against the dependences; prints as a tree.
        threads: how many threads it uses.
        seconds: what each step of compiling took.

    A kernel may be called from several threads at once: temporaries belong to the calling thread.
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
        # Bytes are ten times as fast to make as an array of ctypes, and as good for reading.
        self._pack = struct.Struct(f"{max(1, len(instance.tensors))}P").pack

    def __call__(
        self,
        *arrays: Any,
        outputs: Mapping[str, Any] | Sequence[Any] | None = None,
        unchecked: bool = False,
    ) -> tuple[Array, ...]:
        """Compute the outputs.

        Args:
            arrays: the inputs, of exactly the instance's shapes, dtypes and strides; what NumPy
                makes an array of without copying is taken as well.
            outputs: arrays to write to, by name or all in order; what is not given is allocated.
                An output that is accumulated into has to be given.
            unchecked: skip the checks; wrong arguments then corrupt memory.

        Raises:
            KernelInputError: an argument does not fit.
        """
        given = self._outputs(outputs)
        inputs = [each if isinstance(each, np.ndarray) else np.asarray(each) for each in arrays]
        if not unchecked:
            self._check(inputs, given)
        results = [
            np.empty(tensor.shape, storage_dtype(tensor)) if each is None else each
            for tensor, each in zip(self.instance.outputs, given, strict=True)
        ]
        self.launch([each.ctypes.data for each in (*inputs, *results)])
        return tuple(results)

    def launch(self, addresses: Sequence[int]) -> None:
        """Run on memory at the given addresses: the inputs', then the outputs', in order.

        Nothing is checked. The caller keeps the memory alive and of the sizes and strides of the
        instance; outputs must not overlap anything else.
        """
        self._function(self._pack(*addresses, *self._temporaries()), self.threads)

    def profile(self, *arrays: Any, num_runs: int = 10, num_warm_up: int = 2) -> Profile:
        """Call the kernel some times and return how long each call took, allocation left out."""
        inputs = [np.asarray(each) for each in arrays]
        outputs = [np.zeros(each.shape, storage_dtype(each)) for each in self.instance.outputs]
        self._check(inputs, outputs)
        addresses = [each.ctypes.data for each in (*inputs, *outputs)]
        times = []
        for run in range(num_warm_up + num_runs):
            start = time.perf_counter()
            self.launch(addresses)
            if run >= num_warm_up:
                times.append((time.perf_counter() - start) * 1e3)
        return Profile(tuple(times))

    def __repr__(self) -> str:
        shapes = ", ".join(f"{each.name}{list(each.shape)}" for each in self.instance.inputs)
        return f"Kernel({self.instance.name}: {shapes}; {self.threads} threads)"

    def _temporaries(self) -> Sequence[int]:
        if not self._has_temporaries:
            return ()
        try:
            return self._local.addresses
        except AttributeError:
            held = [np.empty(each.shape, storage_dtype(each)) for each in self.instance.temporaries]
            self._local.arrays = held
            self._local.addresses = [each.ctypes.data for each in held]
            return self._local.addresses

    def _outputs(self, outputs: Mapping[str, Any] | Sequence[Any] | None) -> list[Array | None]:
        tensors = self.instance.outputs
        if outputs is None:
            return [None] * len(tensors)
        if isinstance(outputs, Mapping):
            names = {each.name for each in tensors}
            for name in outputs:
                if name not in names:
                    raise KernelInputError(
                        f"`{self.instance.name}` has no output `{name}`; its outputs are "
                        f"{', '.join(sorted(names))}."
                    )
            return [outputs.get(each.name) for each in tensors]
        if len(outputs) != len(tensors):
            raise KernelInputError(
                f"`{self.instance.name}` has {len(tensors)} outputs but was given {len(outputs)}."
            )
        return list(outputs)

    def _check(self, inputs: Sequence[Array], outputs: Sequence[Array | None]) -> None:
        tensors = self.instance.inputs
        if len(inputs) != len(tensors):
            raise KernelInputError(
                f"`{self.instance.name}` takes {len(tensors)} inputs but was given {len(inputs)}."
            )
        for tensor, array in zip(tensors, inputs, strict=True):
            _check_array(tensor, array, "input")
        for tensor, array in zip(self.instance.outputs, outputs, strict=True):
            if array is None:
                if tensor.is_updated:
                    raise KernelInputError(
                        f"The output `{tensor.name}` is accumulated into, so its contents have to "
                        f"be given: `outputs={{'{tensor.name}': array}}`."
                    )
                continue
            _check_array(tensor, array, "output")
            if not array.flags.writeable:
                raise KernelInputError(f"The output `{tensor.name}` is an array that is read-only.")
        given = [each for each in outputs if each is not None]
        for place, array in enumerate(given):
            for other in (*inputs, *given[:place]):
                if np.may_share_memory(array, other):
                    raise KernelInputError(
                        "An array given as output shares memory with another argument. Pass "
                        "memory of its own."
                    )


def storage_dtype(tensor: Tensor) -> np.dtype[Any]:
    """Return the dtype of a tensor's array; bfloat16, which NumPy lacks, is stored as uint16."""
    return np.dtype("uint16" if tensor.dtype.name == "bfloat16" else tensor.dtype.name)


def _check_array(tensor: Tensor, array: Array, what: str) -> None:
    expected = storage_dtype(tensor)
    is_same = array.dtype == expected or (
        tensor.dtype.name == "bfloat16" and str(array.dtype) == "bfloat16"
    )
    if not is_same:
        raise KernelInputError(
            f"The {what} `{tensor.name}` has dtype {array.dtype}; the kernel was compiled for "
            f"{tensor.dtype.name}."
        )
    if array.shape != tensor.shape:
        raise KernelInputError(
            f"The {what} `{tensor.name}` has shape {array.shape}; the kernel was compiled for "
            f"{tensor.shape}."
        )
    steps = tuple(each * array.itemsize for each in tensor.strides)
    if array.strides != steps and any(
        have != want
        for have, want, size in zip(array.strides, steps, array.shape, strict=True)
        if size > 1
    ):
        raise KernelInputError(
            f"The {what} `{tensor.name}` has strides {array.strides} bytes; the kernel was "
            f"compiled for {steps}. Pass a contiguous copy (`numpy.ascontiguousarray`)."
        )


_threads_lock = threading.Lock()
_has_threads = False


def _provide_threads() -> None:
    """Make one OpenMP runtime visible to kernels: torch's if it is loaded, else the system's.

    Two runtimes would each keep threads that wait for work by spinning, on the same processors.
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
