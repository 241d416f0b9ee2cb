"""Progress, interruption and exit statuses of commands that process many items."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Protocol

import typer

from ..terminal import counted
from .terminal import echo

PARTLY = 3
"""Exit status if some items were left out."""

INTERRUPTED = 130
"""Exit status of a program that was stopped by Ctrl-C: 128 + SIGINT."""

KEPT = "Finished items are kept"

MAX_FAILURES_SHOWN = 20


@contextlib.contextmanager
def stoppable(promise: str) -> Iterator[None]:
    """On Ctrl-C, print `promise` and a hint to repeat the command, then exit with `INTERRUPTED`."""
    try:
        yield
    except KeyboardInterrupt as error:
        echo(f"Stopped. {promise}; the same command continues from there.", err=True)
        raise typer.Exit(INTERRUPTED) from error


class Report(Protocol):
    """The outcome of a command that writes a dataset from many items."""

    @property
    def out(self) -> Path | None:
        """The directory of the dataset; None if nothing was written."""
        ...

    @property
    def report_path(self) -> Path:
        """The file that accounts for each item."""
        ...

    @property
    def num_resumed(self) -> int:
        """The number of items that an earlier call finished."""
        ...

    def summary(self) -> str:
        """Return a summary in a few lines for a terminal."""
        ...


def show_report(
    report: Report, failures: Sequence[str], verb: str, noun: str = "graph", plural: str = "graphs"
) -> int:
    """Print the first failures, the number of resumed items and the summary; return the status.

    `verb` is the participle for a processed item, such as "compiled".
    """
    for failure in failures[:MAX_FAILURES_SHOWN]:
        echo(failure, err=True)
    hidden = len(failures) - MAX_FAILURES_SHOWN
    if hidden > 0:
        echo(f"… and {hidden} more in {report.report_path}", err=True)
    if report.num_resumed:
        items = counted(report.num_resumed, f"{noun} was", f"{plural} were")
        echo(f"{items} {verb} by an earlier call")
    echo(report.summary())
    if report.out is None:
        return 1
    return PARTLY if failures else 0


@contextlib.contextmanager
def show_count(label: str, of_what: str) -> Iterator[Callable[[int, int | None], None]]:
    """Show a bar on standard error, unless progress bars are disabled (see `verbosity`)."""
    from ..verbosity import are_progress_bars_disabled

    if are_progress_bars_disabled():
        yield lambda done, total: None  # noqa: ARG005
        return
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeRemainingColumn,
    )

    texts = (TextColumn(label), MofNCompleteColumn(), TextColumn(of_what))
    columns = (*texts, BarColumn(), TimeRemainingColumn())
    bar = Progress(*columns, console=Console(stderr=True), refresh_per_second=4)
    task = bar.add_task(label, total=None)

    def count(done: int, total: int | None) -> None:
        bar.start()  # not earlier, so that an early error is printed without a bar
        bar.update(task, completed=done, total=total)

    try:
        yield count
    finally:
        if bar.live.is_started:
            bar.stop()
