"""A `torch.compile` backend that converts each graph of a call to a `Sample`."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import io
import logging
import re
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import torch
import torch._dynamo
from torch._dynamo.exc import TorchDynamoException
from torch._dynamo.resume_execution import TORCH_DYNAMO_RESUME_IN_PREFIX
from torch._dynamo.symbolic_convert import InstructionTranslator
from torch._dynamo.utils import counters, graph_break_reasons
from torch._dynamo.variables import TensorVariable
from torch._guards import CompileContext
from torch._subclasses.fake_tensor import FakeTensor

from ....errors import CaptureError, GraphNetError
from ....inputs import default_statistics
from ....paths import without_folders
from ....sample import Provenance, Sample
from ....sample.vocabulary import Role, Task
from ..operators.effects import draws_random_numbers
from ..operators.table import find_entry
from .convert import Binding, Conversion, Naming, convert, record, scalar_input
from .fake_weights import FakeWeights, fake_weights, has_weights, unchecked
from .initialisers import weight_statistics
from .mismatches import cause_of_difference
from .refusals import (
    explain_specialised,
    refuse_arguments,
    refuse_constant_size,
    refuse_outputs,
)
from .replay import Origins, describe, difference, first_difference, keep_leaves, replay
from .state import State

_DYNAMO_SETTINGS: Mapping[str, Any] = {
    "capture_scalar_outputs": True,  # `.item()` stays in the graph instead of breaking it
    "capture_dynamic_output_shape_ops": True,  # likewise `nonzero` and masked indexing
    "allow_rnn": True,  # `torch.nn.LSTM` and similar layers are single operators
    "specialize_float": True,  # eps and momentum stay constants even if sizes are symbols
    "enable_dynamo_decompositions": False,  # `x.addcmul_(y, z, value=2)` stays one operator
    "recompile_limit": 10_000,  # a class captured often must not fall back to eager
    "suppress_errors": False,
    "run_gc_after_compile": False,  # only needed to free a real compiler's objects
    "verbose": False,
}

_TOLERANT_SETTINGS: Mapping[str, Any] = {
    "capture_scalar_outputs": False,  # `.item()` breaks the graph, so branches on it work
    "dont_skip_tracing": True,  # the rest of a torch function is traced after a break
}
"""Settings of a second trace, used if the first trace is unusable."""

_LOGGED = ("debug", "info", "warning", "error", "critical", "exception", "log")
_ONCE = ("warning_once", "info_once", "warning_advice")
"""Methods that libraries add to the standard logger."""

_VIEWS = frozenset({"T", "H", "mT", "mH", "real", "imag"})
"""Attributes of tensors that are views."""

_SKIPPED = "The next graph is called by a function that torch does not trace."

_END_OF_REASON = re.compile(
    r"\n\s*(Hint|Developer debug context|For more details|For more information|User [Ss]tack|"
    r"Traceback)"
)
_ADDRESS = re.compile(r" at 0x[0-9a-f]+")


@dataclasses.dataclass(frozen=True)
class CaptureSettings:
    """Options of a capture, and the description of its samples.

    `dynamic` makes all sizes of data inputs symbolic (`torch._dynamo.mark_dynamic` marks single
    sizes). With `warm_up`, the traced call starts with the caches that the module filled in its
    first call, because filling them breaks the graph. With `is_structure_alone`, no input elements
    are recorded, the samples are not checked, and a graph of the whole module is not run, so the
    call returns None.
    """

    name: str
    task: Task = "other"
    dynamic: bool = False
    warm_up: bool = True
    provenance: Provenance = dataclasses.field(default_factory=Provenance)
    is_structure_alone: bool = False


def capture(
    module: torch.nn.Module,
    forward: Callable[..., Any],
    args: Sequence[Any],
    kwargs: Mapping[str, Any],
    settings: CaptureSettings,
) -> tuple[Any, list[Sample]]:
    """Call `forward` and return its outputs and a sample per captured graph.

    `forward` is `module`'s call. It first runs normally for its outputs. Then the module, arguments
    and random generators are restored, dynamo traces the same call with each graph replaced by its
    sample, and both outputs are compared. Afterwards everything has the state after the first call.
    If weights of `module` are on the meta device, fake tensors replace them, the outputs are
    fake and nothing is compared. Dynamo's caches are cleared before and after, so that earlier
    compilations do not affect the graphs.

    Raises:
        CaptureError: If dynamo cannot trace the module, no graph is captured, part of the module
            runs outside the graphs, a graph contains something that a sample cannot store, or the
            outputs of the samples differ from those of the module.
    """
    refuse_arguments(settings.name, args, kwargs)
    with contextlib.ExitStack() as stack:
        fakes = None
        if not has_weights(module):
            fakes = stack.enter_context(fake_weights(module))
            stack.enter_context(fakes.mode)
        stack.enter_context(_quiet_dynamo())
        if settings.is_structure_alone:
            backend = _Backend(module, fakes, settings)
            outputs = _traced_call(module, forward, args, kwargs, backend)
            return outputs, backend.finish()
        if fakes is not None:
            provenance = unchecked(settings.provenance)
            settings = dataclasses.replace(settings, provenance=provenance)
        return _Capturing(module, forward, args, kwargs, fakes, settings).capture()


class _UntracedError(CaptureError):
    """Part or all of the module ran outside the captured graphs."""


class _Capturing:
    """The capture of one call: an eager call, followed by its traces."""

    def __init__(
        self,
        module: torch.nn.Module,
        forward: Callable[..., Any],
        args: Sequence[Any],
        kwargs: Mapping[str, Any],
        fakes: FakeWeights | None,
        settings: CaptureSettings,
    ) -> None:
        self.module = module
        self.forward = forward
        self.args = tuple(args)
        self.kwargs = dict(kwargs)
        self.fakes = fakes
        self.settings = settings

    def capture(self) -> tuple[Any, list[Sample]]:
        """Return the outputs of the call and its samples."""
        before = self._state()
        outputs = self.forward(*self.args, **self.kwargs)
        refuse_outputs(self.settings.name, outputs)
        expected = keep_leaves(outputs)
        after = self._state()
        try:
            samples = self._samples(before, after, expected)
        finally:
            after.restore()
        return outputs, samples

    def _state(self) -> State:
        return State(self.module, self.forward, self.args, self.kwargs)

    def _samples(self, before: State, after: State, expected: Mapping[str, Any]) -> list[Sample]:
        """Trace the call with warm caches, from its original state, or both.

        If neither trace is usable, the call is traced again with `_TOLERANT_SETTINGS`.
        """
        can_start_cold = not before.is_lazy and not before.has_same_objects(after)
        is_warm = self.settings.warm_up or not can_start_cold
        if not is_warm:
            before.restore_objects()
        samples, error = self._trace(before, after, expected)
        if is_warm and can_start_cold and (error is not None or len(samples) > 1):
            before.restore_objects()
            cold_samples, cold_error = self._trace(before, after, expected)
            if cold_error is None and (error is not None or len(cold_samples) < len(samples)):
                return cold_samples
            if isinstance(error, _UntracedError) and isinstance(cold_error, _UntracedError):
                error = cold_error  # the warm trace may take tensors of the first call
        if error is None:
            return samples
        if not isinstance(error, _UntracedError):
            raise error
        with _dynamo_settings(_TOLERANT_SETTINGS):
            samples, tolerant_error = self._trace(before, after, expected)
        if tolerant_error is not None:
            raise CaptureError(str(error)) from None
        return samples

    def _trace(
        self, before: State, after: State, expected: Mapping[str, Any]
    ) -> tuple[list[Sample], GraphNetError | None]:
        """Trace once; return the samples, or the error that prevented them."""
        before.restore_tensors()
        backend = _Backend(self.module, self.fakes, self.settings, before.tensors)
        known_counters = {name: counter.copy() for name, counter in counters.items()}
        counters.clear()
        try:
            outputs = self._quiet_call(backend)
            backend.check_outputs(outputs)
            samples = backend.finish()
            if self.fakes is None:
                self._check(outputs, expected, before, after)
        except GraphNetError as error:
            return [], error
        finally:
            counters.clear()
            counters.update(known_counters)
        return samples, None

    def _quiet_call(self, backend: _Backend) -> Any:
        name = self.settings.name
        with silent():
            try:
                return _traced_call(self.module, self.forward, self.args, self.kwargs, backend)
            except GraphNetError:
                raise
            except Exception as error:  # the eager call succeeded, so tracing is what failed
                if backend.error is not None:
                    raise backend.error from error
                if specialised := explain_specialised(str(error)):
                    raise CaptureError(f"`{name}` cannot be traced: {specialised}") from error
                raise CaptureError(
                    f"`{name}` runs, but cannot be traced: {_first_paragraph(str(error))} "
                    "Change this part of its `forward`, or capture its parts."
                ) from error

    def _check(
        self, outputs: Any, expected: Mapping[str, Any], before: State, after: State
    ) -> None:
        problem = first_difference(outputs, expected)
        if not problem and before.has_same_objects(after):
            for position in after.changed_tensors(self._state()):
                tensor = after.tensors[position]
                text = difference(tensor, after.contents(position))
                if text:
                    problem = f"a tensor that the call changes ({describe(tensor)}) {text}"
        if problem:
            cause = cause_of_difference(self._call_again, before, expected)
            raise CaptureError(
                f"The graphs captured for `{self.settings.name}` do not compute the results of the "
                f"module: {problem}. {cause}"
            )

    def _call_again(self) -> Any:
        with silent():
            return self.forward(*self.args, **self.kwargs)


def _traced_call(
    module: torch.nn.Module,
    forward: Callable[..., Any],
    args: Sequence[Any],
    kwargs: Mapping[str, Any],
    backend: _Backend,
) -> Any:
    """Call `forward` compiled with `backend`; return None if the backend ended the call."""
    for _, tensor in _plain_tensors(module):
        torch._dynamo.mark_static(tensor)
    torch.compiler.reset()
    compiled = torch.compile(
        _top_frame(module, forward), backend=backend, dynamic=backend.settings.dynamic
    )
    outputs = None
    try:
        outputs = compiled(*args, **kwargs)
    except _AllCaptured:
        pass
    except TorchDynamoException as error:
        if backend.error is None:
            raise CaptureError(
                f"`{backend.settings.name}` cannot be traced: {_first_paragraph(str(error))}"
            ) from error
    finally:
        backend.note_breaks()
        torch.compiler.reset()
    if backend.error is not None:
        raise backend.error
    return outputs


class _AllCaptured(BaseException):
    """Ends a call whose graph is captured; a `BaseException` passes the module's own handlers."""


