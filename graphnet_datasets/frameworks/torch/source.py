"""Parsing of GraphNet's `model.py` files into samples, using only `ast`.

The source is parsed but never executed, and torch is not imported. A sample identifies values by
index and keeps only the names of the arguments.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Mapping
from typing import Any

from ...errors import SampleError, SourceError
from ...sample import Constraint, CustomOperator, Provenance, Sample, Symbol
from ...sample.arguments import MAX_BODY_DEPTH, Graph, Ref
from ...sample.symbols import Dim
from ...sample.vocabulary import Kind, Task
from ..source_text import parse_text, source_error
from ..tensor_metadata import TensorMeta
from .text.expressions import BINARY, RESERVED, ROOTS, UNUSABLE, Lowering
from .text.placeholders import InputMaker

_IMPORTED = frozenset({"device", "inf", "nan", "tensor"})


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
    custom_operators: tuple[CustomOperator, ...] = (),
    file: str = "model.py",
) -> Sample:
    """Return the sample described by the text of a `model.py`.

    `metadata` maps argument names to their recorded metadata. `shapes` contains symbolic shapes
    over `symbols`. An integer argument (`torch.SymInt`) becomes a symbol named after it.
    `custom_operators` lists operators that the graph may call besides those in the table. `file` is
    the path used in error messages.

    Raises:
        SourceError: If the text is not a straight-line graph, or an argument has no metadata.
        UnknownOperatorError: If it calls an operator that is not in the table.

    >>> metadata = {"x": TensorMeta("x", "float32", (2, 3))}
    >>> sample = parse_source('''
    ... import torch
    ... class GraphModule(torch.nn.Module):
    ...     def forward(self, x: torch.Tensor):
    ...         y = torch.relu(x)
    ...         x = None
    ...         return (y,)
    ... ''', metadata, sample_id="example/relu")
    >>> sample.ops[0].target, sample.outputs
    ('torch.relu', (Ref(index=1),))
    """
    forward = _find_forward(parse_text(text, file), file)
    arguments = _read_arguments(forward, file)
    graph = _Statements(
        file,
        [argument.arg for argument in arguments],
        [custom_operator.name for custom_operator in custom_operators],
    )
    outputs = graph.read(forward)
    inputs = InputMaker(metadata, shapes or {}, tuple(symbols), file)
    all_inputs = tuple([inputs.make(argument) for argument in arguments])
    provenance = provenance or Provenance()
    try:
        return Sample(
            id=sample_id,
            framework="torch",
            task=task,
            inputs=all_inputs,
            ops=tuple(graph.ops),
            outputs=outputs,
            symbols=tuple(inputs.symbols.values()),
            constraints=tuple(constraints),
            kind=kind,
            provenance=inputs.add_faults(provenance),
            custom_operators=custom_operators,
        )
    except SourceError:
        raise
    except SampleError as error:
        raise SourceError(f"`{file}` does not describe a sample: {error}") from error


def _find_forward(module: ast.Module, file: str) -> ast.FunctionDef:
    """Return `forward` of the only class, checking that the module contains nothing else."""
    definition: ast.ClassDef | None = None
    for node in module.body:
        if isinstance(node, ast.ClassDef) and definition is None:
            definition = node
        elif not _is_allowed_import(node):
            description = "a second class" if isinstance(node, ast.ClassDef) else _describe(node)
            raise source_error(file, node.lineno, f"{description} is not allowed outside the graph")
    if definition is None:
        raise source_error(file, 1, "there is no class `GraphModule`")
    body = definition.body
    if definition.decorator_list or definition.keywords:
        raise source_error(
            file, definition.lineno, f"the class `{definition.name[:80]}` is decorated"
        )
    if len(body) != 1:
        raise source_error(
            file,
            definition.lineno,
            f"the class `{definition.name[:80]}` has more than one `forward`",
        )
    forward = body[0]
    if not isinstance(forward, ast.FunctionDef) or forward.name != "forward":
        raise source_error(file, forward.lineno, "the class has no method `forward`")
    if forward.decorator_list:
        raise source_error(file, forward.lineno, "`forward` is decorated")
    return forward


def _is_allowed_import(node: ast.stmt) -> bool:
    if isinstance(node, ast.Import):
        return all(name.name in ROOTS and not name.asname for name in node.names)
    return (
        isinstance(node, ast.ImportFrom)
        and node.module in ("torch", "math")
        and not node.level
        and all(name.name in _IMPORTED and not name.asname for name in node.names)
    )


def _describe(node: ast.stmt) -> str:
    if isinstance(node, ast.Import | ast.ImportFrom):
        return "an import of something other than `torch` and its constants"
    return f"`{type(node).__name__}`"


def _read_arguments(forward: ast.FunctionDef, file: str) -> list[ast.arg]:
    signature = forward.args
    plain = signature.args
    if (
        signature.posonlyargs
        or signature.kwonlyargs
        or signature.vararg
        or signature.kwarg
        or signature.defaults
        or not plain
        or plain[0].arg != "self"
    ):
        raise source_error(
            file, forward.lineno, "`forward` has parameters other than `self` and plain arguments"
        )
    return plain[1:]


class _Statements(Lowering):
    """Reads the body of `forward` statement by statement."""

    def __init__(
        self, file: str, arguments: list[str], custom_operators: list[str], depth: int = 0
    ) -> None:
        super().__init__(file, arguments, custom_operators)
        self.arguments = frozenset(arguments)
        self.custom_operators = custom_operators
        self.depth = depth

    def read(self, forward: ast.FunctionDef) -> Any:
        *body, last = forward.body
        for node in body:
            kind = type(node)
            if kind is ast.Assign:
                self._assign(node)  # type: ignore[arg-type]
            elif isinstance(node, ast.AugAssign):
                self._augment(node)
            elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
                self.lower(node.value)
            elif isinstance(node, ast.Delete):
                self._delete(node)
            elif isinstance(node, ast.FunctionDef):
                self._define(node)
            else:
                self.fail(node, f"`{kind.__name__}` is not part of a straight-line graph")
        if not isinstance(last, ast.Return):
            self.fail(last, "the graph does not end in a return")
        return None if last.value is None else self.lower(last.value)

    def _assign(self, node: ast.Assign) -> None:
        value = UNUSABLE if self.is_context(node.value) else self.lower(node.value)
        for target in node.targets:
            if isinstance(target, ast.Name):
                self._bind(target, value)
            elif isinstance(target, ast.Subscript) and value is not UNUSABLE:
                base, index = self._value(target.value, 0), self.lower(target.slice)
                self.emit("operator.setitem", (base, index, value))
            else:
                self.fail(node, f"an assignment to `{type(target).__name__}`")

    def _augment(self, node: ast.AugAssign) -> None:
        target = node.target
        name = f"operator.i{BINARY[type(node.op)].rstrip('_')}"
        if isinstance(target, ast.Name):
            operand = self._name(target, 0)
            if not isinstance(operand, Ref):
                self.fail(node, f"`{target.id[:80]}` is a literal, which cannot be changed")
            self._bind(target, self.emit(name, (operand, self.lower(node.value))))
        elif isinstance(target, ast.Subscript):
            base, index = self._value(target.value, 0), self.lower(target.slice)
            operand = self.emit("operator.getitem", (base, index))
            changed = self.emit(name, (operand, self.lower(node.value)))
            self.emit("operator.setitem", (base, index, changed))
        else:
            self.fail(node, f"an assignment to `{type(target).__name__}`")

    def _define(self, node: ast.FunctionDef) -> None:
        """Read a body, which only sees its own arguments."""
        if self.depth >= MAX_BODY_DEPTH:
            self.fail(node, f"functions are nested deeper than {MAX_BODY_DEPTH} levels")
        signature = node.args
        plain = ast.arguments([], signature.args, None, [], [], None, [])
        if node.decorator_list or ast.dump(signature) != ast.dump(plain):
            self.fail(node, "a function has a decorator or parameters other than plain arguments")
        arguments = [argument.arg for argument in signature.args]
        inner = _Statements(self.file, arguments, self.custom_operators, self.depth + 1)
        outputs = inner.read(node)
        self._bind(
            ast.Name(node.name, lineno=node.lineno),
            Graph(len(arguments), tuple(inner.ops), outputs),
        )

    def _delete(self, node: ast.Delete) -> None:
        for target in node.targets:
            if not isinstance(target, ast.Name) or target.id not in self.names:
                self.fail(node, "`del` is limited to names of the graph")
            del self.names[target.id]

    def _bind(self, target: ast.Name, value: Any) -> None:
        name = target.id
        # Models use `device` as a variable name; afterwards it can no longer be called.
        if name in RESERVED and name != "device" and name not in self.arguments:
            self.fail(target, f"a value takes the name `{name}`, which has a meaning of its own")
        self.names[name] = value
