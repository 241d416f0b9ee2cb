"""Lexer of the language; the longest token matches."""

from __future__ import annotations

import dataclasses
import re
from typing import Literal

from .limits import MAX_NAME_CHARACTERS, MAX_SOURCE_CHARACTERS
from .spans import Span, failure

Kind = Literal["name", "integer", "float", "symbol", "word", "end"]

WORDS = frozenset({"def", "where", "in", "exists", "min", "max"})
"""Reserved words; the parser also reserves the names of scalar types."""

_NUMBER = re.compile(r"(?:\d+\.\d*|\.\d+|\d+)(?:[eE][+-]?\d+)?")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_SPACE = re.compile(r"(?:[ \t\r\n\f]|#[^\n]*)*")
_SYMBOLS = (
    *("min=!", "max=!", "min=", "max="),
    *("+=!", "*=!", "<=>"),
    *("+=", "*=", "->", "==", "!=", "<=", ">=", "&&", "||"),
    *"?:<>+-*/%!=(){},.",
)
"""Longest first."""


@dataclasses.dataclass(frozen=True, slots=True)
class Token:
    """A token; `text` is its source, or "" at the end."""

    kind: Kind
    text: str
    span: Span

    def __str__(self) -> str:
        return f"`{self.text}`" if self.text else "the end of the source"


def tokenize(source: str) -> list[Token]:
    """Split a source string into tokens; the last token has kind "end".

    >>> [token.text for token in tokenize("O +=! A.0 * 1.5e3 # size")]
    ['O', '+=!', 'A', '.', '0', '*', '1.5e3', '']

    Raises:
        DefinitionError: a character starts no token, or the source or a name is too long.
    """
    if len(source) > MAX_SOURCE_CHARACTERS:
        raise failure(
            f"The source has {len(source)} characters; at most {MAX_SOURCE_CHARACTERS} "
            "are allowed. Split it.",
            None,
        )
    tokens: list[Token] = []
    place = 0
    while True:
        space = _SPACE.match(source, place)
        place = space.end() if space else place
        if place == len(source):
            tokens.append(Token("end", "", Span(source, place, place)))
            return tokens
        kind, stop = _next(source, place, tokens[-1] if tokens else None)
        tokens.append(Token(kind, source[place:stop], Span(source, place, stop)))
        place = stop


def _next(source: str, place: int, before: Token | None) -> tuple[Kind, int]:
    """Return the kind and the end of the token that starts at `place`."""
    for symbol in _SYMBOLS:
        # `T.0` is the size of a dimension; in other places `.0` is a number.
        is_fraction = symbol == "." and not (before and before.kind == "name")
        if source.startswith(symbol, place) and not is_fraction:
            return "symbol", place + len(symbol)
    if match := _NAME.match(source, place):
        if match.end() - place > MAX_NAME_CHARACTERS:
            raise failure(
                f"A name has more than {MAX_NAME_CHARACTERS} characters. Shorten it.",
                Span(source, place, match.end()),
            )
        return ("word" if match.group() in WORDS else "name"), match.end()
    if match := _NUMBER.match(source, place):
        after_dot = before is not None and before.text == "."
        if after_dot and (digits := re.compile(r"\d+").match(source, place)):
            return "integer", digits.end()
        is_float = any(character in match.group() for character in ".eE")
        return ("float" if is_float else "integer"), match.end()
    raise failure(f"Unexpected character {source[place]!r}.", Span(source, place, place + 1))
