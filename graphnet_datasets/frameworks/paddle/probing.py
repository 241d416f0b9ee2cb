"""Shape inference for a Paddle sample at several sizes in a single pass.

Each point has its own program, which is never executed. Operators that were tried and rejected stay
in the program, unused.
"""

from __future__ import annotations

import contextlib
import dataclasses
import warnings
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import paddle
from paddle.base.dygraph.base import switch_to_static_graph

from ...errors import GraphNetError, TimeLimitError
from ...inputs import make_array
from ...sample import Op, Sample
from ...sample.arguments import iterate_refs
from ..deadline import Deadline
from ..probing import Outcome
from .calls import check_lists
from .checked import is_checked
from .operators import lookup
from .plan import Plan
from .shapes import WITHOUT_RULES, Unknown, describe, is_tensor, too_large
from .tensors import dtype_of


@contextlib.contextmanager
def probe(
    sample: Sample,
    points: Sequence[Mapping[str, int]],
    *,
    time_limit_s: float | None = None,
    allow_unchecked_operators: bool = False,
) -> Iterator[Prober]:
    """Yield a prober for `points`; see `frameworks.probing.probe`."""
    deadline = Deadline(time_limit_s)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield Prober(sample, points, deadline, allow_unchecked_operators)


class Prober:
    """A prober with one program per point; see `frameworks.probing.Prober`."""

    can_rewind = True

    def __init__(
        self,
        sample: Sample,
        points: Sequence[Mapping[str, int]],
        deadline: Deadline,
        allow_unchecked_operators: bool,
    ) -> None:
        self.num_inputs = len(sample.inputs)
        self._deadline = deadline
        self._what = f"Finding the shapes of `{sample.id}`"
        self._points = [_Point(sample, sizes, allow_unchecked_operators) for sizes in points]
        self._begin()

    @switch_to_static_graph
    def _begin(self) -> None:
        for point in self._points:
            point.begin()

    @switch_to_static_graph
    def call(self, ops: Sequence[Op]) -> tuple[Outcome, ...]:
        """Call an operator at all points."""
        self._deadline.check(self._what)
        first = self._points[0].call(ops[0])
        if first.kind == "failed":
            return (Outcome("unknown", error=first.error, result=Unknown()),) * len(ops)
        others = zip(self._points[1:], ops[1:], strict=True)
        return (first, *(point.call(op) for point, op in others))

    def keep(self, outcomes: Sequence[Outcome]) -> None:
        """Store the outcomes as the values of the next operator."""
        for point, outcome in zip(self._points, outcomes, strict=True):
            point.values.append(outcome.result)

    def rewind(self, num_ops: int) -> int:
        """Forget all operators after the first `num_ops`."""
        for point in self._points:
            del point.values[self.num_inputs + num_ops :]
        return num_ops


class _Point(Plan):
    """A program with the values of a graph at the sizes of one point."""

    def __init__(
        self, sample: Sample, sizes: Mapping[str, int], allow_unchecked_operators: bool
    ) -> None:
        super().__init__(
            dataclasses.replace(sample, ops=(), outputs=()),
            is_guarded=not allow_unchecked_operators,
        )
        self.sizes = sizes
        self.allow_unchecked_operators = allow_unchecked_operators
        self.program = paddle.static.Program()
        self.startup = paddle.static.Program()
        self.values: list[Any] = []

    def begin(self) -> None:
        """Declare the inputs in the program."""
        with paddle.static.program_guard(self.program, self.startup):
            self.values = [self._input(index) for index in range(self.num_inputs)]

    def _input(self, index: int) -> Any:
        sample_input = self.sample.inputs[index]
        if sample_input.role in ("symbol", "scalar"):
            return make_array(self.sample, index, sizes=self.sizes).item()
        shape = self.sample.shape_of(sample_input.value, self.sizes) or ()
        dtype = dtype_of(str(sample_input.value.dtype))
        return paddle.static.data(self.sample.input_names[index], list(shape), dtype)

    def call(self, op: Op) -> Outcome:
        """Call an operator and return its outcome; the caller decides whether to keep it."""
        if op.target in WITHOUT_RULES or not (
            self.allow_unchecked_operators or is_checked(lookup(op.target))
        ):
            return Outcome("unknown", result=Unknown())
        if any(isinstance(self.values[ref], Unknown) for ref in iterate_refs((op.args, op.kwargs))):
            return Outcome("unknown", result=Unknown())
        own = len(self.values)
        self.template = [None] * (own + 1)
        self.steps = []
        self._core = set()
        try:
            self._add(op, own, ())
            slots = [*self.values, *self.template[own:]]
            with paddle.static.program_guard(self.program, self.startup):
                for call, arguments, place, _ in self.steps:
                    call_arguments = arguments(slots)
                    if place in self._core:
                        check_lists(call_arguments)
                    slots[place] = call(*call_arguments)
            result = slots[own]
        except TimeLimitError:
            raise
        except GraphNetError as error:
            return Outcome("failed", error=str(error), result=Unknown())
        except Exception as error:
            lines = [line for line in str(error).strip().splitlines() if line.strip()]
            reason = next((line for line in lines if "Error: " in line), (lines or [""])[-1])
            return Outcome("failed", error=reason.strip()[:300], result=Unknown())
        return _describe(result)


def _describe(result: Any) -> Outcome:
    if type(result) in (bool, int, float):
        return Outcome("known", number=result, result=result)
    error = too_large(result)
    if error is not None:
        return Outcome("failed", error=str(error), result=Unknown())
    tensors = result if isinstance(result, list | tuple) else [result]
    values = tuple(describe(tensor) for tensor in tensors if is_tensor(tensor))
    if any(value.shape is None for value in values):
        return Outcome("unknown", values, result=result)
    return Outcome("known", values, result=result)
