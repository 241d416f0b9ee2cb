"""Work on many things: how far it is, and what a verb exits with where it was done in part."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import typer

from .terminal import echo

PARTLY = 3
"""Exit status where something was left out and the rest was done."""

INTERRUPTED = 130
"""What a shell reports for a program that Ctrl-C ended: 128 + SIGINT."""

KEPT = "What is done is kept"

MAX_FAILURES_SHOWN = 20


@contextlib.contextmanager
def stoppable(kept: str) -> Iterator[None]:
    """Exit after Ctrl-C with a sentence: what is kept, and that it goes on from there."""
    try:
        yield
    except KeyboardInterrupt as error:
        echo(f"Stopped. {kept}; the same command continues from there.", err=True)
        raise typer.Exit(INTERRUPTED) from error


def show_account(failures: Sequence[str], report_path: Path, earlier: str, summary: object) -> None:
    """Show the first failures, what an earlier call had done ("" for nothing), and the summary.

    A failure takes a line; those that are left out stand in the report.
    """
    for each in failures[:MAX_FAILURES_SHOWN]:
        echo(each, err=True)
    hidden = len(failures) - MAX_FAILURES_SHOWN
    if hidden > 0:
        echo(f"… and {hidden} more in {report_path}", err=True)
    if earlier:
        echo(f"{earlier} by an earlier call")
    echo(summary)


@contextlib.contextmanager
def show_count(what: str, of_what: str) -> Iterator[Callable[[int, int | None], None]]:
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

    texts = (TextColumn(what), MofNCompleteColumn(), TextColumn(of_what))
    columns = (*texts, BarColumn(), TimeRemainingColumn())
    bar = Progress(*columns, console=Console(stderr=True), refresh_per_second=4)
    task = bar.add_task(what, total=None)

    def count(done: int, total: int | None) -> None:
        bar.start()  # not before: an error that comes first stands alone
        bar.update(task, completed=done, total=total)

    try:
        yield count
    finally:
        if bar.live.is_started:
            bar.stop()
