"""Dtype, shape, strides and address of NumPy, torch and paddle arrays.

The framework of an array is derived from the module of its class, so no other framework has to be
imported.
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
    """Functions on the arrays of one framework.

    Attributes:
        describe: Return the dtype name, the shape and the strides (in elements) of an array.
        address: Return the address of the first element.
        test: Return a fast predicate for arrays of a dtype name, shape and strides. It may
            raise AttributeError for an object that is not an array.
        allocator: Return a function that allocates an array of a shape and dtype name.
        matching: Return the array itself if its memory holds its values with the requested strides,
            otherwise a copy that does.
        to_numpy: Convert to NumPy; bfloat16 becomes float32.
        from_numpy: Convert a NumPy array to a dtype name.
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
    """GPU of the tensors; None for the CPU."""


def framework_of(arrays: Sequence[Any]) -> Framework:
    """Return the framework of the arrays; numbers and lists count as NumPy arrays.

    Torch tensors on a GPU have a separate `Framework` for each device.

    Raises:
        KernelInputError: the arrays are a mix of torch and paddle tensors.
    """
    roots = {_root(array) for array in arrays} & {"torch", "paddle"}
    if len(roots) > 1:
        raise KernelInputError(
            "The inputs mix torch and paddle tensors. Pass tensors of one framework."
        )
    name = roots.pop() if roots else "numpy"
    if name == "torch":
        for array in arrays:
            if _root(array) == "torch" and array.is_cuda:
                return _cached(f"torch on {array.device}", array.device)
    return _cached(name)


def _root(array: Any) -> str:
    """Return the package whose array type is the class of an array or one of its bases."""
    roots = [base.__module__.partition(".")[0] for base in type(array).__mro__]
    return next((root for root in roots if root in ("torch", "paddle", "numpy")), "")


def _require(array: Any, framework: str) -> None:
    """Raise unless an argument is a tensor of a framework."""
    if _root(array) != framework:
        raise KernelInputError(
            f"An argument has the type `{type(array).__name__}`, but the other arguments are "
            f"{framework} tensors. Convert it."
        )


_frameworks: dict[str, Framework] = {}


def _cached(name: str, device: Any = None) -> Framework:
    if name not in _frameworks:
        makers = {"numpy": _numpy, "torch": _torch, "paddle": _paddle}
        framework = makers[name]() if device is None else _torch(name, device)
        _frameworks[name] = framework
    return _frameworks[name]


