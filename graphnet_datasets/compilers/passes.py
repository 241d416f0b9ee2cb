"""Passes as candidates: patterns with replacements, and passes of TorchInductor and TVM.

The file of a pass defines one of these:

- `pattern` and `replacement`, two functions with the same parameters. Each occurrence of the
  operators of `pattern` in a graph is replaced by a call of `replacement`. An optional function
  `gain` with the same parameters receives the operands of an occurrence as fake tensors, and
  returns the estimated benefit: occurrences with a benefit of zero or less are kept.
- `pattern`, `replacement_args` and `replacement_func`, the contract of PassNet (arXiv 2605.29357).
- `inductor_pass(graph)`, which changes the FX graph that TorchInductor lowers to kernels.
- `tvm_pass(module)`, which returns a Relax module, and runs before TVM's own pipeline.
"""

from __future__ import annotations

import inspect
import operator
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import CandidateError
from ..terminal import counted
from .base import Compiler

if TYPE_CHECKING:
    import torch

FX_PASS, PATTERN = "fx_pass", "pattern"
INDUCTOR_PASS, TVM_PASS = "inductor_pass", "tvm_pass"
PASS_NAMES = (FX_PASS, PATTERN, INDUCTOR_PASS, TVM_PASS)
"""Names in a file that make it a pass. An FX pass is called like any compiler function."""
REPLACED = "pass: "
"""The beginning of the warning that contains the number of replaced occurrences."""
NO_OCCURRENCE = "The pattern does not occur in the graph."
"""The beginning of the error for a graph without an occurrence of the pattern."""
_OPERATORS = {"add": 2, "sub": 2, "mul": 2, "matmul": 2, "neg": 1, "truediv": 2, "div": 2}
"""Functions of torch that equal Python operators, and their numbers of operands."""


def is_pass(reference: str) -> bool:
    """Return whether a reference names a pass in a Python file that `make_pass` can load.

    >>> is_pass("/tmp/mine.py:pattern"), is_pass("/tmp/mine.py:compile"), is_pass("a:pattern")
    (True, False, False)
    """
    path, _, name = reference.rpartition(":")
    return path.endswith(".py") and name in PASS_NAMES and name != FX_PASS


def make_pass(reference: str) -> type[Compiler]:
    """Return a compiler that applies the pass with this reference.

    The file is imported when a run starts to compile.
    """
    path, _, kind = reference.rpartition(":")
    base: Any = _PatternPass
    if kind != PATTERN:
        base = _inductor_base() if kind == INDUCTOR_PASS else _tvm_base()

    class Pass(base):
        """A pass of a file."""

    Pass.reference, Pass.name = reference, Path(path).name
    return Pass


class _PatternPass(Compiler):
    """Eager with the occurrences of a pattern replaced."""

    name = PATTERN
    reference = ""

    def use_caches(self, directory: Path) -> None:
        """Redirect caches, and import the file, which may compile when it is imported."""
        super().use_caches(directory)
        from .registry import import_module_of

        self._functions = vars(import_module_of(self.reference))

    def compile(
        self, module: Callable[..., Any], example_inputs: Mapping[str, Any]
    ) -> Callable[..., Any]:
        import torch

        if not isinstance(module, torch.fx.GraphModule):
            raise CandidateError(
                f"A pattern applies to graphs of torch, not to a `{type(module).__name__}`. Write "
                "a function or a module for this framework."
            )
        number = replace_occurrences(module, self._functions, example_inputs)
        if number == 0:
            raise CandidateError(
                f"{NO_OCCURRENCE} Write its operators, their arguments and literals as in the "
                "source of the graph, which `graphnet show ID` prints."
            )
        self.warnings.append(f"{REPLACED}{counted(number, 'occurrence')} replaced")
        return module


