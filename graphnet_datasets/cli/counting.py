"""Work on many things: how far it is, and what a verb exits with where it was done in part."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator

PARTLY = 3
"""Exit status where something was left out and the rest was done."""

MAX_FAILURES_SHOWN = 20


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
