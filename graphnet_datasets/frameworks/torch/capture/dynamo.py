"""Capture at call time: a `torch.compile` backend that turns each graph into a `Sample`."""

from __future__ import annotations

import contextlib
import copy
import dataclasses
import functools
import logging
import re
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import torch
import torch._dynamo
from torch._dynamo.exc import TorchDynamoException
from torch._guards import CompileContext
from torch._subclasses.fake_tensor import FakeTensor

from ....errors import CaptureError, GraphNetError
from ....inputs import default_statistics
from ....sample import Provenance, Sample
from ....sample.vocabulary import Role, Task
from .convert import Binding, Naming, convert
from .fake_weights import FakeWeights, fake_weights, has_weights
from .initialisers import weight_statistics

_DYNAMO_SETTINGS: Mapping[str, Any] = {
    "capture_scalar_outputs": True,  # `.item()` stays in the graph instead of breaking it
    "capture_dynamic_output_shape_ops": True,  # so do `nonzero` and masked indexing
    "allow_rnn": True,  # `torch.nn.LSTM` and its kin are operators of their own
    "specialize_float": True,  # eps and momentum are constants even where sizes are symbols
    "recompile_limit": 10_000,  # one class captured often must not fall back to eager
    "suppress_errors": False,
    "run_gc_after_compile": False,  # it is for what a compiler leaves behind
    "verbose": False,
}

_LOGGED = ("debug", "info", "warning", "error", "critical", "exception", "log")
_ONCE = ("warning_once", "info_once", "warning_advice")
"""What libraries add to the standard logger."""

_FIRST_PARAGRAPH = re.compile(r"\n\s*(Hint|Developer debug context|For more details|Traceback)")


@dataclasses.dataclass(frozen=True)
class CaptureSettings:
    """How to capture, and what the samples shall say of themselves.

    `dynamic` makes the sizes of data inputs symbols (`torch._dynamo.mark_dynamic` marks single
    ones). `warm_up` calls the module once, on copies of the arguments, before the capture: modules
    that fill caches in their first call break the graph there and only there. With
    `is_structure_alone` nothing is recorded of the elements of inputs, and a graph that is all of
    the module is not run: the call gives None.
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
    """Call `forward` and return what it gives and a sample per graph that dynamo captured.

    `forward` is `module`'s call. If weights of `module` have no elements (meta device), fake
    tensors stand for them and what comes back is fake too. Dynamo's caches are cleared before
    and after, so that what was compiled before does not show in the graphs.

    Raises:
        CaptureError: dynamo cannot trace the module, no graph came out, or a graph holds
            something that a sample cannot.
    """
    copies = _copied(args, kwargs) if settings.warm_up else None
    with contextlib.ExitStack() as stack:
        fakes = None
        if not has_weights(module):
            fakes = stack.enter_context(fake_weights(module))
            stack.enter_context(fakes.mode)
        backend = _Backend(module, fakes, settings)
        stack.enter_context(_quiet_dynamo())
        if copies is not None:
            with torch.random.fork_rng(devices=[]), torch.no_grad():
                forward(*copies[0], **copies[1])
        for _, tensor in _plain_tensors(module):
            torch._dynamo.mark_static(tensor)
        torch.compiler.reset()
        stack.callback(torch.compiler.reset)
        compiled = torch.compile(
            _top_frame(module, forward), backend=backend, dynamic=settings.dynamic
        )
        outputs = None
        try:
            outputs = compiled(*args, **kwargs)
        except _AllCaptured:
            pass
        except TorchDynamoException as error:
            if backend.error is None:
                raise CaptureError(
                    f"`{settings.name}` cannot be traced: {_first_paragraph(str(error))}"
                ) from error
    if backend.error is not None:
        raise backend.error
    return outputs, backend.finish()


class _AllCaptured(BaseException):
    """Ends a call whose graph is captured; no module's handler of exceptions is in its way."""


class _Backend:
    """Converts each graph while its fake results are still there, then lets it run as it is."""

    def __init__(
        self, module: torch.nn.Module, fakes: FakeWeights | None, settings: CaptureSettings
    ) -> None:
        self.settings = settings
        self.error: GraphNetError | None = None
        self.fakes = fakes
        self._module = module
        self._module_paths = {id(each): path for path, each in module.named_modules()}
        self._samples: list[Sample] = []
        self._reasons: list[str] = []

    def __call__(
        self, graph_module: torch.fx.GraphModule, example_inputs: Sequence[Any]
    ) -> Callable[..., Any]:
        if self.error is None:
            try:
                self._samples.append(self._convert(graph_module, example_inputs))
                self._reasons.append(_break_reason(graph_module))
            except GraphNetError as error:
                self.error = error  # raised here it would be wrapped, and its type lost
            if self.settings.is_structure_alone and _is_all(graph_module):
                return _end_call
        return graph_module.forward

    @functools.cached_property
    def _weights(self) -> dict[int, tuple[Role, str, torch.Tensor]]:
        # Asked for first while the module is called, when its caches are filled and fakes stand in.
        return _weights_by_identity(self._module, self.fakes)

    def finish(self) -> list[Sample]:
        """Return the samples, linked to each other where the capture broke into several."""
        name, count = self.settings.name, len(self._samples)
        if not count:
            raise CaptureError(
                f"No graph was captured for `{name}`: the call ran no tensor operation that "
                "dynamo traces. Check that the module computes on tensors, and that it is not "
                "already compiled or disabled with `torch.compiler.disable`."
            )
        if count == 1:
            return self._samples
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
            for index, (sample, reason) in enumerate(zip(self._samples, self._reasons, strict=True))
        ]

    def _convert(self, graph_module: torch.fx.GraphModule, example_inputs: Sequence[Any]) -> Sample:
        placeholders = [node for node in graph_module.graph.nodes if node.op == "placeholder"]
        bindings = [
            self._binding(str(node.target), example)
            for node, example in zip(placeholders, example_inputs, strict=True)
        ]
        settings = self.settings
        return convert(
            graph_module,
            bindings,
            Naming(settings.name, settings.task, settings.provenance),
            value_key="example_value",
            module_path=self._module_path,
        )

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
        # Keys are identities of modules, with a suffix where a module is called again.
        key = list(stack)[-1].partition("@")[0]
        path = self._module_paths.get(int(key)) if key.isdigit() else None
        return path or ""