@dataclasses.dataclass
class _Traced:
    """A graph that dynamo traced once and may call many times."""

    conversion: Conversion
    graph: Callable[..., Any]
    placeholders: Sequence[str]
    is_number: Sequence[bool]
    break_reason: str
    was_called: bool = False


class _Backend:
    """Converts each graph while its fake results exist, and runs the sample in its place.

    Each call of a graph creates a sample, in the order of the calls.
    """

    def __init__(
        self,
        module: torch.nn.Module,
        fakes: FakeWeights | None,
        settings: CaptureSettings,
        tensors: Sequence[torch.Tensor] = (),
    ) -> None:
        self.settings = settings
        self.error: GraphNetError | None = None
        self.fakes = fakes
        self._module = module
        self._module_paths = {id(submodule): path for path, submodule in module.named_modules()}
        self._samples: list[Sample] = []
        self._reasons: list[str] = []
        self._breaks: list[str] = []
        weights = [*module.parameters(), *module.buffers()]
        self._origins = Origins(
            [*tensors, *weights, *(tensor for _, tensor in _plain_tensors(module))]
        )
        self._foreign = ""
        self._tensors = tensors
        self._generator = torch.get_rng_state()
        self._has_gradients = torch.is_grad_enabled()

    def __call__(
        self, graph_module: torch.fx.GraphModule, example_inputs: Sequence[Any]
    ) -> Callable[..., Any]:
        if self.error is not None:
            return graph_module.forward
        self._foreign = self._foreign or self._foreign_constant()
        try:
            traced = self._convert(graph_module, example_inputs)
        except GraphNetError as error:
            self.error = error  # raising here would make dynamo wrap it and hide its type
            return graph_module.forward
        if self.settings.is_structure_alone:
            self._samples.append(traced.conversion.sample)
            self._reasons.append(traced.break_reason)
            return _end_call if _is_all(graph_module) else graph_module.forward
        return functools.partial(self._call, traced)

    def _call(self, traced: _Traced, *arguments: Any) -> Any:
        """Run the sample in place of its graph."""
        if self.error is not None:
            return traced.graph(*arguments)
        conversion = traced.conversion
        self._foreign = (
            self._foreign
            or self._foreign_argument(traced, arguments)
            or self._foreign_seed(conversion.sample)
        )
        if traced.was_called:
            conversion = self._rebound(traced, arguments)
        traced.was_called = True
        self._samples.append(conversion.sample)
        self._reasons.append(traced.break_reason)
        if self.fakes is not None:
            results = traced.graph(*arguments)
        else:
            try:
                results = replay(conversion, arguments)
            except CaptureError as error:
                self.error = error
                return traced.graph(*arguments)
            except Exception as error:  # operators may raise any exception
                self.error = CaptureError(
                    f"A graph captured for `{self.settings.name}` does not run on the tensors of "
                    f"its call: {type(error).__name__}: {_first_paragraph(str(error))}"
                )
                self.error.__cause__ = error
                return traced.graph(*arguments)
        self._origins.add([arguments])
        self._origins.add([results], with_bytes=self.fakes is None)
        self._generator = torch.get_rng_state()
        return results

    def _foreign_seed(self, sample: Sample) -> str:
        """Describe a change of the generator that affects the next graph, or return ""."""
        if self.fakes is not None or torch.equal(self._generator, torch.get_rng_state()):
            return ""
        table_ops = (op for op in sample.ops if find_entry(op.target) is not None)
        if not any(map(draws_random_numbers, table_ops)):
            return ""
        return (
            f"graph {len(self._samples)} draws random numbers after the module has seeded or used "
            "torch's generator outside of the captured graphs"
        )

    def _foreign_constant(self) -> str:
        """Describe a number that Python computed before this graph, or return ""."""
        number = self._origins.first_foreign_number([_result_before_graph()])
        if number is None:
            return ""
        return (
            f"graph {len(self._samples)} is valid only for the number {number:g}, which was "
            "computed outside of the captured graphs"
        )

    def _foreign_argument(self, traced: _Traced, arguments: Sequence[Any]) -> str:
        """Describe an argument of the next graph from outside of the graphs, or return ""."""
        local = [
            argument
            for name, is_number, argument in zip(
                traced.placeholders, traced.is_number, arguments, strict=True
            )
            # Globals are not computed by a call, and dynamo converts Python numbers to tensors.
            if not name.startswith("G_") and not is_number
        ]
        tensor = self._origins.first_foreign(local)
        if tensor is None:
            return ""
        return (
            f"graph {len(self._samples)} takes a tensor ({describe(tensor)}) that was computed or "
            "changed outside of the captured graphs"
        )

    def note_breaks(self) -> None:
        """Record the reasons of all graph breaks, which a reset of dynamo clears.

        They include breaks before the first operator, which make no graph.
        """
        self._breaks = [_first_paragraph(str(entry.reason)) for entry in graph_break_reasons]

    def check_outputs(self, outputs: Any) -> None:
        """Raise `CaptureError` if part of the module ran outside the captured graphs."""
        foreign = self._foreign or self._foreign_result(outputs)
        if foreign:
            raise _UntracedError(
                f"`{self.settings.name}` cannot be captured whole: {foreign}. "
                + (_torch_reasons([*self._reasons, *self._breaks]) or "Torch reports no reason.")
                + " Change this part of the module, or capture the parts around it as modules of "
                "their own."
            )

    def _foreign_result(self, outputs: Any) -> str:
        """Describe a result of the call from outside of the captured graphs, or return ""."""
        if self._samples:
            tensor = self._origins.first_foreign([outputs])
            if tensor is not None:
                return (
                    f"an output ({describe(tensor)}) was computed or changed outside of the "
                    "captured graphs"
                )
            tensor = self._origins.first_foreign(self._tensors)
            if tensor is not None:
                return (
                    f"an argument or a tensor of the module ({describe(tensor)}) was changed "
                    "outside of the captured graphs"
                )
        if any((*self._reasons, *self._breaks)):
            number = self._origins.first_foreign_number([outputs])
            if number is not None:
                return (
                    f"an output (the number {number:g}) was computed outside of the captured graphs"
                )
        return ""

    @functools.cached_property
    def _weights(self) -> dict[int, tuple[Role, str, torch.Tensor]]:
        # First used during the module's call, when caches are filled and fake weights are in place.
        return _weights_by_identity(self._module, self.fakes)

    def finish(self) -> list[Sample]:
        """Return the samples, linked to each other if the graph was broken."""
        name, count = self.settings.name, len(self._samples)
        if not count:
            reasons = _torch_reasons([*_disabled(self._module), *self._breaks])
            raise _UntracedError(
                f"No graph was captured for `{name}`. "
                + (
                    f"{reasons} Change this part of the module, or capture the parts around it as "
                    "modules of their own."
                    if reasons
                    else "Torch reports no reason: it traced no function that computes on "
                    "tensors. Check that the module computes on tensors, and that neither it nor "
                    "its caller is disabled with `torch.compiler.disable`."
                )
            )
        if count == 1:
            (sample,), (reason,) = self._samples, self._reasons
            if not reason:
                return [sample]
            # The rest of the call does not compute on tensors.
            return [
                dataclasses.replace(
                    sample, provenance=dataclasses.replace(sample.provenance, break_reason=reason)
                )
            ]
        reasons = [reason or _SKIPPED for reason in self._reasons[:-1]] + self._reasons[-1:]
        return [
            dataclasses.replace(
                sample,
                id=f"{name}/subgraph_{index}",
                provenance=dataclasses.replace(
                    sample.provenance,
                    parent_id=name,
                    graph_index=index,
                    graph_count=count,
                    break_reason=reason,
                ),
            )
            for index, (sample, reason) in enumerate(zip(self._samples, reasons, strict=True))
        ]

    def _convert(
        self, graph_module: torch.fx.GraphModule, example_inputs: Sequence[Any]
    ) -> _Traced:
        nodes = [node for node in graph_module.graph.nodes if node.op == "placeholder"]
        placeholders = [str(node.target) for node in nodes]
        is_number = [
            bool(getattr(node.meta.get("grapharg"), "pass_arg_as_tensor", False)) for node in nodes
        ]
        for name, node, example in zip(placeholders, nodes, example_inputs, strict=True):
            refuse_constant_size(self.settings.name, name, example, node.meta.get("example_value"))
        bindings = list(map(self._binding, placeholders, example_inputs))
        settings = self.settings
        conversion = convert(
            graph_module,
            bindings,
            Naming(settings.name, settings.task, settings.provenance),
            value_key="example_value",
            module_path=self._module_path,
            has_gradients=torch.is_grad_enabled() or not self._has_gradients,
        )
        reason = _break_reason(graph_module)
        return _Traced(conversion, graph_module.forward, placeholders, is_number, reason)

    def _rebound(self, traced: _Traced, arguments: Sequence[Any]) -> Conversion:
        """Return the sample of another call of a graph, with its own tensors, sizes and numbers."""
        sample, inputs, hints = traced.conversion.sample, [], {}
        for item, source in zip(sample.inputs, traced.conversion.sources, strict=True):
            if not isinstance(source, int):
                inputs.append(item)
                continue
            argument = arguments[source]
            if item.role == "symbol":
                hints[item.source_name] = int(argument)
            elif item.role == "scalar":
                item = scalar_input(item.source_name, argument)
            else:
                binding = self._binding(traced.placeholders[source], argument)
                statistics, data = record(binding)
                item = dataclasses.replace(
                    item,
                    role=binding.role,
                    source_name=binding.source_name,
                    statistics=statistics,
                    data=data,
                )
            inputs.append(item)
        symbols = tuple(
            dataclasses.replace(symbol, hint=hints.get(symbol.name, symbol.hint))
            for symbol in sample.symbols
        )
        sample = dataclasses.replace(sample, inputs=tuple(inputs), symbols=symbols)
        return dataclasses.replace(traced.conversion, sample=sample)

    def _binding(self, placeholder: str, example: Any) -> Binding:
        if not isinstance(example, torch.Tensor):
            number = example if isinstance(example, bool | int | float) else None
            return Binding("scalar", placeholder, number=number)
        if id(example) not in self._weights:
            values = None if self.settings.is_structure_alone else _real(example)
            return Binding("input", placeholder, values)
        role, path, tensor = self._weights[id(example)]
        if self.settings.is_structure_alone:
            return Binding(role, source_name(path, role))
        return bind_weight(role, source_name(path, role), tensor, self.fakes is not None)

    def _module_path(self, stack: Mapping[str, Any]) -> str:
        if not stack:
            return ""
        # Keys are module ids, with a suffix for repeated calls of a module.
        key = list(stack)[-1].partition("@")[0]
        path = self._module_paths.get(int(key)) if key.isdigit() else None
        return path or ""


