"""What a build took: a line for each capture in its build directory, and a table of them."""

from __future__ import annotations

import dataclasses
import json
import os
from collections.abc import Iterable, Iterator
from pathlib import Path

from graphnet_datasets.isolation import Finished

from .catalog import Entry
from .libraries import LIBRARIES

RECORDS = "effort.jsonl"
"""The file of a build directory to which each capture that ends adds a line."""


@dataclasses.dataclass(frozen=True)
class Effort:
    """What one capture took. `cpu_s` is None where its process was killed before it could tell."""

    name: str
    library: str
    task: str
    is_captured: bool
    cpu_s: float | None
    wall_s: float
    peak_memory_bytes: int


def record(build: Path, entry: Entry, finished: Finished) -> None:
    """Add what the capture of an entry took to the records of a build directory."""
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
    line = f"{json.dumps(dataclasses.asdict(effort))}\n".encode()
    # One write at the end of the file, which no other one can come between.
    file = os.open(build / RECORDS, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    try:
        os.write(file, line)
    finally:
        os.close(file)


def read_efforts(build: Path) -> list[Effort]:
    """Return the records of a build directory; a line that was cut off is no record."""
    path = build / RECORDS
    lines = path.read_text().splitlines() if path.is_file() else []
    return [each for line in lines if (each := _effort(line)) is not None]


def _effort(line: str) -> Effort | None:
    try:
        return Effort(**json.loads(line))
    except (ValueError, TypeError):
        return None


def effort_table(efforts: Iterable[Effort], num_entries: int | None = None) -> Iterator[str]:
    """Yield the lines of a table by source and task, with a line for all.

    Entries that were captured again count each time. Where fewer entries are recorded than the
    catalogs hold (`num_entries`), a line below says so.
    """
    found = list(efforts)
    yield "| source | task | captures | failed | CPU hours | hours | median CPU s | most memory |"
    yield "|---|---|---|---|---|---|---|---|"
    groups: dict[tuple[str, str], list[Effort]] = {}
    for each in found:
        title = each.library
        if each.library in LIBRARIES and not LIBRARIES[each.library].distribution:
            title = "this project"
        groups.setdefault((title, each.task), []).append(each)
    for (title, task), of_group in sorted(groups.items()):
        yield _line(title, task, of_group)
    yield _line("all", "", found)
    names = {each.name for each in found}
    untold = sum(each.cpu_s is None for each in found)
    if untold:
        yield ""
        yield f"{untold:,} captures were ended before they could tell their CPU time."
    if num_entries is not None and len(names) < num_entries:
        yield ""
        yield f"Recorded for {len(names):,} of {num_entries:,} entries."


def _line(title: str, task: str, efforts: list[Effort]) -> str:
    seconds = sorted(each.cpu_s for each in efforts if each.cpu_s is not None)
    median = f"{seconds[len(seconds) // 2]:,.1f}" if seconds else ""
    memory = max((each.peak_memory_bytes for each in efforts), default=0)
    failed = sum(not each.is_captured for each in efforts)
    return (
        f"| {title} | {task} | {len(efforts):,} | {failed:,} | {sum(seconds) / 3600:,.2f} "
        f"| {sum(each.wall_s for each in efforts) / 3600:,.2f} | {median} "
        f"| {memory / 2**30:,.1f} GiB |"
    )
