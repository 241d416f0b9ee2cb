"""Checks of data-dependent sizes while a materialized graph runs.

Most sizes are known before a run. The others depend on elements (`bincount`, a number returned by
`item`, and results computed from them), and the sizes recorded in the sample may be false. A check
runs before each operator with such sizes: it computes the memory that the operator would need for
its actual operands, without allocating it.
"""

from __future__ import annotations

import contextlib
import dataclasses
import threading
import warnings
import weakref
from collections.abc import Hashable, Iterator, Mapping, Sequence
from typing import Any

import torch
from torch.utils import _pytree as pytree

from ....errors import GraphNetError, MemoryLimitError, TimeLimitError
from ....sample import Sample
from ....sample.arguments import iterate_refs
from ...deadline import Deadline
from ..operators import Operator, lookup, resolve
from ..walking.confined_fakes import ConfinedFakeMode
from ..walking.costly_calls import MAX_BITS, check_call, join_place
from ..walking.expanded_operands import copied_bytes
from ..walking.live_memory import tensors_in
from ..walking.unknown import refuse_overflow
from ..walking.unsettled import data_sized
from ..walking.working_memory import workspace_bytes
from .entries import custom_operator_of

NAME = "size_checks"
"""Name of the submodule of a materialized module that holds its checks, if it has any."""

_MOST_REMEMBERED = 4096
_MOST_GROWTH = 24
"""Maximum result bytes per element of `unique` and similar operators: a value and two indices."""
_FINDERS = frozenset({"nonzero", "nonzero_numpy", "argwhere", "where"})


@dataclasses.dataclass(frozen=True)
class _Call:
    operator: Operator
    refs: frozenset[int]
    position: int
    value: int
    last_use: int


class _Live:
    """Memory of the unsettled values of one run."""

    def __init__(self) -> None:
        self.num_bytes = 0
        self._promised: dict[int, tuple[int, int]] = {}
        self._known: set[int] = set()

    def promise(self, call: _Call, num_bytes: int) -> None:
        """Count the expected result of a call until it is seen or has passed its last use."""
        self._promised[call.value] = (call.last_use, num_bytes)

    def promised(self) -> int:
        """Return the bytes of expected results that have not been seen."""
        return sum(num_bytes for _, num_bytes in self._promised.values())

    def see(self, call: _Call, operands: Any) -> None:
        """Count the storages of a call's operands until they are freed."""
        self._promised = {
            value: promise
            for value, promise in self._promised.items()
            if promise[0] >= call.position and value not in call.refs
        }
        for tensor in tensors_in(operands):
            with contextlib.suppress(RuntimeError, NotImplementedError):
                storage = tensor.untyped_storage()
                key, size = storage._cdata, storage.nbytes()
                if key not in self._known:
                    self._known.add(key)
                    self.num_bytes += size
                    weakref.finalize(storage, self._forget, key, size).atexit = False

    def _forget(self, key: int, size: int) -> None:
        self._known.discard(key)
        self.num_bytes -= size


