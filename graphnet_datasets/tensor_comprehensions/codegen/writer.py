"""Lines of C with their indentation, and the names that a piece of code may use."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Iterator

from .functions import FunctionTable
from .machine import Machine


class Writer:
    """Collects lines.

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
        """Add a line."""
        self._lines.append("  " * self._depth + text)

    @contextlib.contextmanager
    def block(self, head: str) -> Iterator[None]:
        """Put what is written inside into braces after `head`."""
        self.line(f"{head} {{".strip())
        self._depth += 1
        yield
        self._depth -= 1
        self.line("}")

    @property
    def text(self) -> str:
        """All lines so far."""
        return "".join(f"{each}\n" for each in self._lines)


@dataclasses.dataclass
class Context:
    """What all nests of a file share.

    Attributes:
        tensors: the C name of each tensor.
        buffer_bytes: the largest buffer that a nest has asked for.
    """

    machine: Machine
    tensors: dict[str, str]
    functions: FunctionTable
    threads: int = 1
    buffer_bytes: int = 0
    num_names: int = 0

    def fresh(self, prefix: str) -> str:
        """Return a name that the file does not use yet."""
        self.num_names += 1
        return f"{prefix}{self.num_names}"

    def reserve(self, num_bytes: int) -> None:
        """Make sure that the buffer of a thread holds so many bytes."""
        self.buffer_bytes = max(self.buffer_bytes, num_bytes)
