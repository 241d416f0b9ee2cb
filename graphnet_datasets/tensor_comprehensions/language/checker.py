"""Semantic checks of a definition: names, left sides, indices and types."""

from __future__ import annotations

import dataclasses
from typing import Literal
from typing import cast as static_cast

from .checked import CheckedDefinition, IndexRange, Parameter, Statement, Variable
from .expressions import Access, Expression, Index, cast, walk
from .instance import Operator, Scan
from .limits import MAX_INDICES, MAX_NODES, MAX_RANK, MAX_TENSORS
from .linear import Sizes, linear
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
from .typed import Scope, TensorName, Typed, integral, typed
from .types import BOOL, ScalarType, holds

MAX_TYPE_STEPS = 16
"""Bound on the search for the type of a scan; there are fewer types, and each step is wider."""


def check(source: str) -> tuple[CheckedDefinition, ...]:
    """Parse a source string and check its definitions.

    >>> definition, = check("def twice(float(N) A) -> (B) { B(i) = 2 * A(i) }")
    >>> definition.outputs[0].type.name
    'float32'

    Raises:
        DefinitionError: the source is invalid; the message points at the place.
    """
    definitions: dict[str, CheckedDefinition] = {}
    try:
        for syntax in parse(source):
            if syntax.name.text in definitions:
                raise failure(f"`{syntax.name.text}` is already defined.", syntax.name.span)
            definitions[syntax.name.text] = _Checker(syntax).check(source)
    except RecursionError:
        raise failure("An expression is nested too deep. Split it.", None) from None
    return tuple(definitions.values())


def _sizes(dimensions: tuple[Name | Number, ...]) -> tuple[str | int, ...]:
    return tuple(
        dimension.text if isinstance(dimension, Name) else int(dimension.value)
        for dimension in dimensions
    )


