"""The semantic checks of a definition: names, sides, indices and types of its statements."""

from __future__ import annotations

import dataclasses
from typing import cast as static_cast

from .builtins import arity_of
from .checked import CheckedDefinition, IndexRange, Parameter, Statement, Variable
from .expressions import Access, Expression, Index, cast, walk
from .instance import Operator
from .limits import MAX_INDICES, MAX_NODES, MAX_RANK, MAX_TENSORS
from .parser import parse
from .spans import failure
from .syntax import (
    Apply,
    DefinitionSyntax,
    ExistsClause,
    LetClause,
    Name,
    Number,
    RangeClause,
    StatementSyntax,
    VariableSyntax,
)
from .typed import Scope, TensorName, integral, typed
from .types import ScalarType, holds


def check(source: str) -> tuple[CheckedDefinition, ...]:
    """Return the checked definitions of a text.

    >>> definition, = check("def twice(float(N) A) -> (B) { B(i) = 2 * A(i) }")
    >>> definition.outputs[0].type.name
    'float32'

    Raises:
        DefinitionError: the text is wrong; the message points at the place.
    """
    found: dict[str, CheckedDefinition] = {}
    try:
        for syntax in parse(source):
            if syntax.name.text in found:
                raise failure(f"`{syntax.name.text}` is already defined.", syntax.name.span)
            found[syntax.name.text] = _Checker(syntax).check(source)
    except RecursionError:
        raise failure("An expression is nested too deep. Split it.", None) from None
    return tuple(found.values())


def _sizes(dimensions: tuple[Name | Number, ...]) -> tuple[str | int, ...]:
    return tuple(each.text if isinstance(each, Name) else int(each.value) for each in dimensions)


