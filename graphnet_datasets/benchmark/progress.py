"""Progress of a run: counts, the current phase and its duration, and the score so far."""

from __future__ import annotations

import contextlib
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Protocol

from ..errors import GraphNetError
from ..scores import speedup_score
from ..scores.summary_text import describe_run
from ..terminal import printable_line
from ..verbosity import are_progress_bars_disabled

if TYPE_CHECKING:
    from rich.console import Console

SCORE_COLUMNS = ("sample_id", "status", "speedup", "min_t")
SHOWN_T = (-5, 0)

DOING = {
    "start": "starting a process for",
    "judge": "judging",
    "still": "waiting with",
    "load": "loading",
    "baseline": "running eager on",
    "first": "running eager on",
    "compile": "compiling",
    "run": "running",
    "time": "timing",
    "profiler": "profiling",
    "profile": "profiling",
    "oracle": "computing in float64",
}
"""Readable descriptions of the phases."""
QUIET_S = 30.0
"""Without a terminal, the minimum interval between lines about the current phase, in seconds."""


OnRecord = Callable[[Mapping[str, Any]], None]


class Progress(Protocol):
    """A receiver of progress events."""

    def enter(self, sample_id: str, compiler: str, phase: str) -> None:
        """Report the current phase of a sample."""
        ...

    def add(self, record: Mapping[str, Any]) -> None:
        """Count one record."""
        ...


class _Silent:
    def __init__(self, on_record: OnRecord | None = None) -> None:
        self._on_record = on_record

    def enter(self, sample_id: str, compiler: str, phase: str) -> None:
        del sample_id, compiler, phase

    def add(self, record: Mapping[str, Any]) -> None:
        if self._on_record is not None:
            self._on_record(record)


class Course:
    """The state of a run in progress: counts, the current phase, times and scores.

    `clock_s` returns seconds. The remaining time is estimated from the mean time of the runs so
    far, excluding those of an earlier call that this one continues.

    >>> now = iter([0.0, 1.0, 30.0, 43.0]).__next__
    >>> course = Course(total=3, done=1, clock_s=now)
    >>> course.enter("torch/dcgan-64", "inductor", "compile")
    >>> course.activity()
    'compiling torch/dcgan-64, 0:29'
    >>> course.add({"compiler": "inductor", "sample_id": "torch/dcgan-64", "status": "crash",
    ...     "speedup": None, "min_t": None})
    >>> course.times()
    '0:43, about 0:43 left'
    """

    def __init__(self, total: int, done: int, clock_s: Any = time.monotonic) -> None:
        self.total, self.num_done, self._num_before = total, done, done
        self._clock_s, self._started_s = clock_s, clock_s()
        self._phase, self._entered_s = "", self._started_s
        self._rows: dict[str, list[dict[str, Any]]] = {}

    def enter(self, sample_id: str, compiler: str, phase: str) -> None:
        """Record the current phase of a sample."""
        del compiler  # the score next to it already names the compiler
        kind, _, name = phase.rpartition(" ")
        doing = DOING.get(name, f"in phase {name} of")
        self._phase = f"{doing} {sample_id}{' (eager alone)' if kind else ''}"
        self._entered_s = self._clock_s()

    def add(self, record: Mapping[str, Any]) -> None:
        """Count a finished run."""
        self.count(record)
        self.num_done += 1
        self._phase = ""

    def count(self, record: Mapping[str, Any]) -> None:
        """Add the record of a run, possibly of an earlier call, to the scores."""
        row = {name: record[name] for name in SCORE_COLUMNS}
        self._rows.setdefault(record["compiler"], []).append(row)

    def activity(self) -> str:
        """Return the current activity and its duration."""
        if not self._phase:
            return "starting"
        return printable_line(f"{self._phase}, {minutes(self._clock_s() - self._entered_s)}")

    def times(self) -> str:
        """Return the elapsed time of the run and an estimate of the remaining time."""
        elapsed_s = self._clock_s() - self._started_s
        num_own = self.num_done - self._num_before
        if not num_own or self.num_done >= self.total:
            return minutes(elapsed_s)
        left_s = elapsed_s / num_own * (self.total - self.num_done)
        return f"{minutes(elapsed_s)}, about {minutes(left_s)} left"

    def score(self, compiler: str) -> str:
        """Return a short description of S(t) for a compiler's records so far."""
        return f"{compiler} {running_score(self._rows[compiler])}".rstrip()


