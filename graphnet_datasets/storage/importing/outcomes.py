"""The outcomes of an import per directory, and its report."""

from __future__ import annotations

import collections
import dataclasses
import json
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Literal

from ...atomic import write_text
from ...decoding import read_json_lines
from ...terminal import counted

Status = Literal["imported", "duplicate", "failed"]


@dataclasses.dataclass(frozen=True)
class FolderOutcome:
    """The outcome of one directory.

    `id` is the sample's id in the table, or "". A `duplicate` equals the graph `duplicate_of` in
    the table; it is left out unless duplicates are kept. An `imported` graph with a taken id is
    stored under another id, and `renamed_from` is its original id. `reason` explains why a
    directory `failed`.
    """

    path: str
    status: Status
    id: str = ""
    reason: str = ""
    error_type: str = ""
    duplicate_of: str = ""
    renamed_from: str = ""
    is_in_table: bool = False


@dataclasses.dataclass(frozen=True)
class ImportReport:
    """The result of an import: the dataset, None if nothing could be read, and all outcomes."""

    out: Path | None
    report_path: Path
    outcomes: tuple[FolderOutcome, ...]
    num_rows: int
    num_resumed: int = 0

    @property
    def failures(self) -> list[FolderOutcome]:
        """The directories that could not be imported."""
        return [outcome for outcome in self.outcomes if outcome.status == "failed"]

    @property
    def duplicates(self) -> list[FolderOutcome]:
        """The directories whose graph also occurs in another directory."""
        return [outcome for outcome in self.outcomes if outcome.status == "duplicate"]

    def summary(self) -> str:
        """Return a summary in a few lines for a terminal."""
        counts = collections.Counter(outcome.status for outcome in self.outcomes)
        parts = [f"{counts[status]} {status}" for status in ("imported", "duplicate", "failed")]
        renamed = sum(bool(outcome.renamed_from) for outcome in self.outcomes)
        if renamed:
            parts.append(f"{renamed} stored under another id")
        graphs = counted(self.num_rows, "graph")
        directories = counted(len(self.outcomes), "directory", "directories")
        where = f"{graphs} written to {self.out}" if self.out else "Nothing written"
        lines = [f"{where}; {directories}: {', '.join(parts)}"]
        kinds = collections.Counter(failure.error_type for failure in self.failures)
        lines += [f"  {count} failed with {kind}" for kind, count in kinds.most_common()]
        return "\n".join([*lines, f"Report: {self.report_path}"])


def write_report(outcomes: Iterable[FolderOutcome], path: Path) -> None:
    """Write one JSON object per line, without empty fields."""
    lines = [
        json.dumps({name: value for name, value in dataclasses.asdict(outcome).items() if value})
        for outcome in outcomes
    ]
    path.parent.mkdir(parents=True, exist_ok=True)
    write_text(path, "".join(f"{line}\n" for line in lines))


def read_report(path: str | os.PathLike[str]) -> list[FolderOutcome]:
    """Return the outcomes of a report.

    >>> import tempfile
    >>> outcome = FolderOutcome("samples/a", "failed", reason="It is empty.")
    >>> with tempfile.TemporaryDirectory() as directory:
    ...     write_report([outcome], Path(directory) / "report.jsonl")
    ...     read_report(Path(directory) / "report.jsonl") == [outcome]
    True
    """
    return [FolderOutcome(**fields) for fields in read_json_lines(path)]
