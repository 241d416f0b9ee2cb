"""Callable groups: modules that run a compiled kernel on torch tensors."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import torch

from ...errors import KernelInputError
from ..cache import TuningCache, cache_key
from ..compiling import compile_general, compile_instance
from ..kernel import Kernel
from ..language import Instance, PreconditionWarning, check, instantiate
from ..language.inference import check_strides
from ..options import Options
from ..triton.kernel import TritonKernel
from ..tuner import TunerConfig, autotune
from .lowering import LoweredGroup


class GroupKernel(torch.nn.Module):
    """Calls a kernel with the tensors of a graph.

    Inputs with strides other than the compiled strides are copied.

    Args:
        strides: strides of the results, for graphs that depend on the memory layout; dense by
            default.
        device: device of the tensors; the CPU by default.
    """

    def __init__(
        self,
        group: LoweredGroup,
        kernel: Kernel | TritonKernel,
        strides: Sequence[tuple[int, ...]] = (),
        device: torch.device | None = None,
    ) -> None:
        super().__init__()
        self.kernel = kernel
        self._device = device
        instance = kernel.instance
        self._strides = [tensor.strides for tensor in instance.inputs]
        self._shapes = [tensor.shape for tensor in instance.inputs]
        # Matched by position: the kernel may have been compiled for a group with other names.
        names = dict.fromkeys(output.tensor for output in group.outputs)
        places = {name: place for place, name in enumerate(names)}
        self._made = [
            (tensor.shape, tensor.strides, _torch_dtype(tensor.dtype.name))
            for tensor in instance.outputs
        ]
        self._results = []
        for output in group.outputs:
            place = places[output.tensor]
            is_same = self._made[place][0] == output.shape
            self._results.append((place, None if is_same else output.shape))
        self._layouts = list(strides)
        self._launch = kernel.launch

    def forward(self, *tensors: torch.Tensor) -> tuple[torch.Tensor, ...]:
        """Run the kernel and return the results of the group."""
        inputs = [
            tensor if tensor.stride() == strides else placed(tensor, shape, strides)
            for tensor, shape, strides in zip(tensors, self._shapes, self._strides, strict=True)
        ]
        buffers = [
            torch.empty_strided(shape, steps, dtype=dtype, device=self._device)
            for shape, steps, dtype in self._made
        ]
        self._launch([tensor.data_ptr() for tensor in (*inputs, *buffers)])
        results = tuple(
            buffers[place] if shape is None else buffers[place].view(shape)
            for place, shape in self._results
        )
        if not self._layouts:
            return results
        return tuple(
            placed(result, result.shape, strides)
            for result, strides in zip(results, self._layouts, strict=True)
        )


def placed(tensor: torch.Tensor, shape: Sequence[int], strides: Sequence[int]) -> torch.Tensor:
    """Return the tensor with the given strides; copy it if they differ.

    Raises:
        KernelInputError: the shape differs from the compiled shape.
    """
    if tuple(tensor.shape) != tuple(shape):
        raise KernelInputError(
            f"A tensor has shape {tuple(tensor.shape)}, but the kernel was compiled for "
            f"{tuple(shape)}. Compile again for the new sizes."
        )
    dimensions = zip(tensor.stride(), strides, shape, strict=True)
    if all(size <= 1 or have == want for have, want, size in dimensions):
        return tensor
    copy = torch.empty_strided(
        tuple(shape), tuple(strides), dtype=tensor.dtype, device=tensor.device
    )
    return copy.copy_(tensor)


def as_array(tensor: torch.Tensor) -> Any:
    """Convert a tensor to NumPy; bfloat16, which NumPy lacks, becomes float32."""
    return (tensor.float() if tensor.dtype == torch.bfloat16 else tensor).cpu().numpy()


def kernel_strides(tensor: torch.Tensor) -> tuple[int, ...]:
    """Return the strides to compile for: of the tensor, or of a contiguous copy."""
    try:
        check_strides("input", tuple(tensor.shape), tuple(tensor.stride()))
    except KernelInputError:
        return torch.empty(tensor.shape, device="meta").stride()
    return tuple(tensor.stride())


def specialise(group: LoweredGroup, examples: Sequence[torch.Tensor]) -> Instance:
    """Return the instance of a group for example tensors.

    Gathers are clamped: an index out of range, which eager rejects, must not read other memory.
    """
    (definition,) = check(group.source)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PreconditionWarning)
        return instantiate(
            definition,
            [tuple(example.shape) for example in examples],
            strides=[kernel_strides(example) for example in examples],
            check_bounds=True,
        )


class KernelCache:
    """Compiles each definition once, independently of its names, so repeated blocks share a kernel.

    Args:
        options: compile options unless better options are known.
        timeout_s: time limit of the C compiler per kernel, in seconds.
        tune_s: tuning time per definition in seconds; 0 disables tuning.
        table: cache of tuned options to read and extend.
        is_general: whether to compile code that takes the sizes as parameters, with neither
            options nor tuning.
    """

    def __init__(
        self,
        options: Options | None,
        timeout_s: float,
        tune_s: float = 0.0,
        table: TuningCache | None = None,
        *,
        is_general: bool = False,
    ) -> None:
        self.is_general = is_general
        self.options, self.timeout_s = options, timeout_s
        self.tune_s, self.table = tune_s, table
        self._kernels: dict[Any, Kernel | TritonKernel] = {}

    def kernel(
        self, group: LoweredGroup, examples: Sequence[torch.Tensor], device: torch.device
    ) -> Kernel | TritonKernel:
        """Return the kernel of a group for a device, compiling it if necessary.

        Raises:
            KernelInputError: an example is on another device.
        """
        for example in examples:
            if example.device != device:
                raise KernelInputError(
                    f"A tensor of the group is on `{example.device}`, but the kernel is compiled "
                    f"for `{device}`. Move it there."
                )
        instance = specialise(group, examples)
        layouts = tuple((tensor.shape, tensor.strides) for tensor in instance.inputs)
        key = (instance.canonical_text, layouts, device)
        if key not in self._kernels:
            if device.type != "cpu":
                options = self.tuned(instance, examples, device)
                kernel = TritonKernel(instance, options, device)
            elif self.is_general:
                kernel = compile_general(instance, timeout_s=self.timeout_s)
            else:
                options = self.tuned(instance, examples)
                kernel = compile_instance(instance, options, timeout_s=self.timeout_s)
            self._kernels[key] = kernel
        return self._kernels[key]

    def tuned(
        self,
        instance: Instance,
        examples: Sequence[torch.Tensor],
        device: torch.device | None = None,
    ) -> Options | None:
        """Return cached options, or tuned options, or the default options."""
        key = cache_key(instance, self.options, device)
        cached = self.table.best(key, any_machine=True) if self.table is not None else None
        if cached is not None or not self.tune_s:
            return cached or self.options
        config = TunerConfig(budget_s=self.tune_s, timeout_s=self.timeout_s)
        arrays = [
            as_array(placed(example.detach(), tensor.shape, tensor.strides))
            for example, tensor in zip(examples, instance.inputs, strict=True)
        ]
        start = [self.options] if self.options is not None else []
        result = autotune(instance, arrays, start=start, config=config, device=device)
        if self.table is not None:
            self.table.add(key, result.ranked()[: config.num_saved])
        return result.options

    @property
    def num_kernels(self) -> int:
        """Number of compiled kernels."""
        return len(self._kernels)


def _torch_dtype(name: str) -> torch.dtype:
    return getattr(torch, name)