class _Checker:
    """State of the check of one definition."""

    def __init__(self, syntax: DefinitionSyntax) -> None:
        self.syntax = syntax
        self.tensors: dict[str, TensorName] = {}
        self.inputs: set[str] = set()
        self.sizes: set[str] = set()
        self.returns = {variable.name.text: variable for variable in syntax.returns}
        self.variables: dict[str, Variable] = {}
        self.written: set[str] = set()
        self.read: set[str] = set()
        self.budget = MAX_NODES

    def check(self, source: str) -> CheckedDefinition:
        """Check the declarations and all statements."""
        parameters = self.declare()
        statements = tuple(self.statement(statement) for statement in self.syntax.statements)
        for returned in self.syntax.returns:
            if returned.name.text not in self.written:
                raise failure(
                    f"The output `{returned.name.text}` is never written. Write a statement for "
                    "it.",
                    returned.span,
                )
        temporaries = [
            variable for variable in self.variables.values() if variable.name not in self.returns
        ]
        for temporary in temporaries:
            if temporary.name not in self.read:
                raise failure(
                    f"`{temporary.name}` is neither an output nor read by a statement. Return it "
                    "or remove it.",
                    temporary.span,
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
        """Register the parameters, sizes and returns."""
        named: set[str] = set()
        for variable in (*self.syntax.parameters, *self.syntax.returns):
            if variable.name.text in named:
                raise failure(f"`{variable.name.text}` is already defined.", variable.name.span)
            named.add(variable.name.text)
        if len(named) > MAX_TENSORS:
            raise failure(f"There are more than {MAX_TENSORS} tensors.", self.syntax.span)
        parameters = []
        for parameter in self.syntax.parameters:
            assert parameter.type is not None  # noqa: S101 - the grammar requires a type
            dimensions = self.dimensions(parameter, named)
            self.inputs.add(parameter.name.text)
            self.tensors[parameter.name.text] = TensorName(parameter.type, len(dimensions))
            parameters.append(
                Parameter(parameter.name.text, parameter.type, dimensions, parameter.span)
            )
        for returned in self.syntax.returns:
            for size in returned.dimensions or ():
                if isinstance(size, Name) and size.text not in self.sizes:
                    raise failure(
                        f"Undefined variable `{size.text}`: the sizes of an output are numbers or "
                        "sizes of inputs.",
                        size.span,
                    )
            if returned.dimensions is not None:
                self.dimensions(returned, named)
        return tuple(parameters)

    def dimensions(self, variable: VariableSyntax, named: set[str]) -> tuple[str | int, ...]:
        """Return the declared sizes of a tensor and register the names of sizes."""
        if len(variable.dimensions or ()) > MAX_RANK:
            raise failure(f"A tensor has more than {MAX_RANK} dimensions.", variable.span)
        for size in variable.dimensions or ():
            if isinstance(size, Name):
                if size.text in named:
                    raise failure(f"`{size.text}` is already defined as a tensor.", size.span)
                self.sizes.add(size.text)
        return _sizes(variable.dimensions or ())

    def statement(self, syntax: StatementSyntax) -> Statement:
        """Check one statement and register the tensor it writes."""
        output = syntax.output
        self.check_output(output, syntax)
        scope = self.scope(syntax)
        bounds = self.ranges(syntax, scope)
        target = self.target(syntax, scope)
        value, value_type = self.value(syntax, scope)
        inferring = dataclasses.replace(scope, indices=dict(scope.indices), reading={})
        exists = tuple(
            typed(clause.value, inferring)[0]
            for clause in syntax.clauses
            if isinstance(clause, ExistsClause)
        )
        self.check_exists(exists)
        self.check_library_call(syntax.library_call, scope)
        self.budget = min(scope.budget, inferring.budget)
        # An index that occurs only in `exists` feeds inference; it is not an index of the
        # statement.
        counted = [bound.name for bound in bounds if bound.name not in inferring.indices]
        used = [*scope.indices, *counted]
        subscripts = tuple(name.text for name in syntax.indices)
        if target is not None:
            subscripts = tuple(dict.fromkeys(used))
        reductions = tuple(dict.fromkeys(name for name in used if name not in subscripts))
        if len(subscripts) + len(reductions) > MAX_INDICES:
            raise failure(f"A statement has more than {MAX_INDICES} indices.", syntax.span)
        operator, initialises = self.operator(syntax, reductions, scope)
        own_reads = [
            node
            for root in (value, *(target.subscripts if target is not None else ()))
            for node in walk(root)
            if isinstance(node, Access) and node.tensor == output.text
        ]
        scan = None
        if own_reads:
            may_read = operator == "=" and not reductions
            scan = self.scan(own_reads, subscripts if may_read else None)
        reading = scope.reading.get(output.text) if scan is None else None
        variable = self.variable(syntax, value_type, reading)
        self.read |= {*scope.reading, *scope.measured, *inferring.reading}
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
            target,
            scan,
        )

    def target(self, syntax: StatementSyntax, scope: Scope) -> Access | None:
        """Return the element that a scatter updates, or None for plain subscripts."""
        if not syntax.is_scatter:
            return None
        name = syntax.output.text
        subscript = next(node for node in syntax.subscripts if not isinstance(node, Name))
        if syntax.operator == "=":
            raise failure(
                "Points may write the same element, because a subscript on the left side is not a "
                "plain index. Combine them with `+=!`, `*=!`, `min=!` or `max=!`.",
                subscript.span,
            )
        declared = self.returns.get(name)
        has_sizes = declared is not None and declared.dimensions
        if name not in self.variables and not has_sizes:
            raise failure(
                f"The sizes of `{name}` do not follow from these subscripts. Declare them in the "
                f"returns, as in `-> (float(N) {name})`, or write `{name}` first.",
                subscript.span,
            )
        subscripts = tuple(integral(node, scope, "A subscript") for node in syntax.subscripts)
        type_ = self.variables[name].type if name in self.variables else declared.type  # type: ignore[union-attr]
        span = syntax.output.span.to(syntax.subscripts[-1].span)
        return Access(name, subscripts, type_ or BOOL, span)

    def value(self, syntax: StatementSyntax, scope: Scope) -> Typed:
        """Return the typed right side; a scan may read its output, whose type follows from it."""
        name = syntax.output.text
        if name in scope.tensors or syntax.operator != "=":
            return typed(syntax.value, scope)
        declared = self.returns.get(name)
        type_ = (declared.type if declared is not None else None) or BOOL
        own = scope.tensors
        trial = scope
        for _ in range(MAX_TYPE_STEPS):
            own = {**scope.tensors, name: TensorName(type_, len(syntax.subscripts))}
            trial = dataclasses.replace(
                scope, tensors=own, indices=dict(scope.indices), reading={}, measured=set()
            )
            _, value_type = typed(syntax.value, trial)
            is_stable = value_type == type_ or (declared is not None and declared.type)
            if name not in trial.reading or is_stable:
                break
            type_ = value_type
        read = trial.reading.get(name)
        is_other = read is not None and any(not isinstance(node, Index) for node in read.subscripts)
        if is_other:
            scope.tensors = own
        return typed(syntax.value, scope)

    def check_output(self, output: Name, syntax: StatementSyntax) -> None:
        """Raise if the left side is invalid."""
        if output.text in self.inputs:
            raise failure(
                f"`{output.text}` is an input, and inputs are immutable. Write an output of "
                "another name.",
                output.span,
            )
        if output.text in self.sizes:
            raise failure(f"`{output.text}` is already defined as a size.", output.span)
        if len(syntax.subscripts) > MAX_RANK:
            raise failure(f"A tensor has more than {MAX_RANK} dimensions.", syntax.span)
        if syntax.is_scatter:
            return
        seen: set[str] = set()
        for subscript in syntax.indices:
            if subscript.text in seen:
                raise failure(
                    f"The index `{subscript.text}` is already used on this side.", subscript.span
                )
            if (
                subscript.text in self.tensors
                or subscript.text in self.sizes
                or subscript.text in self.returns
            ):
                raise failure(
                    f"`{subscript.text}` is already defined; the left side takes plain indices.",
                    subscript.span,
                )
            seen.add(subscript.text)

    def scope(self, syntax: StatementSyntax) -> Scope:
        """Return the scope of the right side of a statement."""
        tensors = dict(self.tensors)
        for name, declared in self.returns.items():
            if name not in tensors and declared.type and declared.dimensions is not None:
                tensors[name] = TensorName(declared.type, len(declared.dimensions))
        scope = Scope(tensors, frozenset(self.sizes), budget=self.budget)
        indices = {subscript.text for subscript in syntax.indices}
        for clause in syntax.clauses:
            if not isinstance(clause, LetClause):
                continue
            name = clause.name
            is_taken = name.text in scope.lets or name.text in indices or name.text in tensors
            if is_taken or name.text in self.sizes:
                raise failure(f"`{name.text}` is already defined.", name.span)
            scope.lets[name.text] = clause.value
            scope.num_lets += 1
        return scope

    def ranges(self, syntax: StatementSyntax, scope: Scope) -> tuple[IndexRange, ...]:
        """Return the ranges given by `where`."""
        ranges: dict[str, IndexRange] = {}
        clauses = [clause for clause in syntax.clauses if isinstance(clause, RangeClause)]
        indices = {clause.name.text: clause.name.span for clause in clauses}
        bounds = dataclasses.replace(scope, indices=indices, may_index=False, may_access=False)
        for clause in clauses:
            name = clause.name
            is_taken = name.text in ranges or name.text in scope.lets or name.text in scope.tensors
            if is_taken or name.text in self.sizes:
                raise failure(f"`{name.text}` is already defined.", name.span)
            begin = integral(clause.begin, bounds, "The begin of a range")
            end = integral(clause.end, bounds, "The end of a range")
            ranges[name.text] = IndexRange(name.text, begin, end, clause.span)
        return tuple(ranges.values())

    def check_exists(self, exists: tuple[Expression, ...]) -> None:
        """Raise if an `exists` expression constrains no range."""
        for expression in exists:
            if not any(isinstance(node, Access) and node.subscripts for node in walk(expression)):
                raise failure(
                    "`exists` needs an access to a tensor, whose sizes bound the indices in it.",
                    expression.span,
                )

    def check_library_call(self, call: Apply | None, scope: Scope) -> None:
        """Check the arguments of `<=>`; the library function itself is ignored."""
        if call is None:
            return
        separate_scope = dataclasses.replace(scope, indices=dict(scope.indices), reading={})
        for argument in call.arguments:
            if isinstance(argument, Name) and argument.text in self.tensors:
                continue
            typed(argument, separate_scope)

    def operator(
        self, syntax: StatementSyntax, reductions: tuple[str, ...], scope: Scope
    ) -> tuple[Operator, bool]:
        """Return the operator and whether the reduction starts from its identity."""
        text = syntax.operator.removesuffix("!").removesuffix("=")
        initialises = syntax.operator.endswith("!")
        if not text and reductions:
            name = reductions[0]
            raise failure(
                f"The index `{name}` is used without a reduction operator: it is not on the left "
                "side. Write `+=!`, `*=!`, `min=!` or `max=!`.",
                scope.indices.get(name, syntax.span),
            )
        if not text or (initialises and not reductions and not syntax.is_scatter):
            return "=", False
        return static_cast(Operator, text), initialises

    def variable(
        self, syntax: StatementSyntax, value_type: ScalarType, reading: Access | None
    ) -> Variable:
        """Return the tensor that a statement writes; register it at its first write."""
        name, rank = syntax.output.text, len(syntax.subscripts)
        declared = self.returns.get(name)
        variable = self.variables.get(name)
        if variable is None:
            # `float O` declares the type only; the rank follows from the left side.
            sizes = _sizes(declared.dimensions) if declared and declared.dimensions else None
            type_ = (declared.type if declared is not None else None) or value_type
            is_first_update = syntax.operator in ("+=", "*=", "min=", "max=")
            if declared is None and (is_first_update or reading is not None):
                raise failure(
                    f"`{name}` is not an output, and it is updated before any statement writes it. "
                    f"Declare it as an output, or write `{syntax.operator.rstrip('!')}!`.",
                    syntax.output.span,
                )
            declared_rank = rank if sizes is None else len(sizes)
            is_updated = is_first_update or reading is not None or name in self.read
            variable = Variable(name, type_, declared_rank, sizes, is_updated, syntax.output.span)
            self.variables[name] = variable
            self.tensors[name] = TensorName(variable.type, variable.rank)
        if variable.rank != rank:
            raise failure(
                f"Expected {variable.rank} dimensions of `{name}` but found {rank}.", syntax.span
            )
        if variable.type.is_bool and syntax.operator[0] in "+*":
            raise failure(
                "A sum or product of booleans would be a boolean. Cast the right side to a number.",
                syntax.value.span,
            )
        if not holds(variable.type, value_type):
            raise failure(
                f"`{name}` is {variable.type}, a narrower type than {value_type} without an "
                f"explicit cast. Write `{variable.type}(…)` around the right side.",
                syntax.value.span,
            )
        return variable

    def scan(self, reads: list[Access], subscripts: tuple[str, ...] | None) -> Scan | None:
        """Return the order in which a statement that reads its output must be executed.

        None means any order, because every point reads only the element that it writes.

        Args:
            subscripts: the left side, or None if the statement may not read its output.
        """
        order: Scan | None = None
        for place, node in enumerate(reads):
            scan = _scan_of(node, subscripts) if subscripts is not None else "unordered"
            if scan == "unordered" or (place and scan != order):
                raise failure(
                    f"A statement may read its own output `{node.tensor}` only with `=`, and "
                    "either at the element that it writes or at a constant distance before it "
                    f"along one index, as in `{node.tensor}(i-1)`. Write into another tensor.",
                    node.span,
                )
            order = scan
        return order


def _scan_of(node: Access, subscripts: tuple[str, ...]) -> Scan | Literal["unordered"] | None:
    """Return the order in which a read of the own output precedes the write, None for any."""
    scans = []
    for name, subscript in zip(subscripts, node.subscripts, strict=True):
        if isinstance(subscript, Index) and subscript.name == name:
            continue
        form = linear(subscript, Sizes({}, {}))
        if form is None or form.affine.coefficients != ((name, 1),) or not form.value:
            return "unordered"
        scans.append(Scan(name, form.value > 0))
    if len(scans) > 1:
        return "unordered"
    return scans[0] if scans else None
