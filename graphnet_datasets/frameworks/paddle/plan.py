"""Execution plan of a sample: its operators as a list of calls, as an alternative to generated
code.

Values are stored in numbered slots: first the sample's values, then one slot for each literal and
each list or tuple that contains values. A call reads its arguments from slots and writes its result
to a slot. The overhead of the plan is well under a microsecond per operator.
"""

from __future__ import annotations

import operator as python_operator
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import psutil

from ...errors import GraphNetError, MaterializeError, UnknownOperatorError
from ...sample import Op, Sample
from ...sample.arguments import Arg, DictArg, ListArg, Named, Ref, SliceArg, iterate_refs
from ..deadline import Deadline
from .calls import check_lists, in_order
from .checked import is_checked
from .guards import Guarded
from .operators import CORE, lookup, resolve
from .tensors import dtype_of, place_of

Observer = Callable[[int, Any], Any]


class Step(NamedTuple):
    """One call, `slots[own] = call(*arguments(slots))`, and the slots to clear after it."""

    call: Callable[..., Any]
    arguments: Callable[[list[Any]], tuple[Any, ...]]
    own: int
    freed: tuple[int, ...]


class Plan:
    """Runs the operators of a sample on given input values.

    If `is_guarded` is true, the operands of checked operators are checked before each call (see
    `guards`).

    Raises:
        UnknownOperatorError: an operator is not in the table.
        MaterializeError: an argument has no Paddle equivalent, or paddle lacks the operator.
        TimeLimitError: the deadline passes.
    """

    def __init__(
        self,
        sample: Sample,
        device: str = "cpu",
        *,
        is_guarded: bool = False,
        memory_limit_bytes: int | None = None,
        deadline: Deadline | None = None,
    ) -> None:
        self.sample = sample
        memory = psutil.virtual_memory().total
        self.memory_limit_bytes = memory if memory_limit_bytes is None else memory_limit_bytes
        self.is_guarded = is_guarded
        self.device = device
        self.num_inputs = len(sample.inputs)
        self.template: list[Any] = [None] * (self.num_inputs + sample.num_ops)
        self.steps: list[Step] = []
        self._core: set[int] = set()
        for position, (op, dying) in enumerate(zip(sample.ops, sample.dying_values, strict=True)):
            if deadline is not None:
                deadline.check(f"Planning the calls of `{sample.id}`")
            try:
                self._add(op, self.num_inputs + position, dying)
            except (MaterializeError, UnknownOperatorError) as error:
                raise type(error)(self._located(position, op, error)) from error
        try:
            self._outputs = self._slot(sample.outputs)
        except MaterializeError as error:
            raise MaterializeError(
                f"The outputs of `{sample.id}` cannot be built: {error}"
            ) from error
        self._rest = self.template[self.num_inputs :]

    def run(self, values: Sequence[Any]) -> Any:
        """Return the outputs for the values of all inputs, in order."""
        slots = [*values, *self._rest]
        for call, arguments, own, freed in self.steps:
            slots[own] = call(*arguments(slots))
            for slot in freed:
                slots[slot] = None
        return slots[self._outputs]

    def observe(
        self, values: Sequence[Any], observer: Observer, skipped: frozenset[int] = frozenset()
    ) -> Any:
        """Run like `run`, but replace each result with `observer(position, result)`.

        `position` is the index of the operator. If an operator raises, the observer receives the
        exception as the result. Operators in `skipped` are not called; the observer receives an
        exception for them as well.
        """
        slots = [*values, *self._rest]
        for call, arguments, own, _ in self.steps:
            try:
                if own - self.num_inputs in skipped:
                    raise MaterializeError("The operator is not one of the checked operators.")
                call_arguments = arguments(slots)
                if own in self._core:
                    check_lists(call_arguments)
                result = call(*call_arguments)
            except Exception as error:
                result = error
            if self.num_inputs <= own < self.num_inputs + self.sample.num_ops:
                result = observer(own - self.num_inputs, result)
            slots[own] = result
        return slots[self._outputs]

    def _add(self, op: Op, own: int, dying: tuple[int, ...]) -> None:
        operator = lookup(op.target)
        call = resolve(operator)
        if self.is_guarded and is_checked(operator):
            call = Guarded(operator.name, call, self.memory_limit_bytes)
        before = len(self.steps)
        positional, named = op.args, op.kwargs
        if op.target.startswith(CORE):
            self._core.add(own)
            positional, named = in_order(op), ()
        args = [self._slot(arg) for arg in (*positional, *(arg for _, arg in named))]
        if named:
            call = _WithKeywords(call, len(positional), tuple(name for name, _ in named))
        # Free the lists built for this call as well, since they keep their values alive.
        built = [step.own for step in self.steps[before:]]
        self.steps.append(Step(call, _getter(args), own, (*dying, *built)))

    def _slot(self, arg: Arg) -> int:
        """Return the slot that holds an argument, adding steps to fill the slot if needed."""
        if isinstance(arg, Ref):
            return arg.index
        if next(iterate_refs(arg), None) is None:
            self.template.append(self._literal(arg))
            return len(self.template) - 1
        match arg:
            case tuple():
                build, parts = _tuple, arg
            case ListArg(items=items):
                build, parts = _list, items
            case SliceArg():
                build, parts = slice, (arg.start, arg.stop, arg.step)
            case DictArg(items=items):
                build, parts = _Dictionary(tuple(key for key, _ in items)), [i for _, i in items]
            case _:
                raise MaterializeError(
                    f"An argument of type `{type(arg).__name__}` cannot be passed to paddle."
                )
        slots = [self._slot(part) for part in parts]
        self.template.append(None)
        own = len(self.template) - 1
        self.steps.append(Step(build, _getter(slots), own, ()))
        return own

    def _literal(self, arg: Arg) -> Any:
        match arg:
            case Named(kind="dtype", name=name):
                return dtype_of(name)
            case Named(kind="place", name=name):
                return place_of(self.device if name == "expected" else name)
            case Named(kind=kind):
                raise MaterializeError(f"A {kind} cannot be passed to paddle.")
            case tuple():
                return tuple(map(self._literal, arg))
            case ListArg(items=items):
                return list(map(self._literal, items))
            case DictArg(items=items):
                return {key: self._literal(item) for key, item in items}
            case SliceArg():
                return slice(*map(self._literal, (arg.start, arg.stop, arg.step)))
        return arg

    def _located(self, position: int, op: Op, error: GraphNetError) -> str:
        return f"Op {position} (`{op.target}`) of `{self.sample.id}` cannot run: {error}"


class _WithKeywords:
    """Callable that passes the last arguments to a function by keyword."""

    def __init__(self, call: Callable[..., Any], num_args: int, names: tuple[str, ...]) -> None:
        self.call = call
        self.num_args = num_args
        self.names = names

    def __call__(self, *args: Any) -> Any:
        keywords = dict(zip(self.names, args[self.num_args :], strict=True))
        return self.call(*args[: self.num_args], **keywords)


class _Dictionary:
    """Callable that builds a dictionary with fixed keys."""

    def __init__(self, keys: tuple[str, ...]) -> None:
        self.keys = keys

    def __call__(self, *items: Any) -> dict[str, Any]:
        return dict(zip(self.keys, items, strict=True))


def _list(*items: Any) -> list[Any]:
    return list(items)


def _tuple(*items: Any) -> tuple[Any, ...]:
    return items


def _getter(slots: list[int]) -> Callable[[list[Any]], tuple[Any, ...]]:
    if len(slots) >= 2:
        return python_operator.itemgetter(*slots)
    start, stop = (slots[0], slots[0] + 1) if slots else (0, 0)
    piece = slice(start, stop)
    return python_operator.itemgetter(piece)
