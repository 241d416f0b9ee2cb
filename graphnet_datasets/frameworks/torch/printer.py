"""Printing of samples as GraphNet `model.py` files, which `source.py` parses losslessly."""

from __future__ import annotations

import keyword
import math
import re
from collections.abc import Mapping
from typing import Any, Literal

from ...errors import SampleError
from ...sample import Op, Sample
from ...sample.arguments import DictArg, Graph, ListArg, Named, Ref, SliceArg
from ..text_form import TextForm
from .building.entries import entry_of
from .text.constants import print_constant
from .text.expressions import BINARY, COMPARE, RESERVED

_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")
_ANNOTATIONS: Mapping[str, str] = {
    "parameter": "torch.nn.parameter.Parameter",
    "symbol": "torch.SymInt",
}
_SCALARS: Mapping[str | None, str] = {"int64": "int", "float64": "float", "bool": "bool"}
_SIGNS = {
    "add": "+", "sub": "-", "mul": "*", "truediv": "/", "floordiv": "//", "mod": "%", "pow": "**",
    "matmul": "@", "and_": "&", "or_": "|", "xor": "^", "lshift": "<<", "rshift": ">>",
    "eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">=",
}  # fmt: skip
_INFIX = {f"operator.{name}": _SIGNS[name] for name in (*BINARY.values(), *COMPARE.values())}
_AUGMENTED = {f"operator.i{name.rstrip('_')}": f"{_SIGNS[name]}=" for name in BINARY.values()}
_PREFIX = {
    "operator.neg": "-",
    "operator.pos": "+",
    "operator.invert": "~",
    "operator.not_": "not ",
}


FORM = TextForm(
    class_prefix="Program_weight_tensor_meta_",
    dtype_prefix="torch.",
    has_data_among_weights=True,
    has_constraints_always=True,
)
"""The form of GraphNet's directories for torch."""


def print_source(
    sample: Sample,
    names: Literal["canonical", "source"] = "canonical",
    *,
    releases_values: bool = False,
) -> str:
    """Return Python code for the graph: a class `GraphModule` with a `forward` method.

    Bodies of operators such as `cond` are functions inside of `forward`.

    `names` selects argument names: `canonical` names follow role and order; `source` names are
    those of the captured program if they are valid. With `releases_values`, every value is set to
    None after its last use, so that running the code needs no more memory than the traced program.

    Raises:
        UnknownOperatorError: If an operator is not in the table.
        SampleError: If an operator has arguments that cannot be expressed in code.

    >>> from graphnet_datasets.sample import Input, Value
    >>> relu = Sample(
    ...     id="example/relu", framework="torch", task="other",
    ...     inputs=(Input("input", Value("float32", (2, 3))),),
    ...     ops=(Op("torch.relu", (Ref(0),)),), outputs=(Ref(1),))
    >>> print(print_source(relu))
    import torch
    <BLANKLINE>
    <BLANKLINE>
    class GraphModule(torch.nn.Module):
        def forward(
            self,
            input_0: torch.Tensor,
        ):
            relu_0 = torch.relu(input_0)
            return (relu_0,)
    <BLANKLINE>
    """
    arguments = argument_names(sample, names)
    used: set[str] = set()
    lines = _Statements(sample, arguments, used, " " * 8).print_statements(releases_values)
    roots = [f"import {name}" for name in ("builtins", "math", "operator") if name in used]
    signature = [
        f"        {name}: {_annotation(graph_input.role, graph_input.value.dtype)},"
        for name, graph_input in zip(arguments, sample.inputs, strict=True)
    ]
    head = [*roots, "import torch", "", "", "class GraphModule(torch.nn.Module):"]
    if signature:
        head += ["    def forward(", "        self,", *signature, "    ):"]
    else:
        head += ["    def forward(self):"]
    return "\n".join([*head, *lines, ""])


def print_model(sample: Sample) -> str:
    """Return the code of a directory's `model.py`, with source names and released values."""
    return print_source(sample, "source", releases_values=True)


def argument_names(sample: Sample, names: Literal["canonical", "source"]) -> tuple[str, ...]:
    """Return the distinct argument names of the printed source."""
    if names == "canonical":
        return sample.input_names
    used: set[str] = set()
    chosen = []
    for graph_input, canonical in zip(sample.inputs, sample.input_names, strict=True):
        name = graph_input.source_name
        if not _can_be_argument(name) or name in used:
            name = canonical
        while name in used:
            name += "_"
        used.add(name)
        chosen.append(name)
    return tuple(chosen)


def _can_be_argument(name: str) -> bool:
    # `device` is the only word of the grammar that upstream graphs also use as an argument name.
    is_free = name == "device" or (name not in RESERVED and name != "self")
    return bool(_IDENTIFIER.match(name)) and is_free and not keyword.iskeyword(name)


def _annotation(role: str, dtype: str | None) -> str:
    if role == "scalar":
        return _SCALARS.get(dtype, "torch.Tensor")
    return _ANNOTATIONS.get(role, "torch.Tensor")


