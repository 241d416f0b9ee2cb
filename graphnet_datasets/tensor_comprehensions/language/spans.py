"""Source positions, and errors that point at them."""

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
        """Source text of the span."""
        return self.source[self.start : self.end]

    @property
    def line(self) -> int:
        """Line number, from 1."""
        return self.source.count("\n", 0, self.start) + 1

    @property
    def column(self) -> int:
        """Column number, from 1."""
        return self.start - (self.source.rfind("\n", 0, self.start) + 1) + 1

    def to(self, other: Span) -> Span:
        """Return the span from the start of this span to the end of another."""
        return Span(self.source, self.start, max(self.end, other.end))

    def underlined(self) -> str:
        """Return the source line with carets below the span.

        >>> print(Span("O(i) = A(j)", 7, 11).underlined())
          line 1: O(i) = A(j)
                         ^^^^
        """
        begin = self.source.rfind("\n", 0, self.start) + 1
        stop = self.source.find("\n", self.start)
        line = self.source[begin : stop if stop >= 0 else len(self.source)]
        prefix = f"  line {self.line}: "
        # Tabs are kept, so that the carets are aligned in any terminal.
        lead = "".join("\t" if char == "\t" else " " for char in line[: self.start - begin])
        width = max(1, min(self.end, begin + len(line)) - self.start)
        return f"{prefix}{line}\n{' ' * len(prefix)}{lead}{'^' * width}"


def failure(
    message: str,
    span: Span | None,
    kind: type[TensorComprehensionError] = DefinitionError,
) -> TensorComprehensionError:
    """Return an error whose message ends with the source line and carets."""
    error = kind(f"{message}\n{span.underlined()}" if span is not None else message)
    error.span = span  # type: ignore[attr-defined]
    return error
