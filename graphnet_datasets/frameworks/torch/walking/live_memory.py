"""The memory that the live values of a graph take, counted by storage."""

from __future__ import annotations

import types
import weakref
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import torch

from .forms import Form, Scalar, Storage

_STAND_INS = (Form, Scalar)
_LARGE_LIST, _ITEM_BYTES = 1000, 40
"""Lists of more items count as memory: 8 bytes for a reference, 32 for a number of Python."""


def tensors_in(result: Any) -> Iterator[Any]:
    """Yield the tensors of a result, which may be nested in tuples, lists and dictionaries.

    In a walk some of them are forms or scalars.
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
    """Counts the storages that are alive, as an allocator would: those inside operators too.

    A storage counts from the call that makes it until its last tensor is gone. `live_bytes` begins
    with what is there already, such as inputs; `call_peak_bytes` is the peak since it was last set.
    """

    def __init__(self) -> None:
        self.live_bytes = 0
        self.peak_bytes = 0
        self.call_peak_bytes = 0
        self._known: dict[int, int] = {}

    def begin(self, live_bytes: int, tensors: Iterable[torch.Tensor]) -> None:
        """Take `tensors` as there for good, in `live_bytes` together."""
        self.live_bytes = self.peak_bytes = live_bytes
        for tensor in tensors:
            for key, _ in _storages(tensor):
                self._known[key] = 0

    def see(self, result: Any) -> None:
        """Count what a call gave."""
        for tensor in tensors_in(result):
            try:
                storage = tensor.untyped_storage()
            except (RuntimeError, NotImplementedError):  # batched and sparse tensors have none
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
        """Count a moment at which so many bytes more are alive."""
        self.call_peak_bytes = max(self.call_peak_bytes, self.live_bytes + more_bytes)
        self.peak_bytes = max(self.peak_bytes, self.call_peak_bytes)

    def _forget(self, key: int) -> None:
        self.live_bytes -= self._known.pop(key, 0)


class LiveMemory:
    """Live storages, each counted once however many values view it.

    `known` has the storages of forms by the addresses of those of their fake tensors: a view whose
    sizes only a run tells stays a fake tensor, and is in the memory of a form all the same.
    """

    def __init__(self, known: Mapping[int, Storage] | None = None) -> None:
        self.known = {} if known is None else known
        self.live_bytes = 0
        self.peak_bytes = 0
        self.total_bytes = 0
        self.users: dict[int, int] = {}
        self.held: dict[int, tuple[tuple[int, int], ...]] = {}

    def copy(self) -> LiveMemory:
        """Return another one that holds the same."""
        other = LiveMemory(self.known)
        other.live_bytes, other.peak_bytes = self.live_bytes, self.peak_bytes
        other.total_bytes = self.total_bytes
        other.users, other.held = dict(self.users), dict(self.held)
        return other

    def hold_forever(self, value: Any) -> None:
        """Count the storages of an input as taken, so that views of it add nothing."""
        for key, _ in _storages(value, self.known):
            self.users[key] = self.users.get(key, 0) + 1

    def hold(self, index: int, value: Any) -> None:
        """Add what value `index` takes beyond the storages that are already held."""
        storages = tuple(_storages(value, self.known))
        for key, num_bytes in storages:
            if key not in self.users:
                self.live_bytes += num_bytes
                self.total_bytes += num_bytes
            self.users[key] = self.users.get(key, 0) + 1
        self.held[index] = storages
        self.peak_bytes = max(self.peak_bytes, self.live_bytes)

    def release(self, index: int) -> None:
        """Give up value `index`; a storage goes with the last value that views it."""
        for key, num_bytes in self.held.pop(index, ()):
            self.users[key] -= 1
            if self.users[key] == 0:
                del self.users[key]
                self.live_bytes -= num_bytes


def _storages(
    value: Any, known: Mapping[int, Storage] = types.MappingProxyType({})
) -> Iterable[tuple[int, int]]:
    if type(value) in _STAND_INS:
        return ((value.storage.key, value.storage.num_bytes),)
    return _all_storages(value, known)


def _all_storages(value: Any, known: Mapping[int, Storage]) -> Iterator[tuple[int, int]]:
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
            if (of_form := known.get(key)) is not None:
                key, num_bytes = of_form.key, of_form.num_bytes
        except (RuntimeError, NotImplementedError):  # batched and sparse tensors have no storage
            num_bytes = tensor.numel() * tensor.element_size()
            key = id(tensor)
        yield key, num_bytes if isinstance(num_bytes, int) else 0