def bind_weight(role: Role, name: str, tensor: torch.Tensor, is_without_weights: bool) -> Binding:
    """Return the binding of a weight: measured where it has elements, else by its initialiser.

    The running statistics of a module without weights are those of its constructor, constant and
    so of no use: their role's defaults stand in.
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
    """Return the name that dynamo, and so GraphNet, gives to a weight of the root module.

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
    """Return role, dotted path and original of every tensor that the module holds.

    Called while fakes stand in for weights. A tensor that is a plain attribute of a module is a
    constant of the program.
    """
    originals = {} if fakes is None else fakes.originals
    found: dict[int, tuple[Role, str, torch.Tensor]] = {}
    named: tuple[tuple[Role, Any], ...] = (
        ("parameter", module.named_parameters()),
        ("buffer", module.named_buffers()),
        ("constant", _plain_tensors(module)),
    )
    for role, tensors in named:
        for path, tensor in tensors:
            found.setdefault(id(tensor), (role, path, originals.get(id(tensor), tensor)))
    return found


def _plain_tensors(module: torch.nn.Module) -> Iterator[tuple[str, torch.Tensor]]:
    for path, each in module.named_modules():
        for name, held in vars(each).items():
            if isinstance(held, list | tuple):
                items = enumerate(held)
            elif isinstance(held, dict) and not name.startswith("_"):
                items = held.items()
            else:
                items = (("", held),)
            for index, item in items:
                if isinstance(item, torch.Tensor):
                    yield ".".join(filter(None, (path, f"{name}{index}"))), item


def _real(tensor: torch.Tensor) -> torch.Tensor | None:
    return None if tensor.is_meta or isinstance(tensor, FakeTensor) else tensor


def _top_frame(module: torch.nn.Module, forward: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that dynamo traces from its first line.

    Dynamo skips frames of torch's own files at the top, though it traces into them from elsewhere:
    a `Sequential` would give a graph per child, and a `Linear` none.
    """
    if not type(module).forward.__module__.startswith("torch."):
        return forward

    def call(*args: Any, **kwargs: Any) -> Any:
        return forward(*args, **kwargs)

    return call


def _copied(
    args: Sequence[Any], kwargs: Mapping[str, Any]
) -> tuple[tuple[Any, ...], dict[str, Any]] | None:
    """Return copies of the arguments, or None where one cannot be copied."""
    try:
        return copy.deepcopy((tuple(args), dict(kwargs)))
    except (RuntimeError, TypeError, NotImplementedError):
        return None


@contextlib.contextmanager
def _quiet_dynamo() -> Iterator[None]:
    # A message is not part of a graph, and breaks none.
    said = {getattr(logging.Logger, name, logging.Logger.log) for name in (*_LOGGED, *_ONCE)}
    settings = {**_DYNAMO_SETTINGS, "ignore_logging_functions": said}
    known = {name: value for name, value in settings.items() if _has_setting(name)}
    with torch._dynamo.config.patch(known), warnings.catch_warnings():
        # Breaks are recorded in the samples, and what else the tracer warns of (a gradient that it
        # looks for on a tensor that has none) is about itself, not about the module.
        warnings.filterwarnings("ignore", module=r"torch\.(_dynamo|_subclasses|fx)\.")
        yield


def _has_setting(name: str) -> bool:
    try:
        getattr(torch._dynamo.config, name)
    except AttributeError:
        return False
    return True


def _is_all(graph_module: torch.fx.GraphModule) -> bool:
    """Tell whether a graph is the whole of the first frame that dynamo traced since its reset."""
    compile_id = CompileContext.current_compile_id()
    reason = getattr(graph_module, "compile_subgraph_reason", None)
    is_first = compile_id is not None and str(compile_id) == "0/0"
    return is_first and reason is not None and not getattr(reason, "graph_break", True)


def _end_call(*_: Any) -> Any:
    raise _AllCaptured


def _break_reason(graph_module: torch.fx.GraphModule) -> str:
    reason = getattr(graph_module, "compile_subgraph_reason", None)
    if reason is None or not getattr(reason, "graph_break", True):
        return ""
    return _first_paragraph(str(reason.reason))


def _first_paragraph(text: str) -> str:
    """Return the part of a message of dynamo's that says what happened, on one line."""
    return " ".join(_FIRST_PARAGRAPH.split(text, maxsplit=1)[0].split())[:1000]
