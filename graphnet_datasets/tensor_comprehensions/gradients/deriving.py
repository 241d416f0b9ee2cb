"""Derivation of the gradient definition of a definition with invertible subscripts.

For a statement `O(i) = f(X(e), …)`, or a sum of such terms, the gradient of `X` is

    d_X(j) +=! d_O(i) * f'(X(e))    for all i with e = j,

which can be written as a statement if every subscript of `X` can be solved for a different index:
`B(i + k)` results in `d_B(j) +=! d_O(j - k) * …` for all `j - k` in range, `B(2 * i)` in a term for
every even `j`, and `B(i / 2)` in a sum over the `i` with this quotient. The gradient of `max=!` and
`min=!` is shared equally by all terms that attain the extreme, as that of `torch.amax`. The
gradient definition takes the inputs followed by the gradients of the outputs, and recomputes the
temporaries it needs. Gathers and `*=` have no derived gradient.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Mapping

from ...errors import TensorComprehensionError
from ..language import CheckedDefinition, check
from ..language.builtins import arity_of
from ..language.checked import Parameter, Statement
from ..language.expressions import (
    Access,
    Binary,
    Constant,
    Expression,
    Index,
    Select,
    rebuild,
    walk,
)
from ..language.lexer import tokenize
from ..language.printing import Printer
from ..language.types import BOOL, FLOAT32
from .derivatives import derivative, times
from .inverting import Extents, Inverse, invert


@dataclasses.dataclass(frozen=True, slots=True)
class _Written:
    """Source of a statement, and the tensor it writes."""

    tensor: str
    text: str


def derive_backward(definition: CheckedDefinition, name: str = "") -> str:
    """Return the source of the gradient definition.

    >>> from graphnet_datasets.tensor_comprehensions.language import check
    >>> source = "def mm(float(M,K) A, float(K,N) B) -> (C) { C(m,n) +=! A(m,k) * B(k,n) }"
    >>> text = derive_backward(check(source)[0])
    >>> print(text.splitlines()[1].strip())
    d_A(at0, at1) +=! (given_d_C(at0, n) * B(at1, n)) where at0 in 0:M, at1 in 0:K, n in 0:N

    Raises:
        TensorComprehensionError: a gradient cannot be derived; the message contains the reason.
    """
    return _Deriving(_unshadowed(definition)).text(name or f"{definition.name}_backward")


class _Deriving:
    """State of the derivation of one definition."""

    def __init__(self, definition: CheckedDefinition) -> None:
        self.definition = definition
        self.statements, sources = _versions(definition)
        self.rank = {statement.output: len(statement.subscripts) for statement in self.statements}
        self.taken = set(definition.names) | set(self.rank)
        self.gradient = {
            tensor: self._fresh(f"d_{tensor}")
            for tensor in (*(parameter.name for parameter in definition.parameters), *self.rank)
        }
        self.passed = {
            output.name: self._fresh(f"given_d_{output.name}") for output in definition.outputs
        }
        declared = {parameter.name: parameter.dimensions for parameter in definition.parameters}
        # All versions of an output have the sizes of the output, like its upstream gradient.
        passed = {
            version: self.passed[output]
            for version, output in sources.items()
            if output in self.passed
        }
        self.extents = Extents(declared, passed)
        self.read = {
            node.tensor
            for statement in self.statements
            for node in walk(statement.value)
            if isinstance(node, Access)
        }
        self.counts: dict[str, str] = {}
        self.written: list[_Written] = []
        self.begun: set[str] = set()

    def text(self, name: str) -> str:
        """Return the complete source."""
        wanted = [parameter for parameter in self.definition.parameters if parameter.type.is_float]
        for output in self.definition.outputs:
            self._begin_output(output.name)
        for statement in reversed(self.statements):
            if self.gradient[statement.output] in self.begun:
                self._contribute(statement)
        for parameter in wanted:
            gradient = self.gradient[parameter.name]
            if gradient not in self.begun:
                self.written.append(_Written(gradient, _assigned(gradient, parameter, "0.0", "=")))
        returned = [self.gradient[parameter.name] for parameter in wanted]
        statements = self._needed({*returned})
        parameters = [
            _declared(parameter.type.name, parameter) for parameter in self.definition.parameters
        ]
        parameters += [self._passed_parameter(output.name) for output in self.definition.outputs]
        body = "\n".join(f"    {statement.text}" for statement in statements)
        returns = ", ".join(returned)
        return f"def {name}({', '.join(parameters)}) -> ({returns}) {{\n{body}\n}}"

    def _passed_parameter(self, output: str) -> str:
        variable = next(
            candidate for candidate in self.definition.outputs if candidate.name == output
        )
        sizes = [f"{self.passed[output]}_{place}" for place in range(variable.rank)]
        dimensions = f"({', '.join(sizes)})" if sizes else ""
        return f"{variable.type}{dimensions} {self.passed[output]}"

    def _begin_output(self, output: str) -> None:
        """Initialise the gradient of an output from its upstream gradient."""
        gradient, upstream = self.gradient[output], self.passed[output]
        if output not in self.read:
            self.gradient[output] = upstream
            self.begun.add(upstream)
            return
        names = [f"at{place}" for place in range(self.rank[output])]
        subscripts = f"({', '.join(names)})" if names else ""
        self.written.append(_Written(gradient, f"{gradient}{subscripts} = {upstream}{subscripts}"))
        self.begun.add(gradient)

    def _contribute(self, statement: Statement) -> None:
        """Add the contributions of a statement to the gradients of the tensors it reads."""
        if statement.operator in ("min", "max"):
            self._count_ties(statement)
        elif statement.operator not in ("=", "+"):
            raise TensorComprehensionError(
                f"The gradient of `{statement.operator}=` in `{_span(statement)}` cannot be "
                "derived. "
                "Pass a backward definition with `backward=`."
            )
        accesses = [node for node in walk(statement.value) if isinstance(node, Access)]
        for access in dict.fromkeys(accesses):
            if access.type.is_float and not self._is_constant(access, statement):
                self._add(statement, access)

    def _count_ties(self, statement: Statement) -> None:
        """Write the number of terms that attain each minimum or maximum."""
        subscripts = tuple(Index(name) for name in statement.subscripts)
        extreme = Access(statement.output, subscripts, statement.type)
        is_tie = Binary("==", statement.value, extreme, BOOL)
        value = Select(is_tie, Constant(1.0, FLOAT32), Constant(0.0, FLOAT32), FLOAT32)
        count = self._fresh(f"{statement.output}_ties")
        counting = dataclasses.replace(statement, output=count, operator="+", value=value)
        self.written.append(_Written(count, _printed(counting)))
        self.counts[statement.output] = count

    def _is_constant(self, access: Access, statement: Statement) -> bool:
        printer = Printer({})
        return not derivative(statement.value, access, printer)

    def _add(self, statement: Statement, access: Access) -> None:
        inverse = invert(access, statement, self.extents)
        value = _substitute(statement.value, inverse.replacements)
        target = _substitute(access, inverse.replacements)
        assert isinstance(target, Access)  # noqa: S101 - substitution keeps the kind of a node
        printer = Printer({})
        subscripts = [
            printer.expression(inverse.replacements.get(index, Index(index)))
            for index in statement.subscripts
        ]
        place = f"({', '.join(subscripts)})" if subscripts else ""
        upstream = f"{self.gradient[statement.output]}{place}"
        if statement.output in self.counts:
            is_tie = f"{printer.expression(value)} == {statement.output}{place}"
            share = f"{upstream} / {self.counts[statement.output]}{place}"
            upstream = f"({is_tie} ? {share} : 0.0)"
        product = times(upstream, derivative(value, target, printer))
        if inverse.guards:
            product = f"({' && '.join(inverse.guards)} ? {product} : 0.0)"
        self._accumulate(access.tensor, product, inverse)

    def _accumulate(self, tensor: str, product: str, inverse: Inverse) -> None:
        gradient = self.gradient[tensor]
        left = f"{gradient}({', '.join(inverse.subscripts)})" if inverse.subscripts else gradient
        operator = "+=" if gradient in self.begun else "+=!"
        ranges = [
            f"{index} in 0:{self.extents.of(tensor, place)}"
            for place, index in enumerate(inverse.subscripts)
        ]
        ranges += [f"{index} in {begin}:{end}" for index, (begin, end) in inverse.ranges.items()]
        where = f" where {', '.join(ranges)}" if ranges else ""
        self.written.append(_Written(gradient, f"{left} {operator} {product}{where}"))
        self.begun.add(gradient)

    def _needed(self, names: set[str]) -> list[_Written]:
        """Return the statements that the given tensors depend on, forward statements first."""
        forward = [_Written(statement.output, _printed(statement)) for statement in self.statements]
        statements: list[_Written] = []
        for written in reversed([*forward, *self.written]):
            if written.tensor in names:
                statements.append(written)
                names |= set(re.findall(r"[A-Za-z_]\w*", written.text))
        return statements[::-1]

    def _fresh(self, name: str) -> str:
        while name in self.taken:
            name += "_"
        self.taken.add(name)
        return name


def _unshadowed(definition: CheckedDefinition) -> CheckedDefinition:
    """Return the definition without tensors named like functions, which derivatives may call."""
    shadows = {name for name in definition.names if arity_of(name) is not None}
    if not shadows:
        return definition
    tokens = tokenize(definition.source)
    begin = next(
        place
        for place, token in enumerate(tokens)
        if token.text == "def" and tokens[place + 1].text == definition.name
    )
    end = next(
        place for place in range(begin + 1, len(tokens)) if tokens[place].text in ("def", "")
    )
    used_names = {token.text for token in tokens}
    names = {}
    for shadow in shadows:
        fresh = shadow
        while fresh in used_names:
            fresh += "_"
        names[shadow] = fresh
        used_names.add(fresh)
    texts = [names.get(token.text, token.text) for token in tokens[begin + 2 : end]]
    return check(" ".join(["def", definition.name, *texts]))[0]


def _versions(definition: CheckedDefinition) -> tuple[list[Statement], dict[str, str]]:
    """Return the statements with a different tensor for each write, and the original tensors.

    A read refers to the last version before it.
    """
    sources: dict[str, str] = {}
    writers: dict[str, int] = {}
    for statement in definition.statements:
        writers[statement.output] = writers.get(statement.output, 0) + 1
    current: dict[str, str] = {}
    count: dict[str, int] = {}
    statements: list[Statement] = []
    names = set(definition.names)
    for statement in definition.statements:
        value = _rename_tensors(statement.value, current)
        name = statement.output
        count[name] = count.get(name, 0) + 1
        version = name
        if count[name] < writers[name]:
            version = f"{name}_{count[name]}"
            while version in names:
                version += "_"
            names.add(version)
        is_update = statement.operator != "=" and not statement.initialises
        if is_update and (statement.operator != "+" or name not in current):
            raise TensorComprehensionError(
                f"The gradient of `{_span(statement)}`, which continues from earlier contents, "
                "cannot be derived. Pass a backward definition with `backward=`."
            )
        changed = dataclasses.replace(statement, value=value, output=version)
        if is_update:
            statements += _split_update(changed, current[name], names)
        else:
            statements.append(changed)
        current[name] = version
        for versioned in statements:
            sources.setdefault(versioned.output, name)
    return statements, sources


def _split_update(statement: Statement, before: str, names: set[str]) -> list[Statement]:
    """Split `new += value` into a separate reduction and an addition."""
    part = f"{statement.output}_part"
    while part in names:
        part += "_"
    names.add(part)
    first = dataclasses.replace(
        statement,
        output=part,
        initialises=bool(statement.reductions),
        operator="+" if statement.reductions else "=",
    )
    subscripts = tuple(Index(name) for name in statement.subscripts)
    reads = [Access(tensor, subscripts, statement.type) for tensor in (before, part)]
    added = Binary("+", reads[0], reads[1], statement.type)
    second = dataclasses.replace(
        statement,
        value=added,
        operator="=",
        initialises=False,
        reductions=(),
        ranges=(),
        exists=(),
    )
    return [first, second]


def _rename_tensors(node: Expression, names: Mapping[str, str]) -> Expression:
    changed = rebuild(node, lambda child: _rename_tensors(child, names))
    if isinstance(changed, Access) and changed.tensor in names:
        return dataclasses.replace(changed, tensor=names[changed.tensor])
    return changed


def _substitute(node: Expression, replacements: Mapping[str, Expression]) -> Expression:
    if isinstance(node, Index):
        return replacements.get(node.name, node)
    return rebuild(node, lambda child: _substitute(child, replacements))


def _printed(statement: Statement) -> str:
    printer = Printer({})
    left = statement.output
    if statement.subscripts:
        left += f"({', '.join(statement.subscripts)})"
    operator = "" if statement.operator == "=" else statement.operator
    assign = f"{operator}={'!' if statement.initialises else ''}"
    clauses = [
        f"{bounds.name} in {printer.expression(bounds.begin)}:{printer.expression(bounds.end)}"
        for bounds in statement.ranges
    ]
    clauses += [f"exists {printer.expression(condition)}" for condition in statement.exists]
    where = f" where {', '.join(clauses)}" if clauses else ""
    return f"{left} {assign} {printer.expression(statement.value)}{where}"


def _assigned(gradient: str, parameter: Parameter, value: str, operator: str) -> str:
    names = [f"at{place}" for place in range(len(parameter.dimensions))]
    left = f"{gradient}({', '.join(names)})" if names else gradient
    ranges = [f"{index} in 0:{parameter.name}.{place}" for place, index in enumerate(names)]
    where = f" where {', '.join(ranges)}" if ranges else ""
    return f"{left} {operator} {value}{where}"


def _declared(type_: str, parameter: Parameter) -> str:
    sizes = ", ".join(str(size) for size in parameter.dimensions)
    return f"{type_}{f'({sizes})' if sizes else ''} {parameter.name}"


def _span(statement: Statement) -> str:
    return " ".join(statement.span.text.split()) if statement.span else statement.output
