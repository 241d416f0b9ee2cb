"""Derivation of the gradient definition of a definition.

For a statement `O(i) = f(X(e), …)`, or a sum of such terms, the gradient of `X` is

    d_X(j) +=! d_O(i) * f'(X(e))    for all i with e = j,

which is written as a reduction if every subscript of `X` can be solved for a different index:
`B(i + k)` results in `d_B(j) +=! d_O(j - k) * …` for all `j - k` in range, `B(2 * i)` in a term for
every even `j`, and `B(i / 2)` in a sum over the `i` with this quotient. Otherwise, as for a gather,
it is a scatter: `d_X(e) += d_O(i) * f'(X(e))` over the points of the statement.

- The gradient of `max=!` and `min=!` is shared equally by all terms that attain the extreme, as
  that of `torch.amax`.
- The gradient of a term of `*=!` is the product of the other terms, also if some are 0.
- The gradient of a scatter is a gather; points that it skips have the gradient 0.
- The gradient of a scan `S(i) = f(S(i - 1), …)` is a scan in the opposite direction:
  `t(i) = d_S(i) + t(i + 1) * f'(S(i))`, of which the gradients of the other reads are computed.

The gradient definition takes the inputs followed by the gradients of the outputs, and recomputes
the temporaries it needs.
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
    Size,
    rebuild,
    walk,
)
from ..language.guards import guarded_accesses
from ..language.instance import Operator, identity_of
from ..language.lexer import tokenize
from ..language.linear import Sizes, linear
from ..language.printing import Printer, left_side
from ..language.types import BOOL, FLOAT32, INT32
from .derivatives import derivative, times
from .inverting import Extents, Inverse, NotInvertibleError, invert

MAX_LITERAL = (1 << 31) - 1
"""Largest integer that a definition can contain."""


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
        self.statements, sources, alike = _versions(definition)
        self.rank = {
            statement.output: len(_written_place(statement)) for statement in self.statements
        }
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
        self.extents = Extents(declared, alike | passed)
        self.read = {
            node.tensor
            for statement in self.statements
            for node in walk(statement.value)
            if isinstance(node, Access) and node.tensor != statement.output
        }
        self.counts: dict[str, str] = {}
        self.rests: dict[str, str] = {}
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
        if statement.scan is not None:
            statement = self._adjoin(statement)
        if statement.operator in ("min", "max", "*"):
            self._count(statement)
        accesses = [node for node in walk(statement.value) if isinstance(node, Access)]
        for access in dict.fromkeys(accesses):
            if access.tensor == statement.output or not access.type.is_float:
                continue
            if derivative(statement.value, access, Printer({})):
                self._add(statement, access)

    def _adjoin(self, statement: Statement) -> Statement:
        """Write the scan of the gradients, and return the statement with guarded own reads."""
        scan, output = statement.scan, statement.output
        assert scan is not None  # noqa: S101 (checked by the caller)
        printer = Printer({})
        place = statement.subscripts.index(scan.index)
        extent = self.extents.of(output, place)
        own_reads = dict.fromkeys(
            node
            for node in walk(statement.value)
            if isinstance(node, Access) and node.tensor == output
        )

        def guarded(node: Expression) -> Expression:
            changed = rebuild(node, guarded)
            if not isinstance(changed, Access) or changed.tensor != output:
                return changed
            inside: Expression = Binary(">=", changed.subscripts[place], Constant(0, INT32), BOOL)
            if scan.is_descending:
                inside = Binary("<", changed.subscripts[place], _size(extent), BOOL)
            return Select(inside, changed, Constant(0.0, FLOAT32), changed.type)

        statement = dataclasses.replace(statement, value=guarded(statement.value))
        upstream, names = self.gradient[output], list(statement.subscripts)
        total = self._fresh(f"{upstream}_total")
        text = f"{upstream}({', '.join(names)})"
        for read in own_reads:
            form = linear(read.subscripts[place], Sizes({}, {}))
            assert form is not None  # noqa: S101 (the checker accepts only such reads)
            later = Binary("+", Index(scan.index), Constant(-form.value, INT32), INT32)
            replacements: dict[str, Expression] = {scan.index: later}
            value = _substitute(statement.value, replacements)
            target = _substitute(read, replacements)
            assert isinstance(target, Access)  # noqa: S101 (substitution keeps the kind)
            moved = printer.expression(later)
            inside = f"{moved} >= 0" if scan.is_descending else f"{moved} < {extent}"
            subscripts = [moved if name == scan.index else name for name in names]
            term = times(f"{total}({', '.join(subscripts)})", derivative(value, target, printer))
            text += f" + ({inside} ? {term} : 0.0)" if term else ""
        ranges = [
            f"{name} in 0:{self.extents.of(output, position)}"
            for position, name in enumerate(names)
        ]
        left = f"{total}({', '.join(names)})"
        self.written.append(_Written(total, f"{left} = {text} where {', '.join(ranges)}"))
        self.begun.add(total)
        self.gradient[output] = total
        return statement

    def _count(self, statement: Statement) -> None:
        """Write the number of terms that attain each extreme, or that make each product 0.

        For a product, the product of the other terms is written as well.
        """
        if statement.operator == "*":
            is_counted = Binary("==", statement.value, Constant(0.0, FLOAT32), BOOL)
        else:
            extreme = Access(statement.output, _written_place(statement), statement.type)
            is_counted = Binary("==", statement.value, extreme, BOOL)
        unit, zero = Constant(1.0, FLOAT32), Constant(0.0, FLOAT32)
        count = self._fresh(f"{statement.output}_count")
        value: Expression = Select(is_counted, unit, zero, FLOAT32)
        counting = _redirected(statement, count, "+", value)
        self.counts[statement.output] = count
        self.written += self._statements(counting, statement.output)
        if statement.operator == "*":
            rest = self._fresh(f"{statement.output}_rest")
            value = Select(is_counted, unit, statement.value, statement.type)
            self.rests[statement.output] = rest
            self.written += self._statements(
                _redirected(statement, rest, "*", value), statement.output
            )

    def _statements(self, statement: Statement, alike: str = "") -> list[_Written]:
        """Return a statement as source; a scatter is preceded by the assignment of its identity.

        Args:
            alike: a tensor of the same sizes as the output.
        """
        written: list[_Written] = []
        if statement.target is not None and statement.initialises:
            identity = identity_of(statement.operator, statement.type)
            if isinstance(identity, int) and abs(identity) > MAX_LITERAL:
                raise TensorComprehensionError(
                    f"The gradient of `{_span(statement)}` cannot be derived, because the language "
                    f"cannot write the identity of `{statement.operator}=` for {statement.type}. "
                    "Pass a backward definition with `backward=`."
                )
            value = Printer({}).expression(Constant(identity, statement.type))
            written.append(self._filled(statement.output, value, alike or statement.output))
            statement = dataclasses.replace(statement, initialises=False)
        return [*written, _Written(statement.output, _printed(statement))]

    def _filled(self, tensor: str, value: str, alike: str) -> _Written:
        """Return the assignment of a value to a tensor with the sizes of another tensor."""
        rank = self.rank.get(alike)
        if rank is None:
            rank = len(self.extents.declared[alike])
        names = [f"at{place}" for place in range(rank)]
        ranges = [f"{name} in 0:{self.extents.of(alike, k)}" for k, name in enumerate(names)]
        left, where = tensor, ""
        if names:
            left, where = f"{tensor}({', '.join(names)})", f" where {', '.join(ranges)}"
        return _Written(tensor, f"{left} = {value}{where}")

    def _add(self, statement: Statement, access: Access) -> None:
        try:
            inverse = invert(access, statement, self.extents)
        except NotInvertibleError:
            self._scatter(statement, access)
            return
        value = _substitute(statement.value, inverse.replacements)
        target = _substitute(access, inverse.replacements)
        assert isinstance(target, Access)  # noqa: S101 - substitution keeps the kind of a node
        upstream = self._upstream(statement, value, inverse.replacements)
        product = times(upstream, derivative(value, target, Printer({})))
        if inverse.guards:
            product = f"({' && '.join(inverse.guards)} ? {product} : 0.0)"
        self._accumulate(access.tensor, product, inverse)

    def _scatter(self, statement: Statement, access: Access) -> None:
        """Add a contribution at every point of the statement, in its own indices."""
        printer, gradient = Printer({}), self.gradient[access.tensor]
        kind = access.type.compute
        if gradient not in self.begun:
            self.written.append(self._filled(gradient, f"{kind}(0)", access.tensor))
            self.begun.add(gradient)
        is_guarded = any(
            node == access and names for node, names in guarded_accesses(statement.value)
        )
        subscripts = []
        for subscript in access.subscripts:
            text = printer.expression(subscript)
            # Under a condition, a subscript may be out of range, where nothing is added.
            plain = isinstance(subscript, Index) or not is_guarded
            subscripts.append(text if plain else f"max({text}, -1)")
        upstream = self._upstream(statement, statement.value, {})
        product = times(upstream, derivative(statement.value, access, printer))
        used = set(re.findall(r"[A-Za-z_]\w*", " ".join([product, *subscripts])))
        for name in (*statement.subscripts, *statement.reductions):
            if name not in used:  # it counts the equal terms
                product = f"({product} + 0 * {name})"
        clauses = _clauses(statement)
        reads = [node for node in walk(statement.value) if isinstance(node, Access)]
        if any(node.subscripts for node in reads):  # the ranges follow from all reads
            clauses.append(f"exists {printer.expression(statement.value)}")
        where = f" where {', '.join(clauses)}" if clauses else ""
        left = f"{gradient}({', '.join(subscripts)})"
        self.written.append(_Written(gradient, f"{left} += {kind}({product}){where}"))

    def _upstream(
        self, statement: Statement, value: Expression, replacements: Mapping[str, Expression]
    ) -> str:
        """Return the derivative of the result with respect to the value at a point, as source."""
        printer, output = Printer({}), statement.output
        subscripts = [_substitute(node, replacements) for node in _written_place(statement)]
        texts = [printer.expression(node) for node in subscripts]
        place = f"({', '.join(texts)})" if texts else ""
        upstream, term = f"{self.gradient[output]}{place}", printer.expression(value)
        count = f"{self.counts.get(output)}{place}"
        if output in self.rests:
            rest = f"{self.rests[output]}{place}"
            others = f"({term} == 0 ? ({count} == 1 ? {rest} : 0.0) : {rest} / {term})"
            others = f"({count} > 1 || ({count} == 1 && {term} != 0) ? 0.0 : {others})"
            upstream = f"({upstream} * {others})"
        elif output in self.counts:
            upstream = f"({term} == {output}{place} ? {upstream} / {count} : 0.0)"
        if statement.target is not None:
            inside = [
                f"{text} >= 0 && {text} < {self.extents.of(output, k)}"
                for k, (text, node) in enumerate(zip(texts, subscripts, strict=True))
                if not isinstance(node, Index)
            ]
            if inside:
                upstream = f"({' && '.join(inside)} ? {upstream} : 0.0)"
        return upstream

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
        forward = [
            written for statement in self.statements for written in self._statements(statement)
        ]
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


def _versions(
    definition: CheckedDefinition,
) -> tuple[list[Statement], dict[str, str], dict[str, str]]:
    """Return the statements with a different tensor for each write, and the original tensors.

    A read refers to the last version before it, and that of a scan to the version it writes. The
    last dictionary contains, for each temporary that a scatter fills, the version before.
    """
    sources: dict[str, str] = {}
    alike: dict[str, str] = {}
    writers: dict[str, int] = {}
    for statement in definition.statements:
        writers[statement.output] = writers.get(statement.output, 0) + 1
    current: dict[str, str] = {}
    count: dict[str, int] = {}
    statements: list[Statement] = []
    names = set(definition.names)
    for statement in definition.statements:
        name = statement.output
        count[name] = count.get(name, 0) + 1
        version = name
        if count[name] < writers[name]:
            version = f"{name}_{count[name]}"
            while version in names:
                version += "_"
            names.add(version)
        renamed = current | {name: version} if statement.scan is not None else current
        value = _rename_tensors(statement.value, renamed)
        target = statement.target
        if target is not None:
            subscripts = tuple(_rename_tensors(node, current) for node in target.subscripts)
            target = dataclasses.replace(target, tensor=version, subscripts=subscripts)
            if name in current:
                alike[version] = current[name]
        is_update = statement.operator != "=" and not statement.initialises
        if is_update and name not in current:
            raise TensorComprehensionError(
                f"The gradient of `{_span(statement)}`, which continues from earlier contents, "
                "cannot be derived. Pass a backward definition with `backward=`."
            )
        changed = dataclasses.replace(statement, value=value, output=version, target=target)
        if is_update:
            statements += _split_update(changed, current[name], names)
            alike[statements[-2].output] = current[name]
        else:
            statements.append(changed)
        current[name] = version
        for versioned in statements:
            sources.setdefault(versioned.output, name)
    return statements, sources, alike


def _split_update(statement: Statement, before: str, names: set[str]) -> list[Statement]:
    """Split `new += value` into a separate reduction and an addition; likewise `*=` and `max=`.

    If the new extreme equals the old one, both have half of the gradient, as in `torch.maximum`.
    """
    part = f"{statement.output}_part"
    while part in names:
        part += "_"
    names.add(part)
    is_reduction = bool(statement.reductions) or statement.target is not None
    operator = statement.operator
    first = _redirected(statement, part, operator if is_reduction else "=", statement.value)
    first = dataclasses.replace(first, initialises=is_reduction)
    indices = statement.subscripts
    if statement.target is not None:
        indices = tuple(f"at{place}" for place in range(len(statement.target.subscripts)))
    type_ = statement.type
    old, new = (
        Access(tensor, tuple(Index(name) for name in indices), type_) for tensor in (before, part)
    )
    if operator in ("+", "*"):
        combined: Expression = Binary(operator, old, new, type_)
    else:
        wins = ">" if operator == "max" else "<"
        half = Binary("*", Constant(0.5, FLOAT32), Binary("+", old, new, type_), type_)
        if not type_.is_float:
            half = new
        otherwise = Select(Binary(wins, new, old, BOOL), new, half, type_)
        combined = Select(Binary(wins, old, new, BOOL), old, otherwise, type_)
    second = dataclasses.replace(
        statement,
        subscripts=indices,
        value=combined,
        operator="=",
        initialises=False,
        reductions=(),
        ranges=(),
        exists=(),
        target=None,
    )
    return [first, second]


def _redirected(
    statement: Statement, output: str, operator: Operator, value: Expression
) -> Statement:
    """Return a statement that writes the same elements of another tensor."""
    target = statement.target
    if target is not None:
        target = dataclasses.replace(target, tensor=output)
    return dataclasses.replace(
        statement, output=output, operator=operator, value=value, target=target, initialises=True
    )


def _written_place(statement: Statement) -> tuple[Expression, ...]:
    """Return the subscripts of the element that a statement writes."""
    if statement.target is not None:
        return statement.target.subscripts
    return tuple(Index(name) for name in statement.subscripts)


def _size(text: str) -> Expression:
    """Return a size that is printed as a number, a name or `T.k`."""
    if text.isdigit():
        return Constant(int(text), INT32)
    name, _, dimension = text.partition(".")
    return Size(name, int(dimension) if dimension else None)


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
    operator = "" if statement.operator == "=" else statement.operator
    assign = f"{operator}={'!' if statement.initialises else ''}"
    clauses = _clauses(statement)
    where = f" where {', '.join(clauses)}" if clauses else ""
    left = left_side(statement, printer)
    return f"{left} {assign} {printer.expression(statement.value)}{where}"


def _clauses(statement: Statement) -> list[str]:
    printer = Printer({})
    clauses = [
        f"{bounds.name} in {printer.expression(bounds.begin)}:{printer.expression(bounds.end)}"
        for bounds in statement.ranges
    ]
    return clauses + [f"exists {printer.expression(condition)}" for condition in statement.exists]


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
