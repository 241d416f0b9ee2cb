"""Values whose size or value is known only after a run, collected during a walk.

A value is unsettled if its shape or number depends on tensor elements, if its recorded shape was
used as a fallback, or if it is computed from an unsettled value. Their memory is counted from the
sample's recorded shapes, so `run_checks` checks these values again at run time.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch

from ....errors import MemoryLimitError, TimeLimitError
from ....operators import OperatorNames
from ....sample import Op, Sample
from ....sample.arguments import iterate_refs
from ..building.entries import custom_operator_of, entries_of
from ..building.scalars import find_scalars
from ..operators import Operator
from .costly_calls import MAX_BITS
from .forms import Form
from .live_memory import LiveMemory, tensors_in
from .unknown import Unknown

MAX_UNKNOWN_BITS = 1024
"""Maximum number of bits of an integer that is known only at run time."""

ELEMENTS_PER_S = 10**10
"""Faster than any processor; a view can have more elements than the memory has bytes."""

DATA_SIZED = OperatorNames("data_sized")


class Unsettled:
    """Tracks unsettled values op by op."""

    def __init__(self, sample: Sample, time_limit_s: float, memory: LiveMemory) -> None:
        self._sample = sample
        self._values: set[int] = set()
        self._bits: dict[int, int] = {}
        self._numbers = _python_values(sample)
        self._entries = entries_of(sample)
        self._most_elements = int(min(max(time_limit_s, 1.0) * ELEMENTS_PER_S, 2**62))
        self.positions: set[int] = set()
        self._memory = memory
        self._settled: LiveMemory | None = None  # None while every value is settled

    @property
    def settled_bytes(self) -> int:
        """The peak memory of settled values."""
        return (self._settled or self._memory).peak_bytes

    def release(self, index: int) -> None:
        """Release value `index`."""
        if self._settled is not None:
            self._settled.release(index)

    def _part(self) -> None:
        """Count settled memory separately from here on."""
        if self._settled is None:
            self._settled = self._memory.copy()

    def reach(self, position: int) -> bool:
        """Return whether an operand of an operator is unsettled."""
        return not self._values.isdisjoint(self._sample.op_refs[position])

    def is_number(self, index: int) -> bool:
        """Return whether a value is a Python number or a list of Python numbers."""
        return index in self._numbers

    def note(self, position: int, op: Op, result: Any, is_recorded: bool) -> None:
        """Record the result of an op before it is counted as live.

        `is_recorded` means that the result was taken from the sample's recorded shapes.

        Raises:
            MemoryLimitError: If an integer may grow without limit.
        """
        index = len(self._sample.inputs) + position
        self._check_bits(index, op, result)
        operator = self._entries[position]
        if operator.is_state:
            self._part()
            return
        is_settled = not self._values or self._values.isdisjoint(self._sample.op_refs[position])
        if not is_recorded and is_settled and not _is_open(result):
            if self._settled is not None:
                self._settled.hold(index, result)
            if not data_sized(operator):
                return
        else:
            self._part()
            self._values.add(index)
        self.positions.add(position)

    def _check_bits(self, index: int, op: Op, result: Any) -> None:
        """Bound the bits of a run-time integer by the bits of its operands."""
        is_number = isinstance(result, torch.SymInt)
        if not is_number and not (isinstance(result, Unknown) and index in self._numbers):
            return
        operands = [self._bits.get(ref, MAX_BITS) for ref in iterate_refs(op.args)] or [MAX_BITS]
        if op.target.endswith(("mul", "pow", "lshift")):
            self._bits[index] = max(sum(operands), 2 * operands[0])
        else:
            self._bits[index] = max(operands) + 1
        if self._bits[index] > MAX_UNKNOWN_BITS:
            raise MemoryLimitError(
                f"The call may compute an integer of more than {MAX_UNKNOWN_BITS} bits. Skip the "
                "sample."
            )

    def is_within(self, form: Form) -> bool:
        """Return whether a form has few enough elements to pass `check_elements`."""
        return form.numel() <= self._most_elements

    def check_elements(self, result: Any, where: str) -> None:
        """Check that the elements of tensors can be processed within the time limit.

        `where` is the subject of the error message.

        Raises:
            TimeLimitError: If a tensor is too large, which views of little memory can be.
        """
        for tensor in tensors_in(result):
            try:
                count = tensor.numel()
            except RuntimeError:
                continue
            if type(count) is int and count > self._most_elements:
                raise TimeLimitError(
                    f"{where} gives a tensor of {count:,} elements, which nothing goes through "
                    "within `time_limit_s`."
                )


_DATA_SIZED_BY_NAME: dict[str, bool] = {}
"""Cache of `data_sized`, bounded by the number of operators in the table."""


def data_sized(operator: Operator) -> bool:
    """Return whether elements of an operand may determine the result size, without a bound.

    >>> from ..operators import lookup
    >>> data_sized(lookup("torch.bincount")), data_sized(lookup("torch.relu"))
    (True, False)
    """
    name = operator.name
    is_data_sized = _DATA_SIZED_BY_NAME.get(name)
    if is_data_sized is None:
        is_data_sized = _DATA_SIZED_BY_NAME[name] = operator.packet_name in DATA_SIZED
    return is_data_sized


def _is_open(result: Any) -> bool:
    if type(result) is Form:
        return False
    if isinstance(result, Unknown | torch.SymInt | torch.SymFloat | torch.SymBool):
        return True
    if isinstance(result, tuple | list):
        return any(map(_is_open, result))
    if isinstance(result, dict):
        return any(map(_is_open, result.values()))
    if isinstance(result, torch.Tensor):
        return any(isinstance(size, torch.SymInt) for size in _sizes(result))
    return False


def _sizes(tensor: torch.Tensor) -> Iterator[Any]:
    yield from tensor.shape
    if tensor.layout is torch.strided:
        yield from tensor.stride()


def _python_values(sample: Sample) -> frozenset[int]:
    """Return the indices of Python numbers, and of lists of numbers that tensors were converted to.

    The shapes recorded for these values are meaningless.
    """
    python_values = set(find_scalars(sample))
    for position, (op, operator) in enumerate(zip(sample.ops, entries_of(sample), strict=True)):
        is_of_python = operator.name.startswith(("operator.", "builtins.", "math."))
        if operator.name == "torch.Tensor.tolist":
            is_python_value = custom_operator_of(sample, op) is None
        elif is_of_python and custom_operator_of(sample, op) is None:
            refs = list(iterate_refs(op.args))
            is_python_value = bool(refs) and python_values.issuperset(refs)
        else:
            continue
        if is_python_value:
            python_values.add(len(sample.inputs) + position)
    return frozenset(python_values)
