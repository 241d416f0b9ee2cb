"""Memory of the live values of a graph, counted by storage."""

from __future__ import annotations

import types
import weakref
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import torch

from .forms import Form, Scalar, Storage

_STAND_INS = (Form, Scalar)
_LARGE_LIST, _ITEM_BYTES = 1000, 40
"""Lists with more items count as memory: 8 bytes per reference and 32 per Python number."""


def tensors_in(result: Any) -> Iterator[Any]:
    """Yield the tensors in a result of nested tuples, lists and dictionaries.

    During a walk, tensors may be `Form`s or `Scalar`s.
    """
    if type(result) in _STAND_INS or isinstance(result, torch.Tensor):
        yield result
    elif isinstance(result, tuple | list):
        for item in result:
            yield from tensors_in(item)
    elif isinstance(result, dict):
        for item in result.values():
            yield from tensors_in(item)


class StorageWatch:
    """Counts live storages as an allocator would, including those created inside operators.

    A storage counts from the call that creates it until its last tensor is freed. `live_bytes`
    starts with existing memory such as inputs; `call_peak_bytes` is the peak since its last reset.
    """

    def __init__(self) -> None:
        self.live_bytes = 0
        self.peak_bytes = 0
        self.call_peak_bytes = 0
        self._known: dict[int, int] = {}

    def begin(self, live_bytes: int, tensors: Iterable[torch.Tensor]) -> None:
        """Register tensors that stay alive and take `live_bytes` in total."""
        self.live_bytes = self.peak_bytes = live_bytes
        for tensor in tensors:
            for key, _ in _storages(tensor):
                self._known[key] = 0

    def see(self, result: Any) -> None:
        """Count new storages in the result of a call."""
        for tensor in tensors_in(result):
            try:
                storage = tensor.untyped_storage()
            except (RuntimeError, NotImplementedError):  # batched and sparse tensors
                continue
            key = storage._cdata
            num_bytes = storage.nbytes()
            if key in self._known or not isinstance(num_bytes, int):
                continue
            self._known[key] = num_bytes
            self.live_bytes += num_bytes
            weakref.finalize(storage, self._forget, key).atexit = False
        self.reach(0)

    def reach(self, more_bytes: int) -> None:
        """Update the peaks for a moment with `more_bytes` of additional memory."""
        self.call_peak_bytes = max(self.call_peak_bytes, self.live_bytes + more_bytes)
        self.peak_bytes = max(self.peak_bytes, self.call_peak_bytes)

    def _forget(self, key: int) -> None:
        self.live_bytes -= self._known.pop(key, 0)


class LiveMemory:
    """Live storages, each counted once however many values view it.

    `storages` maps storage addresses of fake tensors to the `Storage` of their form. A view whose
    sizes are known only at run time stays a fake tensor but shares the memory of a form.
    """

    def __init__(self, storages: Mapping[int, Storage] | None = None) -> None:
        self.known = {} if storages is None else storages
        self.live_bytes = 0
        self.peak_bytes = 0
        self.total_bytes = 0
        self.users: dict[int, int] = {}
        self.held: dict[int, tuple[tuple[int, int], ...]] = {}

    def copy(self) -> LiveMemory:
        """Return an independent copy."""
        duplicate = LiveMemory(self.known)
        duplicate.live_bytes, duplicate.peak_bytes = self.live_bytes, self.peak_bytes
        duplicate.total_bytes = self.total_bytes
        duplicate.users, duplicate.held = dict(self.users), dict(self.held)
        return duplicate

    def hold_forever(self, value: Any) -> None:
        """Register the storages of an input without counting them, so that views add nothing."""
        for key, _ in _storages(value, self.known):
            self.users[key] = self.users.get(key, 0) + 1

    def hold(self, index: int, value: Any) -> None:
        """Add the storages of value `index` that are not live yet."""
        storages = tuple(_storages(value, self.known))
        for key, num_bytes in storages:
            if key not in self.users:
                self.live_bytes += num_bytes
                self.total_bytes += num_bytes
            self.users[key] = self.users.get(key, 0) + 1
        self.held[index] = storages
        self.peak_bytes = max(self.peak_bytes, self.live_bytes)

    def release(self, index: int) -> None:
        """Release value `index`; a storage is freed with its last value."""
        for key, num_bytes in self.held.pop(index, ()):
            self.users[key] -= 1
            if self.users[key] == 0:
                del self.users[key]
                self.live_bytes -= num_bytes


def storage_keys(value: Any, storages: Mapping[int, Storage]) -> list[int]:
    """Return a key for the memory of each tensor in a value; equal keys mean shared memory."""
    return [key for key, _ in _storages(value, storages)]


def _storages(
    value: Any, storages: Mapping[int, Storage] = types.MappingProxyType({})
) -> Iterable[tuple[int, int]]:
    if type(value) in _STAND_INS:
        return ((value.storage.key, value.storage.num_bytes),)
    return _all_storages(value, storages)


def _all_storages(value: Any, storages: Mapping[int, Storage]) -> Iterator[tuple[int, int]]:
    if isinstance(value, tuple | list) and len(value) > _LARGE_LIST:
        yield id(value), _ITEM_BYTES * len(value)
    for tensor in tensors_in(value):
        if type(tensor) in _STAND_INS:
            yield tensor.storage.key, tensor.storage.num_bytes
            continue
        try:
            storage = tensor.untyped_storage()
            num_bytes = storage.nbytes()
            key = storage._cdata
            if (of_form := storages.get(key)) is not None:
                key, num_bytes = of_form.key, of_form.num_bytes
        except (RuntimeError, NotImplementedError):  # batched and sparse tensors have no storage
            num_bytes = tensor.numel() * tensor.element_size()
            key = id(tensor)
        yield key, num_bytes if isinstance(num_bytes, int) else 0
