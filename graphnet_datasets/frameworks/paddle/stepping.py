"""A sample of paddle, run operator by operator on the CPU."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

import paddle

from ...errors import CalibrationError
from ...sample import Sample
from ..stepping import Stepper as BaseStepper
from .plan import Plan, Step
from .tensors import make_input

NARROW = (paddle.float16, paddle.bfloat16)
_NO_KERNEL = re.compile(r"kernel_key\.backend\(\) == Backend::CPU|is not registered")
"""What paddle says of an operator that has no kernel on the CPU for what it is given."""

_ABSENT = object()


class Stepper(BaseStepper):
    """Runs single operators of a plan; slot i is value i of the sample.

    Where it `emulates`, an operator without a kernel for 16-bit formats is computed in float32, and
    its results are rounded.
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
        """Run operator `position`, once more if it has run, and keep its result.

        Raises:
            CalibrationError: it fails.
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
                (each.dtype for each in _tensors(arguments) if each.dtype in NARROW), None
            )
            if not self.emulates or narrow is None or not _NO_KERNEL.search(str(error)):
                raise
        wide = call(*_convert(arguments, NARROW, paddle.float32))
        return _convert(wide, (paddle.float32,), narrow)

    def holds(self, value: int) -> bool:
        """Tell whether a value is there."""
        return self.slots[value] is not _ABSENT

    def draw(self, sample: Sample, index: int, seed: int) -> None:
        """Make input `index` from the statistics that it has in `sample`, and keep it."""
        self.slots[index] = make_input(sample, index, seed)

    def discard(self, value: int) -> None:
        """Let go of a value, if it is there."""
        self.slots[value] = _ABSENT

    def tensor(self, value: int) -> paddle.Tensor | None:
        """Return a value, None where it is no tensor or has been freed."""
        if value < len(self.sample.inputs) and not self.holds(value):
            self.make(value)
        found = self.slots[value]
        return found if isinstance(found, paddle.Tensor) else None

    def is_finite(self, value: int) -> bool:
        """Tell whether a value is no tensor of floating-point numbers or has finite ones only."""
        tensor = self.tensor(value)
        if tensor is None or not tensor.is_floating_point():
            return True
        return bool(paddle.isfinite(tensor).all())

    def count_not_finite(self, value: int) -> tuple[int, int]:
        """Return how many elements of a value are NaN, and how many are infinite."""
        tensor = self.tensor(value)
        if tensor is None or self.is_finite(value):
            return 0, 0
        return int(paddle.isnan(tensor).sum()), int(paddle.isinf(tensor).sum())


def _tensors(values: Any) -> Iterator[paddle.Tensor]:
    if isinstance(values, paddle.Tensor):
        yield values
    elif isinstance(values, list | tuple):
        for each in values:
            yield from _tensors(each)


def _convert(values: Any, formats: tuple[Any, ...], wanted: Any) -> Any:
    """Return values with their tensors of some formats in another one."""
    if isinstance(values, paddle.Tensor):
        return values.astype(wanted) if values.dtype in formats else values
    if isinstance(values, list | tuple):
        return type(values)(_convert(each, formats, wanted) for each in values)
    return values
