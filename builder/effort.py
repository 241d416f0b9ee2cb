"""Time and memory of builds: a line per capture in the build directory, and permanent sums."""

from __future__ import annotations

import dataclasses
import functools
import json
import uuid
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import TypeVar

from graphnet_datasets.atomic import append_json, write_text
from graphnet_datasets.decoding import read_journal
from graphnet_datasets.isolation import Finished

from .capturing import BUILDER
from .catalog import Entry
from .libraries import LIBRARIES

RECORDS = "effort.jsonl"
"""The file of a build directory with a line for each finished capture."""

NAME = "build-id"
"""The file with the name of a build directory, by which its earlier sums are replaced."""

SUMS = BUILDER / "efforts.json"
"""Sums of the builds of the embedded dataset: a `Spent` by build and by `library task`."""


@dataclasses.dataclass(frozen=True)
class Effort:
    """Time and memory of a capture. `cpu_s` is None if its process was killed before reporting."""

    name: str
    library: str
    task: str
    is_captured: bool
    cpu_s: float | None
    wall_s: float
    peak_memory_bytes: int


def record(build: Path, entry: Entry, finished: Finished) -> None:
    """Append the time and memory of a capture to the records of a build directory."""
    outcome = finished.outcome
    effort = Effort(
        entry.name,
        entry.library,
        entry.task,
        finished.result is not None,
        outcome.merged().get("cpu_s"),
        round(outcome.duration_s, 3),
        outcome.peak_memory_bytes,
    )
    append_json(build / RECORDS, dataclasses.asdict(effort))


def read_efforts(build: Path) -> list[Effort]:
    """Return the records of a build directory."""
    return [Effort(**fields) for fields in read_journal(build / RECORDS)]


@dataclasses.dataclass(frozen=True)
class Spent:
    """Total time and memory of several captures, of which `num_timed` reported their CPU time."""

    num_captures: int
    num_failed: int
    num_timed: int
    cpu_s: float
    wall_s: float
    peak_memory_bytes: int

    def __add__(self, other: Spent) -> Spent:
        """Return the sum."""
        sums = {
            name: getattr(self, name) + getattr(other, name)
            for name in ("num_captures", "num_failed", "num_timed", "cpu_s", "wall_s")
        }
        peak = max(self.peak_memory_bytes, other.peak_memory_bytes)
        return Spent(**sums, peak_memory_bytes=peak)


NOTHING = Spent(0, 0, 0, 0.0, 0.0, 0)

Key = TypeVar("Key")

Sums = Mapping[str, Spent]
"""By library and task, with a space between."""


def add_up(efforts: Iterable[Effort]) -> Sums:
    """Return totals by library and task, counting repeated captures each time."""
    return _by_key((f"{effort.library} {effort.task}", _spent(effort)) for effort in efforts)


def _spent(effort: Effort) -> Spent:
    return Spent(
        1, int(not effort.is_captured), int(effort.cpu_s is not None),
        effort.cpu_s or 0.0, effort.wall_s, effort.peak_memory_bytes,
    )  # fmt: skip


def _by_key(pairs: Iterable[tuple[Key, Spent]]) -> dict[Key, Spent]:
    sums: dict[Key, Spent] = {}
    for key, spent in pairs:
        sums[key] = sums.get(key, NOTHING) + spent
    return sums


def with_earlier(build: Path, path: Path = SUMS) -> Sums:
    """Return the totals of a build directory and of the other builds of the dataset.

    The totals of this build replace its entry in the file `path`.
    """
    builds = json.loads(path.read_text()) if path.is_file() else {}
    own = add_up(read_efforts(build))
    if own:
        rounded = {key: dataclasses.asdict(spent) for key, spent in sorted(own.items())}
        for spent in rounded.values():
            spent |= {name: round(spent[name], 1) for name in ("cpu_s", "wall_s")}
        builds[_name_of(build)] = rounded
        write_text(path, json.dumps(builds, indent=1, sort_keys=True) + "\n")
    return _by_key(
        (key, Spent(**amounts)) for by_key in builds.values() for key, amounts in by_key.items()
    )


def _name_of(build: Path) -> str:
    path = build / NAME
    if not path.is_file():
        write_text(path, uuid.uuid4().hex)
    return path.read_text()


def effort_table(sums: Sums) -> Iterator[str]:
    """Yield the lines of a table by source and task, with a total."""
    yield "| source | task | captures | failed | CPU hours | hours | mean CPU s | most memory |"
    yield "|---|---|---|---|---|---|---|---|"
    groups = _by_key((_title_and_task(key), spent) for key, spent in sums.items())
    for (title, task), spent in sorted(groups.items()):
        yield _line(title, task, spent)
    whole = functools.reduce(Spent.__add__, groups.values(), NOTHING)
    yield _line("all", "", whole)
    if num_untimed := whole.num_captures - whole.num_timed:
        yield ""
        yield f"{num_untimed:,} captures were stopped before their CPU time was recorded."


def _title_and_task(key: str) -> tuple[str, str]:
    library, _, task = key.partition(" ")
    is_own = library in LIBRARIES and not LIBRARIES[library].distribution
    return "this project" if is_own else library, task


def _line(title: str, task: str, spent: Spent) -> str:
    mean = f"{spent.cpu_s / spent.num_timed:,.1f}" if spent.cpu_s else ""
    return (
        f"| {title} | {task} | {spent.num_captures:,} | {spent.num_failed:,} "
        f"| {spent.cpu_s / 3600:,.2f} | {spent.wall_s / 3600:,.2f} | {mean} "
        f"| {spent.peak_memory_bytes / 2**30:,.1f} GiB |"
    )
