"""Tables of arms, by machine and by size class of the samples."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import pyarrow as pa

from ...scores import Summary, summarise
from ...scores.latency import SizeClass, split_by_size
from ...scores.machines import split_machines
from ...scores.summary_text import conclusions, headline
from ..labels import compact_names
from .arms import Arm

ALL_SIZES = "all sizes"


@dataclasses.dataclass(frozen=True)
class BoardRow:
    """One arm in a table; the summary has a short name, the arm's name has all options."""

    arm: Arm
    summary: Summary


@dataclasses.dataclass(frozen=True)
class Board:
    """A table of arms, the largest S(-3) first, and its conclusions."""

    title: str
    rows: Sequence[BoardRow]
    conclusions: Sequence[str]

    @property
    def num_samples(self) -> int:
        """The largest number of samples of an arm."""
        return max((row.summary.num_graphs for row in self.rows), default=0)

    @property
    def domain(self) -> tuple[float, float]:
        """The range of the bars beside the scores."""
        values = [
            value
            for row in self.rows
            for value in (row.summary.s, row.summary.s_low, row.summary.s_high)
            if value is not None and value > 0 and math.isfinite(value)
        ]
        return max(min([1.0, *values]), 1e-3) / 1.05, min(max([1.0, *values]), 1e3) * 1.05


@dataclasses.dataclass(frozen=True)
class Machine:
    """The boards of one machine: of all samples, and of each size class."""

    title: str
    headline: str
    boards: Sequence[Board]


def make_board(
    title: str, arms: Mapping[str, Arm], tables: Mapping[str, pa.Table], options: Mapping[str, Any]
) -> Board:
    """Return the table of these records, which are by the names of their arms."""
    labels = compact_names(list(tables))
    rows = [
        BoardRow(arms[name], summarise(table, labels[name], **options))
        for name, table in tables.items()
    ]
    rows.sort(key=lambda row: (-(row.summary.s or 0.0), row.summary.name))
    return Board(title, rows, conclusions([row.summary for row in rows]))


def make_machines(arms: Sequence[Arm], options: Mapping[str, Any]) -> list[Machine]:
    """Return the tables of each machine, the one with the most records first."""
    by_name = {arm.name: arm for arm in arms}
    machines = []
    for name, tables in split_machines({arm.name: arm.table for arm in arms}).items():
        boards = [make_board(ALL_SIZES, by_name, tables, options)]
        for size, parts in split_by_size(tables).items():
            title = str(size) if size is SizeClass.UNKNOWN else f"eager {size}"
            boards.append(make_board(title, by_name, parts, options))
        dates = dates_text(tables.values())
        summaries = [row.summary for row in boards[0].rows]
        machines.append(
            Machine(f"{name}, {dates}" if dates else name, headline(summaries, name), boards)
        )
    return machines


def dates_text(tables: Iterable[pa.Table]) -> str:
    """Return the first and the last day of run records; "" if they have no times.

    >>> dates_text([pa.table({"started_at": ["2026-11-02T10:00", None, "2026-11-03T10:00"]})])
    '2026-11-02 to 2026-11-03'
    """
    starts = [start for table in tables for start in table["started_at"].to_pylist() if start]
    first, last = min(starts, default="")[:10], max(starts, default="")[:10]
    return first if first == last else f"{first} to {last}"
