"""Recursive-descent parser of the language."""

from __future__ import annotations

from collections.abc import Callable
from typing import NoReturn, TypeVar

from .lexer import Token, tokenize
from .limits import MAX_DEPTH, MAX_STATEMENTS
from .spans import failure
from .syntax import (
    Apply,
    Clause,
    Conditional,
    Convert,
    DefinitionSyntax,
    ExistsClause,
    Infix,
    LetClause,
    Name,
    Node,
    Number,
    Prefix,
    RangeClause,
    SizeOf,
    StatementSyntax,
    VariableSyntax,
)
from .types import SPELLINGS

ASSIGNMENTS = ("=", "+=", "*=", "min=", "max=", "+=!", "*=!", "min=!", "max=!")
_LEVELS = (("||",), ("&&",), ("<", ">", "<=", ">=", "==", "!="), ("+", "-"), ("*", "/", "%"))
_LEVEL = {operator: level for level, operators in enumerate(_LEVELS) for operator in operators}
_Item = TypeVar("_Item")


def parse(source: str) -> tuple[DefinitionSyntax, ...]:
    """Parse the definitions in a source string.

    >>> [syntax.name.text for syntax in parse("def f(float(N) A) -> (B) { B(i) = A(i) }")]
    ['f']

    Raises:
        DefinitionError: the source violates the grammar; the message points at the place.
    """
    return Parser(tokenize(source)).definitions()


