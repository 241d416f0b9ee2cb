"""Output of all commands, escaped so that data cannot control the terminal."""

from __future__ import annotations

import os
import shutil
import sys
import textwrap
from collections.abc import Iterable, Sequence

import typer

from ..terminal import printable, printable_line

WIDE = 10_000
"""Width without a terminal: programs that read the output get unfolded lines."""
GAP = "  "
_LEAST_PROSE = 24
"""Terminal width below which prose is printed under its line instead of beside it."""


def echo(text: object = "", *, err: bool = False, colour: str | None = None) -> None:
    """Print a line with escaped control characters.

    `colour` is a name of `click.style`. It has no effect without a terminal, or if the environment
    sets `NO_COLOR`.
    """
    shown = printable(text)
    if colour is not None and not os.environ.get("NO_COLOR"):
        shown = typer.style(shown, fg=colour)  # typer removes it where there is no terminal
    typer.echo(shown, err=err)


def width() -> int:
    """Return the width of the terminal in columns, or `WIDE` in a pipe."""
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else WIDE


def print_table(heads: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """Print a table whose last column is prose. Nothing is truncated.

    Prose is folded beside the other columns, and on a narrow terminal below them.
    """
    cells = [[printable_line(cell) for cell in row] for row in (heads, *rows)]
    *widths, longest = (max(map(len, column)) for column in zip(*cells, strict=True))
    start = sum(widths) + len(GAP) * len(widths)
    room = width() - start
    is_beside = room >= min(longest, _LEAST_PROSE)
    for number, (*words, prose) in enumerate(cells):
        line = "".join(word.ljust(width) + GAP for word, width in zip(words, widths, strict=True))
        indent = " " * start if is_beside else GAP * 2
        folded = textwrap.wrap(
            prose,
            max(width() - len(indent), 1),
            break_on_hyphens=False,
        )
        if is_beside:
            echo(f"{line}{folded[0] if folded else ''}".rstrip())
            folded = folded[1:]
        else:
            echo(line.rstrip())
            folded = folded if number else []  # below the line, a heading is misplaced
        for row in folded:
            echo(f"{indent}{row}")
