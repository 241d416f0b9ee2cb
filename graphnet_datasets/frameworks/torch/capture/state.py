"""Snapshots of the state that a module call may change, for restoring it afterwards.

A snapshot covers the tensors, containers and objects reachable from the module and its arguments,
and the random generators of torch, NumPy and Python. Effects outside the process (files,
connections) cannot be undone.
"""

from __future__ import annotations

import collections
import contextlib
import dataclasses
import logging
import random
import types
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np
import torch
from torch._subclasses.fake_tensor import FakeTensor, unset_fake_temporarily
from torch.nn.parameter import UninitializedTensorMixin  # pyright: ignore

_MAX_WEIGHT_BYTES = 2**26
"""Parameters and gradients are copied only if their total size is at most this many bytes."""

_OPAQUE = (
    types.ModuleType, types.BuiltinFunctionType, types.CodeType, logging.Logger, property, range,
    str, bytes, int, float, complex, bool, type(None), torch.dtype, torch.device, torch.Size,
    torch.storage.TypedStorage, torch.storage.UntypedStorage, torch._ops.OpOverload,
    torch._ops.OpOverloadPacket,
)  # fmt: skip
"""Types that a call cannot change, or that belong to the whole process."""

_PLAIN = (
    int, float, complex, str, bytes, type(None), list, dict, set, collections.deque, torch.Tensor,
    np.ndarray, torch.Generator, random.Random, np.random.Generator, np.random.RandomState,
)  # fmt: skip
"""Types of globals and class attributes that are restored."""

_CONSTANTS = (int, float, complex, str, bytes)

Restore = Callable[[], object]


@dataclasses.dataclass(frozen=True)
class _TensorState:
    """The memory and metadata of a tensor at one time; `contents` is None if not copied."""

    tensor: torch.Tensor
    alias: torch.Tensor
    version: int | None
    grad: torch.Tensor | None
    requires_grad: bool
    contents: torch.UntypedStorage | None

    def restore(self) -> None:
        tensor, alias = self.tensor, self.alias
        is_moved = (
            tensor.data_ptr() != alias.data_ptr()
            or tensor.shape != alias.shape
            or tensor.stride() != alias.stride()
        )
        with torch.inference_mode(tensor.is_inference()):
            if is_moved:
                tensor.data = alias
            if self.contents is not None:
                storage = tensor.untyped_storage()
                if storage.nbytes() != self.contents.nbytes():
                    storage.resize_(self.contents.nbytes())
                storage.copy_(self.contents)
            if tensor.is_leaf and tensor.requires_grad != self.requires_grad:
                tensor.requires_grad_(self.requires_grad)
            if tensor.is_leaf and tensor.grad is not self.grad:
                tensor.grad = self.grad
        if self.version is not None and tensor._version != self.version:
            # Autograd checks versions, and the restored contents belong to this version.
            set_versions = torch._C._autograd._unsafe_set_version_counter  # pyright: ignore
            set_versions((tensor,), (self.version,))


