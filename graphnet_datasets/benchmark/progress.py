"""The progress of a run: how many of how many, and the score so far."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Protocol

from ..errors import GraphNetError
from ..scores import speedup_score
from ..verbosity import are_progress_bars_disabled

SCORE_COLUMNS = ("sample_id", "status", "speedup", "min_t")
SHOWN_T = (-5, 0)


class Progress(Protocol):
    """Takes records as they come."""

    def add(self, record: Mapping[str, Any]) -> None:
        """Count one record."""
        ...


class _Silent:
    def add(self, record: Mapping[str, Any]) -> None:
        del record


class _Bar:
    def __init__(self, bar: Any, task: Any, records: Iterable[Mapping[str, Any]]) -> None:
        self._bar, self._task = bar, task
        self._rows: dict[str, list[dict[str, Any]]] = {}
        for record in records:
            self._count(record)

    def add(self, record: Mapping[str, Any]) -> None:
        self._count(record)
        text = running_score(self._rows[record["compiler"]])
        self._bar.update(
            self._task, advance=1, score=f"{record['compiler']} {text}", sample=record["sample_id"]
        )

    def _count(self, record: Mapping[str, Any]) -> None:
        row = {name: record[name] for name in SCORE_COLUMNS}
        self._rows.setdefault(record["compiler"], []).append(row)


@contextlib.contextmanager
def show_progress(total: int, done: Iterable[Mapping[str, Any]] = ()) -> Iterator[Progress]:
    """Show a bar on standard error, unless progress bars are disabled (see `verbosity`).

    `done` are the records of an earlier call that this one continues.
    """
    if are_progress_bars_disabled():
        yield _Silent()
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
    from rich.progress import Progress as RichProgress

    done = list(done)
    columns = (
        MofNCompleteColumn(),
        BarColumn(),
        TimeRemainingColumn(),
        TextColumn("{task.fields[score]}"),
        TextColumn("[dim]{task.fields[sample]}", markup=True),
    )
    # A few times a second: drawing takes time from the core that a run may be timed on.
    with RichProgress(*columns, console=Console(stderr=True), refresh_per_second=2) as bar:
        task = bar.add_task("run", total=total, completed=len(done), score="", sample="")
        yield _Bar(bar, task, done)


def running_score(rows: list[dict[str, Any]]) -> str:
    """Return S(t) of the records so far in a few words.

    >>> running_score([{"sample_id": "a", "status": "ok", "speedup": 2.0, "min_t": -3.0}])
    'S(-5) 0.100, S(0) 2.000'
    """
    try:
        scores = speedup_score(rows, has_intervals=False)
    except GraphNetError:  # nothing so far says anything of the compiler
        return ""
    return ", ".join(f"S({t}) {scores.at(t)['S']:.3f}" for t in SHOWN_T)
