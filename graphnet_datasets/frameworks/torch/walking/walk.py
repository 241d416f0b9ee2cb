"""Shape propagation over a graph whose tensors have no elements."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Hashable, Mapping
from typing import Any

import torch
from torch.utils._python_dispatch import _disable_current_modes

from ....errors import (
    GraphNetError,
    MaterializeError,
    MemoryLimitError,
    TimeLimitError,
)
from ....inputs import make_array
from ....sample import Op, Sample, Value
from ....sample.arguments import ListArg, iterate_refs
from ....sample.vocabulary import ITEM_SIZE_BYTES
from ...deadline import Deadline
from ..building.bodies import MAX_ITERATIONS, has_bodies, read_body_call
from ..building.entries import custom_operator_of
from ..building.literals import autocast_arguments, to_fx
from ..building.regions import AUTOCAST, Regions
from ..building.unchecked import refusal
from ..operators import Operator, is_walkable, lookup, resolve
from ..tensors import concrete_stride, dtype_of, storage_elements, to_tensor
from .bodies import (
    OperandMemory,
    body_input,
    count_iterations,
    iteration_inputs,
    join_outputs,
    output_values,
)
from .confined_fakes import ConfinedFakeMode
from .costly_calls import check_call, check_repeats, check_result, join_place
from .describing import describe
from .expanded_operands import copied_bytes
from .footprint import Footprint
from .forms import Form, Scalar, Storage, UnfitError, fake_of, form_of, map_forms
from .known_numbers import gives_nothing, why_unknown
from .live_memory import LiveMemory
from .observer import Observer
from .operands import check_operands, is_trusting, why_guessed
from .recurrent import WALKED_STEPS, Layer, kind_of, make_results, read_call
from .repeated_calls import Remembered, keep, key_of, recall, remember
from .rules import apply_rule
from .unknown import Guesses, Unknown, empty, quietly, refuse_overflow
from .unsettled import Unsettled
from .working_memory import full_bytes, workspace_bytes

CPU = torch.device("cpu")
_ITEMS = frozenset(
    (
        *("torch.Tensor.item", "torch.ops.aten.item", "torch.ops.aten.item.default"),
        *("torch.ops.aten._local_scalar_dense", "torch.ops.aten._local_scalar_dense.default"),
    )
)


class Walk:
    """A single walk over a sample, op by op; `run` returns its `Footprint`."""

    def __init__(
        self,
        sample: Sample,
        sizes: Mapping[str, int],
        limit_bytes: int | None,
        observer: Observer | None,
        deadline: Deadline,
        allow_unchecked_operators: bool,
        *,
        is_quick: bool = False,
        is_body: bool = False,
    ) -> None:
        self.allow_unchecked_operators = allow_unchecked_operators
        self.observer = observer or Observer()
        self.is_quick = is_quick and observer is None  # an observer sees only fake tensors
        self.storages: dict[int, Storage] = {}
        self.sample = sample
        self.sizes = sizes
        self.limit_bytes = limit_bytes
        self.deadline = deadline
        self.what = f"Finding the shapes of `{sample.id}`"
        self._modes = contextlib.ExitStack()
        self._mode: ConfinedFakeMode | None = None
        self.values: list[Any] = []
        self.memory = LiveMemory(self.storages)
        self.working_bytes = 0  # upper bound that includes kernel buffers and operand copies
        self.unsettled = Unsettled(sample, deadline.limit_s, self.memory)
        self.is_recorded = False
        self.calls: dict[Hashable, Remembered | None] = {}
        self.guesses = Guesses()
        self.unchecked = ""
        self.failure: Exception | None = None  # torch's error for the latest failed call
        self.is_body = is_body
        self.outer = OperandMemory((), self.storages)
        self.body_bytes = 0  # memory inside of the bodies of the current operator

    def run(self) -> Footprint:
        """Walk the whole graph and return its memory use and result descriptions."""
        input_bytes = self._input_bytes()
        self._check_limit(input_bytes, f"The inputs of `{self.sample.id}` take")
        self.memory.live_bytes = self.memory.peak_bytes = input_bytes
        results = []
        with (
            quietly(),
            self._modes,
            torch.no_grad(),
            contextlib.ExitStack() as watching,
            Regions() as regions,
        ):
            if not self.is_quick:
                self._enter_mode()
            self.values = [self._input(index) for index in range(len(self.sample.inputs))]
            for value in self.values:
                self.memory.hold_forever(value)
                if type(value) is not Form or not self.unsettled.is_within(value):
                    self.unsettled.check_elements(value, f"An input of `{self.sample.id}`")
            if self.is_body:
                self.outer = OperandMemory(self.values, self.storages)
            dying_values = self.sample.dying_values
            self.observer.start(input_bytes, self.values)
            watching.enter_context(self.observer)
            for position, op in enumerate(self.sample.ops):
                results.append(self._step(position, op, regions))
                for index in dying_values[position]:
                    if index < len(self.sample.inputs):
                        continue
                    self.memory.release(index)
                    self.unsettled.release(index)
                    self.values[index] = None
        return Footprint(
            tuple(results),
            input_bytes,
            self.memory.peak_bytes,
            self.memory.total_bytes,
            self.unchecked,
            frozenset(self.unsettled.positions),
            self.unsettled.settled_bytes,
            max(self.working_bytes, self.memory.peak_bytes),
        )

    def _enter_mode(self) -> ConfinedFakeMode:
        """Create fake tensors from here on; most quick walks never need them."""
        if self._mode is None:
            self._mode = self._modes.enter_context(ConfinedFakeMode(self.deadline, self.what))
        return self._mode

    # Inputs

    def _input_bytes(self) -> int:
        total = 0
        for index, graph_input in enumerate(self.sample.inputs):
            if graph_input.value.dtype is not None and graph_input.role not in ("symbol", "scalar"):
                shape = self.sample.shape_of(graph_input.value, self.sizes) or ()
                stride = concrete_stride(self.sample, index, shape, self.sizes)
                size = 1
                for dim in shape:
                    size *= dim
                if stride is not None:
                    size = storage_elements(shape, stride)
                total += size * ITEM_SIZE_BYTES[graph_input.value.dtype]
        return total

    def _input(self, index: int) -> Any:
        graph_input = self.sample.inputs[index]
        if graph_input.role in ("symbol", "scalar"):
            return make_array(self.sample, index, sizes=self.sizes).item()
        shape = self.sample.shape_of(graph_input.value, self.sizes)
        if shape is None or graph_input.value.dtype is None:
            return Unknown()
        try:
            if shape == () and not self.is_body:  # the elements that a body receives are unknown
                with torch._C._DisableTorchDispatch():
                    real = to_tensor(
                        make_array(self.sample, index, sizes=self.sizes), graph_input.value.dtype
                    )
                    if self.is_quick:
                        with contextlib.suppress(UnfitError):
                            return Scalar(real)
                mode = self._enter_mode()
                return mode.fake_tensor_converter.from_real_tensor(mode, real, make_constant=True)
            stride = concrete_stride(self.sample, index, shape, self.sizes)
            if self.is_quick and min(shape, default=0) >= 0:
                with contextlib.suppress(UnfitError):
                    return Form(shape, stride, dtype_of(graph_input.value.dtype))
            self._enter_mode()
            return empty(shape, stride, graph_input.value.dtype)
        except GraphNetError:
            raise
        except RuntimeError:
            return Unknown()

    # Operators

    def _step(self, position: int, op: Op, regions: Regions) -> tuple[Value, ...] | None:
        index = self.index = len(self.sample.inputs) + position
        self.body_bytes = 0
        try:
            self.observer.begin(position)
            if self.is_body and custom_operator_of(self.sample, op) is None:
                self.outer.note(op, [self.values[ref] for ref in self.sample.op_refs[position]])
            before, self.is_recorded = self.unchecked, False
            if has_bodies(op.target):
                result = self._call_bodies(position, op, regions)
            else:
                result = self._call(op, regions)
            if self.unchecked != before:
                self.unchecked = refusal(self._place(position), self.unchecked)
            self.unsettled.note(position, op, result, self.is_recorded)
            check_result(result)
            self.observer.end(result)
        except TimeLimitError as error:
            is_located = str(error).startswith("Finding")
            located = str(error) if is_located else join_place(self._place(position), error)
            raise TimeLimitError(located) from error
        except MemoryLimitError as error:
            raise MemoryLimitError(join_place(self._place(position), error)) from error
        except MaterializeError as error:
            raise MaterializeError(join_place(self._place(position), error)) from error
        self.guesses.end(index, op)
        operands = [self.values[ref] for ref in self.sample.op_refs[position]]
        self.values.append(result)
        self.memory.hold(index, result)
        if self.limit_bytes is not None and self.memory.live_bytes > self.limit_bytes:
            subject = f"{self._place(position)} increases the memory of live tensors to"
            self._check_limit(self.memory.live_bytes, subject)
        buffers = self.body_bytes + self._buffer_bytes(op, operands, result)
        if buffers:
            self.working_bytes = max(self.working_bytes, self.memory.live_bytes + buffers)
            subject = f"Copies and buffers of {self._place(position)} may bring memory to"
            self._check_limit(self.working_bytes, subject)
        if type(result) is not Form or not self.unsettled.is_within(result):
            self.unsettled.check_elements(result, self._place(position))
        return None if isinstance(result, Unknown) else tuple(describe(result))

    def _buffer_bytes(self, op: Op, operands: list[Any], result: Any) -> int:
        """Return the bytes a kernel may allocate beside its operands and result."""
        if custom_operator_of(self.sample, op) is not None:
            return 0
        operator = lookup(op.target)
        copied = copied_bytes(operator, operands)
        return copied + workspace_bytes(operator, operands, full_bytes(result))

    def _place(self, position: int) -> str:
        return f"Op {position} (`{self.sample.ops[position].target}`) of `{self.sample.id}`"

    # Operators with bodies

    def _call_bodies(self, position: int, op: Op, regions: Regions) -> Any:
        """Walk the bodies of an operator for its actual operands and return its results.

        The results are recorded ones, and the operator is unchecked, if the shapes depend on data
        or if the bodies could change values of the graph around them.
        """
        call = read_body_call(op)
        inputs = tuple(body_input(arg, self.values) for arg in call.operands)
        num_iterations = count_iterations(call, inputs)
        if (
            num_iterations is not None
            and num_iterations > MAX_ITERATIONS
            and not self.allow_unchecked_operators
        ):
            raise TimeLimitError(
                f"The call runs for {num_iterations:,} iterations; at most {MAX_ITERATIONS:,} are "
                "accepted. Skip the sample."
            )
        if num_iterations is None or self.unsettled.reach(position) or self.guesses.reach(op):
            return self._unchecked_bodies(op, "has bodies whose operands have unknown sizes")
        inputs = iteration_inputs(call, inputs)
        bodies = self.sample.bodies[position]
        observers, outputs = [], []
        for body in bodies:
            walk = Walk(
                dataclasses.replace(body, inputs=inputs),
                self.sizes,
                self.limit_bytes,
                None if self.is_quick else self.observer.fork(),
                self.deadline,
                self.allow_unchecked_operators,
                is_quick=self.is_quick and not regions.is_open,
                is_body=True,
            )
            with _disable_current_modes():
                footprint = walk.run()
            self.body_bytes = max(self.body_bytes, footprint.working_bytes - footprint.input_bytes)
            results = [walk.values[ref] for ref in iterate_refs(body.outputs)]
            self.unchecked = self.unchecked or walk.outer.why_unchecked(footprint, results)
            observers.append(walk.observer)
            outputs.append(output_values(walk.sample, footprint))
        values = join_outputs(call, inputs, outputs, num_iterations)
        if values is None:
            return self._unchecked_bodies(op, "has bodies whose results have unknown sizes")
        noted = self.observer.join(observers, num_iterations if call.is_loop else None)
        with self.observer.repeat(noted):
            tensors = [self._body_result(value) for value in values]
        self.body_bytes += sum(map(full_bytes, tensors[len(call.carried) :]))
        is_single = not isinstance(bodies[-1].outputs, tuple | ListArg)
        return tensors[0] if is_single and not call.is_loop else tuple(tensors)

    def _body_result(self, value: Value) -> Any:
        if self.is_quick:
            with contextlib.suppress(UnfitError):
                return Form(value.shape, None, dtype_of(value.dtype))  # pyright: ignore
        self._enter_mode()
        return empty(value.shape, None, value.dtype)  # pyright: ignore

    def _unchecked_bodies(self, op: Op, reason: str) -> Any:
        self.unchecked = self.unchecked or reason
        return self._recorded(op)

    def _call(self, op: Op, regions: Regions) -> Any:
        if custom_operator_of(self.sample, op) is not None:
            recorded = self._recorded(op)  # calling the operator would run its source
            self.guesses.forget()  # a user who trusts that source may also trust its results
            return recorded
        operator = lookup(op.target)
        unknown: list[int] = []

        def value_of(index: int) -> Any:
            if isinstance(self.values[index], Unknown):
                unknown.append(index)
            return self.values[index]

        to_device = operator.last_name == "to"
        args = tuple([to_fx(arg, value_of, CPU, is_device=to_device) for arg in op.args])
        kwargs = {
            name: to_fx(arg, value_of, CPU, is_device=name == "device") for name, arg in op.kwargs
        }
        kwargs.pop("pin_memory", None)
        check_repeats(op, args, self.sample.inputs)
        check_call(operator, args, kwargs)
        is_plain = not (unknown or regions.is_open or self.guesses.reach(op))
        key = None
        if self.is_quick and is_plain:
            self.deadline.check(self.what)
            if operator.name in _ITEMS and _is_known(args, kwargs):
                return args[0].number
            result = apply_rule(operator.name, args, kwargs)
            if result is not NotImplemented:
                return result
            key = key_of(operator, args, kwargs)
            call = None if key is None else recall(key)
            if call is not None:
                return call.make_forms()
        mode = self._enter_mode()
        args, kwargs = map_forms(args, self._fake), map_forms(kwargs, self._fake)
        if operator.name == AUTOCAST:
            args = autocast_arguments(args, CPU)
        if unknown and is_trusting(operator):
            raise MaterializeError("The sizes of its operands are not known before the run.")
        check_operands(operator, args, kwargs)
        self.unchecked = self.unchecked or why_unknown(operator, args, kwargs)
        if not self.unchecked and self.guesses.reach(op):
            self.unchecked = why_guessed(operator)
        if not (self.allow_unchecked_operators or is_walkable(operator)):
            mode.forget_elements(args, kwargs)
            return self._recorded(op)
        if unknown and not operator.is_state:
            return None if gives_nothing(operator) else self._recorded(op)
        try:
            if operator.is_state:
                return regions.call(operator, args, kwargs)
            if regions.is_open:
                return _apply(operator, args, kwargs)
            if not self.is_quick:
                return self._apply_once(operator, args, kwargs)
            return self._apply_quickly(op, operator, args, kwargs, key)
        except GraphNetError:
            raise
        except Exception as error:
            # Torch's exceptions for data-dependent shapes differ between versions. An invalid call
            # fails again when the graph runs.
            refuse_overflow(error)
            self.failure = error
            return None if gives_nothing(operator) else self._recorded(op)

    def _apply_quickly(
        self,
        op: Op,
        operator: Operator,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        key: Hashable,
    ) -> Any:
        """Call an operator on fake tensors and return its results as forms."""
        if kind_of(operator.name) is not None:
            result = self._apply_once(operator, args, kwargs)
        else:
            result = _apply(operator, args, kwargs)
            if key is not None and not self.unchecked:
                keep(key, remember(args, kwargs, result, None))
        if operator.is_inplace:
            self._look_again(op)
        return form_of(result, self.storages)

    def _fake(self, form: Form | Scalar) -> Any:
        if isinstance(form, Form):
            return fake_of(form, self.storages)
        if form.fake is None:
            mode = self._enter_mode()
            form.fake = mode.fake_tensor_converter.from_real_tensor(
                mode, form.real, make_constant=True
            )
            form.storage.base = form.fake
            self.storages[form.fake.untyped_storage()._cdata] = form.storage
        return form.fake

    def _look_again(self, op: Op) -> None:
        """Update the operands' forms after an in-place operator changed their shapes."""
        for ref in iterate_refs((op.args, op.kwargs)):
            operand = self.values[ref]
            fake = operand.fake if type(operand) is Form else None
            if fake is not None:
                changed = form_of(fake, self.storages)
                self.values = [
                    changed if type(value) is Form and value.fake is fake else value
                    for value in self.values
                ]

    def _apply_once(self, operator: Operator, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Call an operator, or reuse the result of an earlier call with matching operands."""
        if kind_of(operator.name) is not None:
            layer = read_call(operator.name, args, kwargs)
            if layer.steps > WALKED_STEPS[-1]:
                return self._apply_loop(operator, layer)
        key = key_of(operator, args, kwargs)
        call = None if key is None else self.calls.get(key)
        if call is not None:
            with self.observer.repeat(call.noted):
                return call.make()
        result = _apply(operator, args, kwargs)
        if key is not None and key not in self.calls:
            self.calls[key] = remember(args, kwargs, result, self.observer.noted())
        return result

    def _apply_loop(self, operator: Operator, layer: Layer) -> Any:
        """Walk a recurrent layer at two small step counts and extrapolate to the full count."""
        noted = []
        for steps in WALKED_STEPS:
            resolve(operator)(*layer.arguments(steps))
            noted.append(self.observer.noted())
        with self.observer.repeat(self.observer.extrapolate(*noted, WALKED_STEPS, layer.steps)):
            return make_results(layer)

    def _recorded(self, op: Op) -> Any:
        """Return fake tensors with the shapes recorded in the sample, as a fallback."""
        self.observer.fail()
        self.guesses.begin()
        self.is_recorded = True
        if not op.results or self.unsettled.is_number(self.index):
            return Unknown()
        results = tuple([self._recorded_tensor(value) for value in op.results])
        if any(isinstance(item, Unknown) for item in results):
            return Unknown()
        return results[0] if len(results) == 1 else results

    def _recorded_tensor(self, value: Value) -> Any:
        shape = self.sample.shape_of(value, self.sizes)
        if shape is None or value.dtype is None:
            return Unknown()
        self._enter_mode()
        return empty(shape, None, value.dtype)

    def _check_limit(self, live_bytes: int, subject: str) -> None:
        if self.limit_bytes is not None and live_bytes > self.limit_bytes:
            live, limit = f"{live_bytes / 1e9:,.3f}", f"{self.limit_bytes / 1e9:,.3f}"
            raise MemoryLimitError(
                f"{subject} {live} GB; the limit is {limit} GB. Raise `memory_limit_bytes`, or "
                "skip the sample."
            )


def _is_known(args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> bool:
    """Return whether the only argument is a `Scalar` that no operator can have written to."""
    return not kwargs and len(args) == 1 and type(args[0]) is Scalar and args[0].fake is None


def _apply(operator: Operator, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    return resolve(operator)(*args, **kwargs)