class SizeChecks(torch.nn.Module):
    """Module that is called before each operator whose sizes are known only at run time.

    Raises:
        MemoryLimitError: If the operator would exceed the memory limit.
        TimeLimitError: If the operator would exceed the time limit.
    """

    def __init__(
        self,
        sample: Sample,
        positions: frozenset[int],
        room_bytes: int,
        limit_bytes: int,
        time_limit_s: float | None,
    ) -> None:
        super().__init__()
        self._sample_id = sample.id
        self._room_bytes, self._limit_bytes = room_bytes, limit_bytes
        self._time_limit_s = time_limit_s
        self._calls = {
            position: _Call(
                lookup(op.target),
                frozenset(iterate_refs((op.args, op.kwargs))),
                position,
                len(sample.inputs) + position,
                sample.last_uses[len(sample.inputs) + position],
            )
            for position, op in enumerate(sample.ops)
            if position in positions and custom_operator_of(sample, op) is None
        }
        self._first = min(self._calls, default=-1)
        self._found: dict[Hashable, int] = {}

    @property
    def positions(self) -> tuple[int, ...]:
        """Positions of the checked operators in the sample."""
        return tuple(self._calls)

    def forward(self, position: int, args: Sequence[Any], kwargs: Mapping[str, Any]) -> None:
        """Check one operator before it is called with these operands."""
        if torch.compiler.is_compiling() or torch._C._get_tracing_state() is not None:
            return
        live = _of_this_thread(self, is_new=position == self._first)
        call = self._calls[position]
        try:
            self._check(call, args, kwargs, live)
        except (MemoryLimitError, TimeLimitError) as error:
            place = f"Op {position} (`{call.operator.name}`) of `{self._sample_id}`"
            raise type(error)(join_place(place, error)) from error

    def _check(
        self, call: _Call, args: Sequence[Any], kwargs: Mapping[str, Any], live: _Live
    ) -> None:
        operands = (args, kwargs)
        live.see(call, operands)
        if any(type(leaf) is int and leaf.bit_length() > MAX_BITS for leaf in _leaves(operands)):
            raise MemoryLimitError(
                f"Expected integers of at most {MAX_BITS} bits. Skip the sample."
            )
        check_call(call.operator, args, kwargs)
        needed = self._needed_bytes(call.operator, args, kwargs)
        values = [*args, *kwargs.values()]
        buffers = copied_bytes(call.operator, values)
        buffers += workspace_bytes(call.operator, values, needed)
        total = live.num_bytes + live.promised() + needed + buffers
        if total > self._room_bytes:
            raise MemoryLimitError(
                f"The call would need {total / 1e9:,.3f} GB for tensors of data-dependent size in "
                f"addition to {(self._limit_bytes - self._room_bytes) / 1e9:,.3f} GB; the limit is "
                f"{self._limit_bytes / 1e9:,.3f} GB. Raise `memory_limit_bytes`, or skip the "
                "sample."
            )
        live.promise(call, needed)

    def _needed_bytes(
        self, operator: Operator, args: Sequence[Any], kwargs: Mapping[str, Any]
    ) -> int:
        if data_sized(operator):
            num_bytes = _told_by_elements(operator.packet_name, args, kwargs)
            if num_bytes is not None:
                return num_bytes
        key = _key(operator, args, kwargs)
        if key is not None and key in self._found:
            return self._found[key]
        needed = _fake_bytes(operator, args, kwargs, self._time_limit_s, self._sample_id)
        if needed is None:
            needed = _most_bytes(operator, args, kwargs)
        if key is not None:
            if len(self._found) >= _MOST_REMEMBERED:
                self._found.clear()
            self._found[key] = needed
        return needed


_threads = threading.local()


def _of_this_thread(checks: SizeChecks, *, is_new: bool) -> _Live:
    """Return the memory record of this thread's current run of `checks`."""
    record = getattr(_threads, "live", None)
    if is_new or record is None or record[0]() is not checks:
        record = _threads.live = (weakref.ref(checks), _Live())
    return record[1]


def _leaves(operands: Any) -> Iterator[Any]:
    if isinstance(operands, tuple | list):
        for item in operands:
            yield from _leaves(item)
    elif isinstance(operands, dict):
        for item in operands.values():
            yield from _leaves(item)
    elif isinstance(operands, slice):
        yield from (operands.start, operands.stop, operands.step)
    else:
        yield operands


def _key(operator: Operator, args: Any, kwargs: Any) -> Hashable | None:
    """Return a key that determines the result size, or None if elements may affect it."""
    parts: list[Any] = [operator.name]
    for leaf in _leaves((args, kwargs)):
        if isinstance(leaf, torch.Tensor):
            if leaf.numel() == 1:
                return None
            parts.append((leaf.dtype, tuple(leaf.shape), leaf.layout))
        elif isinstance(leaf, int | float | complex | str | type(None) | type(Ellipsis)):
            parts.append((type(leaf), leaf))
        else:
            parts.append(str(leaf)[:100])
    return tuple(parts)