class _Checker:
    """The state of checking one definition from its first statement to its last."""

    def __init__(self, syntax: DefinitionSyntax) -> None:
        self.syntax = syntax
        self.tensors: dict[str, TensorName] = {}
        self.inputs: set[str] = set()
        self.sizes: set[str] = set()
        self.returns = {each.name.text: each for each in syntax.returns}
        self.variables: dict[str, Variable] = {}
        self.written: set[str] = set()
        self.read: set[str] = set()
        self.budget = MAX_NODES

    def check(self, source: str) -> CheckedDefinition:
        """Check all of it."""
        parameters = self.declare()
        statements = tuple(self.statement(each) for each in self.syntax.statements)
        for each in self.syntax.returns:
            if each.name.text not in self.written:
                raise failure(
                    f"The output `{each.name.text}` is never written. Write a statement for it.",
                    each.span,
                )
        temporaries = [each for each in self.variables.values() if each.name not in self.returns]
        for each in temporaries:
            if each.name not in self.read:
                raise failure(
                    f"`{each.name}` is not listed as output, and no statement reads it.", each.span
                )
        return CheckedDefinition(
            self.syntax.name.text,
            parameters,
            tuple(self.variables[name] for name in self.returns),
            tuple(temporaries),
            statements,
            source,
        )

    def declare(self) -> tuple[Parameter, ...]:
        """Enter the parameters, sizes and returns."""
        named: set[str] = set()
        for each in (*self.syntax.parameters, *self.syntax.returns):
            if each.name.text in named:
                raise failure(f"`{each.name.text}` is already defined.", each.name.span)
            named.add(each.name.text)
            self.forbid_function(each.name)
        if len(named) > MAX_TENSORS:
            raise failure(f"There are more than {MAX_TENSORS} tensors.", self.syntax.span)
        parameters = []
        for each in self.syntax.parameters:
            assert each.type is not None  # noqa: S101 - the grammar demands it of a parameter
            dimensions = self.dimensions(each, named)
            self.inputs.add(each.name.text)
            self.tensors[each.name.text] = TensorName(each.type, len(dimensions))
            parameters.append(Parameter(each.name.text, each.type, dimensions, each.span))
        for each in self.syntax.returns:
            for size in each.dimensions or ():
                if isinstance(size, Name) and size.text not in self.sizes:
                    raise failure(
                        f"Undefined variable `{size.text}`: the sizes of an output are numbers or "
                        "sizes of inputs.",
                        size.span,
                    )
            if each.dimensions is not None:
                self.dimensions(each, named)
        return tuple(parameters)

    def dimensions(self, variable: VariableSyntax, named: set[str]) -> tuple[str | int, ...]:
        """Return the declared sizes of a tensor and enter their names."""
        if len(variable.dimensions or ()) > MAX_RANK:
            raise failure(f"A tensor has more than {MAX_RANK} dimensions.", variable.span)
        for each in variable.dimensions or ():
            if isinstance(each, Name):
                if each.text in named:
                    raise failure(f"`{each.text}` is already defined as a tensor.", each.span)
                self.forbid_function(each)
                self.sizes.add(each.text)
        return _sizes(variable.dimensions or ())

    def forbid_function(self, name: Name) -> None:
        """Raise if a name is that of a function."""
        if arity_of(name.text) is not None:
            raise failure(
                f"`{name.text}` is already defined: it is a function. Choose another name.",
                name.span,
            )

    def statement(self, syntax: StatementSyntax) -> Statement:
        """Check one statement and enter what it writes."""
        output = syntax.output
        self.check_output(output, syntax)
        scope = self.scope(syntax)
        bounds = self.ranges(syntax, scope)
        value, found = typed(syntax.value, scope)
        inferring = dataclasses.replace(scope, indices=dict(scope.indices), reading={})
        exists = tuple(
            typed(each.value, inferring)[0]
            for each in syntax.clauses
            if isinstance(each, ExistsClause)
        )
        self.check_exists(exists)
        self.check_library_call(syntax.library_call, scope)
        self.budget = min(scope.budget, inferring.budget)
        subscripts = tuple(each.text for each in syntax.subscripts)
        # What only `exists` mentions feeds inference and is not an index of the statement.
        counted = [each.name for each in bounds if each.name not in inferring.indices]
        used = [*scope.indices, *counted]
        reductions = tuple(dict.fromkeys(name for name in used if name not in subscripts))
        if len(subscripts) + len(reductions) > MAX_INDICES:
            raise failure(f"A statement has more than {MAX_INDICES} indices.", syntax.span)
        operator, initialises = self.operator(syntax, reductions, scope)
        reading = scope.reading.get(output.text)
        variable = self.variable(syntax, found, reading)
        self.check_own_reads(value, variable, subscripts, operator, bool(reductions))
        self.read |= {*scope.reading, *scope.measured}
        self.written.add(output.text)
        type_ = variable.type.compute
        return Statement(
            output.text,
            subscripts,
            operator,
            initialises,
            cast(value, type_),
            type_,
            reductions,
            bounds,
            exists,
            syntax.span,
        )

    def check_output(self, output: Name, syntax: StatementSyntax) -> None:
        """Raise unless the left side may be written with these subscripts."""
        if output.text in self.inputs:
            raise failure(
                f"`{output.text}` is an input, and inputs are immutable. Write an output of "
                "another name.",
                output.span,
            )
        if output.text in self.sizes:
            raise failure(f"`{output.text}` is already defined as a size.", output.span)
        self.forbid_function(output)
        seen: set[str] = set()
        for each in syntax.subscripts:
            if each.text in seen:
                raise failure(f"The index `{each.text}` is already used on this side.", each.span)
            if each.text in self.tensors or each.text in self.sizes or each.text in self.returns:
                raise failure(
                    f"`{each.text}` is already defined; the left side takes plain indices.",
                    each.span,
                )
            self.forbid_function(each)
            seen.add(each.text)
        if len(seen) > MAX_RANK:
            raise failure(f"A tensor has more than {MAX_RANK} dimensions.", syntax.span)

    def scope(self, syntax: StatementSyntax) -> Scope:
        """Return the names that the right side of a statement sees."""
        tensors = dict(self.tensors)
        for name, declared in self.returns.items():
            if name not in tensors and declared.type and declared.dimensions is not None:
                tensors[name] = TensorName(declared.type, len(declared.dimensions))
        scope = Scope(tensors, frozenset(self.sizes), budget=self.budget)
        indices = {each.text for each in syntax.subscripts}
        for clause in syntax.clauses:
            if not isinstance(clause, LetClause):
                continue
            name = clause.name
            taken = name.text in scope.lets or name.text in indices or name.text in tensors
            if taken or name.text in self.sizes:
                raise failure(f"`{name.text}` is already defined.", name.span)
            self.forbid_function(name)
            scope.lets[name.text] = clause.value
            scope.num_lets += 1
        return scope

    def ranges(self, syntax: StatementSyntax, scope: Scope) -> tuple[IndexRange, ...]:
        """Return the ranges that `where` fixes."""
        found: dict[str, IndexRange] = {}
        clauses = [each for each in syntax.clauses if isinstance(each, RangeClause)]
        indices = {each.name.text: each.name.span for each in clauses}
        bounds = dataclasses.replace(scope, indices=indices, may_index=False, may_access=False)
        for clause in clauses:
            name = clause.name
            taken = name.text in found or name.text in scope.lets or name.text in scope.tensors
            if taken or name.text in self.sizes:
                raise failure(f"`{name.text}` is already defined.", name.span)
            self.forbid_function(name)
            begin = integral(clause.begin, bounds, "The begin of a range")
            end = integral(clause.end, bounds, "The end of a range")
            found[name.text] = IndexRange(name.text, begin, end, clause.span)
        return tuple(found.values())

    def check_exists(self, exists: tuple[Expression, ...]) -> None:
        """Raise if an `exists` says nothing about any range."""
        for each in exists:
            if not any(isinstance(node, Access) and node.subscripts for node in walk(each)):
                raise failure(
                    "`exists` needs an access to a tensor, whose sizes bound the indices in it.",
                    each.span,
                )

    def check_library_call(self, call: Apply | None, scope: Scope) -> None:
        """Check the arguments of `<=>`; what it names is not used."""
        if call is None:
            return
        apart = dataclasses.replace(scope, indices=dict(scope.indices), reading={})
        for argument in call.arguments:
            if isinstance(argument, Name) and argument.text in self.tensors:
                continue
            typed(argument, apart)

    def operator(
        self, syntax: StatementSyntax, reductions: tuple[str, ...], scope: Scope
    ) -> tuple[Operator, bool]:
        """Return the operator and whether it starts from the identity."""
        text = syntax.operator.removesuffix("!").removesuffix("=")
        initialises = syntax.operator.endswith("!")
        if not text and reductions:
            name = reductions[0]
            raise failure(
                f"The index `{name}` is used without a reduction operator: it is not on the left "
                "side. Write `+=!`, `*=!`, `min=!` or `max=!`.",
                scope.indices.get(name, syntax.span),
            )
        if not text or (initialises and not reductions):
            return "=", False
        return static_cast(Operator, text), initialises

    def variable(
        self, syntax: StatementSyntax, found: ScalarType, reading: Access | None
    ) -> Variable:
        """Return the tensor that a statement writes, entered at its first writing."""
        name, rank = syntax.output.text, len(syntax.subscripts)
        declared = self.returns.get(name)
        known = self.variables.get(name)
        if known is None:
            # `float O` says the type only: the rank is that of the left side.
            sizes = _sizes(declared.dimensions) if declared and declared.dimensions else None
            type_ = (declared.type if declared is not None else None) or found
            is_first_update = syntax.operator in ("+=", "*=", "min=", "max=")
            if declared is None and (is_first_update or reading is not None):
                raise failure(
                    f"`{name}` is not listed as output and nothing wrote it before it is updated. "
                    f"List it as output, or write `{syntax.operator.rstrip('!')}!`.",
                    syntax.output.span,
                )
            declared_rank = rank if sizes is None else len(sizes)
            is_updated = is_first_update or reading is not None or name in self.read
            known = Variable(name, type_, declared_rank, sizes, is_updated, syntax.output.span)
            self.variables[name] = known
            self.tensors[name] = TensorName(known.type, known.rank)
        if known.rank != rank:
            raise failure(
                f"Expected {known.rank} dimensions of `{name}` but found {rank}.", syntax.span
            )
        if known.type.is_bool and syntax.operator[0] in "+*":
            raise failure(
                "A sum or product of booleans would be a boolean. Cast the right side to a number.",
                syntax.value.span,
            )
        if not holds(known.type, found):
            raise failure(
                f"`{name}` is {known.type}, a narrower type than {found} without an explicit cast. "
                f"Write `{known.type}(…)` around the right side.",
                syntax.value.span,
            )
        return known

    def check_own_reads(
        self,
        value: Expression,
        variable: Variable,
        subscripts: tuple[str, ...],
        operator: str,
        is_reduction: bool,
    ) -> None:
        """Raise if a statement reads elements of its output that it may have written already."""
        for node in walk(value):
            if not isinstance(node, Access) or node.tensor != variable.name:
                continue
            names = tuple(each.name if isinstance(each, Index) else "" for each in node.subscripts)
            if names != subscripts or is_reduction or operator != "=":
                raise failure(
                    f"A statement may read its own output `{variable.name}` only with `=` and at "
                    "the element that it writes. Write into another tensor.",
                    node.span,
                )
