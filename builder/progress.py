"""Progress of a build: a bar on a terminal, an occasional line in a log."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterable
from typing import TextIO

from graphnet_datasets.terminal import counted

from .capturing import Capture

QUIET_S = 30.0
"""Minimum seconds between two lines without a terminal."""


class Course:
    """Counts finished captures and computes the rate per minute.

    Captures of an earlier build are available at once and excluded from the rate.
    """

    def __init__(self, total: int, now: Callable[[], float] = time.monotonic) -> None:
        self.total = total
        self.now = now
        self.num_done = self.num_failed = self.num_new = 0
        self.began: float | None = None

    def add(self, capture: Capture, *, is_new: bool) -> None:
        """Count a capture that ended."""
        self.num_done += 1
        self.num_failed += capture.path is None
        self.num_new += is_new

    @property
    def per_minute(self) -> float | None:
        """Captured entries per minute in this build; None before the first."""
        seconds = 0.0 if self.began is None else self.now() - self.began
        return 60 * self.num_new / seconds if self.num_new and seconds > 0 else None

    def __str__(self) -> str:
        text = f"{self.num_done:,} of {self.total:,}, {self.num_failed:,} failed"
        rate = self.per_minute
        if rate is None:
            return text
        left = (self.total - self.num_done) / rate
        ahead = f"{left:,.0f} minutes" if left < 90 else f"{left / 60:,.1f} hours"
        return f"{text}, {rate:,.1f} entries a minute, {ahead} left"


def follow(
    captures: Iterable[Capture], total: int, num_known: int = 0, out: TextIO | None = None
) -> list[Capture]:
    """Return the captures as a list, and report progress meanwhile.

    The first `num_known` captures were made by an earlier build. Each failure is printed on a line.
    On a terminal a bar shows the progress; otherwise a line is printed every `QUIET_S` seconds.
    """
    place: TextIO = out or sys.stdout
    course = Course(total)
    rows: list[Capture] = []
    with _display(place, total) as display:
        for capture in captures:
            is_new = len(rows) >= num_known
            if is_new and course.began is None:
                course.began = course.now() - 1e-9
            rows.append(capture)
            course.add(capture, is_new=is_new)
            if capture.path is None:
                display.print(f"{capture.entry.name} {capture.reason}")
            display.update(course)
    return rows


def summary(captures: Iterable[Capture]) -> str:
    """Return the numbers of captured and of failed entries, as text."""
    rows = list(captures)
    num_failed = sum(capture.path is None for capture in rows)
    return f"{len(rows) - num_failed:,} captured, {counted(num_failed, 'failure')}"


class _Lines:
    """Progress as lines, for logs."""

    def __init__(self, out: TextIO) -> None:
        self.out, self.last, self.said = out, time.monotonic(), ""
        self.course: Course | None = None

    def __enter__(self) -> _Lines:
        return self

    def __exit__(self, *error: object) -> None:
        if self.course is not None:
            self.say(self.course)

    def print(self, text: str) -> None:
        print(text, file=self.out, flush=True)

    def update(self, course: Course) -> None:
        self.course = course
        if time.monotonic() - self.last >= QUIET_S:
            self.say(course)

    def say(self, course: Course) -> None:
        self.last = time.monotonic()
        if str(course) != self.said:
            self.said = str(course)
            self.print(f"capture: {course}")


class _Bar:
    """Progress bar of `rich`, with the rate."""

    def __init__(self, total: int) -> None:
        from rich.progress import BarColumn, Progress, TextColumn

        self.progress = Progress(BarColumn(), TextColumn("{task.description}"))
        self.task = self.progress.add_task("capture", total=total)

    def __enter__(self) -> _Bar:
        self.progress.start()
        return self

    def __exit__(self, *error: object) -> None:
        self.progress.stop()

    def print(self, text: str) -> None:
        self.progress.console.print(text, markup=False, highlight=False, soft_wrap=True)

    def update(self, course: Course) -> None:
        self.progress.update(self.task, completed=course.num_done, description=str(course))


def _display(out: TextIO, total: int) -> _Lines | _Bar:
    return _Bar(total) if out is sys.stdout and out.isatty() else _Lines(out)
