"""Where something stands in the text of a definition, and the error that points at it."""

from __future__ import annotations

import dataclasses

from ...errors import DefinitionError, TensorComprehensionError


@dataclasses.dataclass(frozen=True, slots=True)
class Span:
    """The half-open range `[start, end)` of characters of `source`."""

    source: str = dataclasses.field(repr=False)
    start: int
    end: int

    @property
    def text(self) -> str:
        """The characters themselves."""
        return self.source[self.start : self.end]

    @property
    def line(self) -> int:
        """The number of the line, from 1."""
        return self.source.count("\n", 0, self.start) + 1

    @property
    def column(self) -> int:
        """The number of the column, from 1."""
        return self.start - (self.source.rfind("\n", 0, self.start) + 1) + 1

    def to(self, other: Span) -> Span:
        """Return the span from the start of this one to the end of the other."""
        return Span(self.source, self.start, max(self.end, other.end))

    def underlined(self) -> str:
        """Return the line of source with carets under this span's part of it.

        >>> print(Span("O(i) = A(j)", 7, 11).underlined())
          line 1: O(i) = A(j)
                         ^^^^
        """
        begin = self.source.rfind("\n", 0, self.start) + 1
        stop = self.source.find("\n", self.start)
        line = self.source[begin : stop if stop >= 0 else len(self.source)]
        prefix = f"  line {self.line}: "
        # Tabs stay tabs, so that the carets stand under their characters in any terminal.
        lead = "".join("\t" if each == "\t" else " " for each in line[: self.start - begin])
        width = max(1, min(self.end, begin + len(line)) - self.start)
        return f"{prefix}{line}\n{' ' * len(prefix)}{lead}{'^' * width}"


def failure(
    message: str,
    span: Span | None,
    kind: type[TensorComprehensionError] = DefinitionError,
) -> TensorComprehensionError:
    """Return an error of that kind whose message ends with the source line and its carets."""
    error = kind(f"{message}\n{span.underlined()}" if span is not None else message)
    error.span = span  # type: ignore[attr-defined]
    return error
