"""Which values of a graph have a size that only a run tells, found while it is walked.

A value is unsettled where its shape, or the number that it is, follows from elements, or where the
sample's own record stood in for it; and so is all that is made of one. What the walk adds up for
those is what the sample claims, so that a module looks at them again when it runs (`run_checks`).
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
"""Bits of a number that only a run tells, by what it is made of."""

ELEMENTS_PER_S = 10**10
"""More than any processor gets through; a view may have more elements than memory has bytes."""

DATA_SIZED = OperatorNames("data_sized")


class Unsettled:
    """What only a run of a sample tells, taken note of operator by operator."""

    def __init__(self, sample: Sample, time_limit_s: float, memory: LiveMemory) -> None:
        self._sample = sample
        self._values: set[int] = set()
        self._bits: dict[int, int] = {}
        self._numbers = _python_values(sample)
        self._entries = entries_of(sample)
        self._most_elements = int(min(max(time_limit_s, 1.0) * ELEMENTS_PER_S, 2**62))
        self.positions: set[int] = set()
        self._memory = memory
        self._settled: LiveMemory | None = None  # all that is alive, as long as all is settled

    @property
    def settled_bytes(self) -> int:
        """The peak of what is settled."""
        return (self._settled or self._memory).peak_bytes

    def release(self, index: int) -> None:
        """Give up value `index`."""
        if self._settled is not None:
            self._settled.release(index)

    def _part(self) -> None:
        """Count what is settled by itself from here on."""
        if self._settled is None:
            self._settled = self._memory.copy()

    def is_number(self, index: int) -> bool:
        """Tell whether a value is a number of Python or a list of them, whatever is recorded."""
        return index in self._numbers

    def note(self, position: int, op: Op, result: Any, is_told: bool) -> None:
        """Take note of what an operator gave, before it is held as alive.

        `is_told` says that the record stood in for it.

        Raises:
            MemoryLimitError: a number may grow without end.
        """
        index = len(self._sample.inputs) + position
        self._check_bits(index, op, result)
        operator = self._entries[position]
        if operator.is_state:
            self._part()
            return
        is_settled = not self._values or self._values.isdisjoint(self._sample.op_refs[position])
        if not is_told and is_settled and not _is_open(result):
            if self._settled is not None:
                self._settled.hold(index, result)
            if not data_sized(operator):
                return
        else:
            self._part()
            self._values.add(index)
        self.positions.add(position)

    def _check_bits(self, index: int, op: Op, result: Any) -> None:
        """Bound integers whose value only a run tells by what they are made of."""
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
                f"multiplies integers until they may have more than {MAX_UNKNOWN_BITS} bits."
            )

    def is_within(self, form: Form) -> bool:
        """Tell whether a form has no more elements than `check_elements` lets pass."""
        return form.numel() <= self._most_elements

    def check_elements(self, result: Any, where: str) -> None:
        """Compare the elements of tensors with what can be gone through in the time that there is.

        `where` begins the message.

        Raises:
            TimeLimitError: a tensor has more, as a view of few elements may.
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
"""Of the entries of the table, which are as many as there are operators."""


def data_sized(operator: Operator) -> bool:
    """Tell whether elements of an operand may say how large a result is, without a bound.

    >>> from ..operators import lookup
    >>> data_sized(lookup("torch.bincount")), data_sized(lookup("torch.relu"))
    (True, False)
    """
    name = operator.name
    found = _DATA_SIZED_BY_NAME.get(name)
    if found is None:
        found = _DATA_SIZED_BY_NAME[name] = operator.packet_name in DATA_SIZED
    return found


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
    """Return the values that are numbers of Python, or lists of them that a tensor was made into.

    What such a sample records of their shapes has no meaning.
    """
    found = set(find_scalars(sample))
    for position, (op, operator) in enumerate(zip(sample.ops, entries_of(sample), strict=True)):
        is_of_python = operator.name.startswith(("operator.", "builtins.", "math."))
        if operator.name == "torch.Tensor.tolist":
            is_found = custom_operator_of(sample, op) is None
        elif is_of_python and custom_operator_of(sample, op) is None:
            refs = list(iterate_refs(op.args))
            is_found = bool(refs) and found.issuperset(refs)
        else:
            continue
        if is_found:
            found.add(len(sample.inputs) + position)
    return frozenset(found)
