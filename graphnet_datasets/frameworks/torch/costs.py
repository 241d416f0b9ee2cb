"""Costs of a torch sample, counted on fake tensors: operations, memory traffic and memory."""

from __future__ import annotations

import contextlib
import dataclasses
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from ...operators import OperatorNames
from ...sample import Sample
from .shapes import Footprint, Observer, measure_footprint
from .walking.flop_formulas import count_flops, is_view
from .walking.live_memory import StorageWatch, tensors_in

_ONLY_WRITES = OperatorNames("only_writes")

_READS_A_PART = OperatorNames("reads_part")

_WRITES_A_PART = OperatorNames("writes_part")

_MOVES_NOTHING = OperatorNames("moves_nothing")


@dataclasses.dataclass(frozen=True)
class Walked:
    """Costs of a sample: its footprint, and sums over all ATen calls.

    `flops_coverage` is the share of operators whose calls all have a formula. The footprint's
    `peak_bytes` includes temporary tensors inside composite operators. `is_sized` is false if
    tensor sizes depend on data, in which case the costs are meaningless.
    """

    footprint: Footprint
    flops: int
    flops_coverage: float
    bytes_moved: int
    is_sized: bool = True


def measure(sample: Sample, sizes: Mapping[str, int] | None = None) -> Walked:
    """Return the costs of a sample for the given symbol sizes.

    Raises:
        UnknownOperatorError, MaterializeError: As in `shapes.measure_footprint`.

    >>> from graphnet_datasets.sample.arguments import Ref
    >>> from graphnet_datasets.sample import Input, Op, Value
    >>> tensor = Input("input", Value("float32", (4, 4)))
    >>> sample = Sample("example/product", "torch", "other", (tensor,),
    ...     (Op("torch.matmul", (Ref(0), Ref(0))),), Ref(1))
    >>> walked = measure(sample)
    >>> walked.flops, walked.bytes_moved, walked.footprint.peak_bytes
    (128, 192, 128)
    """
    counter = _Counter()
    footprint = measure_footprint(sample, sizes, observer=counter)
    num_known = sample.num_ops - len(counter.unknown)
    coverage = num_known / sample.num_ops if sample.num_ops else 1.0
    peak_bytes = max(footprint.peak_bytes, counter.storages.peak_bytes)
    footprint = dataclasses.replace(footprint, peak_bytes=peak_bytes)
    is_sized = not any(
        value.dtype is not None and sample.shape_of(value, sizes) is None
        for position in counter.unknown
        for value in sample.ops[position].results or ()
    )
    return Walked(footprint, counter.flops, coverage, counter.bytes_moved, is_sized)


