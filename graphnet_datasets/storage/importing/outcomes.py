"""What became of each directory of an import, and the report that says so."""

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
    """What became of one directory.

    `id` is the sample's id in the table, "" if there is none. A `duplicate` is a graph that the
    table holds already, as `duplicate_of`; it is left out unless duplicates are kept. An `imported`
    graph whose id another graph has is stored under another id, and `renamed_from` is its own.
    `reason` says why a directory `failed`.
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
    """What an import gave: the dataset, None if nothing could be read, and what became of each."""

    out: Path | None
    report_path: Path
    outcomes: tuple[FolderOutcome, ...]
    num_rows: int
    num_resumed: int = 0

    @property
    def failures(self) -> list[FolderOutcome]:
        """The directories that are not in the table although they should be."""
        return [each for each in self.outcomes if each.status == "failed"]

    @property
    def duplicates(self) -> list[FolderOutcome]:
        """The directories whose graph another directory holds as well."""
        return [each for each in self.outcomes if each.status == "duplicate"]

    def summary(self) -> str:
        """Return the report in a few lines for a terminal."""
        counts = collections.Counter(each.status for each in self.outcomes)
        parts = [f"{counts[status]} {status}" for status in ("imported", "duplicate", "failed")]
        renamed = sum(bool(each.renamed_from) for each in self.outcomes)
        if renamed:
            parts.append(f"{renamed} stored under another id")
        graphs = counted(self.num_rows, "graph")
        directories = counted(len(self.outcomes), "directory", "directories")
        where = f"{graphs} written to {self.out}" if self.out else "Nothing written"
        lines = [f"{where}; {directories}: {', '.join(parts)}"]
        kinds = collections.Counter(each.error_type for each in self.failures)
        lines += [f"  {count} failed with {kind}" for kind, count in kinds.most_common()]
        return "\n".join([*lines, f"Report: {self.report_path}"])


def write_report(outcomes: Iterable[FolderOutcome], path: Path) -> None:
    """Write one JSON object a line, without the fields that say nothing."""
    lines = [
        json.dumps({name: value for name, value in dataclasses.asdict(each).items() if value})
        for each in outcomes
    ]
    path.parent.mkdir(parents=True, exist_ok=True)
    write_text(path, "".join(f"{line}\n" for line in lines))


def read_report(path: str | os.PathLike[str]) -> list[FolderOutcome]:
    """Return the outcomes that a report holds.

    >>> import tempfile
    >>> outcome = FolderOutcome("samples/a", "failed", reason="It is empty.")
    >>> with tempfile.TemporaryDirectory() as directory:
    ...     write_report([outcome], Path(directory) / "report.jsonl")
    ...     read_report(Path(directory) / "report.jsonl") == [outcome]
    True
    """
    return [FolderOutcome(**fields) for fields in read_json_lines(path)]