def _told_by_elements(name: str, args: Sequence[Any], kwargs: Mapping[str, Any]) -> int | None:
    """Return the result bytes determined by elements of an operand, or None if they are not."""
    names = {
        "bincount": ("input", "weights", "minlength"),
        "one_hot": ("tensor", "num_classes"),
    }[name]
    arguments = dict(zip(names, args, strict=False)) | dict(kwargs)
    first = arguments.get(names[0], arguments.get("self"))
    if not isinstance(first, torch.Tensor):
        return None
    length = int(_largest(first)) + 1
    if name == "bincount":
        fixed = arguments.get("minlength") or 0
        return 8 * max(length, fixed if isinstance(fixed, int) else 0)
    fixed = arguments.get("num_classes", -1)
    return None if type(fixed) is int and fixed > 0 else 8 * first.numel() * max(length, 0)


def _largest(tensor: torch.Tensor) -> float:
    return max(0.0, float(tensor.detach().max())) if tensor.numel() else 0.0


def _fake_bytes(
    operator: Operator,
    args: Sequence[Any],
    kwargs: Mapping[str, Any],
    time_limit_s: float | None,
    sample_id: str,
) -> int | None:
    """Return the bytes of an operator's result computed on fake tensors, or None if that fails."""
    leaves, structure = pytree.tree_flatten((tuple(args), dict(kwargs)))
    if not any(isinstance(leaf, int | torch.Tensor | slice) for leaf in leaves):
        return 0
    mode = ConfinedFakeMode(Deadline(time_limit_s), f"Finding the sizes of `{sample_id}`")
    with warnings.catch_warnings(), torch.no_grad():
        warnings.simplefilter("ignore")
        try:
            fakes = [
                _fake(leaf, mode) if isinstance(leaf, torch.Tensor) else leaf for leaf in leaves
            ]
            keys = {tensor.untyped_storage()._cdata for tensor in tensors_in(fakes)}
            fake_args, fake_kwargs = pytree.tree_unflatten(fakes, structure)
            with mode:
                result = resolve(operator)(*fake_args, **fake_kwargs)
            return _bytes_of(result, keys)
        except GraphNetError:
            raise
        except Exception as error:  # torch raises various exceptions for unknown elements
            refuse_overflow(error)
            return None


def _fake(tensor: torch.Tensor, mode: ConfinedFakeMode) -> torch.Tensor:
    plain = tensor.detach()
    if plain.numel() == 1:  # operators may use its element as a number
        constant = plain.cpu() if plain.dim() == 0 else plain
        return mode.fake_tensor_converter.from_real_tensor(
            mode, constant, make_constant=constant.device.type == "cpu"
        )
    with mode:
        return torch.empty_strided(
            tuple(plain.shape), plain.stride(), dtype=plain.dtype, device=plain.device
        )


def _bytes_of(result: Any, keys: set[int]) -> int | None:
    """Return the bytes of storages of a result that are not shared with operands."""
    total = 0
    seen = set(keys)
    for tensor in tensors_in(result):
        storage = tensor.untyped_storage()
        num_bytes = storage.nbytes()
        if type(num_bytes) is not int:
            return None
        if storage._cdata not in seen:
            seen.add(storage._cdata)
            total += num_bytes
    return total


def _most_bytes(operator: Operator, args: Any, kwargs: Any) -> int:
    """Return an upper bound of the result bytes of operators that select elements."""
    tensors = list(tensors_in((args, kwargs)))
    count = sum(tensor.numel() for tensor in tensors)
    if operator.packet_name in _FINDERS:
        return 8 * count * max((tensor.dim() for tensor in tensors), default=1)
    return sum(tensor.numel() * tensor.element_size() for tensor in tensors) + _MOST_GROWTH * count
