"""Replays of captured graphs on their original tensors, and comparison of results."""

from __future__ import annotations

import collections
import contextlib
import ctypes
import enum
import itertools
import math
import types
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import isfinite  # the name in `torch` may be replaced during a capture
from torch._subclasses.fake_tensor import FakeTensor

from ....errors import CaptureError
from ....sample import Sample
from ..building.plan import Plan
from ..building.region_state import restored_if_it_fails
from ..materialize import make_plan
from ..tensors import storage_elements
from .convert import Conversion

_TOLERANCES: Mapping[torch.dtype, float] = {
    torch.float64: 1e-9, torch.complex128: 1e-9, torch.float32: 1e-5, torch.complex64: 1e-5,
    torch.float16: 4e-3, torch.bfloat16: 3e-2,
}  # fmt: skip
"""Accepted differences relative to the largest magnitude of an output: about 100 units in the last
place for float32 and 4 for the 16-bit types. The same kernels run on the same tensors, so most
outputs are bit-equal; a fused layer and its parts may round differently."""

_LEAVES = (torch.Tensor, np.ndarray, np.generic, bool, int, float, complex)

_OPAQUE = (
    str, bytes, type(None), type, enum.Enum, torch.nn.Module, types.ModuleType, types.FunctionType,
    types.MethodType, types.BuiltinFunctionType, torch.Generator, torch.dtype, torch.device,
)  # fmt: skip
"""Types whose attributes are not outputs of a call."""

_COMPRESSED = (torch.sparse_csr, torch.sparse_csc, torch.sparse_bsr, torch.sparse_bsc)

_COARSEST = 0.25
"""The tolerance for 8-bit floating-point types, whose relative precision is 1/8 or 1/4."""


def plan_of(sample: Sample, arguments: Iterable[Any]) -> Plan:
    """Return the plan of a captured sample on the device of its tensors."""
    devices = [argument.device for argument in arguments if isinstance(argument, torch.Tensor)]
    device = next((device for device in devices if device.type != "cpu"), torch.device("cpu"))
    customs = {
        target: _custom_operator(custom.name)
        for target, custom in sample.custom_operators_by_target.items()
    }
    return make_plan(sample, device, customs)


def replay(conversion: Conversion, arguments: Sequence[Any]) -> Any:
    """Run a captured sample on the arguments of the traced graph and return its outputs.

    Raises:
        CaptureError: If the results differ on copies of the arguments.
    """
    inputs = conversion.bind(arguments)
    plan = plan_of(conversion.sample, inputs.values())
    values = list(inputs.values())
    copies = list(map(_apart, values)) if _overlap(values) else []
    generator = torch.get_rng_state()
    with _default_dtype(torch.float32), restored_if_it_fails():
        results = plan.run(list(values))
        if copies:
            after = torch.get_rng_state()
            torch.set_rng_state(generator)
            other_results = plan.run(list(copies))
            torch.set_rng_state(after)
            if first_difference(other_results, keep_leaves(results)):
                raise CaptureError(
                    f"`{conversion.sample.id}` cannot be captured: it writes to a tensor that "
                    "shares memory with another one, but the inputs of a sample are separate "
                    "tensors. Clone one of the two tensors before the call."
                )
    return results


def _overlap(values: Iterable[Any]) -> bool:
    """Return whether two tensors may have a common element."""
    spans = sorted(
        (
            str(tensor.device),
            tensor.data_ptr(),
            tensor.data_ptr()
            + tensor.element_size() * storage_elements(tensor.shape, tensor.stride()),
        )
        for tensor in values
        if isinstance(tensor, torch.Tensor) and tensor.numel()
    )
    return any(
        (device, start) < (other_device, end)
        for (other_device, _, end), (device, start, _) in itertools.pairwise(spans)
    )


def _apart(value: Any) -> Any:
    """Return a copy of a tensor with the same strides."""
    if not isinstance(value, torch.Tensor):
        return value
    copy = torch.empty_strided(value.shape, value.stride(), dtype=value.dtype, device=value.device)
    return copy.copy_(value.detach())


def leaves(value: Any, path: str = "outputs") -> Iterator[tuple[str, Any]]:
    """Yield the tensors, arrays and numbers in nested outputs with their paths.

    Attributes of objects are outputs too, but not those of modules, classes and functions.

    >>> list(leaves({"loss": 1.5, "states": (None, [2])}))
    [("outputs['loss']", 1.5), ("outputs['states'][1][0]", 2)]
    """
    for place, item in walk(value, path):
        if isinstance(item, _LEAVES):
            yield place, item