class _Counter(TorchDispatchMode, Observer):
    """Observes every ATen call of the walk, below autograd and composite operators."""

    def __init__(self) -> None:
        super().__init__()
        self.flops = 0
        self.bytes_moved = 0
        self.unknown: set[int] = set()
        self.input_bytes = 0
        self.storages = StorageWatch()
        self._position = -1
        self._before = (0, 0, 0)
        self._is_repeating = False

    def start(self, input_bytes: int, inputs: Sequence[Any]) -> None:
        """Record the inputs, which stay in memory for the whole walk."""
        self.input_bytes = input_bytes
        self.storages.begin(input_bytes, tensors_in(list(inputs)))

    def begin(self, position: int) -> None:
        """Record the position of the next operator."""
        self._position = position
        self._before = (self.flops, self.bytes_moved, self.storages.live_bytes)
        self.storages.call_peak_bytes = self.storages.live_bytes

    def fail(self) -> None:
        """Record that the operator could not run on fake tensors."""
        self.unknown.add(self._position)

    def noted(self) -> tuple[int, int, int, bool]:
        """Return operations, bytes moved, working memory, and whether a cost is unknown."""
        flops, bytes_moved, live_bytes = self._before
        return (
            self.flops - flops,
            self.bytes_moved - bytes_moved,
            self.storages.call_peak_bytes - live_bytes,
            self._position in self.unknown,
        )

    def fork(self) -> _Counter:
        """Return a counter for the walk over a body."""
        return _Counter()

    def join(self, bodies: Sequence[Any], repeats: int | None) -> tuple[int, int, int, bool]:
        """Return the costs of the more expensive body, or of all bodies `repeats` times."""
        costs = [
            (body.flops, body.bytes_moved, body.storages.peak_bytes - body.input_bytes)
            for body in bodies
        ]
        is_unknown = any(body.unknown for body in bodies)
        if repeats is None:
            return (*max(costs), is_unknown)
        flops, bytes_moved, peaks = zip(*costs, strict=True)
        return repeats * sum(flops), repeats * sum(bytes_moved), max(peaks), is_unknown

    def extrapolate(self, *noted: Any) -> tuple[int, int, int, bool]:
        """Return the remaining costs of a loop with constant cost per step (see `Observer`)."""
        first, both, walked, steps = noted
        short, long = walked

        def at_all(batch: int, two: int) -> int:
            return batch + (steps - short) * (two - batch) // (long - short)

        sums = [
            at_all(size, sum_ - size) - sum_ for size, sum_ in zip(first[:2], both, strict=False)
        ]
        working_bytes = at_all(first[2], max(first[2], both[2]))
        return sums[0], sums[1], working_bytes, first[3] or both[3]

    @contextlib.contextmanager
    def repeat(self, noted: tuple[int, int, int, bool]) -> Iterator[None]:
        """Add the costs of an earlier, identical call; results are created in this context."""
        flops, bytes_moved, working_bytes, is_unknown = noted
        self.flops += flops
        self.bytes_moved += bytes_moved
        self.storages.reach(working_bytes)
        if is_unknown:
            self.unknown.add(self._position)
        self._is_repeating = True
        try:
            yield
        finally:
            self._is_repeating = False

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        kwargs = kwargs or {}
        result = func(*args, **kwargs)
        if func is torch.ops.prim.device.default:
            return result  # fake tensors query their own device
        self.storages.see(result)
        if self._is_repeating:
            return result
        if isinstance(func, torch._ops.OpOverload):
            flops = count_flops(func, args, result)
            try:
                num_bytes = _bytes_moved(func, args, kwargs, result)
            except _SizeUnknownError:
                num_bytes = None
            if flops is None or num_bytes is None:
                self.unknown.add(self._position)
            self.flops += flops or 0
            self.bytes_moved += num_bytes or 0
        else:
            self.unknown.add(self._position)
        return result


class _SizeUnknownError(Exception):
    """The size of a tensor is known only at run time."""


def _bytes_moved(
    func: torch._ops.OpOverload, args: tuple[Any, ...], kwargs: Mapping[str, Any], result: Any
) -> int:
    """Return the bytes that one call reads and writes, counting each operand once."""
    name = func._schema.name.partition("::")[2]
    if is_view(func) or name in _MOVES_NOTHING:
        return 0
    read = [tensor for arg in args for tensor in tensors_in(arg)]
    read += [tensor for key, arg in kwargs.items() if key != "out" for tensor in tensors_in(arg)]
    results = list(tensors_in(result))
    if name in _READS_A_PART or name in _ONLY_WRITES:
        rest, first = read[1:], [] if name in _ONLY_WRITES else results
        return _size(rest) + _size(first) + _size(results)
    if name in _WRITES_A_PART:
        return 2 * _size(read[-1:]) + _size(read[1:])
    return _size(read) + _size(results)


def _size(tensors: list[torch.Tensor]) -> int:
    return sum(map(_bytes_of, tensors))


def _bytes_of(tensor: torch.Tensor) -> int:
    """Return the bytes of a tensor; expanded elements count once, because they stay in cache."""
    if any(type(size) is not int for size in tensor.shape):
        raise _SizeUnknownError
    if tensor.layout is not torch.strided or 0 in tensor.shape:
        return tensor.numel() * tensor.element_size()
    sizes = [size for size, stride in zip(tensor.shape, tensor.stride(), strict=True) if stride]
    return math.prod(sizes) * tensor.element_size()
