"""A kernel bound to the arrays of a framework: checks, allocation, the call itself."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ..errors import KernelInputError
from .arguments import Framework
from .cuda import GpuKernel
from .kernel import Kernel, Profile
from .options import Options


class BoundKernel:
    """A kernel that takes and returns tensors of NumPy, torch or paddle.

    Attributes:
        instance: what it computes, for which sizes.
        kernel: the compiled kernel behind it.
        framework: whose arrays it takes.
    """

    def __init__(
        self, kernel: Kernel | GpuKernel, framework: Framework, constants: Mapping[str, int]
    ) -> None:
        self.kernel, self.framework, self.constants = kernel, framework, dict(constants)
        instance = self.instance = kernel.instance
        self._inputs = [(each.dtype.name, each.shape, each.strides) for each in instance.inputs]
        self._tests = [framework.test(*each) for each in self._inputs]
        self._allocators = [
            framework.allocator(each.shape, each.dtype.name) for each in instance.outputs
        ]
        self._needs_outputs = any(each.is_updated for each in instance.outputs)
        self._launch = kernel.launch
        self._is_single = len(self._allocators) == 1
        self._describe, self._address = framework.describe, framework.address

    @property
    def source(self) -> str:
        """The generated C."""
        return self.kernel.source

    @property
    def schedule(self) -> Any:
        """The order of execution; prints as a tree."""
        return self.kernel.schedule

    @property
    def options(self) -> Options:
        """What it was compiled with."""
        return self.kernel.options

    def __call__(
        self,
        *inputs: Any,
        outputs: Mapping[str, Any] | Sequence[Any] | None = None,
        unchecked: bool = False,
    ) -> Any:
        """Compute the outputs: the one there is, or a tuple.

        Args:
            inputs: tensors of the shapes and types that it was compiled for; other strides are
                copied.
            outputs: contiguous tensors to write to, by name or all in order. One that is
                accumulated into has to be given.
            unchecked: skip the checks; wrong arguments then corrupt memory.

        Raises:
            KernelInputError: an argument does not fit.
        """
        if not unchecked:
            inputs = self._checked(inputs)
        if outputs is None and not self._needs_outputs:
            made = [allocate() for allocate in self._allocators]
        else:
            made = self._given(outputs, inputs)
        address = self._address
        self._launch([address(each) for each in (*inputs, *made)])
        return made[0] if self._is_single else tuple(made)

    def profile(self, *inputs: Any, num_runs: int = 10, num_warm_up: int = 2) -> Profile:
        """Call the kernel some times and return how long each call took, allocation left out."""
        if isinstance(self.kernel, GpuKernel):
            inputs = self._checked(inputs)
            arrays = (*inputs, *(allocate() for allocate in self._allocators))
            addresses = [self._address(each) for each in arrays]
            return Profile(tuple(self.kernel.times_ms(addresses, num_runs, num_warm_up)))
        arrays = [self.framework.to_numpy(each) for each in inputs]
        return self.kernel.profile(*arrays, num_runs=num_runs, num_warm_up=num_warm_up)

    def __repr__(self) -> str:
        return f"{self.kernel!r} for {self.framework.name}"

    def _checked(self, inputs: tuple[Any, ...]) -> tuple[Any, ...]:
        """Return the inputs, those of other strides copied."""
        if len(inputs) != len(self._inputs):
            raise KernelInputError(
                f"`{self.instance.name}` takes {len(self._inputs)} inputs but was given "
                f"{len(inputs)}."
            )
        if self.fits(inputs):
            return inputs
        found = []
        for place, (array, expected) in enumerate(zip(inputs, self._inputs, strict=True)):
            given = self._describe(array)
            found.append(array if given == expected else self._mended(place, array, given))
        return tuple(found)

    def fits(self, inputs: Sequence[Any]) -> bool:
        """Tell whether inputs can be passed unchecked."""
        if len(inputs) != len(self._tests):
            return False
        try:
            for test, each in zip(self._tests, inputs, strict=True):
                if not test(each):
                    return False
        except AttributeError:  # a number or a list
            return False
        return True

    def _mended(self, place: int, array: Any, given: tuple[Any, ...]) -> Any:
        name = self.instance.inputs[place].name
        dtype, shape, strides = self._inputs[place]
        if given[0] != dtype:
            raise KernelInputError(
                f"The input `{name}` of `{self.instance.name}` is {given[0]}; it has to be {dtype}."
            )
        if tuple(given[1]) != shape:
            raise KernelInputError(
                f"The input `{name}` of `{self.instance.name}` has shape {tuple(given[1])}; the "
                f"kernel was compiled for {shape}."
            )
        return self.framework.matching(array, strides)

    def _given(self, outputs: Any, inputs: Sequence[Any]) -> list[Any]:
        """Return the outputs to write to, those that are not given allocated."""
        tensors = self.instance.outputs
        if outputs is not None and not isinstance(outputs, Mapping):
            if len(outputs) != len(tensors):
                raise KernelInputError(
                    f"`{self.instance.name}` has {len(tensors)} outputs but was given "
                    f"{len(outputs)}."
                )
            outputs = {each.name: value for each, value in zip(tensors, outputs, strict=True)}
        given = dict(outputs or {})
        made = []
        taken = {self._address(each) for each in inputs}
        for tensor, allocate in zip(tensors, self._allocators, strict=True):
            array = given.pop(tensor.name, None)
            if array is None:
                if tensor.is_updated:
                    raise KernelInputError(
                        f"The output `{tensor.name}` is accumulated into, so its contents have to "
                        f"be given: `outputs={{'{tensor.name}': …}}`."
                    )
                made.append(allocate())
                continue
            dtype, shape, strides = self._describe(array)
            if (dtype, tuple(shape)) != (tensor.dtype.name, tensor.shape):
                raise KernelInputError(
                    f"The output `{tensor.name}` is {dtype} of shape {tuple(shape)}; it has to be "
                    f"{tensor.dtype} of shape {tensor.shape}."
                )
            if tuple(strides) != tensor.strides and tensor.num_elements > 1:
                raise KernelInputError(f"The output `{tensor.name}` has to be contiguous.")
            if self._address(array) in taken:
                raise KernelInputError(
                    f"The output `{tensor.name}` shares memory with another argument."
                )
            taken.add(self._address(array))
            made.append(array)
        if given:
            raise KernelInputError(
                f"`{self.instance.name}` has no output `{next(iter(given))}`; its outputs are "
                f"{', '.join(each.name for each in tensors)}."
            )
        return made
