"""A group as something to call: tensors in, tensors out, a compiled kernel in between."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import torch

from ...errors import KernelInputError
from ..cache import TuningCache, cache_key
from ..compiling import compile_instance
from ..kernel import Kernel
from ..language import Instance, PreconditionWarning, check, instantiate
from ..language.inference import check_strides
from ..options import Options
from ..tuner import TunerConfig, autotune
from .lowering import LoweredGroup


class GroupKernel(torch.nn.Module):
    """Calls a kernel with the tensors of a graph.

    Inputs of other strides than the kernel was compiled for are copied first.

    Args:
        strides: of each result, for graphs that read memory as it lies; none given are dense.
    """

    def __init__(
        self, group: LoweredGroup, kernel: Kernel, strides: Sequence[tuple[int, ...]] = ()
    ) -> None:
        super().__init__()
        self.kernel = kernel
        instance = kernel.instance
        self._strides = [each.strides for each in instance.inputs]
        self._shapes = [each.shape for each in instance.inputs]
        # By position: the kernel may have been compiled for a group with other names.
        names = dict.fromkeys(each.tensor for each in group.outputs)
        places = {name: place for place, name in enumerate(names)}
        self._made = [
            (each.shape, each.strides, _torch_dtype(each.dtype.name)) for each in instance.outputs
        ]
        self._results = []
        for each in group.outputs:
            place = places[each.tensor]
            is_same = self._made[place][0] == each.shape
            self._results.append((place, None if is_same else each.shape))
        self._layouts = list(strides)
        self._launch = kernel.launch

    def forward(self, *tensors: torch.Tensor) -> tuple[torch.Tensor, ...]:
        """Return the results of the group."""
        held = [
            each if each.stride() == strides else placed(each, shape, strides)
            for each, shape, strides in zip(tensors, self._shapes, self._strides, strict=True)
        ]
        made = [
            torch.empty_strided(shape, steps, dtype=dtype) for shape, steps, dtype in self._made
        ]
        self._launch([each.data_ptr() for each in (*held, *made)])
        found = tuple(
            made[place] if shape is None else made[place].view(shape)
            for place, shape in self._results
        )
        if not self._layouts:
            return found
        return tuple(
            placed(each, each.shape, strides)
            for each, strides in zip(found, self._layouts, strict=True)
        )


def placed(tensor: torch.Tensor, shape: Sequence[int], strides: Sequence[int]) -> torch.Tensor:
    """Return the tensor with these strides, copied if it has others along a dimension above 1.

    Raises:
        ValueError: it has another shape than the kernel was compiled for.
    """
    if tuple(tensor.shape) != tuple(shape):
        raise KernelInputError(
            f"A tensor has shape {tuple(tensor.shape)} where the kernel was compiled for "
            f"{tuple(shape)}. Compile again for the new sizes."
        )
    given = zip(tensor.stride(), strides, shape, strict=True)
    if all(size <= 1 or have == want for have, want, size in given):
        return tensor
    return torch.empty_strided(tuple(shape), tuple(strides), dtype=tensor.dtype).copy_(tensor)


def as_array(tensor: torch.Tensor) -> Any:
    """Return the tensor as an array; bfloat16, which NumPy lacks, as float32."""
    return (tensor.float() if tensor.dtype == torch.bfloat16 else tensor).numpy()


def kernel_strides(tensor: torch.Tensor) -> tuple[int, ...]:
    """Return the strides to compile for: the tensor's own, or those of a contiguous copy."""
    try:
        check_strides("input", tuple(tensor.shape), tuple(tensor.stride()))
    except KernelInputError:
        return torch.empty(tensor.shape, device="meta").stride()
    return tuple(tensor.stride())


def specialise(group: LoweredGroup, examples: Sequence[torch.Tensor]) -> Instance:
    """Return the instance of a group for the tensors that it is called with.

    Gathers are limited to their tensors: an index out of range, which eager refuses, must not
    read other memory.
    """
    (definition,) = check(group.source)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PreconditionWarning)
        return instantiate(
            definition,
            [tuple(each.shape) for each in examples],
            strides=[kernel_strides(each) for each in examples],
            check_bounds=True,
        )


class KernelCache:
    """Compiles each definition once, whatever its names: repeated blocks are one kernel.

    Args:
        options: how kernels are compiled where nothing better is known.
        timeout_s: how long the C compiler may take for one.
        tune_s: seconds of tuning for each definition; 0 for none.
        table: tuned options to take and, after tuning, to add to.
    """

    def __init__(
        self,
        options: Options | None,
        timeout_s: float,
        tune_s: float = 0.0,
        table: TuningCache | None = None,
    ) -> None:
        self.options, self.timeout_s = options, timeout_s
        self.tune_s, self.table = tune_s, table
        self._kernels: dict[Any, Kernel] = {}

    def kernel(self, group: LoweredGroup, examples: Sequence[torch.Tensor]) -> Kernel:
        """Return the kernel of a group."""
        instance = specialise(group, examples)
        layouts = tuple((each.shape, each.strides) for each in instance.inputs)
        key = (instance.canonical_text, layouts)
        if key not in self._kernels:
            options = self.tuned(instance, examples)
            self._kernels[key] = compile_instance(instance, options, timeout_s=self.timeout_s)
        return self._kernels[key]

    def tuned(self, instance: Instance, examples: Sequence[torch.Tensor]) -> Options | None:
        """Return the options of the table, or those that tuning finds, or the given ones."""
        key = cache_key(instance, self.options)
        known = self.table.best(key, any_machine=True) if self.table is not None else None
        if known is not None or not self.tune_s:
            return known or self.options
        config = TunerConfig(budget_s=self.tune_s, timeout_s=self.timeout_s)
        arrays = [
            as_array(placed(each.detach(), tensor.shape, tensor.strides))
            for each, tensor in zip(examples, instance.inputs, strict=True)
        ]
        start = [self.options] if self.options is not None else []
        result = autotune(instance, arrays, start=start, config=config)
        if self.table is not None:
            self.table.add(key, result.ranked()[: config.num_saved])
        return result.options

    @property
    def num_kernels(self) -> int:
        """How many kernels were compiled."""
        return len(self._kernels)


def _torch_dtype(name: str) -> torch.dtype:
    return getattr(torch, name)