class State:
    """A snapshot of a module, the arguments of a call and the random generators.

    >>> module, x = torch.nn.BatchNorm1d(2), torch.ones(3, 2)
    >>> before = State(module, x)
    >>> outputs = module(x)
    >>> before.restore()
    >>> module.num_batches_tracked.item()
    0
    """

    @unset_fake_temporarily()
    def __init__(self, *roots: Any) -> None:
        self._tensors: list[_TensorState] = []
        self._objects: list[tuple[Any, Restore]] = []
        self._values: list[tuple[Any, Any]] = []
        self._seen: dict[int, Any] = {}
        self._storages: dict[int, torch.UntypedStorage] = {}
        self._pending: list[Any] = list(roots)
        self.is_lazy = False
        weights = _weights_of(roots)
        self._copies_weights = _num_bytes(weights.values()) <= _MAX_WEIGHT_BYTES
        self._weights = weights
        while self._pending:
            self._visit(self._pending.pop())
        self._generators = _generator_states()

    @property
    def tensors(self) -> list[torch.Tensor]:
        """All reachable tensors."""
        return [state.tensor for state in self._tensors]

    @unset_fake_temporarily()
    def contents(self, position: int) -> torch.Tensor:
        """Return the copy of a tensor, which must have been copied."""
        state = self._tensors[position]
        assert state.contents is not None  # noqa: S101 - the caller's
        alias = state.alias
        copy = torch.empty(0, dtype=alias.dtype, device=alias.device)
        copy.set_(state.contents, alias.storage_offset(), alias.shape, alias.stride())
        return copy

    def restore(self) -> None:
        """Restore the entire snapshot."""
        self.restore_objects()
        self.restore_tensors()

    @unset_fake_temporarily()
    def restore_tensors(self) -> None:
        """Restore tensors and random generators, but not Python objects."""
        for state in self._tensors:
            state.restore()
        for restore in self._generators:
            restore()

    def restore_objects(self) -> None:
        """Restore containers and attributes of objects."""
        for _, restore in self._objects:
            restore()

    def has_same_objects(self, other: State) -> bool:
        """Return whether containers and attributes hold the same objects as in another snapshot."""
        return len(self._values) == len(other._values) and all(
            container is other_container and _same(items, other_items)
            for (container, items), (other_container, other_items) in zip(
                self._values, other._values, strict=True
            )
        )

    @unset_fake_temporarily()
    def changed_tensors(self, other: State) -> list[int]:
        """Return the indices of tensors whose bytes differ from those in `other`."""
        other_states = {id(state.tensor): state for state in other._tensors}
        return [
            position
            for position, state in enumerate(self._tensors)
            if id(state.tensor) in other_states
            and not _same_contents(state.contents, other_states[id(state.tensor)].contents)
        ]

    # Walking

    def _visit(self, value: Any) -> None:
        if isinstance(value, _OPAQUE) or id(value) in self._seen:
            return
        self._seen[id(value)] = value
        if isinstance(value, torch.Tensor):
            self._add_tensor(value)
        elif isinstance(value, dict):
            items = _items_of(value)
            self._add_items(value, items, _fill_dict)
            self._pending += [*items.keys(), *items.values()]
            self._add_attributes(value)
        elif isinstance(value, list | collections.deque):
            elements = _elements_of(value)
            self._add_items(value, elements, _fill_list)
            self._pending += elements
            self._add_attributes(value)
        elif isinstance(value, set):
            self._add_items(value, set(set.__iter__(value)), _fill_set)
        elif isinstance(value, tuple | frozenset):
            self._pending += value
            self._add_attributes(value)
        elif isinstance(value, np.ndarray):
            self._add_array(value)
        elif isinstance(value, type):
            self._add_class(value)
        elif isinstance(value, types.FunctionType):
            self._add_function(value)
        elif isinstance(value, types.MethodType):
            self._pending += [value.__self__, value.__func__]
        elif not self._add_generator(value):
            self._add_attributes(value)
            self._pending.append(type(value))

    def _add_items(self, value: Any, items: Any, fill: Callable[[Any, Any], None]) -> None:
        self._values.append((value, items))
        self._objects.append((value, lambda: fill(value, items)))

    def _add_attributes(self, value: Any) -> None:
        attributes = getattr(value, "__dict__", None)
        if type(attributes) is dict:
            self._visit(attributes)
        for kind in type(value).__mro__:
            names = vars(kind).get("__slots__", ())
            for name in (names,) if isinstance(names, str) else names:
                slot = vars(kind).get(name)
                if not isinstance(slot, types.MemberDescriptorType):
                    continue
                try:
                    content = slot.__get__(value)
                except AttributeError:
                    continue
                self._values.append((value, [content]))
                self._objects.append(
                    (value, lambda slot=slot, content=content: slot.__set__(value, content))
                )
                self._pending.append(content)

    def _add_class(self, kind: type) -> None:
        """Add the data attributes of a model's class, and the globals used by its methods."""
        if kind.__module__.partition(".")[0] in ("torch", "builtins", "numpy", "collections"):
            return
        for name, attribute in list(vars(kind).items()):
            if isinstance(attribute, types.FunctionType):
                self._pending.append(attribute)
            elif type(attribute) in _PLAIN and not name.startswith("__"):
                self._values.append((kind, [attribute]))
                self._objects.append(
                    (
                        kind,
                        lambda name=name, attribute=attribute: _set_in_class(kind, name, attribute),
                    )
                )
                self._pending.append(attribute)
        self._pending += kind.__bases__

    def _add_function(self, function: types.FunctionType) -> None:
        if function.__module__ and function.__module__.partition(".")[0] in ("torch", "numpy"):
            return
        self._pending += [function.__dict__, *(function.__defaults__ or ())]
        for cell in function.__closure__ or ():
            with contextlib.suppress(ValueError):  # an empty cell
                item = cell.cell_contents
                self._values.append((cell, [item]))
                self._objects.append(
                    (
                        cell,
                        lambda cell=cell, contents=item: setattr(cell, "cell_contents", contents),
                    )
                )
                self._pending.append(item)
        space = function.__globals__
        for name in function.__code__.co_names:
            item = space.get(name)
            if type(item) in _PLAIN and name in space and not name.startswith("__"):
                self._values.append((space, [item]))
                self._objects.append(
                    (space, lambda name=name, item=item: space.__setitem__(name, item))
                )
                self._pending.append(item)

    def _add_array(self, array: np.ndarray) -> None:
        if array.dtype.hasobject or not array.flags.writeable:
            return
        copy = array.copy()
        self._objects.append((array, lambda: np.copyto(array, copy)))

    def _add_generator(self, value: Any) -> bool:
        if isinstance(value, torch.Generator):
            state = value.get_state()
            self._objects.append((value, lambda: value.set_state(state)))
        elif isinstance(value, random.Random):
            inner = value.getstate()
            self._objects.append((value, lambda: value.setstate(inner)))
        elif isinstance(value, np.random.Generator):
            bits: Any = value.bit_generator
            saved_state = bits.state
            self._objects.append((value, lambda: setattr(bits, "state", saved_state)))
        elif isinstance(value, np.random.RandomState):
            legacy = value.get_state()
            self._objects.append((value, lambda: value.set_state(legacy)))
        else:
            return False
        return True

    def _add_tensor(self, tensor: torch.Tensor) -> None:
        if isinstance(tensor, UninitializedTensorMixin):
            self.is_lazy = True
            return
        if not _has_memory(tensor):
            return
        with torch.no_grad():
            alias = tensor.data
        grad = tensor.grad if tensor.is_leaf else None
        if grad is not None:
            self._pending.append(grad)
        storage = tensor.untyped_storage()
        contents = None
        if self._copies_weights or id(tensor) not in self._weights:
            if storage._cdata not in self._storages:
                self._storages[storage._cdata] = storage.clone()
            contents = self._storages[storage._cdata]
        version = None if tensor.is_inference() else tensor._version
        self._tensors.append(
            _TensorState(tensor, alias, version, grad, tensor.requires_grad, contents)
        )