def _inductor_base() -> type[Compiler]:
    from .inductor import Inductor

    class InductorPass(Inductor):
        """TorchInductor with a pass of the candidate on its own operators."""

        reference = ""

        def use_caches(self, directory: Path) -> None:
            super().use_caches(directory)
            function = _import_pass(self.reference)
            self._config = {**self._config, "post_grad_custom_post_pass": function}

    return InductorPass


def _tvm_base() -> type[Compiler]:
    from .tvm import Tvm

    class TvmPass(Tvm):
        """TVM with a pass of the candidate before the pipeline."""

        reference = ""

        def use_caches(self, directory: Path) -> None:
            super().use_caches(directory)
            self._pass = _import_pass(self.reference)

        def lower(self, tvm: Any, graph: Any, target: Any) -> Any:
            changed = self._pass(graph)
            return super().lower(tvm, graph if changed is None else changed, target)

    return TvmPass


def _import_pass(reference: str) -> Callable[..., Any]:
    from .registry import import_reference

    return import_reference(reference, kind="pass", error_type=CandidateError)


def replace_occurrences(
    module: torch.fx.GraphModule, functions: Mapping[str, Any], example_inputs: Mapping[str, Any]
) -> int:
    """Replace the occurrences of a pattern in a graph, and return their number.

    Overlapping occurrences are replaced once. Spellings do not matter: `torch.relu(x)` equals
    `x.relu()`, and keywords equal positional arguments. A parameter of the pattern matches a tensor
    or a literal; two parameters match two different tensors.

    Args:
        module: the graph, which is modified.
        functions: `pattern`, and `replacement` or `replacement_func`; see the module.
        example_inputs: inputs of the graph by name, for the operands of `gain`.

    Raises:
        CandidateError: a function is missing, or its parameters differ from those of `pattern`.

    >>> import torch
    >>> class Net(torch.nn.Module):
    ...     def forward(self, x, w):
    ...         return torch.relu(x @ w) + 1
    >>> module = torch.fx.symbolic_trace(Net())
    >>> replace_occurrences(module, {
    ...     "pattern": lambda a, b: torch.matmul(a, b).relu(),
    ...     "replacement": lambda a, b: torch.full_like(a, 7.0)}, {})
    1
    >>> module(torch.eye(2), torch.eye(2)).tolist()
    [[8.0, 8.0], [8.0, 8.0]]
    """
    import torch
    from torch.fx.subgraph_rewriter import replace_pattern_with_filters

    pattern = torch.fx.symbolic_trace(functions[PATTERN])
    replacement = _replacement_graph(pattern.graph, functions)
    normalise(pattern.graph)
    normalise(module.graph)
    filters = []
    if "gain" in functions:
        _check_parameters(pattern.graph, "gain", functions["gain"])
        _propagate(module, example_inputs)
        filters.append(
            lambda match, *_: functions["gain"](*map(_operand, match.placeholder_nodes)) > 0
        )
    matches = replace_pattern_with_filters(
        module, pattern, match_filters=filters, replacement_callback=lambda *_: replacement
    )
    return len(matches)


def _replacement_graph(pattern: torch.fx.Graph, functions: Mapping[str, Any]) -> torch.fx.Graph:
    """Return a graph that calls the replacement with the parameters of the pattern."""
    import torch

    graph = torch.fx.Graph()
    operands = [graph.placeholder(node.name) for node in pattern.nodes if node.op == "placeholder"]
    if "replacement_func" in functions:
        arguments = functions.get("replacement_args", lambda *nodes: nodes)(*operands)
        function = functions["replacement_func"]()
    elif "replacement" in functions:
        arguments, function = operands, functions["replacement"]
        _check_parameters(pattern, "replacement", function)
    else:
        raise CandidateError(
            "A file with a `pattern` must also define `replacement`, a function with the same "
            "parameters, or `replacement_func`."
        )
    (outputs,) = next(node for node in pattern.nodes if node.op == "output").args
    if not isinstance(outputs, (tuple, list)):
        graph.output(graph.call_function(function, tuple(arguments)))
        return graph

    def call(*inputs: Any) -> tuple[Any, ...]:
        results = function(*inputs)
        return tuple(results) if isinstance(results, (tuple, list)) else (results,)

    results = graph.call_function(call, tuple(arguments))
    graph.output(
        tuple(
            graph.call_function(operator.getitem, (results, place)) for place in range(len(outputs))
        )
    )
    return graph


