"""What the worker does with torch's tensors: copy, seed, compare versions, hand over."""

from __future__ import annotations

import copy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from .outputs import SCALARS, OutputTypeError, leaves, write_leaves

_DTYPE_PREFIX = "torch."


class TorchRuntime:
    """Torch on one device, with a fixed number of threads and without gradients."""

    def __init__(self, device: str, num_threads: int) -> None:
        self.device = torch.device(device)
        torch.set_num_threads(num_threads)
        torch.set_grad_enabled(False)

    def seed(self, seed: int) -> None:
        """Seed every generator, so that random operators draw the same numbers in each arm."""
        torch.manual_seed(seed)

    def synchronize(self) -> None:
        """Wait until all that was started on the device is done."""
        if self.device.type == "cuda":
            torch.cuda.synchronize(self.device)

    def clone(self, value: Any) -> Any:
        """Return a copy of a tensor, with its strides; anything else is returned as it is."""
        return value.clone() if isinstance(value, torch.Tensor) else value

    def clone_outputs(self, outputs: Any) -> Any:
        """Return the outputs, copied, in their structure."""
        if type(outputs) in (list, tuple):
            return type(outputs)(self.clone_outputs(each) for each in outputs)
        if type(outputs) is dict:
            return {key: self.clone_outputs(each) for key, each in outputs.items()}
        return self.clone(outputs)

    def copy_module(self, module: Any) -> Any:
        """Return the module with a graph of its own and the same weights.

        A compiler may rewrite the graph that it is given; the weights are too large for two.
        """
        return torch.fx.GraphModule(module, copy.deepcopy(module.graph))

    def tensors_of(self, module: Any) -> dict[str, torch.Tensor]:
        """Return the weights that the module holds, by name."""
        return {**dict(module.named_parameters()), **dict(module.named_buffers())}

    def is_equal(self, left: Any, right: Any) -> bool:
        """Tell whether two tensors hold the same bits."""
        if not isinstance(left, torch.Tensor):
            return True
        return bool(torch.equal(_as_bytes(left), _as_bytes(right)))

    def checksum(self, tensor: Any) -> int:
        """Return a sum over the bits of a tensor, which a change of its elements changes."""
        data = _as_bytes(tensor)
        whole = data[: data.numel() // 8 * 8].view(torch.int64)
        return int(whole.sum()) + int(data[whole.numel() * 8 :].sum(dtype=torch.int64))

    def restore(self, tensor: torch.Tensor, pristine: torch.Tensor) -> None:
        """Write the saved elements back into `tensor`."""
        tensor.data.copy_(pristine)

    def poison(self, outputs: Any, protected: set[int]) -> None:
        """Overwrite outputs that nobody needs any more, so that stale memory holds no answer.

        `protected` has the storages that must stay as they are (see `storages`).
        """
        for leaf in leaves(outputs):
            if not isinstance(leaf, torch.Tensor) or type(leaf) is not torch.Tensor:
                continue
            if leaf.layout is not torch.strided or leaf.untyped_storage().data_ptr() in protected:
                continue
            torch.empty(0, dtype=torch.uint8, device=leaf.device).set_(
                leaf.untyped_storage()
            ).fill_(0xFF)

    def storages(self, *tensors: Any) -> set[int]:
        """Return the addresses of the memory in which the tensors lie."""
        return {
            tensor.untyped_storage().data_ptr()
            for tensor in tensors
            if isinstance(tensor, torch.Tensor) and tensor.layout is torch.strided
        }

    def write_outputs(self, outputs: Any, path: Path) -> list[dict[str, Any]]:
        """Write the elements of the outputs to `path`; return dtype, shape and place of each.

        Raises:
            OutputTypeError: an output is something else than a plain dense tensor or a number.
        """
        return write_leaves(outputs, path, _describe)

    def reset_peak_memory(self) -> None:
        """Begin a new measurement of the device's peak memory."""
        if self.device.type == "cuda":
            torch.cuda.reset_peak_memory_stats(self.device)

    def peak_memory_bytes(self) -> int | None:
        """Return the device's peak memory since the last reset, None where only the CPU is used."""
        if self.device.type == "cuda":
            return torch.cuda.max_memory_allocated(self.device)
        return None


def no_gradients(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return `function` under the gradient mode of a run."""
    return torch.no_grad()(function)


def _describe(leaf: Any, index: int) -> tuple[str, list[int], Any]:
    if type(leaf) in SCALARS:
        dtype = SCALARS[type(leaf)]
        leaf = torch.tensor(leaf, dtype=getattr(torch, dtype))
    # A subclass may compute its elements when they are asked for, after the clock has stopped.
    if type(leaf) not in (torch.Tensor, torch.nn.Parameter):
        raise OutputTypeError(
            f"Output {index} is a `{type(leaf).__module__}.{type(leaf).__qualname__}`, "
            "not a plain tensor."
        )
    if leaf.layout is not torch.strided or leaf.is_quantized or leaf.is_meta:
        raise OutputTypeError(
            f"Output {index} is a tensor of layout {leaf.layout} on {leaf.device}, not a dense one."
        )
    dtype = str(leaf.dtype).removeprefix(_DTYPE_PREFIX)
    return dtype, list(leaf.shape), _as_bytes(leaf).numpy()


def _as_bytes(tensor: torch.Tensor) -> torch.Tensor:
    plain = tensor.detach().resolve_conj().resolve_neg().cpu().contiguous()
    return plain.reshape(-1).view(torch.uint8)