def bind_weight(role: Role, name: str, tensor: torch.Tensor, is_without_weights: bool) -> Binding:
    """Bind a weight to its measured statistics, or else to those of its initialiser.

    Without weights, running statistics have the constants set by the constructor, which are not
    realistic, so the defaults of their role are used.
    """
    real = _real(tensor)
    is_unused = is_without_weights and name.rstrip("_").endswith(("running_mean", "running_var"))
    if real is not None and not is_unused:
        return Binding(role, name, real)
    shape, dtype = tuple(tensor.shape), str(tensor.dtype).removeprefix("torch.")
    if is_unused:
        return Binding(role, name, statistics=default_statistics(role, name, shape, dtype))
    return Binding(role, name, statistics=weight_statistics(tensor, role, name, shape, dtype))


def source_name(path: str, role: Role) -> str:
    """Return the name that dynamo, and so GraphNet, uses for a weight of the root module.

    >>> source_name("encoder.0.weight", "parameter")
    'L_self_modules_encoder_modules_0_parameters_weight_'
    """
    *modules, name = path.split(".")
    kind = {"parameter": "parameters", "buffer": "buffers"}.get(role)
    parts = [f"modules_{part}" for part in modules] + [f"{kind}_{name}_" if kind else name]
    return "L_self_" + "_".join(re.sub(r"\W", "_", part) for part in parts)


