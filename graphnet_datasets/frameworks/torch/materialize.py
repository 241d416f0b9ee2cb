"""Conversion of a sample to a `torch.fx.GraphModule`, without running code from the sample.

Each operator is looked up in the table and becomes one step, and later one node, in the order of
the sample. Nothing is dropped, merged or moved. `torch.fx` prints the graph as Python code and
compiles it on demand (`building.deferred`), so everything it prints is generated here: names,
keywords of torch's own schemas, and literals accepted by `literals`.
"""

from __future__ import annotations

import dataclasses
import operator as python_operator
from collections.abc import Callable, Mapping
from typing import Any

import torch

from ...collector import collecting_seldom
from ...errors import GraphNetError, MaterializeError, UnknownOperatorError
from ...inputs import MODES, Mode
from ...sample import Input, Op, Sample, Value
from ...sample.arguments import Arg, Graph, Ref
from ..choices import check_choice, is_weight
from ..deadline import Deadline, drawing_until
from ..input_limits import check_inputs, memory_limit
from .building.bodies import LoopChecks, has_bodies, read_body_call
from .building.custom_operators import check_trust, register
from .building.deferred import hold, make_deferred
from .building.entries import custom_operator_of
from .building.literals import autocast_arguments, to_fx
from .building.plan import Plan, Step
from .building.regions import AUTOCAST, check_regions, has_regions
from .building.run_checks import SizeChecks
from .building.scalars import find_scalars
from .building.unchecked import check_operators
from .operators import Operator, lookup, resolve
from .operators.schema import check_keywords, is_factory
from .shapes import Footprint, check_memory
from .tensors import Weights, make_tensor, packed_on

_ARITY: Mapping[str, int] = {
    **dict.fromkeys(("abs", "index", "invert", "neg", "not_", "pos", "truth"), 1),
    "setitem": 3,
}
"""Number of operands of Python's operators; all others take two."""

_MOVES = frozenset({"cpu", "cuda", "ipu", "mtia", "xpu"})
"""Tensor methods that move to the device type they are named after."""

_REBINDING: Mapping[str, Callable[[Any, Any], Any]] = {
    "iadd": python_operator.add,
    "iand": python_operator.and_,
    "ifloordiv": python_operator.floordiv,
    "ilshift": python_operator.lshift,
    "imod": python_operator.mod,
    "imul": python_operator.mul,
    "ior": python_operator.or_,
    "ipow": python_operator.pow,
    "irshift": python_operator.rshift,
    "isub": python_operator.sub,
    "itruediv": python_operator.truediv,
    "ixor": python_operator.xor,
}
"""Functions for augmented assignments to numbers, which return a new number."""


def materialize(
    sample: Sample,
    *,
    device: str | torch.device = "cpu",
    weights: Weights = "inputs",
    seed: int = 0,
    mode: Mode = "replay",
    memory_limit_bytes: int | None = None,
    time_limit_s: float | None = None,
    trust_remote_code: bool = False,
    allow_unchecked_operators: bool = False,
    is_known_to_fit: bool = False,
) -> torch.fx.GraphModule:
    """Return a module that runs the sample on `device`; see `graphnet_datasets.materialize`.

    Raises:
        UnknownOperatorError: If an operator is not in the table, or the installed torch lacks it.
        UntrustedCodeError: If the sample has custom operators and `trust_remote_code` is false, or
            their source was modified after the capture.
        UncheckedOperatorError: If an operator is unchecked and `allow_unchecked_operators` is
            false.
        MemoryLimitError: If the sample would need more memory than `memory_limit_bytes` (default:
            the memory of this machine).
        TimeLimitError: If checking that takes longer than `time_limit_s` (default: two minutes).
        MaterializeError: If the sample cannot be converted to a runnable module.
    """
    check_choice("weights", weights, ("inputs", "parameters"))
    check_choice("mode", mode, MODES)
    if sample.framework != "torch":
        raise MaterializeError(f"`{sample.id}` is a sample of {sample.framework}, not of torch.")
    customs: Mapping[str, Any] = {}
    check_operators(sample, allow_unchecked_operators=allow_unchecked_operators)

    def check_limits() -> Footprint | None:
        footprint = None
        if not (is_known_to_fit and allow_unchecked_operators):
            footprint = check_memory(
                sample,
                memory_limit_bytes,
                time_limit_s,
                allow_unchecked_operators=allow_unchecked_operators,
            )
        check_inputs(sample, None, memory_limit_bytes)
        return footprint

    if sample.custom_operators:
        check_trust(sample, trust_remote_code=trust_remote_code)
        check_limits()  # all checks must pass before any source code runs
        customs = register(sample, trust_remote_code=trust_remote_code)
    builder = _Builder(sample, _device(device), customs)
    if not allow_unchecked_operators:
        builder.loop_limit_s = Deadline(time_limit_s).limit_s
    builder.add_arguments(weights)
    with collecting_seldom():
        builder.add_ops()
    footprint = check_limits()
    if footprint is not None and not allow_unchecked_operators and footprint.unsettled:
        limit_bytes = memory_limit(memory_limit_bytes)
        builder.checks = SizeChecks(
            sample,
            footprint.unsettled,
            limit_bytes - footprint.settled_bytes,
            limit_bytes,
            time_limit_s,
        )
    phase = f"Making the weights of `{sample.id}`"
    deadline = Deadline(time_limit_s)
    with drawing_until(deadline, phase), packed_on(builder.device), collecting_seldom():
        return builder.finish(seed, mode)


