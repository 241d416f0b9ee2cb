"""Runs a Paddle sample one operator at a time on the CPU."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

import paddle

from ...errors import CalibrationError
from ...inputs import Mode
from ...sample import Sample
from ..stepping import Stepper as BaseStepper
from .plan import Plan, Step
from .tensors import make_input

NARROW = (paddle.float16, paddle.bfloat16)
_NO_KERNEL = re.compile(r"kernel_key\.backend\(\) == Backend::CPU|is not registered")
"""Matches Paddle's errors for operators without a CPU kernel for the given dtypes."""

_ABSENT = object()


class Stepper(BaseStepper):
    """Runs single operators of a plan; slot i holds value i of the sample.

    With `emulates`, operators without a 16-bit kernel are computed in float32 and their results are
    rounded.
    """

    def __init__(self, plan: Plan, sample: Sample, seed: int, emulates: bool = False) -> None:
        super().__init__(sample, seed)
        paddle.seed(seed)
        self.emulates = emulates
        num_values = len(sample.inputs) + sample.num_ops
        self.slots: list[Any] = [*[_ABSENT] * num_values, *plan.template[num_values:]]
        self.groups: dict[int, list[Step]] = {}
        group: list[Step] = []
        first = len(sample.inputs)
        for step in plan.steps:
            group.append(step)
            if first <= step.own < first + sample.num_ops:
                self.groups[step.own - first] = group
                group = []

    def run(self, position: int) -> None:
        """Run the operator at `position`, even if it has run before, and keep its result.

        Raises:
            CalibrationError: the operator fails.
        """
        with self.with_operands(position):
            self._keep(position)

    def _keep(self, position: int) -> None:
        try:
            for call, arguments, own, _ in self.groups[position]:
                self.slots[own] = self._call(call, arguments(self.slots))
        except Exception as error:
            op = self.sample.ops[position]
            lines = str(error).strip().splitlines() or [""]
            raise CalibrationError(
                f"Op {position} (`{op.target}`) of `{self.sample.id}` fails when it is run: "
                f"{type(error).__name__}: {lines[-1][:300]}",
                operator=op.target,
            ) from error

    def _call(self, call: Callable[..., Any], arguments: tuple[Any, ...]) -> Any:
        try:
            return call(*arguments)
        except Exception as error:
            narrow = next(
                (tensor.dtype for tensor in _tensors(arguments) if tensor.dtype in NARROW), None
            )
            if not self.emulates or narrow is None or not _NO_KERNEL.search(str(error)):
                raise
        wide = call(*_convert(arguments, NARROW, paddle.float32))
        return _convert(wide, (paddle.float32,), narrow)

    def holds(self, value: int) -> bool:
        """Return whether a value is available."""
        return self.slots[value] is not _ABSENT

    def draw(self, sample: Sample, index: int, seed: int, mode: Mode = "replay") -> None:
        """Generate input `index` from its statistics in `sample`, and keep it."""
        self.slots[index] = make_input(sample, index, seed, mode)

    def discard(self, value: int) -> None:
        """Free a value, if it is available."""
        self.slots[value] = _ABSENT

    def tensor(self, value: int) -> paddle.Tensor | None:
        """Return a value, or None if it is not a tensor or has been freed."""
        if value < len(self.sample.inputs) and not self.holds(value):
            self.make(value)
        slot_value = self.slots[value]
        return slot_value if isinstance(slot_value, paddle.Tensor) else None

    def is_finite(self, value: int) -> bool:
        """Return whether all elements of a value are finite; true for values that are not
        floating-point."""
        tensor = self.tensor(value)
        if tensor is None or not tensor.is_floating_point():
            return True
        return bool(paddle.isfinite(tensor).all())

    def count_not_finite(self, value: int) -> tuple[int, int]:
        """Return the number of NaN and of infinite elements of a value."""
        tensor = self.tensor(value)
        if tensor is None or self.is_finite(value):
            return 0, 0
        return int(paddle.isnan(tensor).sum()), int(paddle.isinf(tensor).sum())


def _tensors(values: Any) -> Iterator[paddle.Tensor]:
    if isinstance(values, paddle.Tensor):
        yield values
    elif isinstance(values, list | tuple):
        for item in values:
            yield from _tensors(item)


def _convert(values: Any, formats: tuple[Any, ...], wanted: Any) -> Any:
    """Return nested values with tensors of the dtypes `formats` cast to `wanted`."""
    if isinstance(values, paddle.Tensor):
        return values.astype(wanted) if values.dtype in formats else values
    if isinstance(values, list | tuple):
        return type(values)(_convert(item, formats, wanted) for item in values)
    return values