def _weights_by_identity(
    module: torch.nn.Module, fakes: FakeWeights | None
) -> dict[int, tuple[Role, str, torch.Tensor]]:
    """Return the role, dotted path and original of every tensor in the module, by `id`.

    Call this while fake weights are in place. A tensor stored as a plain attribute counts as a
    constant.
    """
    originals = {} if fakes is None else fakes.originals
    weights: dict[int, tuple[Role, str, torch.Tensor]] = {}
    named: tuple[tuple[Role, Any], ...] = (
        ("parameter", module.named_parameters()),
        ("buffer", module.named_buffers()),
        ("constant", _plain_tensors(module)),
    )
    for role, tensors in named:
        for path, tensor in tensors:
            weights.setdefault(id(tensor), (role, path, originals.get(id(tensor), tensor)))
    return weights


def _plain_tensors(module: torch.nn.Module) -> Iterator[tuple[str, torch.Tensor]]:
    for path, submodule in module.named_modules():
        for name, attribute in vars(submodule).items():
            if isinstance(attribute, list | tuple):
                items = enumerate(attribute)
            elif isinstance(attribute, dict) and not name.startswith("_"):
                items = attribute.items()
            else:
                items = (("", attribute),)
            for index, item in items:
                if isinstance(item, torch.Tensor):
                    yield ".".join(filter(None, (path, f"{name}{index}"))), item


