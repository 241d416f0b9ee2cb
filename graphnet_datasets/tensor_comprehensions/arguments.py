"""Arrays of NumPy, torch and paddle as kernels see them: dtype, shape, strides, address.

Which framework an array belongs to is told by the module of its class, so that no framework is
imported for an array of another.
"""

from __future__ import annotations

import dataclasses
import functools
import sys
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..errors import KernelInputError
from .language.instance import row_major


@dataclasses.dataclass(frozen=True, slots=True)
class Framework:
    """What bindings need of a framework.

    Attributes:
        describe: name of the dtype, shape and strides in elements of an array.
        address: the address of its first element.
        test: for a dtype name, shape and strides, a quick test whether an array has those; it may
            raise AttributeError where it is given no array.
        allocator: for a shape and dtype name, what makes such an array.
        matching: returns the array with the given strides, copied if need be.
        to_numpy: returns its elements; bfloat16 as float32.
        from_numpy: the opposite, for a dtype name.
    """

    name: str
    describe: Callable[[Any], tuple[str, tuple[int, ...], tuple[int, ...]]]
    address: Callable[[Any], int]
    test: Callable[[str, Sequence[int], Sequence[int]], Callable[[Any], bool]]
    allocator: Callable[[Sequence[int], str], Callable[[], Any]]
    matching: Callable[[Any, Sequence[int]], Any]
    to_numpy: Callable[[Any], np.ndarray[Any, Any]]
    from_numpy: Callable[[np.ndarray[Any, Any], str], Any]
    device: Any = None
    """The GPU that its tensors lie on, None for the processor."""


def framework_of(arrays: Sequence[Any]) -> Framework:
    """Return the framework that arrays belong to; numbers and lists are NumPy's.

    Tensors of torch on a GPU belong to a framework of their own for each GPU.

    Raises:
        KernelInputError: they belong to more than one.
    """
    found = {_root(each) for each in arrays} & {"torch", "paddle"}
    if len(found) > 1:
        raise KernelInputError("The inputs are tensors of torch and of paddle. Pass one kind.")
    name = found.pop() if found else "numpy"
    if name == "torch":
        for each in arrays:
            if _root(each) == "torch" and each.is_cuda:
                return _made(f"torch on {each.device}", each.device)
    return _made(name)


def _root(array: Any) -> str:
    return type(array).__module__.partition(".")[0]


_frameworks: dict[str, Framework] = {}


def _made(name: str, device: Any = None) -> Framework:
    if name not in _frameworks:
        makers = {"numpy": _numpy, "torch": _torch, "paddle": _paddle}
        made = makers[name]() if device is None else _torch(name, device)
        _frameworks[name] = made
    return _frameworks[name]