class _Bar:
    """A progress bar, redrawn only a few times a second to leave the timed core undisturbed."""

    def __init__(
        self, bar: Any, task: Any, course: Course, on_record: OnRecord | None = None
    ) -> None:
        self._bar, self._task, self._course, self._on_record = bar, task, course, on_record

    def enter(self, sample_id: str, compiler: str, phase: str) -> None:
        self._course.enter(sample_id, compiler, phase)

    def add(self, record: Mapping[str, Any]) -> None:
        self._course.add(record)
        text = printable_line(self._course.score(record["compiler"]))
        self._bar.update(self._task, advance=1, score=text)
        if self._on_record is not None:
            self._on_record(record)


class _Lines:
    """Output for logs and pipes: a line per run, and occasional lines about long phases."""

    def __init__(self, course: Course, on_record: OnRecord | None = None) -> None:
        self._course, self._on_record = course, on_record
        self._lock = threading.Lock()
        self._last_s = time.monotonic()

    def enter(self, sample_id: str, compiler: str, phase: str) -> None:
        with self._lock:
            if time.monotonic() - self._last_s > QUIET_S:
                self._print(self._course.activity())
            self._course.enter(sample_id, compiler, phase)

    def add(self, record: Mapping[str, Any]) -> None:
        with self._lock:
            self._course.add(record)
            if self._on_record is not None:
                self._last_s = time.monotonic()
                self._on_record(record)
            else:
                line = describe_run(record)[1]
                self._print(f"{record['sample_id']} {record['compiler']} {line}")

    def _print(self, text: str) -> None:
        self._last_s = time.monotonic()
        course = self._course
        line = f"{course.num_done}/{course.total} {text} ({course.times()})"
        with contextlib.suppress(OSError, ValueError):
            sys.stderr.write(f"{printable_line(line)}\n")
            sys.stderr.flush()


@contextlib.contextmanager
def show_progress(
    total: int, done: Iterable[Mapping[str, Any]] = (), on_record: OnRecord | None = None
) -> Iterator[Progress]:
    """Show the progress of a run on standard error, unless progress bars are disabled.

    On a terminal this is a bar with the current phase, its duration, the elapsed time and the
    estimated time; elsewhere it is a line per run. `done` contains the records of an earlier call
    that this one continues. `on_record` is called with each of these and with each new record; it
    then prints the lines for runs.
    """
    done = list(done)
    if on_record is not None:
        for record in done:
            on_record(record)
    if are_progress_bars_disabled():
        yield _Silent(on_record)
        return
    course = Course(total, len(done))
    for record in done:
        course.count(record)
    if not sys.stderr.isatty():
        yield _Lines(course, on_record)
        return
    from rich.console import Console

    with live_bar(course, Console(stderr=True), on_record) as bar:
        yield bar


@contextlib.contextmanager
def live_bar(
    course: Course, console: Console, on_record: OnRecord | None = None
) -> Iterator[Progress]:
    """Show lines that fit the terminal: the progress, the current activity and the score so far.

    Lines that are too long are truncated with an ellipsis, since wrapped lines leave artifacts.
    """
    from rich.console import RenderableType
    from rich.progress import BarColumn, MofNCompleteColumn, ProgressColumn
    from rich.progress import Progress as RichProgress
    from rich.table import Column
    from rich.text import Text

    class Times(ProgressColumn):
        """Query the course at each redraw, so that the seconds advance."""

        def render(self, task: Any) -> Text:
            del task
            return Text(course.times())

    class Lines(RichProgress):
        def get_renderables(self) -> Iterator[RenderableType]:
            yield from super().get_renderables()
            for line in (course.activity(), *(task.fields["score"] for task in self.tasks)):
                if line:
                    yield Text(line, no_wrap=True, overflow="ellipsis")

    columns = (
        MofNCompleteColumn(table_column=Column(no_wrap=True)),
        BarColumn(10),
        Times(table_column=Column(no_wrap=True)),
    )
    with Lines(*columns, console=console, refresh_per_second=2) as bar:
        task = bar.add_task("run", total=course.total, completed=course.num_done, score="")
        yield _Bar(bar, task, course, on_record)


def minutes(seconds: float) -> str:
    """Return a duration in human-readable form.

    >>> minutes(72.4), minutes(3723)
    ('1:12', '1:02:03')
    """
    whole = int(seconds)
    if whole < 3600:
        return f"{whole // 60}:{whole % 60:02d}"
    return f"{whole // 3600}:{whole % 3600 // 60:02d}:{whole % 60:02d}"


def running_score(rows: list[dict[str, Any]]) -> str:
    """Return a short description of S(t) for the records so far.

    >>> running_score([{"sample_id": "a", "status": "ok", "speedup": 2.0, "min_t": -3.0}])
    'S(-5) 0.100, S(0) 2.000'
    """
    try:
        scores = speedup_score(rows, has_intervals=False)
    except GraphNetError:  # no record so far can be scored
        return ""
    return ", ".join(f"S({t}) {scores.at(t)['S']:.3f}" for t in SHOWN_T)
