"""Replays of captured graphs on their original tensors, and comparison of results."""

from __future__ import annotations

import contextlib
import dataclasses
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import torch
from torch._subclasses.fake_tensor import FakeTensor

from ....sample import Sample
from ..building.plan import Plan
from ..building.region_state import restored_if_it_fails
from ..materialize import make_plan
from .convert import Conversion

_TOLERANCES: Mapping[torch.dtype, float] = {
    torch.float64: 1e-9, torch.complex128: 1e-9, torch.float32: 1e-5, torch.complex64: 1e-5,
    torch.float16: 4e-3, torch.bfloat16: 3e-2,
}  # fmt: skip
"""Accepted differences relative to the largest magnitude of an output: about 100 units in the last
place for float32 and 4 for the 16-bit types. The same kernels run on the same tensors, so most
outputs are bit-equal; a fused layer and its parts may round differently."""

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
    """Run a captured sample on the arguments of the traced graph and return its outputs."""
    inputs = conversion.bind(arguments)
    plan = plan_of(conversion.sample, inputs.values())
    with _default_dtype(torch.float32), restored_if_it_fails():
        return plan.run(list(inputs.values()))


def leaves(value: Any, path: str = "outputs") -> Iterator[tuple[str, Any]]:
    """Yield the tensors, arrays and numbers in nested outputs with their paths.

    >>> list(leaves({"loss": 1.5, "states": (None, [2])}))
    [("outputs['loss']", 1.5), ("outputs['states'][1][0]", 2)]
    """
    if isinstance(value, torch.Tensor | np.ndarray | bool | int | float | complex):
        yield path, value
    elif isinstance(value, Mapping):
        for key, item in value.items():
            yield from leaves(item, f"{path}[{key!r}]")
    elif isinstance(value, list | tuple):
        for index, item in enumerate(value):
            yield from leaves(item, f"{path}[{index}]")
    elif dataclasses.is_dataclass(value) and not isinstance(value, type):
        for field in dataclasses.fields(value):
            yield from leaves(getattr(value, field.name, None), f"{path}.{field.name}")


def keep_leaves(value: Any) -> dict[str, Any]:
    """Return copies of the tensors, arrays and numbers in nested outputs by path."""
    return {path: _copied(leaf) for path, leaf in leaves(value)}


def difference(actual: Any, expected: Any) -> str:
    """Describe how an output leaf differs from the expected leaf, or return "" if they match.

    >>> difference(torch.ones(2), torch.ones(2) + 1e-7)
    ''
    >>> difference(torch.ones(2), torch.tensor([1.0, 1.5]))
    'differs by up to 0.5 (at most 1.5e-05 is accepted)'
    >>> difference(torch.ones(2), torch.ones(3))
    'is float32[2] instead of float32[3]'
    """
    if _kind(actual) != _kind(expected):
        return f"is {_kind(actual)} instead of {_kind(expected)}"
    if isinstance(expected, str) or expected is None:
        return ""
    mine, other = _as_tensor(actual), _as_tensor(expected)
    if mine.numel() == 0 or torch.equal(mine, other):
        return ""
    if not (other.is_floating_point() or other.is_complex()):
        return f"differs in {int((mine != other).sum())} of {other.numel()} elements"
    accepted = _TOLERANCES.get(other.dtype, _COARSEST)
    if other.is_complex():
        mine, other = (
            torch.view_as_real(mine),
            torch.view_as_real(other),
        )
    mine, other = mine.double(), other.double()
    finite = torch.isfinite(other)
    if not torch.equal(torch.isfinite(mine), finite):
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
    """Tracks tensors that come from the arguments, the module or a captured graph.

    Tensors are identified by their storage. A known tensor with a newer version was modified
    outside the captured graphs.
    """

    def __init__(self, tensors: Iterable[torch.Tensor]) -> None:
        self._versions: dict[int, int] = {}
        self._alive: list[Any] = []
        self.add(tensors)

    def add(self, values: Any) -> None:
        """Add the tensors in nested values at their current versions."""
        for _, leaf in leaves(list(values)):
            key = _storage_key(leaf)
            if key is not None:
                # An address may be reused once its memory is freed, so keep the storage alive.
                self._alive.append(leaf.untyped_storage())
                self._versions[key] = max(_version(leaf), self._versions.get(key, 0))

    def first_foreign(self, values: Iterable[Any]) -> torch.Tensor | None:
        """Return the first tensor that was computed or modified elsewhere, or None."""
        for _, leaf in leaves(list(values)):
            key = _storage_key(leaf)
            if key is not None and self._versions.get(key, -1) < _version(leaf):
                return leaf
        return None


def describe(tensor: torch.Tensor) -> str:
    """Return the dtype and shape of a tensor as a string.

    >>> describe(torch.ones(2, 3))
    'float32[2, 3]'
    """
    return f"{str(tensor.dtype).removeprefix('torch.')}{list(tensor.shape)}"


def _storage_key(value: Any) -> int | None:
    if not isinstance(value, torch.Tensor) or value.layout is not torch.strided:
        return None
    if value.numel() == 0 or value.is_nested:
        return None
    if torch._C._functorch.is_functorch_wrapped_tensor(value):  # pyright: ignore
        return None
    return value.untyped_storage()._cdata


def _version(tensor: torch.Tensor) -> int:
    return 0 if tensor.is_inference() or isinstance(tensor, FakeTensor) else tensor._version


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
        leaf = torch.tensor(leaf, dtype=None if not is_inexact else _number_dtype(leaf))
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