def _numpy() -> Framework:
    def describe(array: Any) -> tuple[str, tuple[int, ...], tuple[int, ...]]:
        array = np.asarray(array)
        steps = tuple(each // array.itemsize for each in array.strides)
        return array.dtype.name, array.shape, steps

    def matching(array: Any, strides: Sequence[int]) -> Any:
        made = np.asarray(array)
        have = [each // made.itemsize for each in made.strides]
        if _same_strides(made.shape, have, strides):
            return made
        size = 1 + sum((n - 1) * s for n, s in zip(made.shape, strides, strict=True))
        buffer = np.empty(size, made.dtype)
        steps = [each * made.itemsize for each in strides]
        view = np.lib.stride_tricks.as_strided(buffer, made.shape, steps)
        view[...] = made
        return view

    def test(dtype: str, shape: Sequence[int], strides: Sequence[int]) -> Callable[[Any], bool]:
        kind, sizes = np.dtype("float32" if dtype == "bfloat16" else dtype), tuple(shape)
        steps = tuple(each * kind.itemsize for each in strides)
        return lambda array: (
            type(array) is np.ndarray
            and array.dtype == kind
            and array.shape == sizes
            and array.strides == steps
        )

    def allocator(shape: Sequence[int], dtype: str) -> Callable[[], Any]:
        kind = np.dtype("float32" if dtype == "bfloat16" else dtype)
        return functools.partial(np.empty, tuple(shape), kind)

    return Framework(
        "numpy",
        describe,
        lambda array: array.__array_interface__["data"][0],
        test,
        allocator,
        matching,
        np.asarray,
        lambda array, _: array,
    )


def _torch(name: str = "torch", device: Any = None) -> Framework:
    torch: Any = sys.modules["torch"]
    wanted = torch.device("cpu") if device is None else device

    names = {
        each: str(each).removeprefix("torch.")
        for each in vars(torch).values()
        if isinstance(each, torch.dtype)
    }

    def describe(tensor: Any) -> tuple[str, tuple[int, ...], tuple[int, ...]]:
        if tensor.device != wanted:
            raise KernelInputError(
                f"A tensor is on `{tensor.device}`; the kernel takes tensors on `{wanted}`."
            )
        return names[tensor.dtype], tuple(tensor.shape), tensor.stride()

    def test(dtype: str, shape: Sequence[int], strides: Sequence[int]) -> Callable[[Any], bool]:
        kind, sizes, steps = getattr(torch, dtype), torch.Size(shape), tuple(strides)
        if steps == row_major(tuple(shape)):
            # Asking for this costs half of comparing strides; a call takes microseconds.
            return lambda tensor: (
                tensor.dtype is kind
                and tensor.shape == sizes
                and tensor.is_contiguous()
                and (tensor.is_cpu if device is None else tensor.device == device)
            )
        return lambda tensor: (
            tensor.dtype is kind
            and tensor.shape == sizes
            and tensor.stride() == steps
            and (tensor.is_cpu if device is None else tensor.device == device)
        )

    def matching(tensor: Any, strides: Sequence[int]) -> Any:
        tensor = torch.as_tensor(tensor)
        if _same_strides(tensor.shape, tensor.stride(), strides):
            return tensor
        made = torch.empty_strided(
            tuple(tensor.shape), tuple(strides), dtype=tensor.dtype, device=wanted
        )
        return made.copy_(tensor.detach())

    def to_numpy(tensor: Any) -> Any:
        tensor = torch.as_tensor(tensor).detach().cpu()
        return (tensor.float() if tensor.dtype is torch.bfloat16 else tensor).numpy()

    return Framework(
        name,
        describe,
        torch.Tensor.data_ptr,
        test,
        # With strides it takes half as long as `torch.empty`.
        lambda shape, dtype: functools.partial(
            torch.empty_strided,
            tuple(shape),
            row_major(tuple(shape)),
            dtype=getattr(torch, dtype),
            device=wanted,
        ),
        matching,
        to_numpy,
        lambda array, dtype: torch.from_numpy(np.asarray(array)).to(wanted, getattr(torch, dtype)),
        device,
    )


def _paddle() -> Framework:
    paddle: Any = sys.modules["paddle"]

    def describe(tensor: Any) -> tuple[str, tuple[int, ...], tuple[int, ...]]:
        if not tensor.place.is_cpu_place():
            raise KernelInputError(
                f"A tensor is on `{tensor.place}`; kernels of the CPU take tensors there."
            )
        return str(tensor.dtype).rpartition(".")[2], tuple(tensor.shape), tuple(tensor.strides)

    def matching(tensor: Any, strides: Sequence[int]) -> Any:
        if _same_strides(tensor.shape, tensor.strides, strides):
            return tensor
        return tensor.contiguous()

    def to_numpy(tensor: Any) -> Any:
        tensor = tensor.detach()
        is_bfloat16 = str(tensor.dtype).endswith("bfloat16")
        return (tensor.astype("float32") if is_bfloat16 else tensor).numpy()

    return Framework(
        "paddle",
        describe,
        lambda tensor: tensor.data_ptr(),
        lambda dtype, shape, strides: (
            lambda tensor: (
                isinstance(tensor, paddle.Tensor)
                and describe(tensor) == (dtype, tuple(shape), tuple(strides))
            )
        ),
        lambda shape, dtype: functools.partial(paddle.empty, list(shape), dtype=dtype),
        matching,
        to_numpy,
        lambda array, dtype: paddle.to_tensor(np.asarray(array)).astype(dtype),
    )


def _same_strides(shape: Sequence[int], have: Sequence[int], want: Sequence[int]) -> bool:
    given = zip(shape, have, want, strict=True)
    return all(size <= 1 or mine == theirs for size, mine, theirs in given)