class _Statements:
    """Prints the statements of one sample, or of a body as a function inside of `forward`."""

    def __init__(
        self, sample: Sample, arguments: tuple[str, ...], roots: set[str], indent: str
    ) -> None:
        self.sample = sample
        self.names = list(arguments)
        self.used = set(arguments)
        self.roots = roots
        self.indent = indent
        self.bodies: list[str] = []

    def print_statements(self, releases_values: bool) -> list[str]:
        sample = self.sample
        lines = []
        for position, op in enumerate(sample.ops):
            lines += self._define_bodies(position, releases_values)
            name = self._free_name(f"{op.target.rpartition('.')[2]}_{position}")
            self.names.append(name)
            lines += [self.indent + line for line in self._statement(position, op, name)]
            dying = sample.dying_values[position] if releases_values else ()
            if dying:
                dead = " = ".join(self.names[value] for value in dying)
                lines.append(f"{self.indent}{dead} = None")
        lines.append(f"{self.indent}return {self.print(sample.outputs)}")
        return lines

    def _free_name(self, name: str) -> str:
        while name in self.used:
            name += "_"
        self.used.add(name)
        return name

    def _define_bodies(self, position: int, releases_values: bool) -> list[str]:
        lines = []
        self.bodies = []
        for number, body in enumerate(self.sample.bodies.get(position, ())):
            name = self._free_name(f"body_{position}_{number}")
            self.bodies.append(name)
            arguments = body.input_names
            lines.append(f"{self.indent}def {name}({', '.join(arguments)}):")
            inner = _Statements(body, arguments, self.roots, self.indent + "    ")
            lines += inner.print_statements(releases_values)
        self.bodies.reverse()
        return lines

    def _statement(self, position: int, op: Op, name: str) -> list[str]:
        args = op.args
        is_plain = not op.kwargs and bool(args) and isinstance(args[0], Ref)
        if is_plain and len(args) == 2 and op.target in _AUGMENTED:
            sign = _AUGMENTED[op.target]
            return [f"{name} = {self.print(args[0])}", f"{name} {sign} {self.print(args[1])}"]
        if is_plain and len(args) == 3 and op.target == "operator.setitem":
            is_used = self.sample.last_uses[len(self.sample.inputs) + position] != position
            if not is_used:
                return [f"{self.print(args[0])}[{self.print(args[1])}] = {self.print(args[2])}"]
        return [f"{name} = {self._expression(position, op)}"]

    def _expression(self, position: int, op: Op) -> str:
        args, kwargs = op.args, op.kwargs
        is_plain = not kwargs and bool(args) and isinstance(args[0], Ref)
        if is_plain and len(args) == 1 and op.target in _PREFIX:
            return _PREFIX[op.target] + self.print(args[0])
        if is_plain and len(args) == 2 and op.target == "operator.getitem":
            return f"{self.print(args[0])}[{self.print(args[1])}]"
        if not kwargs and len(args) == 2 and op.target in _INFIX and _can_be_infix(args):
            return f"{self._operand(args[0])} {_INFIX[op.target]} {self._operand(args[1])}"
        operator = entry_of(self.sample, op)
        if operator.kind == "attribute":
            if not is_plain or len(args) != 1:
                raise SampleError(
                    f"Op {position} of `{self.sample.id}` reads `{op.target}` of an argument "
                    "that is not a single value, which source text cannot express. Correct its "
                    "arguments."
                )
            return f"{self.print(args[0])}.{operator.last_name}"
        if operator.kind == "method" and bool(args) and isinstance(args[0], Ref):
            called, args = f"{self.print(args[0])}.{operator.last_name}", args[1:]
        else:
            called = op.target
            self.roots.add(called.partition(".")[0])
        printed = [self.print(arg) for arg in args]
        printed += [f"{key}={self.print(arg)}" for key, arg in kwargs]
        return f"{called}({', '.join(printed)})"

    def _operand(self, arg: Any) -> str:
        text = self.print(arg)
        return text if isinstance(arg, Ref) or not text.startswith("-") else f"({text})"

    def print(self, arg: Any) -> str:
        """Return the expression of an argument."""
        if isinstance(arg, Ref):
            return self.names[arg.index]
        if isinstance(arg, tuple):
            items = [self.print(item) for item in arg]
            return f"({items[0]},)" if len(items) == 1 else f"({', '.join(items)})"
        if isinstance(arg, ListArg):
            return f"[{', '.join([self.print(item) for item in arg.items])}]"
        if isinstance(arg, DictArg):
            return f"{{{', '.join([f'{k!a}: {self.print(v)}' for k, v in arg.items])}}}"
        if isinstance(arg, SliceArg):
            return f"slice({', '.join(map(self.print, (arg.start, arg.stop, arg.step)))})"
        if isinstance(arg, Named):
            return print_constant(arg)
        if isinstance(arg, Graph):
            return self.bodies.pop()
        if isinstance(arg, float):
            return repr(arg) if math.isfinite(arg) else f'float("{arg}")'
        if isinstance(arg, complex):
            return f"complex({self.print(arg.real)}, {self.print(arg.imag)})"
        return "..." if arg is ... else ascii(arg)


def _can_be_infix(args: tuple[Any, ...]) -> bool:
    return any(isinstance(arg, Ref) for arg in args) and all(
        isinstance(arg, Ref) or type(arg) in (int, float) for arg in args
    )
