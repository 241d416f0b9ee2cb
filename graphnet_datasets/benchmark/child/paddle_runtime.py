"""What the worker does with paddle's tensors: copy, seed, compare, overwrite, hand over."""

from __future__ import annotations

import ctypes
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import paddle

from ...frameworks.paddle.tensors import place_of
from .outputs import SCALARS, OutputTypeError, leaves, write_leaves


class PaddleRuntime:
    """Paddle on one device, with a fixed number of threads and without gradients."""

    def __init__(self, device: str, num_threads: int) -> None:
        self.device = device.replace("cuda", "gpu")
        self._place = place_of(device)
        paddle.device.set_device(self.device)
        set_threads: Any = paddle.base.core.set_num_threads
        set_threads(num_threads)
        paddle.set_grad_enabled(False)

    def seed(self, seed: int) -> None:
        """Seed every generator, so that random operators draw the same numbers in each arm."""
        paddle.seed(seed)

    def synchronize(self) -> None:
        """Wait until all that was started on the device is done."""
        if self.device.startswith("gpu"):
            paddle.device.synchronize(self.device)

    def clone(self, value: Any) -> Any:
        """Return a copy of a tensor; anything else is returned as it is."""
        return value.clone() if isinstance(value, paddle.Tensor) else value

    def clone_outputs(self, outputs: Any) -> Any:
        """Return the outputs, copied, in their structure."""
        if type(outputs) in (list, tuple):
            return type(outputs)(self.clone_outputs(each) for each in outputs)
        if type(outputs) is dict:
            return {key: self.clone_outputs(each) for key, each in outputs.items()}
        return self.clone(outputs)

    def copy_module(self, module: Any) -> Any:
        """Return a layer of its own with the same weights: tracing a layer changes it."""
        return module.copy()

    def tensors_of(self, module: Any) -> dict[str, Any]:
        """Return the weights that the module holds, by name."""
        return {**dict(module.named_parameters()), **dict(module.named_buffers())}

    def is_equal(self, left: Any, right: Any) -> bool:
        """Tell whether two tensors hold the same bits."""
        if not isinstance(left, paddle.Tensor):
            return True
        return np.array_equal(_Bytes(left).array, _Bytes(right).array)

    def checksum(self, tensor: Any) -> int:
        """Return a sum over the bits of a tensor, which a change of its elements changes."""
        elements = _Bytes(tensor)
        data = elements.array
        whole = data[: data.size // 8 * 8].view(np.int64)
        return int(whole.sum()) + int(data[whole.size * 8 :].sum(dtype=np.int64))

    def restore(self, tensor: Any, pristine: Any) -> None:
        """Write the saved elements back into `tensor`."""
        tensor.copy_(pristine, True)

    def poison(self, outputs: Any, protected: set[int]) -> None:
        """Overwrite outputs that nobody needs any more, so that stale memory holds no answer.

        `protected` has the storages that must stay as they are (see `storages`). Memory of a GPU is
        left as it is.
        """
        for leaf in leaves(outputs):
            if not isinstance(leaf, paddle.Tensor) or not leaf.place.is_cpu_place():
                continue
            if leaf._is_initialized() and leaf.size and _storage(leaf) not in protected:
                ctypes.memset(_storage(leaf), 0xFF, leaf._holder_size())

    def storages(self, *tensors: Any) -> set[int]:
        """Return the addresses of the memory in which the tensors lie."""
        return {
            _storage(tensor)
            for tensor in tensors
            if isinstance(tensor, paddle.Tensor) and tensor._is_initialized() and tensor.size
        }

    def write_outputs(self, outputs: Any, path: Path) -> list[dict[str, Any]]:
        """Write the elements of the outputs to `path`; return dtype, shape and place of each.

        Raises:
            OutputTypeError: an output is something else than a plain dense tensor or a number.
        """
        return write_leaves(outputs, path, _describe)

    def reset_peak_memory(self) -> None:
        """Begin a new measurement of the device's peak memory."""
        if self.device.startswith("gpu"):
            paddle.device.cuda.reset_max_memory_allocated(self._place)

    def peak_memory_bytes(self) -> int | None:
        """Return the device's peak memory since the last reset, None where only the CPU is used."""
        if self.device.startswith("gpu"):
            return paddle.device.cuda.max_memory_allocated(self._place)
        return None


class _Bytes:
    """The bytes of a tensor as an array; the tensor lives as long as this does."""

    def __init__(self, tensor: Any) -> None:
        self._tensor = tensor.detach().cpu().contiguous()
        self.array: npt.NDArray[np.uint8] = np.zeros(0, np.uint8)
        if self._tensor.size:
            size = self._tensor.size * self._tensor.element_size()
            memory = (ctypes.c_uint8 * size).from_address(self._tensor.data_ptr())
            self.array = np.frombuffer(memory, np.uint8)


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
