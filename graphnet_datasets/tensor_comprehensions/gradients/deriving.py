"""The definition of the gradients of a definition, where its subscripts can be inverted.

For a statement `O(i) = f(X(e), …)`, or a sum of that, the gradient of `X` is

    d_X(j) +=! d_O(i) * f'(X(e))    for all i with e = j,

which is a statement again if every subscript of `X` can be solved for an index of its own with
coefficient 1 or -1: `B(i + k)` gives `d_B(j) +=! d_O(j - k) * …` for those `j - k` in range. The
gradient definition takes the inputs, then the gradients of the outputs; it computes again what it
needs of the temporaries. Gathers and `min=`, `max=`, `*=` have no derived gradient.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Mapping

from ...errors import TensorComprehensionError
from ..language import CheckedDefinition
from ..language.checked import Parameter, Statement
from ..language.expressions import Access, Binary, Expression, Index, rebuild, walk
from ..language.printing import Printer
from .derivatives import derivative, times
from .inverting import Extents, Inverse, invert


@dataclasses.dataclass(frozen=True, slots=True)
class _Written:
    """A statement as text and the tensor that it writes."""

    tensor: str
    text: str


def derive_backward(definition: CheckedDefinition, name: str = "") -> str:
    """Return the text of the gradient definition.

    >>> from graphnet_datasets.tensor_comprehensions.language import check
    >>> source = "def mm(float(M,K) A, float(K,N) B) -> (C) { C(m,n) +=! A(m,k) * B(k,n) }"
    >>> text = derive_backward(check(source)[0])
    >>> print(text.splitlines()[1].strip())
    d_A(at0, at1) +=! (given_d_C(at0, n) * B(at1, n)) where at0 in 0:M, at1 in 0:K, n in 0:N

    Raises:
        TensorComprehensionError: a gradient cannot be derived; the message says of what and why.
    """
    return _Deriving(definition).text(name or f"{definition.name}_backward")


class _Deriving:
    """The state of deriving one definition."""

    def __init__(self, definition: CheckedDefinition) -> None:
        self.definition = definition
        self.statements, sources = _versions(definition)
        self.rank = {each.output: len(each.subscripts) for each in self.statements}
        self.taken = set(definition.names) | set(self.rank)
        self.gradient = {
            each: self._fresh(f"d_{each}")
            for each in (*(p.name for p in definition.parameters), *self.rank)
        }
        self.passed = {
            output.name: self._fresh(f"given_d_{output.name}") for output in definition.outputs
        }
        declared = {each.name: each.dimensions for each in definition.parameters}
        # All versions of an output have the sizes of the output, which its given gradient has.
        passed = {each: self.passed[own] for each, own in sources.items() if own in self.passed}
        self.extents = Extents(declared, passed)
        self.read = {
            node.tensor
            for statement in self.statements
            for node in walk(statement.value)
            if isinstance(node, Access)
        }
        self.written: list[_Written] = []
        self.begun: set[str] = set()

    def text(self, name: str) -> str:
        """Return the whole text."""
        wanted = [each for each in self.definition.parameters if each.type.is_float]
        for output in self.definition.outputs:
            self._begin_output(output.name)
        for statement in reversed(self.statements):
            if self.gradient[statement.output] in self.begun:
                self._contribute(statement)
        for parameter in wanted:
            own = self.gradient[parameter.name]
            if own not in self.begun:
                self.written.append(_Written(own, _assigned(own, parameter, "0.0", "=")))
        returned = [self.gradient[each.name] for each in wanted]
        kept = self._needed({*returned})
        parameters = [_declared(each.type.name, each) for each in self.definition.parameters]
        parameters += [self._passed_parameter(each.name) for each in self.definition.outputs]
        body = "\n".join(f"    {each.text}" for each in kept)
        returns = ", ".join(returned)
        return f"def {name}({', '.join(parameters)}) -> ({returns}) {{\n{body}\n}}"

    def _passed_parameter(self, output: str) -> str:
        variable = next(each for each in self.definition.outputs if each.name == output)
        sizes = [f"{self.passed[output]}_{place}" for place in range(variable.rank)]
        dimensions = f"({', '.join(sizes)})" if sizes else ""
        return f"{variable.type}{dimensions} {self.passed[output]}"

    def _begin_output(self, output: str) -> None:
        """Start the gradient of an output from what is passed."""
        own, given = self.gradient[output], self.passed[output]
        if output not in self.read:
            self.gradient[output] = given
            self.begun.add(given)
            return
        names = [f"at{place}" for place in range(self.rank[output])]
        subscripts = f"({', '.join(names)})" if names else ""
        self.written.append(_Written(own, f"{own}{subscripts} = {given}{subscripts}"))
        self.begun.add(own)

    def _contribute(self, statement: Statement) -> None:
        """Add what a statement hands on to the gradients of what it reads."""
        if statement.operator not in ("=", "+"):
            raise TensorComprehensionError(
                f"The gradient of `{statement.operator}=` in `{_span(statement)}` is not derived. "
                "Give the backward definition yourself (`backward=`)."
            )
        accesses = [node for node in walk(statement.value) if isinstance(node, Access)]
        for access in dict.fromkeys(accesses):
            if access.type.is_float and not self._is_constant(access, statement):
                self._add(statement, access)

    def _is_constant(self, access: Access, statement: Statement) -> bool:
        printer = Printer({})
        return not derivative(statement.value, access, printer)

    def _add(self, statement: Statement, access: Access) -> None:
        inverse = invert(access, statement, self.extents)
        value = _substituted(statement.value, inverse.replacements)
        target = _substituted(access, inverse.replacements)
        assert isinstance(target, Access)  # noqa: S101 - substitution keeps the kind of a node
        printer = Printer({})
        subscripts = [
            printer.expression(inverse.replacements.get(each, Index(each)))
            for each in statement.subscripts
        ]
        own = self.gradient[statement.output]
        upstream = f"{own}({', '.join(subscripts)})" if subscripts else own
        product = times(upstream, derivative(value, target, printer))
        if inverse.guards:
            product = f"({' && '.join(inverse.guards)} ? {product} : 0.0)"
        self._accumulate(access.tensor, product, inverse)

    def _accumulate(self, tensor: str, product: str, inverse: Inverse) -> None:
        own = self.gradient[tensor]
        left = f"{own}({', '.join(inverse.subscripts)})" if inverse.subscripts else own
        operator = "+=" if own in self.begun else "+=!"
        ranges = [
            f"{each} in 0:{self.extents.of(tensor, place)}"
            for place, each in enumerate(inverse.subscripts)
        ]
        ranges += [f"{each} in {begin}:{end}" for each, (begin, end) in inverse.ranges.items()]
        where = f" where {', '.join(ranges)}" if ranges else ""
        self.written.append(_Written(own, f"{left} {operator} {product}{where}"))
        self.begun.add(own)

    def _needed(self, names: set[str]) -> list[_Written]:
        """Return the statements, forward ones before, that the given tensors depend on."""
        forward = [_Written(each.output, _printed(each)) for each in self.statements]
        kept: list[_Written] = []
        for each in reversed([*forward, *self.written]):
            if each.tensor in names:
                kept.append(each)
                names |= set(re.findall(r"[A-Za-z_]\w*", each.text))
        return kept[::-1]

    def _fresh(self, name: str) -> str:
        while name in self.taken:
            name += "_"
        self.taken.add(name)
        return name


def _versions(definition: CheckedDefinition) -> tuple[list[Statement], dict[str, str]]:
    """Return the statements with a tensor of its own for each, and which tensor each was.

    A read is of the last version before it.
    """
    sources: dict[str, str] = {}
    writers: dict[str, int] = {}
    for statement in definition.statements:
        writers[statement.output] = writers.get(statement.output, 0) + 1
    current: dict[str, str] = {}
    count: dict[str, int] = {}
    made: list[Statement] = []
    taken = set(definition.names)
    for statement in definition.statements:
        value = _renamed(statement.value, current)
        name = statement.output
        count[name] = count.get(name, 0) + 1
        own = name
        if count[name] < writers[name]:
            own = f"{name}_{count[name]}"
            while own in taken:
                own += "_"
            taken.add(own)
        is_update = statement.operator != "=" and not statement.initialises
        if is_update and (statement.operator != "+" or name not in current):
            raise TensorComprehensionError(
                f"The gradient of `{_span(statement)}`, which goes on from earlier contents, is "
                "not derived. Give the backward definition yourself (`backward=`)."
            )
        changed = dataclasses.replace(statement, value=value, output=own)
        if is_update:
            made += _summed(changed, current[name], taken)
        else:
            made.append(changed)
        current[name] = own
        for each in made:
            sources.setdefault(each.output, name)
    return made, sources


def _summed(statement: Statement, before: str, taken: set[str]) -> list[Statement]:
    """Return `new += value` as a sum of its own and an addition."""
    part = f"{statement.output}_part"
    while part in taken:
        part += "_"
    taken.add(part)
    first = dataclasses.replace(
        statement,
        output=part,
        initialises=bool(statement.reductions),
        operator="+" if statement.reductions else "=",
    )
    subscripts = tuple(Index(each) for each in statement.subscripts)
    reads = [Access(each, subscripts, statement.type) for each in (before, part)]
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


def _renamed(node: Expression, names: Mapping[str, str]) -> Expression:
    changed = rebuild(node, lambda child: _renamed(child, names))
    if isinstance(changed, Access) and changed.tensor in names:
        return dataclasses.replace(changed, tensor=names[changed.tensor])
    return changed


def _substituted(node: Expression, replacements: Mapping[str, Expression]) -> Expression:
    if isinstance(node, Index):
        return replacements.get(node.name, node)
    return rebuild(node, lambda child: _substituted(child, replacements))


def _printed(statement: Statement) -> str:
    printer = Printer({})
    left = statement.output
    if statement.subscripts:
        left += f"({', '.join(statement.subscripts)})"
    operator = "" if statement.operator == "=" else statement.operator
    assign = f"{operator}={'!' if statement.initialises else ''}"
    clauses = [
        f"{each.name} in {printer.expression(each.begin)}:{printer.expression(each.end)}"
        for each in statement.ranges
    ]
    clauses += [f"exists {printer.expression(each)}" for each in statement.exists]
    where = f" where {', '.join(clauses)}" if clauses else ""
    return f"{left} {assign} {printer.expression(statement.value)}{where}"


def _assigned(own: str, parameter: Parameter, value: str, operator: str) -> str:
    names = [f"at{place}" for place in range(len(parameter.dimensions))]
    left = f"{own}({', '.join(names)})" if names else own
    ranges = [f"{each} in 0:{parameter.name}.{place}" for place, each in enumerate(names)]
    where = f" where {', '.join(ranges)}" if ranges else ""
    return f"{left} {operator} {value}{where}"


def _declared(type_: str, parameter: Parameter) -> str:
    sizes = ", ".join(str(each) for each in parameter.dimensions)
    return f"{type_}{f'({sizes})' if sizes else ''} {parameter.name}"


def _span(statement: Statement) -> str:
    return " ".join(statement.span.text.split()) if statement.span else statement.output
