"""Conversion of a traced `torch.fx` graph to a `Sample`.

Graphs from dynamo and from export are converted alike. The tracer supplies a `Binding` for each
placeholder, which may be a weight, a data input or a symbol.
"""

from __future__ import annotations

import copy
import dataclasses
import math
import operator
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import torch
from torch._subclasses.fake_tensor import is_fake, unset_fake_temporarily

from ....errors import CaptureError, GraphNetError, UnknownOperatorError
from ....sample import CustomOperator, Input, Op, Provenance, Sample, Statistics, Value
from ....sample.arguments import Arg, DictArg, Graph, ListArg, Named, Ref, SliceArg
from ....sample.symbols import Dim
from ....sample.targets import is_assertion
from ....sample.vocabulary import ITEM_SIZE_BYTES, Role, Task
from ..operators import name_of
from ..statistics import elements_to_store, measure
from .custom_sources import find_custom_operator
from .symbolic import SymbolTable, UnknownSizeError
from .targets import attribute, items, plain_name, qualified_name

_NO_COMPUTATION = frozenset({"_log_api_usage_once", "lazy_load_decompositions"})
"""Calls that dynamo records although they compute nothing and only change process state."""

_AUTOGRAD_FUNCTION = "autograd_function_apply"

_INLINED = frozenset(
    {
        "wrap_with_set_grad_enabled", "wrap_with_autocast", "tag_activation_checkpoint",
        _AUTOGRAD_FUNCTION,
    }
)  # fmt: skip
"""Higher-order operators that run their body exactly once; the body is inlined in their place."""


_ENTER_AUTOCAST = "torch.amp.autocast_mode._enter_autocast"
_EXIT_AUTOCAST = "torch.amp.autocast_mode._exit_autocast"
_GRAD_MODE = "torch._C._set_grad_enabled"

_NODE_NAME = re.compile(r" on node '\w+'")
_UNBACKED = re.compile(r"\bu\d+\b")
"""A symbol for a data-dependent size, numbered by the tracer."""


@dataclasses.dataclass(frozen=True)
class Binding:
    """Origin and contents of a placeholder.

    `values` is the bound tensor, or None for a weight without elements, which has `statistics`
    instead. `number` is the value of a Python scalar.
    """

    role: Role
    source_name: str
    values: torch.Tensor | None = None
    statistics: Statistics | None = None
    number: bool | int | float | None = None


def record(binding: Binding) -> tuple[Statistics | None, bytes | None]:
    """Return the statistics of a tensor, and its elements if the sample must store them."""
    if binding.values is None:
        return binding.statistics, None
    with unset_fake_temporarily():  # a capture without weights would make these tensors fake
        return measure(binding.values), elements_to_store(binding.values, binding.role)


@dataclasses.dataclass(frozen=True)
class Naming:
    """Id, task and provenance of a sample, which the graph does not contain."""

    id: str
    task: Task
    provenance: Provenance


@dataclasses.dataclass(frozen=True)
class Conversion:
    """A sample, and the origin of its inputs in the traced graph.

    `sources` has one entry per input: the index of the placeholder it comes from, or a constant
    tensor of the graph.
    """

    sample: Sample
    sources: tuple[int | torch.Tensor, ...]

    def bind(self, arguments: Sequence[Any]) -> dict[str, Any]:
        """Map the arguments of the traced graph to the sample's inputs by name."""
        return {
            name: arguments[source] if isinstance(source, int) else source
            for name, source in zip(self.sample.input_names, self.sources, strict=True)
        }


