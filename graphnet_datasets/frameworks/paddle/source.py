"""Parser for GraphNet's Paddle `model.py` files, with `ast` only; the text is never executed.

The text is straight-line code: assignments of operator calls, `del` of names that are no longer
needed, and one `return`. A comment above a statement records the types of its results. Lists of
tensors, dtypes, places and plain copies are resolved by the parser and become arguments. Unpacking
the results of an operator becomes one `operator.getitem` for each used result.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Mapping
from typing import Any

from ...errors import SampleError, SourceError
from ...sample import Constraint, CustomOperator, Input, Op, Provenance, Sample, Symbol, Value
from ...sample.arguments import Arg, ListArg, Ref, iterate_refs, map_refs
from ...sample.symbols import Dim
from ...sample.vocabulary import Kind, Role, Task
from ..source_text import parse_text, source_error, too_deep
from ..tensor_metadata import TensorMeta
from .expressions import Expressions
from .operators import BATCH_NORMS, GETITEM
from .value_types import parse_results


def parse_source(
    text: str,
    metadata: Mapping[str, TensorMeta],
    *,
    sample_id: str,
    task: Task = "other",
    kind: Kind = "graph",
    symbols: Iterable[Symbol] = (),
    constraints: Iterable[Constraint] = (),
    shapes: Mapping[str, tuple[Dim, ...]] | None = None,
    provenance: Provenance | None = None,
    custom_operators: tuple[CustomOperator, ...] = (),  # noqa: ARG001 - never called here
    file: str = "model.py",
) -> Sample:
    """Return the sample described by a `model.py` and the metadata of its tensors.

    `metadata` maps argument names to tensor metadata. An argument whose name starts with
    `parameter_` is a weight: a buffer if a batch norm uses it as running mean or variance, a
    parameter otherwise. Other arguments are data. `shapes` maps arguments to shapes over `symbols`.
    `file` is the path used in error messages.

    Raises:
        SourceError: the text is not a straight-line graph, or an argument has no metadata.
        UnknownOperatorError: an operator is not in paddle's operator table.
    """
    names, ops, outputs = parse_graph(text, file)
    running = {
        ref.index
        for op in ops
        if op.target in BATCH_NORMS
        for ref in op.args[1:3]
        if isinstance(ref, Ref)
    }
    inputs = []
    for index, name in enumerate(names):
        meta = metadata.get(name)
        if meta is None:
            problem = "has no class in `weight_meta.py` or `input_meta.py`"
            raise source_error(file, 1, f"the argument `{name[:120]}` {problem}")
        role: Role = "input"
        if name.startswith(("parameter_", "buffer_")):
            is_buffer = index in running or name.startswith("buffer_")
            role = "buffer" if is_buffer else "parameter"
        value = Value(meta.dtype, (shapes or {}).get(name, meta.shape))
        inputs.append(Input(role, value, name, meta.device, meta.statistics, meta.data))
    try:
        return Sample(
            id=sample_id,
            framework="paddle",
            task=task,
            inputs=tuple(inputs),
            ops=ops,
            outputs=outputs,
            symbols=tuple(symbols),
            constraints=tuple(constraints),
            kind=kind,
            provenance=provenance or Provenance(),
        )
    except SampleError as error:
        raise SourceError(f"`{file}` does not describe a sample: {error}") from error


def parse_graph(text: str, file: str = "model.py") -> tuple[tuple[str, ...], tuple[Op, ...], Arg]:
    """Return the argument names, operators and output structure of `forward` in a `model.py`.

    Raises:
        SourceError: the text holds more than a straight-line graph.
        UnknownOperatorError: an operator is not in paddle's operator table.

    >>> text = '''
    ... class GraphModule(paddle.nn.Layer):
    ...     def forward(self, data_0):
    ...         relu_0 = paddle._C_ops.relu(data_0)
    ...         return relu_0
    ... '''
    >>> parse_graph(text)
    (('data_0',), (Op(target='paddle._C_ops.relu', args=(Ref(index=0),), kwargs=(), \
results=None, module=''),), Ref(index=1))
    """
    module = parse_text(text, file)
    try:
        return _Graph(_find_forward(module, file), text, file).read()
    except SampleError:
        raise
    except (ValueError, RecursionError, MemoryError) as error:
        raise too_deep(file) from error


def _find_forward(module: ast.Module, file: str) -> ast.FunctionDef:
    """Return `forward` of the only class. Raise if the module contains anything else."""
    classes = [node for node in module.body if isinstance(node, ast.ClassDef)]
    for node in module.body:
        if node not in classes[:1] and not _is_allowed_import(node):
            raise source_error(
                file, node.lineno, f"a `{type(node).__name__}` is not allowed outside the graph"
            )
    if not classes:
        raise source_error(file, 1, "there is no class `GraphModule`")
    definition = classes[0]
    other_nodes = [node for node in definition.body if not _is_init(node)]
    forward = other_nodes[0] if other_nodes else definition
    if len(other_nodes) != 1 or definition.decorator_list or definition.keywords:
        raise source_error(
            file,
            definition.lineno,
            f"the class `{definition.name[:80]}` is a live model, not a graph: it has more than a "
            "`forward` and an `__init__` that only calls `super().__init__()`",
        )
    if not isinstance(forward, ast.FunctionDef) or forward.name != "forward":
        raise source_error(file, forward.lineno, "the class has no method `forward`")
    if forward.decorator_list:
        raise source_error(file, forward.lineno, "`forward` is decorated")
    return forward


def _is_allowed_import(node: ast.stmt) -> bool:
    return isinstance(node, ast.Import) and all(
        name.name in ("paddle", "operator") and not name.asname for name in node.names
    )


def _is_init(node: ast.stmt) -> bool:
    # Compare the name first, since unparsing all of `forward` takes as long as parsing it.
    return (
        isinstance(node, ast.FunctionDef)
        and node.name == "__init__"
        and ast.unparse(node) == "def __init__(self):\n    super().__init__()"
    )


class _Graph(Expressions):
    """Parser for the statements of one `forward`."""

    def __init__(self, forward: ast.FunctionDef, text: str, file: str) -> None:
        super().__init__(file)
        self.forward = forward
        self.lines = text.splitlines()
        self.unpacked: set[int] = set()

    def read(self) -> tuple[tuple[str, ...], tuple[Op, ...], Arg]:
        names = self._argument_names()
        self.num_inputs = len(names)
        self.names = {name: Ref(index) for index, name in enumerate(names)}
        *body, last = self.forward.body
        for statement in body:
            self._statement(statement)
        if not isinstance(last, ast.Return):
            raise self.error(last, "the graph ends without a `return`")
        outputs = None if last.value is None else self.expression(last.value)
        ops, outputs = self._without_unused_results(outputs)
        return names, ops, outputs

    def _argument_names(self) -> tuple[str, ...]:
        arguments = self.forward.args
        names = tuple(argument.arg for argument in arguments.args)
        beyond = arguments.posonlyargs or arguments.kwonlyargs or arguments.defaults
        if beyond or arguments.vararg or arguments.kwarg or names[:1] != ("self",):
            raise self.error(self.forward, "`forward` takes other than `self` and plain arguments")
        return names[1:]

    def _statement(self, node: ast.stmt) -> None:
        if isinstance(node, ast.Delete):
            for target in node.targets:
                for part in target.elts if isinstance(target, ast.Tuple) else (target,):
                    if not isinstance(part, ast.Name) or self.names.pop(part.id, None) is None:
                        raise self.error(node, "`del` names what does not exist")
            return
        if not isinstance(node, ast.Assign) or len(node.targets) != 1:
            raise self.error(node, f"`{type(node).__name__}` is not a statement of a graph")
        target = node.targets[0]
        results = self._recorded(node)
        if isinstance(target, ast.Name):
            self.names[target.id] = self._assigned(node.value, results)
        elif isinstance(target, ast.Tuple) and all(isinstance(e, ast.Name) for e in target.elts):
            names = [part.id for part in target.elts if isinstance(part, ast.Name)]
            self._unpack(node, names, results)
        else:
            raise self.error(node, "the left side of an assignment is not a name or names")

    def _recorded(self, node: ast.stmt) -> tuple[Value, ...] | None:
        line = self.lines[node.lineno - 2] if node.lineno >= 2 else ""
        return parse_results(line) if "<-" in line else None

    def _assigned(self, value: ast.expr, results: tuple[Value, ...] | None) -> Arg:
        before = len(self.ops)
        arg = self.expression(value)
        if len(self.ops) > before and arg == Ref(self.num_inputs + len(self.ops) - 1):
            self.record(results)
        return arg

    def _unpack(
        self, node: ast.Assign, names: list[str], results: tuple[Value, ...] | None
    ) -> None:
        call = self.unpacked_call(node.value, len(names))
        whole = self.expression(node.value) if call is None else self._assigned(call, results)
        if isinstance(whole, ListArg | tuple):
            items = whole.items if isinstance(whole, ListArg) else whole
            if len(items) != len(names):
                raise self.error(node, f"{len(items)} values are unpacked into {len(names)} names")
            self.names.update(zip(names, items, strict=True))
            return
        if not isinstance(whole, Ref):
            raise self.error(node, "only a list or the results of an operator can be unpacked")
        if results is not None and len(results) != len(names):
            results = None
        for position, name in enumerate(names):
            if name == "_":
                continue
            self.unpacked.add(len(self.ops))
            self.names[name] = self.emit(GETITEM, (whole, position))
            self.record(None if results is None else (results[position],))

    def _without_unused_results(self, outputs: Arg) -> tuple[tuple[Op, ...], Arg]:
        """Drop the unused items of unpacked results, and renumber the values."""
        used = set(iterate_refs(outputs))
        used_positions: list[int] = []
        for position in reversed(range(len(self.ops))):
            if position in self.unpacked and self.num_inputs + position not in used:
                continue
            op = self.ops[position]
            used.update(iterate_refs((op.args, op.kwargs)))
            used_positions.append(position)
        used_positions.reverse()
        numbers = list(range(self.num_inputs + len(self.ops)))
        for number, position in enumerate(used_positions):
            numbers[self.num_inputs + position] = self.num_inputs + number

        def renumber(arg: Any) -> Any:
            return map_refs(arg, lambda index: Ref(numbers[index]))

        ops = tuple(
            Op(op.target, renumber(op.args), renumber(op.kwargs), op.results, op.module)
            for op in map(self.ops.__getitem__, used_positions)
        )
        return ops, renumber(outputs)