def _real(tensor: torch.Tensor) -> torch.Tensor | None:
    return None if tensor.is_meta or isinstance(tensor, FakeTensor) else tensor


def _top_frame(module: torch.nn.Module, forward: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that dynamo traces from its first line.

    Dynamo skips outermost frames that are in torch's own files: a `Sequential` would give one graph
    per child, a `Linear` none, and hooks one graph each.
    """
    is_skipped = (
        isinstance(module, torch.fx.GraphModule | torch.jit.ScriptModule)
        or type(module).forward.__module__.startswith("torch.")
        or bool(module._forward_hooks or module._forward_pre_hooks)
    )
    if not is_skipped:
        return forward

    def call(*args: Any, **kwargs: Any) -> Any:
        return forward(*args, **kwargs)

    return call


@contextlib.contextmanager
def silent() -> Iterator[None]:
    """Suppress output, warnings and torch's log of problems while a module is called again.

    Errors of the trace are raised. Messages enabled by `TORCH_LOGS` are kept.
    """

    def is_asked_for(record: logging.LogRecord) -> bool:
        return record.name.startswith("torch") and record.levelno < logging.WARNING

    loggers = [
        logger
        for name, logger in list(logging.root.manager.loggerDict.items())
        if name.startswith("torch") and isinstance(logger, logging.Logger)
    ]
    handlers = {handler for logger in (logging.root, *loggers) for handler in logger.handlers}
    for handler in handlers:
        handler.addFilter(is_asked_for)
    try:
        with (
            contextlib.redirect_stdout(io.StringIO()),
            contextlib.redirect_stderr(io.StringIO()),
            warnings.catch_warnings(),
        ):
            warnings.simplefilter("ignore")
            yield
    finally:
        for handler in handlers:
            handler.removeFilter(is_asked_for)


@contextlib.contextmanager
def _quiet_dynamo() -> Iterator[None]:
    # Logging calls must not break the graph.
    logging_functions = {
        getattr(logging.Logger, name, logging.Logger.log) for name in (*_LOGGED, *_ONCE)
    }
    settings = {**_DYNAMO_SETTINGS, "ignore_logging_functions": logging_functions}
    with _dynamo_settings(settings), _returned_views(), warnings.catch_warnings():
        # Graph breaks are recorded in the samples. The tracer's other warnings, such as looking up
        # gradients of tensors without gradients, are not about the module.
        warnings.filterwarnings("ignore", module=r"torch\.(_dynamo|_subclasses|fx)\.")
        yield


@contextlib.contextmanager
def _returned_views() -> Iterator[None]:
    """Make `x.mT` and other views a result of the graph that computes it.

    Dynamo knows where it found `x`, and would leave the view to code that follows the graph.
    """
    original = TensorVariable.var_getattr

    def var_getattr(self: TensorVariable, tx: Any, name: str) -> Any:
        result = original(self, tx, name)
        if isinstance(result, TensorVariable) and name in _VIEWS:
            result.source = None
        return result

    TensorVariable.var_getattr = var_getattr
    try:
        yield
    finally:
        TensorVariable.var_getattr = original


def _dynamo_settings(settings: Mapping[str, Any]) -> contextlib.AbstractContextManager[Any]:
    """Return a context with dynamo settings, without those that the installed torch lacks."""
    supported = {name: value for name, value in settings.items() if _has_setting(name)}
    return torch._dynamo.config.patch(supported)


def _has_setting(name: str) -> bool:
    try:
        getattr(torch._dynamo.config, name)
    except AttributeError:
        return False
    return True


def _is_all(graph_module: torch.fx.GraphModule) -> bool:
    """Return whether a graph is the entire first frame that dynamo traced since its reset."""
    compile_id = CompileContext.current_compile_id()
    reason = getattr(graph_module, "compile_subgraph_reason", None)
    is_first = compile_id is not None and str(compile_id) == "0/0"
    return is_first and reason is not None and not getattr(reason, "graph_break", True)


def _result_before_graph() -> Any:
    """Return the result of the call that broke the graph if the next graph, traced now, reads it.

    Dynamo passes it as the last value of the stack to the function that continues the frame.
    Numbers in it are constants of the graph.
    """
    tracer = InstructionTranslator.current_tx()
    stack = [name for name in tracer.f_locals if name.startswith("___stack")]
    if not stack or not tracer.f_code.co_name.startswith(TORCH_DYNAMO_RESUME_IN_PREFIX):
        return None
    last = max(stack, key=lambda name: int(name.removeprefix("___stack")))
    is_read = any(f"'{last}'" in guard.name for guard in tracer.output.guards)
    return tracer.f_locals[last] if is_read else None


def _end_call(*_: Any) -> Any:
    raise _AllCaptured


def _break_reason(graph_module: torch.fx.GraphModule) -> str:
    reason = getattr(graph_module, "compile_subgraph_reason", None)
    if reason is None or not getattr(reason, "graph_break", True):
        return ""
    return _first_paragraph(str(reason.reason))


def _disabled(module: torch.nn.Module) -> list[str]:
    """Return the reason if the whole module is disabled, which dynamo does not report."""
    if not getattr(module.forward, "_torchdynamo_disable", False):
        return []
    reason = getattr(module.forward, "_torchdynamo_disable_msg", None)
    return [
        f"`{type(module).__name__}.forward` is wrapped with `torch.compiler.disable` "
        f"(reason: {reason})"
    ]


def _torch_reasons(reasons: Sequence[str]) -> str:
    """Return torch's explanations of graph breaks and skipped functions.

    The result is empty if torch reports none.
    """
    texts = [*filter(None, reasons)]
    for kind in ("graph_break", "unimplemented", "resource_limit"):
        texts += map(_first_paragraph, counters.get(kind, {}))
    if not texts:
        return ""
    return "Torch reports: " + " ".join(
        text if text.endswith((".", ")", "!")) else f"{text}." for text in dict.fromkeys(texts)
    )


def _first_paragraph(text: str) -> str:
    """Return the first paragraph of a dynamo message on one line.

    Memory addresses are removed, and so are the folders in which packages are installed.
    """
    paragraph = " ".join(_ADDRESS.sub("", _END_OF_REASON.split(text, maxsplit=1)[0]).split())
    return without_folders(paragraph).removesuffix(" Explanation:")[:1000]
