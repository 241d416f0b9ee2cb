"""What every command prints goes through here: nothing out of data controls the terminal."""

from __future__ import annotations

import shutil
import sys
from typing import TYPE_CHECKING

import typer

from ..terminal import printable, printable_line

if TYPE_CHECKING:
    from rich.console import Console

WIDE = 10_000
"""Columns where the output is no terminal: rich would cut lines at 80."""


def echo(text: object = "", *, err: bool = False) -> None:
    """Print a text and a line end; its control characters are escaped."""
    typer.echo(printable(text), err=err)


def cell(text: object) -> str:
    """Return the text of a table's cell: one line, without control characters or rich's markup."""
    from rich.markup import escape

    return escape(printable_line(text))


def width() -> int:
    """Return the columns that a table may take: those of the terminal, or any number in a pipe."""
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else WIDE


def console() -> Console:
    """Return rich's console on standard output, as wide as `width` says.

    Where that is a closed pipe it raises, as `echo` does, and rich would end the program itself.
    """
    from rich.console import Console

    class Raising(Console):
        def on_broken_pipe(self) -> None:
            raise  # what rich handles when it calls this

    return Raising(width=width())
