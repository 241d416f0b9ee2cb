"""The Paddle runtime of the benchmark worker: copy, seed, compare, overwrite and export tensors."""

from __future__ import annotations

import ctypes
import functools
import os
import random
import sys
import warnings
import zlib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

# Paddle's executor logs every program that it runs to stderr, which is captured as the run's log.
os.environ.setdefault("GLOG_minloglevel", "2")  # sic: glog's spelling

with warnings.catch_warnings():
    # Paddle warns if ccache is not installed; extensions are never built here.
    warnings.filterwarnings("ignore", message="No ccache found", category=UserWarning)
    import paddle
    from paddle.base.framework import EagerParamBase

from ...sample.vocabulary import ITEM_SIZE_BYTES
from ..outputs import MAX_EXCERPT, SCALARS, OutputTypeError, excerpt_of, leaves, write_leaves
from ..runtime import ROW_WORDS, SCRAMBLE
from .tensors import place_of

_ORDERS = random.SystemRandom()
"""Uses operating system entropy, since forked processes would share a seeded state."""


_EVICTED_BYTES = 256 * 2**20
"""Twice the largest last-level cache of a current GPU; Paddle does not report its size."""


class PaddleRuntime:
    """Paddle on one device, with a fixed number of threads and gradients disabled."""

    def __init__(self, device: str, num_threads: int) -> None:
        self.device = device.replace("cuda", "gpu")
        self._place = place_of(device)
        paddle.device.set_device(self.device)
        set_threads: Any = paddle.base.core.set_num_threads
        set_threads(num_threads)
        paddle.set_grad_enabled(False)

    def make_clock(self) -> None:
        """Return None: Paddle's events have a resolution of only a millisecond."""

    def make_evictor(self) -> Callable[[], None] | None:
        """Return a function that overwrites a GPU's caches, or None on a CPU."""
        if not self.device.startswith("gpu"):
            return None
        buffer = paddle.zeros([_EVICTED_BYTES // 8], "int64")

        def evict() -> None:
            buffer.add_(paddle.ones([1], "int64"))

        return evict

    def seed(self, seed: int) -> None:
        """Seed every generator, so that random operators draw the same numbers in each arm."""
        paddle.seed(seed)

    def synchronize(self) -> None:
        """Wait until all work on the device is finished."""
        if self.device.startswith("gpu"):
            paddle.device.synchronize(self.device)

    def clone(self, value: Any) -> Any:
        """Return a copy of a tensor, or any other value unchanged."""
        return value.clone() if isinstance(value, paddle.Tensor) else value

    def clone_outputs(self, outputs: Any) -> Any:
        """Return a copy of the outputs with the same structure."""
        if type(outputs) in (list, tuple):
            return type(outputs)(self.clone_outputs(item) for item in outputs)
        if type(outputs) is dict:
            return {key: self.clone_outputs(item) for key, item in outputs.items()}
        return self.clone(outputs)

    def copy_module(self, module: Any, count: int, *, is_separate: bool) -> list[Any]:
        """Return copies of a layer for tracing, with separate memory for the weights if
        `is_separate`.

        Memory is allocated weight by weight for all copies, in a random order of the copies. Unless
        `is_separate`, all copies share the same weights.
        """
        copies = [module.copy() for _ in range(count)]
        if is_separate:
            for kind in ("_parameters", "_buffers"):
                for name, tensor in getattr(module, kind).items():
                    for copied in _ORDERS.sample(copies, count):
                        getattr(copied, kind)[name] = _copy_weight(tensor)
        return copies

    def watch(self, module: Any) -> Mapping[str, Any]:
        """Return, by name, the state that affects how eager runs besides its inputs and weights."""
        kind = type(module)
        state: dict[str, Any] = {
            "a hook on eager's layer": [
                list(map(id, hooks.values()))
                for hooks in (module._forward_pre_hooks, module._forward_post_hooks)
            ],
            "`forward` of eager's layer": id(vars(module).get("forward", kind.forward)),
            "`paddle.nn.Layer.__call__`": id(kind.__call__),
            "a profiler or tracer": [id(sys.getprofile()), id(sys.gettrace())],
        }
        return state

    def tensors_of(self, module: Any) -> dict[str, Any]:
        """Return the weights of the module by name."""
        return {**dict(module.named_parameters()), **dict(module.named_buffers())}

    def is_equal(self, left: Any, right: Any) -> bool:
        """Return whether two tensors are bitwise equal."""
        if not isinstance(left, paddle.Tensor):
            return True
        return np.array_equal(_Bytes(left).array, _Bytes(right).array)

    def checksum(self, tensor: Any) -> int:
        """Return a number that depends on the elements of a tensor and on their order.

        Each word is weighted by its row and by its column. The two sums detect swapped elements
        without temporary memory of the tensor's size.
        """
        elements = _Bytes(tensor)
        data = elements.array
        words = data[: data.size // 8 * 8].view(np.int64)
        rows = words[: words.size // ROW_WORDS * ROW_WORDS].reshape(-1, ROW_WORDS)
        bytes_left = data[words.size * 8 :].astype(np.int64)
        parts = rows.sum(0), words[rows.size :], bytes_left, rows.sum(1)
        return sum(_weighted_sum(part, ROW_WORDS * place) for place, part in enumerate(parts))

    def restore(self, tensor: Any, pristine: Any) -> None:
        """Copy the saved elements back into `tensor`."""
        tensor.copy_(pristine, True)

    def poison(
        self, outputs: Any, protected: set[int], spared: frozenset[int] = frozenset()
    ) -> None:
        """Overwrite outputs that are no longer needed, so that stale memory cannot contain a
        correct answer.

        Storages in `protected` (see `storages`) and the outputs at the positions `spared` are not
        changed. GPU memory is not overwritten.
        """
        placed_leaves = [
            (place, leaf)
            for place, leaf in enumerate(leaves(outputs))
            if isinstance(leaf, paddle.Tensor) and leaf.place.is_cpu_place()
        ]
        excluded = protected | self.storages(
            *(leaf for place, leaf in placed_leaves if place in spared)
        )
        for _, leaf in placed_leaves:
            if leaf._is_initialized() and leaf.size and _storage(leaf) not in excluded:
                ctypes.memset(_storage(leaf), 0xFF, leaf._holder_size())

    def storages(self, *tensors: Any) -> set[int]:
        """Return the storage addresses of the tensors."""
        return {
            _storage(tensor)
            for tensor in tensors
            if isinstance(tensor, paddle.Tensor) and tensor._is_initialized() and tensor.size
        }

    def num_bytes(self, *tensors: Any) -> int:
        """Return the total size in bytes of the tensors' elements."""
        return sum(tensor.size * tensor.element_size() for tensor in tensors)

    def write_outputs(self, outputs: Any, path: Path) -> list[dict[str, Any]]:
        """Write the elements of the outputs to `path`; return the dtype, shape and offset of each
        output.

        Raises:
            OutputTypeError: an output is not a plain dense tensor or a number.
        """
        return write_leaves(outputs, path, _describe)

    def excerpt(
        self, outputs: Any, start: int | None, most: int = MAX_EXCERPT
    ) -> list[tuple[str, list[int], Any]]:
        """Return the dtype, the shape and a copy of some elements of each output.

        Raises:
            OutputTypeError: an output is not a plain dense tensor or a number.
        """
        output_leaves = list(leaves(outputs))
        excerpts = []
        for index, leaf in enumerate(output_leaves):
            dtype, shape, elements = _describe(leaf, index)
            items = np.frombuffer(elements, np.dtype((np.void, ITEM_SIZE_BYTES[dtype])))
            part = items[excerpt_of(items.size, len(output_leaves), start, most)]
            excerpts.append((dtype, shape, part.tobytes()))
        return excerpts

    def digest(self, outputs: Any) -> list[tuple[str, tuple[int, ...], int, bool]]:
        """Return the dtype, shape, checksum and finiteness of each output."""
        digests = []
        for index, leaf in enumerate(leaves(outputs)):
            dtype, shape, elements = _describe(leaf, index)
            digests.append((dtype, tuple(shape), zlib.crc32(elements), _is_finite(leaf)))
        return digests

    def count_compilations(self) -> Callable[[], int]:
        """Count the programs that `paddle.jit.to_static` traces from now on."""
        count = 0
        jit: Any = paddle.jit  # paddle.jit lacks type declarations
        program = jit.dy2static.program_translator.ConcreteProgram
        trace = program.pir_from_func_spec

        @functools.wraps(trace)
        def counted(*args: Any, **kwargs: Any) -> Any:
            nonlocal count
            count += 1
            return trace(*args, **kwargs)

        program.pir_from_func_spec = staticmethod(counted)
        return lambda: count

    def reset_peak_memory(self) -> None:
        """Reset the device's peak memory statistics."""
        if self.device.startswith("gpu"):
            paddle.device.cuda.reset_max_memory_allocated(self._place)

    def capture(self, call: Any, make_arguments: Any) -> Any:
        """Raise: capturing Paddle calls in CUDA graphs is not supported here."""
        del call, make_arguments
        raise RuntimeError("Calls of paddle cannot be captured in CUDA graphs.")

    def peak_memory_bytes(self) -> int | None:
        """Return the device's peak memory since the last reset, or None on the CPU."""
        if self.device.startswith("gpu"):
            return paddle.device.cuda.max_memory_allocated(self._place)
        return None


def _weighted_sum(words: npt.NDArray[np.int64], start: int) -> int:
    """Return the sum of words modulo 2^64, each multiplied by a pseudorandom odd number."""
    numbers = np.arange(start, start + words.size) * SCRAMBLE
    weights = (numbers ^ (numbers >> 29)) * SCRAMBLE
    return int((words * (weights | 1)).sum())


class _Bytes:
    """The bytes of a tensor as an array; keeps the tensor alive."""

    def __init__(self, tensor: Any) -> None:
        self._tensor = tensor.detach().cpu().contiguous()
        self.array: npt.NDArray[np.uint8] = np.zeros(0, np.uint8)
        if self._tensor.size:
            size = self._tensor.size * self._tensor.element_size()
            memory = (ctypes.c_uint8 * size).from_address(self._tensor.data_ptr())
            self.array = np.frombuffer(memory, np.uint8)


def _is_finite(leaf: Any) -> bool:
    if not isinstance(leaf, paddle.Tensor) or not leaf.size:
        return True
    if not (leaf.is_floating_point() or leaf.is_complex()) or leaf.element_size() == 1:
        return True
    return bool(paddle.isfinite(leaf).all())


def _copy_weight(tensor: Any) -> Any:
    copied = tensor.clone().detach()
    if not isinstance(tensor, EagerParamBase):
        return copied
    parameter = EagerParamBase.from_tensor(copied)
    parameter.stop_gradient = tensor.stop_gradient
    return parameter


def _storage(tensor: Any) -> int:
    return tensor.data_ptr() - tensor._offset()


def _describe(leaf: Any, index: int) -> tuple[str, list[int], Any]:
    if type(leaf) in SCALARS:
        dtype = SCALARS[type(leaf)]
        return dtype, [], np.array(leaf, dtype).tobytes()
    if not isinstance(leaf, paddle.Tensor) or not leaf.is_dense():
        kind = type(leaf)
        raise OutputTypeError(
            f"Output {index} is a `{kind.__module__}.{kind.__qualname__}`, not a plain tensor."
        )
    dtype = str(leaf.dtype).rpartition(".")[2]
    return dtype, list(leaf.shape), _Bytes(leaf).array.tobytes()


def make_runtime(device: str, num_threads: int) -> PaddleRuntime:
    """Return a Paddle runtime for one device."""
    return PaddleRuntime(device, num_threads)


def import_all(*, with_compiler: bool = False, with_fakes: bool = False) -> tuple[str, ...]:
    """Import all of paddle in a process that forks its jobs.

    Returns the names of modules that only some jobs import, which is empty for paddle.
    """
    del with_compiler, with_fakes
    from . import materialize, shapes  # noqa: F401

    return ()


def count_gpus() -> int | None:
    """Return the number of GPUs visible to paddle, or None if paddle was built without CUDA."""
    return paddle.device.cuda.device_count() if paddle.device.is_compiled_with_cuda() else None