def _check_parameters(pattern: torch.fx.Graph, name: str, function: Callable[..., Any]) -> None:
    names = [node.name for node in pattern.nodes if node.op == "placeholder"]
    try:
        inspect.signature(function).bind(*names)
    except TypeError as error:
        raise CandidateError(
            f"`{name}` cannot be called with the {counted(len(names), 'parameter')} of `pattern` "
            f"({', '.join(names)}): {error}. Use the same parameters in the same order."
        ) from error
    except ValueError:
        return  # functions of extension modules may lack a signature


def normalise(graph: torch.fx.Graph) -> None:
    """Give equal operators of a graph one spelling, so that a pattern matches all of them.

    Functions of torch with a tensor method of the same name become method calls, `add`, `mul` and
    the like become Python operators, and keyword arguments become positional ones.
    """
    import torch

    for node in graph.nodes:
        if node.op not in ("call_function", "call_method"):
            continue
        name = node.target if node.op == "call_method" else getattr(node.target, "__name__", "")
        is_torch = node.op == "call_method" or getattr(torch, name, None) is node.target
        functional = getattr(torch.nn.functional, name, None)
        if is_torch and _OPERATORS.get(name) == len(node.args) and not node.kwargs:
            python = "truediv" if name == "div" else name
            node.op, node.target = "call_function", getattr(operator, python)
            continue
        if node.op == "call_function" and functional is node.target:
            _bind(node)
            # The methods lack the argument `inplace`, which is False.
            if name in ("relu", "sigmoid", "tanh") and not any(node.args[1:]):
                node.args = node.args[:1]
                is_torch = True
        has_self = bool(node.args) and isinstance(node.args[0], torch.fx.Node)
        # The arguments of `torch.where` and of the method have different orders.
        if is_torch and has_self and name != "where" and hasattr(torch.Tensor, name):
            node.op, node.target = "call_method", name
        if node.kwargs and (is_torch or functional is node.target):
            _bind_by_schema(node, name)


def _bind(node: torch.fx.Node) -> None:
    """Make the arguments of a call positional and complete, by its Python function's signature."""
    function: Any = node.target
    try:
        bound = inspect.signature(function).bind(*node.args, **node.kwargs)
    except (TypeError, ValueError):
        return  # a builtin function, or a call that will fail
    bound.apply_defaults()
    if not bound.kwargs:
        node.args, node.kwargs = bound.args, {}


def _bind_by_schema(node: torch.fx.Node, name: str) -> None:
    """Make the keyword arguments of a call positional if an ATen schema has them next in order."""
    import torch

    packet = getattr(torch.ops.aten, name, None)
    for overload in packet.overloads() if packet is not None else ():
        arguments = getattr(packet, overload)._schema.arguments
        if set(node.kwargs) <= {argument.name for argument in arguments}:
            names = [argument.name for argument in arguments if not argument.kwarg_only]
            following = names[len(node.args) : len(node.args) + len(node.kwargs)]
            if set(following) == set(node.kwargs):
                node.args = (*node.args, *(node.kwargs[item] for item in following))
                node.kwargs = {}
            return


def _propagate(module: torch.fx.GraphModule, example_inputs: Mapping[str, Any]) -> None:
    """Store a fake tensor for each node of a graph in `meta["val"]`."""
    from torch.fx.passes.fake_tensor_prop import FakeTensorProp

    names = [node.target for node in module.graph.nodes if node.op == "placeholder"]
    FakeTensorProp(module).propagate(*[example_inputs[name] for name in names])


def _operand(node: Any) -> Any:
    return node.meta["val"] if hasattr(node, "meta") else node
