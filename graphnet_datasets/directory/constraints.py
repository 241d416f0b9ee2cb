"""Reading and printing of `input_tensor_constraints.py`: symbols, sizes, relations and shapes."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Mapping

from ..errors import SourceError, SymbolError
from ..sample import Constraint, Sample, Symbol
from ..sample.symbols import Dim, free_symbols, is_symbol_name
from ..sample.vocabulary import Relation

_ITEM = re.compile(
    r"""(?:from[ ][\w.]+[ ]import[ ][\w, ]+|import[ ]sympy)[ ]*\n
    |(?P<variable>\w+)[ ]=[ ](?:sympy\.)?Symbol\(["'](?P<name>\w+)["'](?:,[ ]\w+=True)*\)[ ]*\n
    |dynamic_dim_constraint_symbols[ ]=[ ]\[(?P<symbols>[\w,\s]*)\][ ]*\n
    |dynamic_dim_constraint_symbol2example_value[ ]=[ ]\{(?P<sizes>[\w,:\s-]*)\}[ ]*\n
    |dynamic_dim_constraint_relations[ ]=[ ]\[(?P<relations>[^\[\]]*)\][ ]*\n
    |dynamic_dim_constraint_input_shapes[ ]=[ ]\[(?P<shapes>)
    |[ ]*(?:\#[^\n]*)?\n""",
    re.VERBOSE,
)
_SHAPE = re.compile(r"\s*\(\s*\[([^\[\]\"']*)\],\s*[\"'](\w+)[\"'],?\s*\)\s*,?")
_SHAPES_END = re.compile(r"\s*\][ ]*\n")
_SIZE = re.compile(r"\s*(\w+)\s*:\s*(-?\d{1,19})\s*\Z")
_INTEGER = re.compile(r"\d{1,19}\Z")
_INFIX_RELATION = re.compile(r"(.*?[^<>=!])(<=|>=|==|!=|<|>)([^<>=].*)", re.DOTALL)
_CALL_RELATION = re.compile(r"(?:sympy\.)?(Eq|Ne|Lt|Le|Gt|Ge)\((.*)\)\Z", re.DOTALL)
_BY_NAME: Mapping[str, Relation] = {
    "Eq": "==", "Ne": "!=", "Lt": "<", "Le": "<=", "Gt": ">", "Ge": ">=",
}  # fmt: skip
MAX_CONSTRAINTS_CHARACTERS = 8 * 2**20


@dataclasses.dataclass(frozen=True)
class Declarations:
    """The declarations of a constraints file; `shapes` has the inputs with symbolic dimensions."""

    symbols: tuple[Symbol, ...] = ()
    constraints: tuple[Constraint, ...] = ()
    shapes: Mapping[str, tuple[Dim, ...]] = dataclasses.field(default_factory=dict)


def parse_constraints(text: str, file: str = "input_tensor_constraints.py") -> Declarations:
    """Parse the symbols, relations and symbolic shapes of a constraints file.

    Raises:
        SourceError: the text contains anything else.

    >>> declarations = parse_constraints('''S0 = Symbol("S0")
    ... dynamic_dim_constraint_symbols = [S0]
    ... dynamic_dim_constraint_symbol2example_value = {S0: 2}
    ... dynamic_dim_constraint_relations = [S0 >= 1]
    ... dynamic_dim_constraint_input_shapes = [([S0, 3], "x"), ([3], "w")]
    ... ''')
    >>> declarations.symbols[0].hint, declarations.constraints[0].relation, declarations.shapes
    (2, '>=', {'x': ('S0', 3)})
    """
    return _Reader(text, file).read()


class _Reader:
    def __init__(self, text: str, file: str) -> None:
        if len(text) > MAX_CONSTRAINTS_CHARACTERS:
            raise SourceError(
                f"`{file}` has {len(text)} characters; at most {MAX_CONSTRAINTS_CHARACTERS} are "
                "accepted. Leave the sample out."
            )
        self.text = text.rstrip() + "\n"
        self.file = file
        self.position = 0
        self.names: dict[str, str] = {}

    def read(self) -> Declarations:
        order: list[str] = []
        sizes: dict[str, int] = {}
        relations: tuple[Constraint, ...] = ()
        shapes: dict[str, tuple[Dim, ...]] = {}
        while self.position < len(self.text):
            item = _ITEM.match(self.text, self.position)
            if item is None:
                raise self._error("Expected a declaration of symbols, relations or shapes")
            if item["variable"] is not None:
                if not is_symbol_name(item["name"]):
                    raise self._error(f"`{item['name'][:80]}` cannot name a symbol")
                self.names[item["variable"]] = item["name"]
            elif item["symbols"] is not None:
                order = [self._symbol(name) for name in _split(item["symbols"])]
            elif item["sizes"] is not None:
                sizes = dict(map(self._size, _split(item["sizes"])))
            elif item["relations"] is not None:
                relations = tuple(map(self._relation, _split(item["relations"])))
            elif item["shapes"] is not None:
                self.position = item.end()
                shapes = self._shapes()
                continue
            self.position = item.end()
        missing = [name for name in order if name not in sizes]
        if missing:
            raise self._error(f"The symbol `{missing[0]}` has no example value")
        symbols = tuple(Symbol(name, sizes[name]) for name in order)
        return Declarations(symbols, relations, shapes)

    def _symbol(self, variable: str) -> str:
        if variable not in self.names:
            raise self._error(f"The symbol `{variable[:80]}` is not declared")
        return self.names[variable]

    def _size(self, text: str) -> tuple[str, int]:
        match = _SIZE.match(text)
        if match is None:
            raise self._error(f"`{text[:80]}` is not a symbol with its example value")
        return self._symbol(match[1]), int(match[2])

    def _relation(self, text: str) -> Constraint:
        call = _CALL_RELATION.match(text)
        if call is not None:
            sides = _split(call[2])
            if len(sides) == 2:
                return Constraint(
                    self._expression(sides[0]), _BY_NAME[call[1]], self._expression(sides[1])
                )
        infix = _INFIX_RELATION.match(text)
        if infix is None:
            raise self._error(f"`{text[:80]}` is not a relation")
        relation: Relation = infix[2]  # type: ignore[assignment]
        return Constraint(self._expression(infix[1]), relation, self._expression(infix[3]))

    def _shapes(self) -> dict[str, tuple[Dim, ...]]:
        shapes: dict[str, tuple[Dim, ...]] = {}
        while (entry := _SHAPE.match(self.text, self.position)) is not None:
            dims, name = entry[1], entry[2]
            items = _split(dims)
            if not all(map(_INTEGER.match, items)):
                shapes[name] = tuple(
                    int(item) if _INTEGER.match(item) else self._expression(item) for item in items
                )
            self.position = entry.end()
        end = _SHAPES_END.match(self.text, self.position)
        if end is None:
            raise self._error("Expected a shape followed by the name of its input")
        self.position = end.end()
        return shapes

    def _expression(self, text: str) -> str:
        text = " ".join(text.split())
        try:
            unknown = free_symbols(text) - set(self.names.values())
        except SymbolError as error:
            raise self._error(str(error).rstrip(".")) from error
        if unknown:
            raise self._error(f"`{text[:80]}` uses `{min(unknown)}`, which is not declared")
        return text

    def _error(self, problem: str) -> SourceError:
        line = self.text.count("\n", 0, self.position) + 1
        return SourceError(
            f"`{self.file}`, line {line}: {problem}. Correct the file, or remove it if the graph "
            "has no symbolic dimensions."
        )


def _split(text: str) -> list[str]:
    """Split at the commas outside parentheses."""
    parts, depth, start = [], 0, 0
    if "(" not in text:
        return [part.strip() for part in text.split(",") if part.strip()]
    for index, sign in enumerate(text):
        if sign == "," and depth == 0:
            parts.append(text[start:index])
            start = index + 1
        depth += (sign == "(") - (sign == ")")
    parts.append(text[start:])
    return [part.strip() for part in parts if part.strip()]


_TORCH_FUNCTIONS = ("CeilDiv", "FloorDiv", "PythonMod")


def print_constraints(sample: Sample, names: tuple[str, ...]) -> str:
    """Return the contents of the constraints file for a sample with these argument names."""
    relations = [f"{c.left} {c.relation} {c.right}" for c in sample.constraints]
    for index, constraint in enumerate(sample.constraints):
        if constraint.relation in ("==", "!="):
            # In Python, == on two symbols would compare objects and return a bool.
            kind = "Eq" if constraint.relation == "==" else "Ne"
            relations[index] = f"{kind}({constraint.left}, {constraint.right})"
    shapes = [
        f"    ([{', '.join(map(str, argument.value.shape or ()))}], {name!r}),"
        for argument, name in zip(sample.inputs, names, strict=True)
    ]
    text = "\n".join([*relations, *shapes])
    functions = [name for name in _TORCH_FUNCTIONS if name in text]
    lines = ["from sympy import Eq, Max, Min, Mod, Ne, Symbol"]
    if functions:
        lines.append(f"from torch.utils._sympy.functions import {', '.join(functions)}")
    lines += ["", *(f"{symbol.name} = Symbol({symbol.name!r})" for symbol in sample.symbols)]
    order = ", ".join(symbol.name for symbol in sample.symbols)
    sizes = ", ".join(f"{symbol.name}: {symbol.hint}" for symbol in sample.symbols)
    return "\n".join(
        [
            *lines,
            "",
            f"dynamic_dim_constraint_symbols = [{order}]",
            f"dynamic_dim_constraint_symbol2example_value = {{{sizes}}}",
            f"dynamic_dim_constraint_relations = [{', '.join(relations)}]",
            "dynamic_dim_constraint_input_shapes = [",
            *shapes,
            "]",
            "",
        ]
    )
