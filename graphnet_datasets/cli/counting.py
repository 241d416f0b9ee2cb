"""Progress, interruption and exit statuses of commands that process many items."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import typer

from .terminal import echo

PARTLY = 3
"""Exit status if some items were left out."""

INTERRUPTED = 130
"""Exit status of a program that was stopped by Ctrl-C: 128 + SIGINT."""

KEPT = "Finished items are kept"

MAX_FAILURES_SHOWN = 20


@contextlib.contextmanager
def stoppable(promise: str) -> Iterator[None]:
    """Exit after Ctrl-C with the clause `promise`, and a note that the command can be continued."""
    try:
        yield
    except KeyboardInterrupt as error:
        echo(f"Stopped. {promise}; the same command continues from there.", err=True)
        raise typer.Exit(INTERRUPTED) from error


def show_account(failures: Sequence[str], report_path: Path, earlier: str, summary: object) -> None:
    """Print the first failures, the items finished by an earlier call, and the summary.

    Each failure takes a line; the report contains the others. `earlier` may be "".
    """
    for failure in failures[:MAX_FAILURES_SHOWN]:
        echo(failure, err=True)
    hidden = len(failures) - MAX_FAILURES_SHOWN
    if hidden > 0:
        echo(f"… and {hidden} more in {report_path}", err=True)
    if earlier:
        echo(f"{earlier} by an earlier call")
    echo(summary)


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