def walk(value: Any, path: str) -> Iterator[tuple[str, Any]]:
    """Yield a value and all values nested in it with their paths, each container once."""
    pending, seen = [(path, value)], {}
    while pending:
        place, item = pending.pop()
        yield place, item
        if isinstance(item, _LEAVES) or id(item) in seen:
            continue
        seen[id(item)] = item
        pending += [(place + suffix, part) for suffix, part in reversed(list(_parts_of(item)))]


def _parts_of(value: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(value, Mapping):
        for key, item in value.items():
            yield f"[{key!r}]", item
    elif isinstance(value, list | tuple | collections.deque):
        for index, item in enumerate(value):
            yield f"[{index}]", item
    elif not isinstance(value, _OPAQUE):
        names = dict.fromkeys(getattr(value, "__dict__", ()))
        for kind in type(value).__mro__:
            slots = vars(kind).get("__slots__", ())
            names |= dict.fromkeys((slots,) if isinstance(slots, str) else slots)
        for name in names:
            yield f".{name}", getattr(value, name, None)


def keep_leaves(value: Any) -> dict[str, Any]:
    """Return copies of the tensors, arrays and numbers in nested outputs by path."""
    return {path: _copied(leaf) for path, leaf in leaves(value)}


def difference(actual: Any, expected: Any, factor: float = 1.0) -> str:
    """Describe how an output leaf differs from the expected leaf, or return "" if they match.

    `factor` multiplies the accepted difference.

    >>> difference(torch.ones(2), torch.ones(2) + 1e-7)
    ''
    >>> difference(torch.ones(2), torch.tensor([1.0, 1.5]))
    'differs by up to 0.5 (at most 1.5e-05 is accepted)'
    >>> difference(torch.ones(2), torch.ones(3))
    'is float32[2] instead of float32[3]'
    """
    if _kind(actual) != _kind(expected):
        return f"is {_kind(actual)} instead of {_kind(expected)}"
    mine, other = _as_tensor(actual), _as_tensor(expected)
    if mine.numel() == 0 or torch.equal(mine, other):
        return ""
    if not (other.is_floating_point() or other.is_complex()):
        return f"differs in {int((mine != other).sum())} of {other.numel()} elements"
    accepted = factor * _TOLERANCES.get(other.dtype, _COARSEST)
    if other.is_complex():
        mine, other = torch.view_as_real(mine), torch.view_as_real(other)
    mine, other = mine.double(), other.double()
    finite = isfinite(other)
    if not torch.equal(isfinite(mine), finite):
        return "is finite in other places"
    if not torch.equal(mine[~finite].nan_to_num(), other[~finite].nan_to_num()):
        return "has other values that are not finite"
    if not finite.any():
        return ""
    largest = (mine[finite] - other[finite]).abs().max().item()
    limit = accepted * other[finite].abs().max().item()
    if largest <= limit:
        return ""
    return f"differs by up to {largest:.3g} (at most {limit:.3g} is accepted)"


def first_difference(actual: Any, expected: Mapping[str, Any]) -> str:
    """Describe the first difference from the outputs saved by `keep_leaves`, or return ""."""
    mine = dict(leaves(actual))
    if mine.keys() != expected.keys():
        return f"the outputs have {len(mine)} tensors and numbers instead of {len(expected)}"
    for path, leaf in expected.items():
        text = difference(mine[path], leaf)
        if text:
            return f"`{path}` {text}"
    return ""


class Origins:
    """Tracks tensors and arrays from the arguments, the module or a captured graph.

    They are identified by their memory. A known tensor with a newer version, or with other bytes
    where these were recorded, was modified outside the captured graphs.
    """

    def __init__(self, tensors: Iterable[torch.Tensor]) -> None:
        self._versions: dict[int, tuple[int, int | None]] = {}
        self._alive: list[Any] = []
        self._numbers: set[float] = set()
        self.add(tensors)

    def add(self, values: Any, *, with_bytes: bool = False) -> None:
        """Add the tensors and numbers in nested values, with the versions that tensors have now."""
        for _, leaf in leaves(list(values)):
            for key, memory in _memories(leaf):
                # An address may be reused once its memory is freed, so keep the memory alive.
                self._alive.append(memory)
                version, _ = self._versions.get(key, (0, None))
                checksum = _checksum(memory) if with_bytes else None
                self._versions[key] = max(_version(leaf), version), checksum
            if isinstance(leaf, float):
                self._numbers.add(leaf)
            elif isinstance(leaf, torch.Tensor) and _is_number(leaf):
                self._numbers.add(float(leaf.detach()))

    def first_foreign(self, values: Iterable[Any]) -> Any:
        """Return the first tensor or array that was computed or modified elsewhere, or None."""
        for _, leaf in leaves(list(values)):
            for key, memory in _memories(leaf):
                version, checksum = self._versions.get(key, (-1, None))
                if version < _version(leaf):
                    return leaf
                if checksum is not None and checksum != _checksum(memory):
                    return leaf
        return None

    def first_foreign_number(self, values: Iterable[Any]) -> float | None:
        """Return the first floating-point number that no known value has, or None."""
        for _, leaf in leaves(list(values)):
            is_float = isinstance(leaf, float | np.floating) and not math.isnan(leaf)
            if is_float and float(leaf) not in self._numbers:
                return float(leaf)
        return None


def describe(tensor: torch.Tensor | npt.NDArray[Any]) -> str:
    """Return the dtype and shape of a tensor or array as a string.

    >>> describe(torch.ones(2, 3))
    'float32[2, 3]'
    """
    return f"{str(tensor.dtype).removeprefix('torch.')}{list(tensor.shape)}"


def _memories(value: Any) -> list[tuple[int, Any]]:
    """Return keys for the memory of a tensor or array, and objects that keep the memory alive."""
    while isinstance(value, np.ndarray):  # the base of a view of a tensor is the tensor
        if value.dtype.hasobject:
            return []
        if value.base is None:
            return [(id(value), value)]
        value = value.base
    if not isinstance(value, torch.Tensor) or value.numel() == 0:
        return []
    if torch._C._functorch.is_functorch_wrapped_tensor(value):  # pyright: ignore
        return []
    if value.is_nested:
        parts = [value.values()]
    elif value.layout is torch.sparse_coo:
        parts = [value._indices(), value._values()]
    elif value.layout in _COMPRESSED:
        parts = [value.values()]
    else:
        parts = [value] if value.layout is torch.strided else []
    return [(part.untyped_storage()._cdata, part.untyped_storage()) for part in parts]


def _checksum(memory: Any) -> int | None:
    """Return a checksum of the bytes of a storage on the CPU."""
    if not isinstance(memory, torch.UntypedStorage) or memory.device.type != "cpu":
        return None
    # An array of the memory would make the storage of the caller's tensor not resizable.
    return zlib.crc32((ctypes.c_char * memory.nbytes()).from_address(memory.data_ptr()))


def _is_number(tensor: torch.Tensor) -> bool:
    return (
        tensor.numel() == 1
        and tensor.layout is torch.strided
        and tensor.is_floating_point()
        and not isinstance(tensor, FakeTensor)
    )


def _version(value: Any) -> int:
    while isinstance(value, np.ndarray):
        value = value.base
    if not isinstance(value, torch.Tensor) or value.is_inference():
        return 0
    return 0 if isinstance(value, FakeTensor) else value._version


def _copied(leaf: Any) -> Any:
    if isinstance(leaf, torch.Tensor):
        return leaf.detach().clone()
    return leaf.copy() if isinstance(leaf, np.ndarray) else leaf


def _kind(leaf: Any) -> str:
    if isinstance(leaf, torch.Tensor):
        return describe(leaf)
    if isinstance(leaf, np.ndarray):
        return f"an array of {leaf.dtype}{list(leaf.shape)}"
    return f"of type {type(leaf).__name__}"


def _as_tensor(leaf: Any) -> torch.Tensor:
    if isinstance(leaf, np.ndarray):
        leaf = torch.from_numpy(np.ascontiguousarray(leaf))
    elif not isinstance(leaf, torch.Tensor):
        is_inexact = isinstance(leaf, float | complex) and not math.isnan(abs(leaf))
        leaf = torch.tensor(leaf, dtype=_number_dtype(leaf) if is_inexact else None)
    leaf = leaf.detach()
    if leaf.is_quantized:
        leaf = leaf.dequantize()
    if leaf.is_nested:
        leaf = leaf.to_padded_tensor(0.0)
    return leaf if leaf.layout is torch.strided else leaf.to_dense()


def _number_dtype(number: float | complex) -> torch.dtype:
    # Numbers usually come from `item()` on float32 tensors.
    return torch.complex64 if isinstance(number, complex) else torch.float32


def _custom_operator(name: str) -> Any:
    namespace, _, operator = name.partition("::")
    return getattr(getattr(torch.ops, namespace), operator).default


@contextlib.contextmanager
def _default_dtype(dtype: torch.dtype) -> Iterator[None]:
    before = torch.get_default_dtype()
    torch.set_default_dtype(dtype)
    try:
        yield
    finally:
        torch.set_default_dtype(before)
