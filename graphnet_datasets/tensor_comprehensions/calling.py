"""Kernels bound to the arrays of one framework."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ..errors import KernelInputError
from .arguments import Framework
from .cuda import GpuKernel
from .kernel import Kernel, Profile
from .language.instance import Instance, Tensor
from .options import Options
from .triton.kernel import TritonKernel


class BoundKernel:
    """A compiled kernel that takes and returns NumPy, torch or paddle tensors.

    Attributes:
        instance: the computation and its sizes.
        kernel: the compiled kernel.
        framework: the framework of the inputs and outputs.
    """

    def __init__(
        self,
        kernel: Kernel | GpuKernel | TritonKernel,
        framework: Framework,
        constants: Mapping[str, int],
    ) -> None:
        self.kernel, self.framework, self.constants = kernel, framework, dict(constants)
        instance = self.instance = kernel.instance
        self._inputs = [
            (tensor.dtype.name, tensor.shape, tensor.strides) for tensor in instance.inputs
        ]
        self._tests = [framework.test(*expected) for expected in self._inputs]
        self._allocators = [
            framework.allocator(tensor.shape, tensor.dtype.name) for tensor in instance.outputs
        ]
        self._needs_outputs = any(tensor.is_updated for tensor in instance.outputs)
        self._launch = kernel.launch
        self._is_single = len(self._allocators) == 1
        self._describe, self._address = framework.describe, framework.address

    @property
    def source(self) -> str:
        """Generated C, CUDA or Triton source."""
        return self.kernel.source

    @property
    def schedule(self) -> Any:
        """Execution order; prints as a tree."""
        return self.kernel.schedule

    @property
    def options(self) -> Options:
        """Options of the compilation."""
        return self.kernel.options

    def __call__(
        self,
        *inputs: Any,
        outputs: Mapping[str, Any] | Sequence[Any] | None = None,
        unchecked: bool = False,
    ) -> Any:
        """Compute and return the output, or a tuple if there are several.

        Args:
            inputs: tensors of the compiled shapes and dtypes. Inputs with other strides are copied.
            outputs: contiguous tensors to write to, by name or all in order. Required for outputs
                that are accumulated into.
            unchecked: skip the checks; wrong arguments then corrupt memory.

        Raises:
            KernelInputError: an argument has the wrong shape, dtype, strides or device.
        """
        if not unchecked:
            inputs = self._checked(inputs)
        if outputs is None and not self._needs_outputs:
            results = [allocate() for allocate in self._allocators]
        else:
            results = self._resolve_outputs(outputs, inputs)
        address = self._address
        self._launch([address(array) for array in (*inputs, *results)])
        return results[0] if self._is_single else tuple(results)

    def profile(self, *inputs: Any, num_runs: int = 10, num_warm_up: int = 2) -> Profile:
        """Time repeated calls of the kernel, without allocation."""
        inputs = self._checked(inputs)
        arrays = (*inputs, *(allocate() for allocate in self._allocators))
        addresses = [self._address(array) for array in arrays]
        return Profile(tuple(self.kernel.times_ms(addresses, num_runs, num_warm_up)))

    def __repr__(self) -> str:
        return f"{self.kernel!r} for {self.framework.name}"

    def _checked(self, inputs: tuple[Any, ...]) -> tuple[Any, ...]:
        """Check the inputs; copy those with other strides."""
        if len(inputs) != len(self._inputs):
            raise KernelInputError(
                f"`{self.instance.name}` takes {len(self._inputs)} inputs, got {len(inputs)}. "
                "Pass one tensor for each input."
            )
        if self.fits(inputs):
            return inputs
        return tuple(
            self._match_strides(place, array, self._describe(array))
            for place, array in enumerate(inputs)
        )

    def fits(self, inputs: Sequence[Any]) -> bool:
        """Return whether the inputs can be passed without checks or copies."""
        if len(inputs) != len(self._tests):
            return False
        try:
            for test, array in zip(self._tests, inputs, strict=True):
                if not test(array):
                    return False
        except AttributeError:  # a number or a list
            return False
        return True

    def _match_strides(self, place: int, array: Any, description: tuple[Any, ...]) -> Any:
        name = self.instance.inputs[place].name
        dtype, shape, strides = self._inputs[place]
        if description[0] != dtype:
            raise KernelInputError(
                f"The input `{name}` of `{self.instance.name}` is {description[0]}; it must be "
                f"{dtype}. Convert it first."
            )
        if tuple(description[1]) != shape:
            raise KernelInputError(
                f"The input `{name}` of `{self.instance.name}` has shape {tuple(description[1])}; "
                "the "
                f"kernel was compiled for {shape}. Compile a kernel for the new shape."
            )
        return self.framework.matching(array, strides)

    def _resolve_outputs(self, outputs: Any, inputs: Sequence[Any]) -> list[Any]:
        """Return the outputs to write to; allocate those that the caller left out."""
        tensors = self.instance.outputs
        remaining = by_name(self.instance, outputs)
        results = []
        extents = [
            self._extent(array, tensor)
            for array, tensor in zip(inputs, self.instance.inputs, strict=True)
        ]
        for tensor, allocate in zip(tensors, self._allocators, strict=True):
            array = remaining.pop(tensor.name, None)
            if array is None:
                if tensor.is_updated:
                    raise KernelInputError(
                        f"The output `{tensor.name}` is accumulated into, so it needs initial "
                        "contents. "
                        f"Pass `outputs={{'{tensor.name}': …}}`."
                    )
                results.append(allocate())
                continue
            dtype, shape, _ = self._describe(array)
            if (dtype, tuple(shape)) != (tensor.dtype.name, tensor.shape):
                raise KernelInputError(
                    f"The output `{tensor.name}` is {dtype} of shape {tuple(shape)}; it must be "
                    f"{tensor.dtype} of shape {tensor.shape}. Pass such a tensor."
                )
            if self.framework.matching(array, tensor.strides) is not array:
                raise KernelInputError(
                    f"The output `{tensor.name}` must be contiguous, and its memory must hold its "
                    "values without a negative bit. Pass such a tensor."
                )
            begin, end = self._extent(array, tensor)
            if any(begin < other_end and other_begin < end for other_begin, other_end in extents):
                raise KernelInputError(
                    f"The output `{tensor.name}` shares memory with another argument. Pass "
                    "separate memory."
                )
            extents.append((begin, end))
            results.append(array)
        if remaining:
            raise KernelInputError(
                f"`{self.instance.name}` has no output `{next(iter(remaining))}`; choose from "
                f"{', '.join(tensor.name for tensor in tensors)}."
            )
        return results

    def _extent(self, array: Any, tensor: Tensor) -> tuple[int, int]:
        """Return the addresses between which the elements of an argument are."""
        begin = self._address(array)
        steps = zip(tensor.shape, tensor.strides, strict=True)
        last = sum((size - 1) * stride for size, stride in steps)
        return begin, begin + (last + 1) * tensor.dtype.itemsize * bool(tensor.num_elements)


def by_name(
    instance: Instance, outputs: Mapping[str, Any] | Sequence[Any] | None
) -> dict[str, Any]:
    """Return outputs that a caller passes by name or all in order, by their names.

    Raises:
        KernelInputError: the number of outputs is wrong.
    """
    if outputs is None or isinstance(outputs, Mapping):
        return dict(outputs or {})
    if len(outputs) != len(instance.outputs):
        raise KernelInputError(
            f"`{instance.name}` has {len(instance.outputs)} outputs, got {len(outputs)}. Pass one "
            "tensor for each output."
        )
    names = [tensor.name for tensor in instance.outputs]
    return dict(zip(names, outputs, strict=True))
