"""Capture of one call of a live `paddle.nn.Layer` as a sample, through `paddle.jit.to_static`."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import paddle
import paddle.version

from ...errors import CaptureError, SampleError
from ...sample import Input, Provenance, Sample, Symbol, Value
from ...sample.arguments import Arg, DictArg, ListArg, Ref
from ...sample.symbols import Dim
from ...sample.vocabulary import ITEM_SIZE_BYTES, Role, Task
from .dynamic_shapes import with_symbolic_results
from .operators import BATCH_NORMS
from .program import ProgramReader
from .replay import check_capture, tensor_leaves
from .statistics import elements_to_store, measure
from .tracing import Randomness, trace

_SCALARS = (bool, int, float, str, type(None))


@dataclasses.dataclass(frozen=True, slots=True)
class CaptureSettings:
    """Name and metadata of the samples that a capture produces."""

    name: str
    task: Task
    provenance: Provenance
    is_dynamic: bool = False


def capture(
    layer: paddle.nn.Layer,
    call: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    settings: CaptureSettings,
) -> tuple[Any, Sample]:
    """Return the outputs of `call(*args, **kwargs)` and the sample of that call of `layer`.

    Tensors anywhere in lists, tuples and dictionaries of the arguments become data inputs; other
    arguments are constants in the sample. First, a copy of the layer is traced. Then `call` runs
    once, as it would without a capture. Last, the sample runs on the same tensors, and its outputs
    are compared with those of the call.

    Raises:
        CaptureError: the layer cannot be traced into one program, calls an operator that is not in
            the table, or the sample's outputs differ from the layer's.
    """
    tensors, rebuild = _flatten((args, kwargs))
    symbols = _symbols(tensors) if settings.is_dynamic else {}
    specs = [_specification(tensor, symbols) for tensor in tensors] if symbols else None
    try:
        traced = trace(layer, rebuild, tensors, specs)
    except Exception as error:
        # Paddle's message starts with the whole transformed source; the cause is on the last line.
        reason = str(error).strip().rpartition("\n")[2].strip()
        reason = reason.removeprefix(f"{type(error).__name__}: ").removesuffix(".")
        raise CaptureError(
            f"`{settings.name}` cannot be traced into one program: {type(error).__name__}: "
            f"{reason[:600]}. `paddle.jit.to_static` has to accept the layer."
        ) from error
    graph = _Capture(layer, tensors, traced, settings, symbols)
    versions = [parameter.inplace_version for parameter in graph.parameters]
    before = Randomness()
    outputs = call(*args, **kwargs)
    sample = graph.sample(outputs)
    if versions != [parameter.inplace_version for parameter in graph.parameters]:
        raise CaptureError(
            f"`{settings.name}` writes to a parameter during its call, which a sample cannot "
            "represent. Write to a buffer, or to a copy of the parameter."
        )
    check_capture(sample, graph.values, tensor_leaves(outputs), before)
    return outputs, with_symbolic_results(sample) if symbols else sample


class _Capture:
    """A sample under construction from one traced program; `values` holds its inputs before the
    call."""

    def __init__(
        self,
        layer: paddle.nn.Layer,
        tensors: list[paddle.Tensor],
        traced: Any,
        settings: CaptureSettings,
        symbols: Mapping[int, Symbol],
    ) -> None:
        self.layer = layer
        self.tensors = tensors
        self.traced = traced
        self.settings = settings
        self.symbols = symbols
        name = settings.name
        program_weights, weight_values = self._weights()
        self.output_values = _leaves(traced.outputs)
        reader = ProgramReader(name, [*weight_values, *_leaves(traced.inputs)], self.output_values)
        reader.read(traced.main_program.global_block())
        self.reader = reader
        running = {
            ref.index
            for op in reader.ops
            if op.target in BATCH_NORMS
            for ref in op.args[1:3]
            if isinstance(ref, Ref)
        }
        # Paddle stores the running statistics of batch norms as parameters.
        weights: list[tuple[Role, paddle.Tensor, str]] = [
            ("buffer" if index in running else role, tensor, path)
            for index, (role, tensor, path) in enumerate(program_weights)
        ]
        data: list[tuple[Role, paddle.Tensor, str]] = [("input", tensor, "") for tensor in tensors]
        tensors_in_order = [*weights, *data]
        self.inputs = [self._input(*entry) for entry in tensors_in_order]
        # Copy the inputs and buffers, since the call may modify them. Parameters are too large to
        # copy.
        self.parameters = [tensor for role, tensor, _ in weights if role == "parameter"]
        self.values = [
            tensor if role == "parameter" else _copy(tensor) for role, tensor, _ in tensors_in_order
        ]

    def sample(self, outputs: Any) -> Sample:
        """Return the sample of a call that returned `outputs`.

        Raises:
            CaptureError: the outputs cannot be represented in a sample.
        """
        name, reader = self.settings.name, self.reader
        if len(tensor_leaves(outputs)) != len(self.output_values):
            raise CaptureError(
                f"`{name}` returns {len(tensor_leaves(outputs))} tensors, and its traced program "
                f"{len(self.output_values)}. Return the tensors in lists, tuples and dictionaries."
            )
        provenance = self.settings.provenance
        provenance = dataclasses.replace(
            provenance,
            model_name=provenance.model_name or type(self.layer).__name__,
            capture="to_static",
            framework_version=paddle.version.full_version,
            mode="train" if self.layer.training else "eval",
        )
        try:
            return Sample(
                id=name,
                framework="paddle",
                task=self.settings.task,
                inputs=tuple(self.inputs),
                ops=tuple(reader.ops),
                outputs=_structure(outputs, iter(map(reader.value_of, self.output_values))),
                symbols=tuple(self.symbols.values()),
                provenance=provenance,
            )
        except SampleError as error:
            raise CaptureError(f"`{name}` cannot be captured: {error}") from error

    def _weights(self) -> tuple[list[tuple[Role, paddle.Tensor, str]], list[Any]]:
        """Return the role, tensor and path of each program weight, and the program's values of
        the weights."""
        tensors, values = self.traced.parameters
        parameters = {id(tensor): path for path, tensor in self.layer.named_parameters()}
        buffers = {id(tensor): path for path, tensor in self.layer.named_buffers()}
        weights: list[tuple[Role, paddle.Tensor, str]] = []
        for tensor in tensors:
            if id(tensor) in parameters:
                weights.append(("parameter", tensor, parameters[id(tensor)]))
            elif id(tensor) in buffers:
                weights.append(("buffer", tensor, buffers[id(tensor)]))
            else:
                weights.append(("constant", tensor, ""))
        return weights, list(values)

    def _input(self, role: Role, tensor: paddle.Tensor, path: str) -> Input:
        dtype = str(tensor.dtype).rpartition(".")[2]
        if dtype not in ITEM_SIZE_BYTES:
            raise CaptureError(f"`{self.settings.name}` takes a tensor of {dtype[:40]}.")
        shape: list[Dim] = list(tensor.shape)
        if role == "input" and shape and shape[0] in self.symbols:
            shape[0] = self.symbols[tensor.shape[0]].name
        value = Value(dtype, tuple(shape))
        if not tensor._is_initialized():  # e.g. dropout state of an RNN before training
            return Input(role, value, path)
        data = elements_to_store(tensor, role)
        return Input(role, value, path, "cpu", measure(tensor), data)


def _copy(tensor: paddle.Tensor) -> paddle.Tensor:
    """Return a detached copy of a tensor, or the tensor itself if it is uninitialized."""
    return tensor.detach().clone() if tensor._is_initialized() else tensor


def _symbols(tensors: list[paddle.Tensor]) -> dict[int, Symbol]:
    """Return one symbol for each distinct first dimension of the data inputs."""
    sizes = dict.fromkeys(tensor.shape[0] for tensor in tensors if tensor.ndim)
    return {size: Symbol(f"s{index}", size, 1) for index, size in enumerate(sizes)}


def _specification(tensor: paddle.Tensor, symbols: Mapping[int, Symbol]) -> Any:
    shape: list[int | None] = list(tensor.shape)
    if shape and shape[0] in symbols:
        shape[0] = None
    return paddle.static.InputSpec(shape, tensor.dtype, stop_gradient=True)


def _flatten(structure: Any) -> tuple[list[paddle.Tensor], Callable[[Any], Any]]:
    """Return the tensors in nested arguments, and a function that rebuilds the arguments from
    new tensors."""
    tensors: list[paddle.Tensor] = []

    def visit(node: Any) -> Any:
        if isinstance(node, paddle.Tensor):
            tensors.append(node)
            return _Slot(len(tensors) - 1)
        if isinstance(node, dict):
            return {key: visit(item) for key, item in node.items()}
        if isinstance(node, list | tuple):
            return type(node)(map(visit, node))
        if not isinstance(node, _SCALARS):
            raise CaptureError(
                f"An argument of the layer is a `{type(node).__name__}`; supported are tensors, "
                "numbers and strings, in lists, tuples and dictionaries."
            )
        return node

    template = visit(structure)
    return tensors, _Rebuild(template)


class _Slot:
    """Placeholder for tensor `index` in a nested structure."""

    def __init__(self, index: int) -> None:
        self.index = index


class _Rebuild:
    """Callable that replaces the slots of a nested structure with tensors."""

    def __init__(self, template: Any) -> None:
        self.template = template

    @paddle.jit.not_to_static
    def __call__(self, tensors: Any) -> Any:
        return self._fill(self.template, tensors)

    def _fill(self, node: Any, tensors: Any) -> Any:
        if isinstance(node, _Slot):
            return tensors[node.index]
        if isinstance(node, dict):
            return {key: self._fill(item, tensors) for key, item in node.items()}
        if isinstance(node, list | tuple):
            return type(node)([self._fill(item, tensors) for item in node])
        return node


def _leaves(structure: Any) -> list[Any]:
    if isinstance(structure, dict):
        return [leaf for item in structure.values() for leaf in _leaves(item)]
    if isinstance(structure, list | tuple):
        return [leaf for item in structure for leaf in _leaves(item)]
    return [structure] if hasattr(structure, "get_defining_op") else []


def _structure(node: Any, args: Iterator[Arg]) -> Arg:
    """Return the structure of the outputs, with each tensor replaced by the next item of `args`."""
    if isinstance(node, paddle.Tensor):
        return next(args)
    if isinstance(node, dict):
        return DictArg(tuple((str(key), _structure(item, args)) for key, item in node.items()))
    if isinstance(node, list):
        return ListArg(tuple(_structure(item, args) for item in node))
    if isinstance(node, tuple):
        return tuple(_structure(item, args) for item in node)
    if isinstance(node, _SCALARS):
        return node
    raise CaptureError(f"The layer returns a `{type(node).__name__}`, which a graph cannot.")
