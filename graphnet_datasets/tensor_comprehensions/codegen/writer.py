"""Indented lines of C, and fresh names."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Iterator

from .functions import FunctionTable
from .machine import Machine


class Writer:
    """Collects lines of code.

    >>> writer = Writer()
    >>> with writer.block("for (;;)"):
    ...     writer.line("break;")
    >>> print(writer.text, end="")
    for (;;) {
      break;
    }
    """

    def __init__(self, depth: int = 0) -> None:
        self._lines: list[str] = []
        self._depth = depth

    def line(self, text: str) -> None:
        """Append a line."""
        self._lines.append("  " * self._depth + text)

    @contextlib.contextmanager
    def block(self, head: str) -> Iterator[None]:
        """Enclose the lines written in this context in braces after `head`."""
        self.line(f"{head} {{".strip())
        self._depth += 1
        yield
        self._depth -= 1
        self.line("}")

    @property
    def text(self) -> str:
        """All lines so far."""
        return "".join(f"{line}\n" for line in self._lines)


class Nesting:
    """Nested blocks, with lines at the start of the innermost block."""

    def __init__(self, heads: list[str], writer: Writer, lines: list[str] | None = None) -> None:
        self._blocks = [writer.block(head) for head in heads]
        self._writer, self._lines = writer, lines or []

    def __enter__(self) -> None:
        for block in self._blocks:
            block.__enter__()
        for line in self._lines:
            self._writer.line(line)

    def __exit__(self, *_: object) -> None:
        for block in reversed(self._blocks):
            block.__exit__(None, None, None)


@dataclasses.dataclass
class Context:
    """State shared by all nests of a file.

    Attributes:
        tensors: C names of the tensors.
        buffer_bytes: size of the largest buffer requested by a nest.
    """

    machine: Machine
    tensors: dict[str, str]
    functions: FunctionTable
    threads: int = 1
    buffer_bytes: int = 0
    num_names: int = 0

    def fresh(self, prefix: str) -> str:
        """Return an unused C name."""
        self.num_names += 1
        return f"{prefix}{self.num_names}"

    def reserve(self, num_bytes: int) -> None:
        """Reserve at least `num_bytes` for the buffer of a thread."""
        self.buffer_bytes = max(self.buffer_bytes, num_bytes)