def _numpy() -> Framework:
    def describe(array: Any) -> tuple[str, tuple[int, ...], tuple[int, ...]]:
        try:
            array = np.asarray(array)
        except (TypeError, ValueError, MemoryError) as error:
            raise KernelInputError(
                f"An input of the type `{type(array).__name__}` is not an array: {error}. Pass a "
                "NumPy array."
            ) from error
        steps = tuple(stride // array.itemsize for stride in array.strides)
        return array.dtype.name, array.shape, steps

    def matching(array: Any, strides: Sequence[int]) -> Any:
        array = np.asarray(array)
        have = [stride // array.itemsize for stride in array.strides]
        if _same_strides(array.shape, have, strides):
            return array
        size = 1 + sum((n - 1) * s for n, s in zip(array.shape, strides, strict=True))
        buffer = np.empty(size, array.dtype)
        steps = [stride * array.itemsize for stride in strides]
        view = np.lib.stride_tricks.as_strided(buffer, array.shape, steps)
        view[...] = array
        return view

    def test(dtype: str, shape: Sequence[int], strides: Sequence[int]) -> Callable[[Any], bool]:
        kind, sizes = _numpy_dtype(dtype), tuple(shape)
        steps = tuple(stride * kind.itemsize for stride in strides)
        return lambda array: (
            type(array) is np.ndarray
            and array.dtype == kind
            and array.shape == sizes
            and array.strides == steps
        )

    def allocator(shape: Sequence[int], dtype: str) -> Callable[[], Any]:
        return functools.partial(np.empty, tuple(shape), _numpy_dtype(dtype))

    return Framework(
        "numpy",
        describe,
        lambda array: array.__array_interface__["data"][0],
        test,
        allocator,
        matching,
        lambda array: _widened(np.asarray(array)),
        lambda array, dtype: array.astype(_numpy_dtype(dtype), copy=False),
    )


def _numpy_dtype(name: str) -> np.dtype[Any]:
    """Return a NumPy dtype by name; that of bfloat16 comes from the package `ml_dtypes`."""
    if name != "bfloat16":
        return np.dtype(name)
    try:
        import ml_dtypes
    except ImportError as error:
        raise KernelInputError(
            "NumPy has no bfloat16. Install the package `ml_dtypes`, or pass torch tensors."
        ) from error
    return np.dtype(ml_dtypes.bfloat16)


def _widened(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    return array.astype(np.float32) if array.dtype.name == "bfloat16" else array


def _torch(name: str = "torch", device: Any = None) -> Framework:
    torch: Any = sys.modules["torch"]
    expected_device = torch.device("cpu") if device is None else device

    names = {
        dtype: str(dtype).removeprefix("torch.")
        for dtype in vars(torch).values()
        if isinstance(dtype, torch.dtype)
    }

    def describe(tensor: Any) -> tuple[str, tuple[int, ...], tuple[int, ...]]:
        _require(tensor, "torch")
        if tensor.device != expected_device:
            raise KernelInputError(
                f"A tensor is on `{tensor.device}`; the kernel takes tensors on "
                f"`{expected_device}`. Move it there."
            )
        if tensor.layout != torch.strided:
            raise KernelInputError(
                f"A tensor has the layout `{tensor.layout}`; the kernel takes dense tensors. Call "
                "`.to_dense()` on it."
            )
        return names[tensor.dtype], tuple(tensor.shape), tensor.stride()

    def test(dtype: str, shape: Sequence[int], strides: Sequence[int]) -> Callable[[Any], bool]:
        kind, sizes, steps = getattr(torch, dtype), torch.Size(shape), tuple(strides)
        if steps == row_major(tuple(shape)):
            # `is_contiguous` takes half as long as comparing strides; a call takes microseconds.
            return lambda tensor: (
                tensor.dtype is kind
                and tensor.shape == sizes
                and tensor.is_contiguous()
                and not tensor.is_neg()
                and (tensor.is_cpu if device is None else tensor.device == device)
            )
        return lambda tensor: (
            tensor.dtype is kind
            and tensor.shape == sizes
            and tensor.stride() == steps
            and not tensor.is_neg()
            and (tensor.is_cpu if device is None else tensor.device == device)
        )

    def matching(tensor: Any, strides: Sequence[int]) -> Any:
        tensor = torch.as_tensor(tensor).resolve_neg()  # its memory holds the negated values
        if _same_strides(tensor.shape, tensor.stride(), strides):
            return tensor
        copy = torch.empty_strided(
            tuple(tensor.shape), tuple(strides), dtype=tensor.dtype, device=expected_device
        )
        return copy.copy_(tensor.detach())

    def to_numpy(tensor: Any) -> Any:
        tensor = torch.as_tensor(tensor).detach().resolve_neg().cpu()
        return (tensor.float() if tensor.dtype is torch.bfloat16 else tensor).numpy()

    return Framework(
        name,
        describe,
        torch.Tensor.data_ptr,
        test,
        # `torch.empty_strided` takes half as long as `torch.empty`.
        lambda shape, dtype: functools.partial(
            torch.empty_strided,
            tuple(shape),
            row_major(tuple(shape)),
            dtype=getattr(torch, dtype),
            device=expected_device,
        ),
        matching,
        to_numpy,
        lambda array, dtype: torch.from_numpy(np.asarray(array)).to(
            expected_device, getattr(torch, dtype)
        ),
        device,
    )


def _paddle() -> Framework:
    paddle: Any = sys.modules["paddle"]

    def describe(tensor: Any) -> tuple[str, tuple[int, ...], tuple[int, ...]]:
        _require(tensor, "paddle")
        if not tensor.place.is_cpu_place():
            raise KernelInputError(
                f"A tensor is on `{tensor.place}`; the kernel takes CPU tensors. Call `.cpu()` on "
                "it."
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
    dimensions = zip(shape, have, want, strict=True)
    return all(size <= 1 or mine == theirs for size, mine, theirs in dimensions)