def convert(
    graph_module: torch.fx.GraphModule,
    bindings: Sequence[Binding],
    naming: Naming,
    *,
    value_key: str,
    module_path: Callable[[Mapping[str, Any]], str],
    outputs: Sequence[int] | None = None,
    has_gradients: bool = True,
) -> Conversion:
    """Convert `graph_module` to a sample, in the autocast that is enabled now.

    `bindings` has one entry per placeholder, in order. `value_key` is the `node.meta` key of a
    node's fake result (`example_value` for dynamo, `val` for export). `module_path` converts a
    node's module stack to a dotted path. `outputs` selects outputs of the graph by index. Unless
    `has_gradients`, the sample runs without gradients.

    Raises:
        CaptureError: If the graph calls an unknown operator, or has an argument that a sample
            cannot store.
    """
    converter = _Converter(graph_module, naming, value_key, module_path)
    return converter.convert(bindings, outputs, has_gradients)


class _Converter:
    def __init__(
        self,
        graph_module: torch.fx.GraphModule,
        naming: Naming,
        value_key: str,
        module_path: Callable[[Mapping[str, Any]], str],
    ) -> None:
        self.graph_module = graph_module
        self.naming = naming
        self.value_key = value_key
        self.module_path = module_path
        self.symbols = SymbolTable()
        self.inputs: list[Input] = []
        self.sources: list[int | torch.Tensor] = []
        self.ops: list[Op] = []
        self.refs: dict[torch.fx.Node, Arg] = {}
        self.outputs: Arg = ()
        self.custom_operators: dict[str, CustomOperator] = {}
        self.unbacked: dict[str, str] = {}
        self.is_body = False

    def convert(
        self, bindings: Sequence[Binding], outputs: Sequence[int] | None, has_gradients: bool
    ) -> Conversion:
        nodes = list(self.graph_module.graph.nodes)
        placeholders = [node for node in nodes if node.op == "placeholder"]
        for position, (node, binding) in enumerate(zip(placeholders, bindings, strict=True)):
            num_inputs = len(self.inputs)
            self._add_placeholder(node, binding)
            self.sources += [position] * (len(self.inputs) - num_inputs)
        self._add_constants(self.graph_module)
        closers = self._open_regions(has_gradients)
        for node in nodes:
            self._add_node(self.graph_module, node)
        self.ops += closers
        if outputs is not None and isinstance(self.outputs, tuple):
            self.outputs = tuple(self.outputs[index] for index in outputs)
        sample = Sample(
            id=self.naming.id,
            framework="torch",
            task=self.naming.task,
            inputs=tuple(self.inputs),
            ops=tuple(self.ops),
            outputs=self.outputs,
            symbols=self.symbols.symbols(),
            constraints=self.symbols.constraints(),
            provenance=self.naming.provenance,
            custom_operators=tuple(self.custom_operators.values()),
        )
        return Conversion(sample, tuple(self.sources))

    # Inputs

    def _add_input(self, node: torch.fx.Node, graph_input: Input) -> None:
        self.refs[node] = Ref(len(self.inputs))
        self.inputs.append(graph_input)

    def _add_placeholder(self, node: torch.fx.Node, binding: Binding) -> None:
        example = node.meta.get(self.value_key)
        if isinstance(example, torch.Tensor):
            self._add_input(node, self._tensor_input(example, binding))
        elif isinstance(example, torch.SymInt):
            if not node.users:
                return  # input shapes already contain this symbol
            dim = self._placeholder_size(example, binding)
            if isinstance(dim, int):  # the trace specialized on a single value
                self._add_input(node, scalar_input(binding.source_name, dim))
            else:
                self._add_input(node, Input("symbol", Value("int64", ()), source_name=dim))
        elif isinstance(binding.number, bool | int | float):
            if node.users:
                self._add_input(node, scalar_input(binding.source_name, binding.number))
        elif not node.users:
            return  # an argument that the trace specialized on, such as a string or None
        else:
            raise self._error(
                f"The argument `{binding.source_name}` is of type `{type(example).__name__}`, but "
                "must be a tensor or a number. Pass it to the constructor of the module instead."
            )

    def _placeholder_size(self, example: torch.SymInt, binding: Binding) -> Dim:
        try:
            return self.symbols.dim(example)
        except UnknownSizeError as error:
            raise self._error(
                f"The size `{binding.source_name}` has no value in the trace. Mark dimensions with "
                "`torch._dynamo.mark_dynamic` instead of `mark_unbacked`."
            ) from error

    def _tensor_input(self, example: torch.Tensor, binding: Binding) -> Input:
        for tensor in (example, binding.values):
            if tensor is not None and (tensor.is_nested or tensor.layout is not torch.strided):
                layout = "nested" if tensor.is_nested else str(tensor.layout)
                raise self._error(
                    f"The input `{binding.source_name}` has the layout {layout}; only "
                    "torch.strided is supported. Pass a dense tensor (`tensor.to_dense()`) and "
                    "convert it inside the module."
                )
        value = self._value(example)
        if value.dtype is None or value.shape is None:
            raise self._error(
                f"The dtype {example.dtype} or shape of the input `{binding.source_name}` is not "
                "supported. Convert it to another dtype before the call."
            )
        statistics, data = record(binding)
        return Input(
            binding.role, value, binding.source_name, str(example.device), statistics, data
        )

    def _add_constants(self, graph_module: torch.fx.GraphModule) -> None:
        """Add the tensors stored in a graph as inputs, which precede all operators."""
        constants: dict[str, Arg] = {}
        for node in graph_module.graph.nodes:
            if node.op != "get_attr":
                continue
            constant = attribute(graph_module, str(node.target))
            if isinstance(constant, torch.fx.GraphModule):
                self._add_constants(constant)
            elif isinstance(constant, torch.Tensor):
                if node.target not in constants:
                    if is_fake(constant):
                        raise self._error(
                            f"The elements of the constant `{node.target}` are unknown, because "
                            "torch traced it as a fake tensor. Compute it before the call and pass "
                            "it as an argument."
                        )
                    binding = Binding("constant", str(node.target), constant)
                    self._add_input(node, self._tensor_input(constant, binding))
                    self.sources.append(constant)
                    constants[str(node.target)] = self.refs[node]
                self.refs[node] = constants[str(node.target)]
            else:
                raise self._error(
                    f"The constant `{node.target}` is of type `{type(constant).__name__}`, but "
                    "must be a tensor. Register it as a buffer of the module."
                )

    # Operators

    def _open_regions(self, has_gradients: bool) -> list[Op]:
        """Open the regions around the graph and return the operators that close them."""
        closers: list[Op] = []
        for device_type in ("cpu", "cuda"):
            if torch.is_autocast_enabled(device_type):
                dtype = self._arg(torch.get_autocast_dtype(device_type))
                settings = (device_type, dtype, True, None)
                entered = self._append(Op(_ENTER_AUTOCAST, settings, results=()))
                closers.insert(0, Op(_EXIT_AUTOCAST, (entered,), results=()))
        if not has_gradients:
            self._append(Op(_GRAD_MODE, (False,), results=()))
            closers.insert(0, Op(_GRAD_MODE, (True,), results=()))
        return closers

    def _add_node(self, graph_module: torch.fx.GraphModule, node: torch.fx.Node) -> None:
        if node.op == "output":
            self.outputs = self._arg(node.args[0])
        elif node.op in ("call_function", "call_method"):
            if getattr(node.target, "__name__", "") in _NO_COMPUTATION:
                return
            if plain_name(node.target) in _INLINED:
                self._inline(graph_module, node)
            elif node.target is operator.getitem and self._is_inlined(node.args[0]):
                results, index = self._arg(node.args[0]), node.args[1]
                assert isinstance(results, tuple) and isinstance(index, int)  # noqa: S101
                self.refs[node] = results[index]
            elif node.target is torch.Size:
                self.refs[node] = tuple(map(self._arg, items(node.args[0])))
            else:
                self._add_op(node)
        elif node.op == "call_module":
            raise self._error(
                f"The trace calls the module `{node.target}` without tracing into it. Make it "
                "traceable by `torch.compile`."
            )

    def _add_op(self, node: torch.fx.Node) -> None:
        args = node.args
        if node.op == "call_method":
            target = self._canonical(str(node.target), f"torch.Tensor.{node.target}")
        elif node.target is getattr:
            target = self._canonical(str(args[1]), f"torch.Tensor.{args[1]}")
            args = args[:1]
        elif type(node.target).__name__.startswith("numpy_"):  # dynamo's wrappers
            name = plain_name(node.target).removeprefix("wrapped_")
            raise self._error(
                f"It calls `{name}` of NumPy. Call the function of torch, or compute constants in "
                "the constructor of the module."
            )
        else:
            target = self._canonical(node.target, qualified_name(node.target))
        if is_assertion(target):
            args = tuple(self._plain_message(arg) for arg in args)
        constants = self._add_bodies(node)
        out = self._filled(node)
        arguments = [self._arg(arg) for arg in args]
        operands = arguments[-1] if constants else None
        if isinstance(operands, ListArg):
            arguments[-1] = ListArg((*operands.items, *constants))
        elif isinstance(operands, tuple):
            arguments[-1] = (*operands, *constants)
        op = Op(
            target,
            tuple(arguments),
            tuple(
                (keyword, self._arg(arg))
                for keyword, arg in node.kwargs.items()
                if keyword != "out" or out is None
            ),
            self._noted(node),
            self.module_path(node.meta.get("nn_module_stack") or {}),
        )
        result = self._append(op, node)
        if out is not None:
            write = dataclasses.replace(
                op, target="torch.Tensor.copy_", args=(self._arg(out), result), kwargs=()
            )
            self._append(write, node)

    def _add_bodies(self, node: torch.fx.Node) -> tuple[Ref, ...]:
        """Convert the bodies among a node's arguments.

        Returns the constants in the bodies, which become additional operands of each body.
        """
        bodies = {
            arg: body
            for arg in node.args
            if isinstance(arg, torch.fx.Node)
            and arg.op == "get_attr"
            and arg not in self.refs
            and isinstance(body := _attribute_of(arg), torch.fx.GraphModule)
        }
        nodes = [constant for body in bodies.values() for constant in _constants_of(body)]
        constants = tuple(dict.fromkeys(self.refs[constant] for constant in nodes))
        for arg, body in bodies.items():
            inner = copy.copy(self)
            placeholders = body.graph.find_nodes(op="placeholder")
            num_inputs = len(placeholders)
            inner.is_body, inner.ops, inner.outputs = True, [], ()
            # Only the number of inputs matters in a body.
            inner.inputs = [scalar_input("", 0)] * (num_inputs + len(constants))
            inner.refs = {
                constant: Ref(num_inputs + constants.index(self.refs[constant]))
                for constant in _constants_of(body)
            }
            inner.refs |= {placeholder: Ref(i) for i, placeholder in enumerate(placeholders)}
            for inner_node in body.graph.nodes:
                inner._add_node(body, inner_node)
            self.refs[arg] = Graph(len(inner.inputs), tuple(inner.ops), inner.outputs)
        return constants  # pyright: ignore[reportReturnType] - constants are references

    def _plain_message(self, arg: Any) -> Any:
        """Return an assertion message without the tracer's names of nodes and symbols."""
        if not isinstance(arg, str):
            return arg
        return _UNBACKED.sub(
            lambda match: self.unbacked.setdefault(match[0], f"u{len(self.unbacked)}"),
            _NODE_NAME.sub("", arg),
        )

    def _filled(self, node: torch.fx.Node) -> torch.fx.Node | None:
        """Return the `out` operand if the result has the same dtype and shape, else None.

        The call is then replaced by a copy of its result, which cannot resize the operand.
        """
        out = node.kwargs.get("out")
        if isinstance(node.target, torch._ops.OpOverload) or not isinstance(out, torch.fx.Node):
            return None
        target, result = (operand.meta.get(self.value_key) for operand in (out, node))
        if not isinstance(target, torch.Tensor) or not isinstance(result, torch.Tensor):
            return None
        sizes = [
            [self.symbols.expression(size) for size in tensor.shape] for tensor in (target, result)
        ]
        return out if target.dtype == result.dtype and sizes[0] == sizes[1] else None

    def _append(self, op: Op, node: torch.fx.Node | None = None) -> Ref:
        ref = Ref(len(self.inputs) + len(self.ops))
        self.ops.append(op)
        if node is not None:
            self.refs[node] = ref
        return ref

    def _canonical(self, target: Any, written: str) -> str:
        try:
            return name_of(target)
        except UnknownOperatorError as error:
            custom = find_custom_operator(target)
            if custom is not None:
                self.custom_operators[custom.name] = custom
                return f"torch.ops.{custom.name.replace('::', '.')}.default"
            raise self._error(
                f"`{written}` is not in the operator table. Capture a module without the call, or "
                "request the operator on the project's issue page."
            ) from error

    def _inline(self, graph_module: torch.fx.GraphModule, node: torch.fx.Node) -> None:
        """Insert the body of a higher-order operator, between the state operators it implies."""
        position = next(
            index
            for index, arg in enumerate(node.args)
            if isinstance(arg, torch.fx.Node) and arg.op == "get_attr"
        )
        body_node = node.args[position]
        assert isinstance(body_node, torch.fx.Node)  # noqa: S101 - found by that property above
        body = attribute(graph_module, str(body_node.target))
        settings = tuple(self._arg(arg) for arg in node.args[:position])
        name, entered = plain_name(node.target), None
        if name == "wrap_with_autocast":
            entered = self._append(Op(_ENTER_AUTOCAST, settings, results=()))
        elif name == "wrap_with_set_grad_enabled":
            self._append(Op(_GRAD_MODE, settings, results=()))
        nodes = list(body.graph.nodes)
        arguments = node.args[position + 1 :]
        if name == _AUTOGRAD_FUNCTION:
            # The second body is the backward graph. Around the first, dynamo disables gradients,
            # which does not affect results, and then enables them whatever the caller's mode.
            arguments = arguments[1:]
            modes = [inner for inner in nodes if plain_name(inner.target) == "_set_grad_enabled"]
            nodes = [inner for inner in nodes if inner not in (*modes[:1], *modes[-1:])]
        placeholders = [inner for inner in nodes if inner.op == "placeholder"]
        for placeholder, arg in zip(placeholders, arguments, strict=False):
            self.refs[placeholder] = self._arg(arg)
        outer_outputs = self.outputs
        for inner in nodes:
            self._add_node(body, inner)
        results, self.outputs = self.outputs, outer_outputs
        if name == _AUTOGRAD_FUNCTION and isinstance(results, tuple):
            results = results[0]  # the rest is saved for the backward graph
        self.refs[node] = results
        if entered is not None:
            self._append(Op(_EXIT_AUTOCAST, (entered,), results=()))
        elif name == "wrap_with_set_grad_enabled":
            self._append(Op(_GRAD_MODE, (not settings[0],), results=()))

    def _is_inlined(self, arg: Any) -> bool:
        """Return whether a node represents several values without an operator of its own."""
        return isinstance(arg, torch.fx.Node) and isinstance(self.refs.get(arg), tuple)

    # Values and arguments

    def _noted(self, node: torch.fx.Node) -> tuple[Value, ...] | None:
        if self.is_body:
            return None
        # Dynamo records no metadata for elements that it takes out of a tensor for `tolist`.
        is_known = self.value_key in node.meta or node.target is not operator.getitem
        return self._results(node.meta.get(self.value_key)) if is_known else None

    def _results(self, example: Any) -> tuple[Value, ...]:
        if isinstance(example, torch.Tensor):
            return (self._value(example),)
        if isinstance(example, tuple | list):
            return tuple(value for item in example for value in self._results(item))
        return ()

    def _value(self, example: torch.Tensor) -> Value:
        name = str(example.dtype).removeprefix("torch.")
        dtype = name if name in ITEM_SIZE_BYTES else None
        try:
            shape = tuple(self.symbols.dim(size) for size in example.shape)
            return Value(dtype, shape, self._stride(example))
        except UnknownSizeError:
            return Value(dtype)

    def _stride(self, example: torch.Tensor) -> tuple[Any, ...] | None:
        """Return the strides, or None for a contiguous tensor.

        Sizes are compared as expressions: comparing symbolic integers adds guards to the trace.
        """
        if example.layout is not torch.strided:
            return None
        sizes = [self.symbols.expression(size) for size in example.shape]
        strides = [self.symbols.expression(stride) for stride in example.stride()]
        if any(size == 0 for size in sizes):
            return None
        for position, (size, stride) in enumerate(zip(sizes, strides, strict=True)):
            if size != 1 and stride != math.prod(sizes[position + 1 :]):
                return tuple(self.symbols.dim(stride) for stride in example.stride())
        return None

    def _arg(self, arg: Any) -> Arg:
        if isinstance(arg, torch.fx.Node):
            return self._ref(arg)
        if arg is None or arg is Ellipsis or type(arg) in (bool, int, float, complex, str):
            return arg
        if isinstance(arg, tuple):
            return tuple(self._arg(item) for item in arg)
        if isinstance(arg, list):
            return ListArg(tuple(self._arg(item) for item in arg))
        if isinstance(arg, Mapping):
            return DictArg(tuple((str(key), self._arg(item)) for key, item in arg.items()))
        if isinstance(arg, slice):
            return SliceArg(self._arg(arg.start), self._arg(arg.stop), self._arg(arg.step))
        for kind, types in _NAMED_TYPES:
            if isinstance(arg, types):
                return Named(kind, str(arg).removeprefix("torch."))
        for plain in (int, float, str):  # subclasses, such as enumerations
            if isinstance(arg, plain):
                return plain(arg)
        raise self._error(
            f"An operator has an argument of type `{type(arg).__name__}`, which is not supported. "
            "Pass numbers, strings, tensors, and lists, tuples and dictionaries of them."
        )

    def _ref(self, node: torch.fx.Node) -> Arg:
        if node in self.refs:
            return self.refs[node]
        if node.op == "get_attr":
            users = sorted({plain_name(user.target) for user in node.users})
            raise self._error(
                f"The higher-order operator `{', '.join(users)}` is not in the operator table. "
                "Capture a module without the call."
            )
        raise self._error(f"The value `{node.name}` is used before it is computed.")

    def _error(self, problem: str) -> GraphNetError:
        return CaptureError(f"The graph of `{self.naming.id}` cannot be captured: {problem}")


def _attribute_of(node: torch.fx.Node) -> Any:
    """Return the tensor or module that a `get_attr` node reads."""
    return attribute(node.graph.owning_module, str(node.target))


def _constants_of(body: torch.fx.GraphModule) -> Iterator[torch.fx.Node]:
    """Yield the nodes that read tensors stored in a body or in the bodies inside of it."""
    for node in body.graph.nodes:
        if node.op == "get_attr":
            constant = _attribute_of(node)
            if isinstance(constant, torch.fx.GraphModule):
                yield from _constants_of(constant)
            elif isinstance(constant, torch.Tensor):
                yield node


_NAMED_TYPES: tuple[tuple[str, type], ...] = (
    ("dtype", torch.dtype),
    ("device", torch.device),
    ("layout", torch.layout),
    ("memory_format", torch.memory_format),
)


def scalar_input(source_name: str, number: bool | int | float) -> Input:
    """Return the sample input for a Python number."""
    dtype = {bool: "bool", int: "int64", float: "float64"}[type(number)]
    data = torch.tensor(number, dtype=getattr(torch, dtype)).reshape(1).view(torch.uint8)
    return Input("scalar", Value(dtype, ()), source_name, data=data.numpy().tobytes())