def make_plan(sample: Sample, device: str | torch.device, customs: Mapping[str, Any]) -> Plan:
    """Return the plan of a sample that takes every input as an argument.

    Only the calls themselves are checked, since the sample runs on the tensors of its capture.
    `customs` maps targets to custom operators.

    Raises:
        UnknownOperatorError, MaterializeError: As in `materialize`.
    """
    builder = _Builder(sample, _device(device), customs)
    builder.add_arguments("inputs")
    builder.add_ops()
    return builder.plan()


def _device(device: str | torch.device) -> torch.device:
    try:
        return torch.device(device)
    except RuntimeError as error:
        raise MaterializeError(f"`device={device!r}` is not a device of torch: {error}") from error


_NUMBER = Input("symbol", Value("int64", ()), "1")
"""Input of a body that is a Python number."""


class _Builder:
    """Builds a plan, with a resolved and checked step per operator.

    `loop_limit_s` bounds the time of each loop; None means no bound.
    """

    def __init__(
        self, sample: Sample, device: torch.device, customs: Mapping[str, Callable[..., Any]]
    ) -> None:
        self.customs = customs
        self.sample = sample
        self.device = device
        self.steps: list[Step] = []
        self.placeholders: dict[int, str] = {}
        self.attributes: dict[int, str] = {}
        self.checks: SizeChecks | None = None
        self.bodies: dict[str, torch.fx.GraphModule] = {}
        self.loops: dict[int, LoopChecks] = {}
        self.own_loop: LoopChecks | None = None
        self.loop_limit_s: float | None = None
        self.numbers = find_scalars(sample)

    def add_arguments(self, weights: Weights) -> None:
        """Add a placeholder per input, or an attribute per weight with `weights="parameters"`."""
        for index, (name, graph_input) in enumerate(
            zip(self.sample.input_names, self.sample.inputs, strict=True)
        ):
            is_held = weights == "parameters" and is_weight(graph_input)
            (self.attributes if is_held else self.placeholders)[index] = name

    def add_ops(self) -> None:
        """Add a step per operator."""
        for position, op in enumerate(self.sample.ops):
            try:
                step = self._call_bodies(position, op) if has_bodies(op.target) else self._step(op)
                self.steps.append(step)
            except (MaterializeError, UnknownOperatorError) as error:
                raise type(error)(self._located(position, op, error)) from error
        check_regions(self.sample)

    def finish(self, seed: int, mode: Mode) -> torch.fx.GraphModule:
        """Add the outputs and return the module with its weights, if it holds any."""
        plan = self.plan()
        tensors: dict[str, torch.Tensor] = {}
        for index, name in self.attributes.items():
            tensor = make_tensor(self.sample, index, seed, mode, self.device)
            if self.sample.inputs[index].role == "parameter":
                # Samples are timed as in deployment; callers can enable gradients themselves.
                tensor = torch.nn.Parameter(tensor, requires_grad=False)
            tensors[name] = tensor
        if not has_regions(self.sample):
            return make_deferred(plan, tensors)
        # This module uses `torch._dynamo`, whose import takes as long as torch's.
        from .building.region_state import RestoringModule

        return RestoringModule(hold(torch.nn.Module(), plan, tensors), plan.make_graph()).eval()

    def plan(self) -> Plan:
        """Return the steps with the outputs."""
        try:
            outputs = self._argument(self.sample.outputs)
        except MaterializeError as error:
            raise MaterializeError(
                f"The outputs of `{self.sample.id}` cannot be built: {error}"
            ) from error
        return Plan(
            self.placeholders,
            self.attributes,
            self.steps,
            outputs,
            self.sample.dying_values,
            self.checks,
            self.bodies,
            self.loops,
            self.own_loop,
        )

    def _argument(self, arg: Arg, *, is_device: bool = False) -> Any:
        return to_fx(arg, Ref, self.device, is_device=is_device)

    def _call_bodies(self, position: int, op: Op) -> Step:
        """Return a step for an operator with bodies, each of which becomes a module."""
        call = read_body_call(op)
        are_numbers = [type(arg) is not Ref or arg.index in self.numbers for arg in call.operands]
        if call.is_loop and self.loop_limit_s is not None:
            place = f"Op {position} (`{op.target}`) of `{self.sample.id}`"
            self.loops[position] = LoopChecks(place, self.loop_limit_s)
        modules = []
        for number, body in enumerate(self.sample.bodies[position]):
            inputs = tuple(
                _NUMBER if is_number else item
                for item, is_number in zip(body.inputs, are_numbers, strict=True)
            )
            builder = _Builder(dataclasses.replace(body, inputs=inputs), self.device, self.customs)
            builder.loop_limit_s = self.loop_limit_s
            # The first body of a loop runs once per iteration.
            builder.own_loop = self.loops.get(position) if number == 0 else None
            builder.add_arguments("inputs")
            builder.add_ops()
            plan = builder.plan()
            module = torch.fx.GraphModule(hold(torch.nn.Module(), plan, {}), plan.make_graph())
            self.bodies[f"body_{position}_{number}"] = module
            modules.append(module)
        rest = iter(modules)
        args = [next(rest) if type(arg) is Graph else self._argument(arg) for arg in op.args]
        kwargs = {name: self._argument(arg) for name, arg in op.kwargs}
        return Step("call_function", resolve(lookup(op.target)), tuple(args), kwargs)

    def _step(self, op: Op) -> Step:
        if custom_operator_of(self.sample, op) is not None:
            return Step(
                "call_function",
                self.customs[op.target],
                tuple(self._argument(arg) for arg in op.args),
                {name: self._argument(arg) for name, arg in op.kwargs},
            )
        operator = lookup(op.target)
        check_keywords(op, operator)
        to_device = operator.last_name == "to"
        args = tuple(self._argument(arg, is_device=to_device) for arg in op.args)
        kwargs = {name: self._argument(arg, is_device=name == "device") for name, arg in op.kwargs}
        if kwargs.get("pin_memory"):
            kwargs["pin_memory"] = False
        if self.device.type != "cpu" and kwargs.get("device") is None and is_factory(operator):
            kwargs["device"] = self.device  # models captured on a CPU often omit the device
        if operator.kind == "attribute":
            self._check_receiver(op, 1)
            return Step("call_function", getattr, (args[0], operator.last_name), {})
        if operator.kind == "method":
            self._check_receiver(op, None)
            return self._method(operator, args, kwargs)
        if operator.name.startswith("operator."):
            return self._python(op, operator, args)
        if operator.name == AUTOCAST:
            args = autocast_arguments(args, self.device)
        return Step("call_function", resolve(operator), args, kwargs)

    def _method(self, operator: Operator, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Step:
        resolve(operator)
        if operator.last_name in _MOVES:
            options = {name: kwargs[name] for name in ("memory_format",) if name in kwargs}
            return Step("call_method", "to", (args[0], self.device), options)
        return Step("call_method", operator.last_name, args, kwargs)

    def _python(self, op: Op, operator: Operator, args: tuple[Any, ...]) -> Step:
        """Return a step for a Python operator, which fx prints as an expression."""
        last = operator.last_name
        arity = _ARITY.get(last, 2)
        if len(args) != arity:
            raise MaterializeError(f"Expected {arity} operands, got {len(args)}.")
        if operator.is_inplace or last == "getitem":
            self._check_receiver(op, arity)
        if last in _REBINDING and isinstance(op.args[0], Ref) and op.args[0].index in self.numbers:
            # fx prints `a += b`, which would change the number `a` for its later uses.
            return Step("call_function", _REBINDING[last], args, {})
        return Step("call_function", resolve(operator), args, {})

    @staticmethod
    def _check_receiver(op: Op, arity: int | None) -> None:
        if not op.args or not isinstance(op.args[0], Ref) or arity not in (None, len(op.args)):
            raise MaterializeError("Expected the first operand to be a value of the graph.")

    def _located(self, position: int, op: Op, error: GraphNetError) -> str:
        if isinstance(error, UnknownOperatorError):
            return f"Op {position} of `{self.sample.id}` cannot run: {error}"
        return f"Op {position} (`{op.target}`) of `{self.sample.id}` cannot run: {error}"