def _weights_of(roots: Iterable[Any]) -> dict[int, torch.Tensor]:
    """Return the parameters of root modules and their gradients, by `id`."""
    weights: dict[int, torch.Tensor] = {}
    for root in roots:
        if isinstance(root, torch.nn.Module):
            for parameter in root.parameters():
                weights[id(parameter)] = parameter
                if parameter.is_leaf and parameter.grad is not None:
                    weights[id(parameter.grad)] = parameter.grad
    return weights


def _num_bytes(tensors: Iterable[torch.Tensor]) -> int:
    return sum(
        tensor.numel() * tensor.element_size()
        for tensor in tensors
        if not isinstance(tensor, UninitializedTensorMixin)
    )


def _has_memory(tensor: torch.Tensor) -> bool:
    return (
        tensor.layout is torch.strided
        and not tensor.is_meta
        and not tensor.is_nested
        and not isinstance(tensor, FakeTensor)
        and not torch._C._functorch.is_functorch_wrapped_tensor(tensor)  # pyright: ignore
    )


def _as_bytes(storage: torch.UntypedStorage) -> torch.Tensor:
    return torch.empty(0, dtype=torch.uint8, device=storage.device).set_(storage)


def _same_contents(
    contents: torch.UntypedStorage | None, others: torch.UntypedStorage | None
) -> bool:
    if contents is None or others is None:
        return True  # memory that was not copied cannot be compared
    return contents.nbytes() == others.nbytes() and torch.equal(
        _as_bytes(contents), _as_bytes(others)
    )


def _same(items: Any, others: Any) -> bool:
    if isinstance(items, Mapping) and isinstance(others, Mapping):
        return list(items) == list(others) and all(map(_is_same, items.values(), others.values()))
    if isinstance(items, set):
        return items == others
    return len(items) == len(others) and all(map(_is_same, items, others))


def _is_same(value: Any, other: Any) -> bool:
    if value is other:
        return True
    return type(value) is type(other) and isinstance(value, _CONSTANTS) and value == other


# Subclasses of containers may override reading and writing, so the following functions call the
# methods of the base class.


def _items_of(mapping: dict[Any, Any]) -> dict[Any, Any]:
    keys: Any = _dict_base(mapping).__iter__(mapping)
    return {key: dict.__getitem__(mapping, key) for key in keys}


def _elements_of(value: Any) -> list[Any]:
    base: Any = list if isinstance(value, list) else collections.deque
    return list(base.__iter__(value))


def _dict_base(mapping: dict[Any, Any]) -> Any:
    return collections.OrderedDict if isinstance(mapping, collections.OrderedDict) else dict


def _fill_dict(target: dict[Any, Any], items: dict[Any, Any]) -> None:
    if not _same(_items_of(target), items):
        base = _dict_base(target)
        base.clear(target)
        for key, value in items.items():
            base.__setitem__(target, key, value)


def _fill_list(target: Any, items: list[Any]) -> None:
    if not _same(_elements_of(target), items):
        base: Any = list if isinstance(target, list) else collections.deque
        base.clear(target)
        base.extend(target, items)


def _fill_set(target: set[Any], items: set[Any]) -> None:
    if set(set.__iter__(target)) != items:
        set.clear(target)
        set.update(target, items)


def _set_in_class(kind: type, name: str, value: Any) -> None:
    if vars(kind).get(name) is not value:
        setattr(kind, name, value)


def _generator_states() -> list[Restore]:
    """Return one function per global random generator that restores its state."""
    torch_state, numpy_state = torch.get_rng_state(), np.random.get_state()
    python_state = random.getstate()
    restores: list[Restore] = [
        lambda: torch.set_rng_state(torch_state),
        lambda: np.random.set_state(numpy_state),
        lambda: random.setstate(python_state),
    ]
    if torch.cuda.is_available() and torch.cuda.is_initialized():
        cuda_states = torch.cuda.get_rng_state_all()
        restores.append(lambda: torch.cuda.set_rng_state_all(cuda_states))
    return restores