class Parser:
    """Parser over a list of tokens; each method parses one rule of the grammar."""

    def __init__(self, tokens: list[Token]) -> None:
        self.tokens = tokens
        self.place = 0
        self.depth = 0

    @property
    def next(self) -> Token:
        """The next token."""
        return self.tokens[self.place]

    def definitions(self) -> tuple[DefinitionSyntax, ...]:
        """Parse `{ def }`, at least one."""
        definitions = [self.definition()]
        while self.next.kind != "end":
            definitions.append(self.definition())
        return tuple(definitions)

    def definition(self) -> DefinitionSyntax:
        """Parse a `def`."""
        first = self.take("def")
        name = self.name()
        parameters = self.variables(self.parameter)
        self.take("->")
        returns = self.variables(self.returned)
        self.take("{")
        statements = []
        while self.next.text != "}":
            statements.append(self.statement())
            if len(statements) > MAX_STATEMENTS:
                raise failure(
                    f"A definition has more than {MAX_STATEMENTS} statements. Split it.",
                    statements[-1].output.span,
                )
        last = self.take("}")
        return DefinitionSyntax(
            name, parameters, returns, tuple(statements), first.span.to(last.span)
        )

    def variables(self, item: Callable[[], VariableSyntax]) -> tuple[VariableSyntax, ...]:
        """Parse a possibly empty list of variables in parentheses."""
        self.take("(")
        variables = [] if self.next.text == ")" else self.listed(item)
        self.take(")")
        return tuple(variables)

    def listed(self, item: Callable[[], _Item]) -> list[_Item]:
        """Parse one or more comma-separated items."""
        items = [item()]
        while self.skip(","):
            items.append(item())
        return items

    def parameter(self) -> VariableSyntax:
        """Parse `type id`."""
        if self.next.text not in SPELLINGS:
            self.fail("a scalar type")
        return self.typed_variable()

    def returned(self) -> VariableSyntax:
        """Parse `[type] id`."""
        if self.next.text in SPELLINGS:
            return self.typed_variable()
        name = self.name()
        return VariableSyntax(name, None, None, name.span)

    def typed_variable(self) -> VariableSyntax:
        """Parse a scalar type, optional sizes in parentheses, and a name."""
        first = self.advance()
        dimensions: list[Name | Number] = []
        if self.skip("("):
            if self.next.text != ")":
                dimensions = self.listed(self.dimension)
            self.take(")")
        name = self.name()
        return VariableSyntax(
            name, SPELLINGS[first.text], tuple(dimensions), first.span.to(name.span)
        )

    def dimension(self) -> Name | Number:
        """Parse `id | integer`."""
        return self.integer() if self.next.kind == "integer" else self.name()

    def statement(self) -> StatementSyntax:
        """Parse a statement and its clauses."""
        output = self.name()
        subscripts: list[Node] = []
        if self.skip("("):
            if self.next.text != ")":
                subscripts = self.listed(self.expression)
            self.take(")")
        if self.next.text not in ASSIGNMENTS:
            self.fail("one of " + " ".join(f"`{operator}`" for operator in ASSIGNMENTS))
        operator = self.advance().text
        value = self.expression()
        call = self.library_call() if self.skip("<=>") else None
        clauses = self.listed(self.clause) if self.skip("where") else []
        span = output.span.to(self.tokens[self.place - 1].span)
        return StatementSyntax(
            output, tuple(subscripts), operator, value, call, tuple(clauses), span
        )

    def library_call(self) -> Apply:
        """Parse the call after `<=>`."""
        name = self.name()
        self.take("(")
        arguments = self.listed(self.expression)
        last = self.take(")")
        return Apply(name, tuple(arguments), name.span.to(last.span))

    def clause(self) -> Clause:
        """Parse a clause of `where`."""
        if self.skip("exists"):
            return ExistsClause(self.expression())
        name = self.name("a name or `exists`")
        if self.skip("="):
            return LetClause(name, self.expression())
        if not self.skip("in"):
            self.fail("`in` or `=`")
        begin = self.expression()
        self.take(":")
        end = self.expression()
        return RangeClause(name, begin, end, name.span.to(end.span))

    def expression(self) -> Node:
        """Parse an expression."""
        self.depth += 1
        if self.depth > MAX_DEPTH:
            raise failure(
                f"An expression is nested more than {MAX_DEPTH} deep. Compute parts of it in "
                "separate statements.",
                self.next.span,
            )
        condition = self.infix(0)
        if self.skip("?"):
            positive = self.expression()
            self.take(":")
            negative = self.expression()
            span = condition.span.to(negative.span)
            condition = Conditional(condition, positive, negative, span)
        self.depth -= 1
        return condition

    def infix(self, level: int) -> Node:
        """Parse left-associative operators of this precedence level and tighter levels."""
        left = self.prefix()
        while _LEVEL.get(self.next.text, -1) >= level:
            operator = self.advance().text
            right = self.infix(_LEVEL[operator] + 1)
            left = Infix(operator, left, right, left.span.to(right.span))
        return left

    def prefix(self) -> Node:
        """Parse `-x`, `!x` or a primary expression."""
        if self.next.text not in ("-", "!"):
            return self.primary()
        operator = self.advance()
        self.depth += 1
        if self.depth > MAX_DEPTH:
            raise failure(
                f"An expression is nested more than {MAX_DEPTH} deep. Simplify it.", operator.span
            )
        operand = self.prefix()
        self.depth -= 1
        return Prefix(operator.text, operand, operator.span.to(operand.span))

    def primary(self) -> Node:
        """Parse a number, a name with subscripts or arguments, or a parenthesised expression."""
        token = self.next
        if token.kind == "integer":
            return self.integer()
        if token.kind == "float":
            value = float(self.advance().text)
            return Number(value, token.span)
        if self.skip("("):
            inner = self.expression()
            self.take(")")
            return inner
        if token.text in ("min", "max"):
            self.advance()
            self.take("(")
            left = self.expression()
            self.take(",")
            right = self.expression()
            return Infix(token.text, left, right, token.span.to(self.take(")").span))
        if token.text in SPELLINGS:
            self.advance()
            self.take("(")
            operand = self.expression()
            return Convert(SPELLINGS[token.text], operand, token.span.to(self.take(")").span))
        name = self.name("an expression")
        if self.skip("("):
            arguments = [] if self.next.text == ")" else self.listed(self.expression)
            return Apply(name, tuple(arguments), name.span.to(self.take(")").span))
        if self.skip("."):
            dimension = self.integer()
            return SizeOf(name, int(dimension.value), name.span.to(dimension.span))
        return name

    def integer(self) -> Number:
        """Parse an integer literal, which must fit into int32."""
        token = self.next
        if token.kind != "integer":
            self.fail("an integer")
        self.advance()
        if len(token.text) > 10 or int(token.text) > (1 << 31) - 1:
            raise failure(
                "An integer literal does not fit into int32. Write it as a float and cast it.",
                token.span,
            )
        return Number(int(token.text), token.span)

    def name(self, expected: str = "a name") -> Name:
        """Parse a name that is not reserved."""
        token = self.next
        if token.kind != "name" or token.text in SPELLINGS:
            reserved = token.kind == "word" or token.text in SPELLINGS
            self.fail(expected, " This word is reserved." if reserved else "")
        self.advance()
        return Name(token.text, token.span)

    def take(self, text: str) -> Token:
        """Consume the given token or fail."""
        if self.next.text != text:
            self.fail(f"`{text}`")
        return self.advance()

    def skip(self, text: str) -> bool:
        """Consume the given token if it is next; return whether it was."""
        if self.next.text != text:
            return False
        self.advance()
        return True

    def advance(self) -> Token:
        """Consume and return the next token."""
        token = self.next
        if token.kind != "end":
            self.place += 1
        return token

    def fail(self, expected: str, more: str = "") -> NoReturn:
        """Raise an error with the expected and the actual token."""
        raise failure(f"Expected {expected} but found {self.next}.{more}", self.next.span)
