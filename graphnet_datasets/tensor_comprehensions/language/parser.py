"""From tokens to the syntax tree, by recursive descent."""

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
    """Return the definitions of a text.

    >>> [each.name.text for each in parse("def f(float(N) A) -> (B) { B(i) = A(i) }")]
    ['f']

    Raises:
        DefinitionError: the text does not follow the grammar; the message points at the place.
    """
    return Parser(tokenize(source)).definitions()


class Parser:
    """Reads tokens from left to right; each method reads one rule of the grammar."""

    def __init__(self, tokens: list[Token]) -> None:
        self.tokens = tokens
        self.place = 0
        self.depth = 0

    @property
    def next(self) -> Token:
        """The token that is read next."""
        return self.tokens[self.place]

    def definitions(self) -> tuple[DefinitionSyntax, ...]:
        """`{ def }`, at least one."""
        found = [self.definition()]
        while self.next.kind != "end":
            found.append(self.definition())
        return tuple(found)

    def definition(self) -> DefinitionSyntax:
        """One `def`."""
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
        """A list of variables in parentheses, which may be empty."""
        self.take("(")
        found = [] if self.next.text == ")" else self.listed(item)
        self.take(")")
        return tuple(found)

    def listed(self, item: Callable[[], _Item]) -> list[_Item]:
        """One or more items between commas."""
        found = [item()]
        while self.skip(","):
            found.append(item())
        return found

    def parameter(self) -> VariableSyntax:
        """`type id`."""
        if self.next.text not in SPELLINGS:
            self.fail("a scalar type")
        return self.typed_variable()

    def returned(self) -> VariableSyntax:
        """`[type] id`."""
        if self.next.text in SPELLINGS:
            return self.typed_variable()
        name = self.name()
        return VariableSyntax(name, None, None, name.span)

    def typed_variable(self) -> VariableSyntax:
        """A scalar type, sizes in parentheses if any, and a name."""
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
        """`id | integer`."""
        return self.integer() if self.next.kind == "integer" else self.name()

    def statement(self) -> StatementSyntax:
        """One statement with its clauses."""
        output = self.name()
        subscripts: list[Name] = []
        if self.skip("("):
            if self.next.text != ")":
                subscripts = self.listed(lambda: self.name("an index (a plain name)"))
            self.take(")")
        if self.next.text not in ASSIGNMENTS:
            self.fail("one of " + " ".join(f"`{each}`" for each in ASSIGNMENTS))
        operator = self.advance().text
        value = self.expression()
        call = self.library_call() if self.skip("<=>") else None
        clauses = self.listed(self.clause) if self.skip("where") else []
        span = output.span.to(self.tokens[self.place - 1].span)
        return StatementSyntax(
            output, tuple(subscripts), operator, value, call, tuple(clauses), span
        )

    def library_call(self) -> Apply:
        """What follows `<=>`."""
        name = self.name()
        self.take("(")
        arguments = self.listed(self.expression)
        last = self.take(")")
        return Apply(name, tuple(arguments), name.span.to(last.span))

    def clause(self) -> Clause:
        """One clause of `where`."""
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
        """The whole of an expression."""
        self.depth += 1
        if self.depth > MAX_DEPTH:
            raise failure(
                f"An expression is nested more than {MAX_DEPTH} deep. Name parts of it in "
                "statements of their own.",
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
        """Operators of this level and those that bind closer; all group to the left."""
        left = self.prefix()
        while _LEVEL.get(self.next.text, -1) >= level:
            operator = self.advance().text
            right = self.infix(_LEVEL[operator] + 1)
            left = Infix(operator, left, right, left.span.to(right.span))
        return left

    def prefix(self) -> Node:
        """`-x`, `!x` or what stands without either."""
        if self.next.text not in ("-", "!"):
            return self.primary()
        operator = self.advance()
        self.depth += 1
        if self.depth > MAX_DEPTH:
            raise failure(f"An expression is nested more than {MAX_DEPTH} deep.", operator.span)
        operand = self.prefix()
        self.depth -= 1
        return Prefix(operator.text, operand, operator.span.to(operand.span))

    def primary(self) -> Node:
        """A number, a name with what follows it, or an expression in parentheses."""
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
        """An integer literal, which has to fit int32."""
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
        """A name that is not reserved."""
        token = self.next
        if token.kind != "name" or token.text in SPELLINGS:
            reserved = token.kind == "word" or token.text in SPELLINGS
            self.fail(expected, " This word is reserved." if reserved else "")
        self.advance()
        return Name(token.text, token.span)

    def take(self, text: str) -> Token:
        """Read exactly this token."""
        if self.next.text != text:
            self.fail(f"`{text}`")
        return self.advance()

    def skip(self, text: str) -> bool:
        """Read this token if it is the next; tell whether it was."""
        if self.next.text != text:
            return False
        self.advance()
        return True

    def advance(self) -> Token:
        """Return the next token and go past it."""
        token = self.next
        if token.kind != "end":
            self.place += 1
        return token

    def fail(self, expected: str, more: str = "") -> NoReturn:
        """Say what was expected here and what was found."""
        raise failure(f"Expected {expected} but found {self.next}.{more}", self.next.span)
