"""Initialization of a build directory from a dataset, so that a build continues the shipped build.

A build directory is lost with its machine; the dataset is not. Each row contains its catalog line
and the version of its library, which determine the key of a capture.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from graphnet_datasets.atomic import write_text
from graphnet_datasets.schema.builds import SPLIT_STAGE
from graphnet_datasets.schema.tables import FAILURES
from graphnet_datasets.storage.table import read_table, write_table

from .capturing import FAILURE, Keys, known
from .catalog import Entry
from .keeping import KEPT, write_checks
from .libraries import library_of
from .placing import tables_of


def seed(entries: Iterable[Entry], dataset: Path, build: Path, keys: Keys) -> int:
    """Write the entries of a dataset into a build directory; return their number.

    Entries with a changed line or library must be captured again, and so must entries that resulted
    in a duplicate. Files in the build directory are kept. Outcomes of checks are stored beside the
    rows, as by `keeping.check`; calibration is left out, since `ship` reads it from the dataset.
    """
    by_line = {entry.line: entry for entry in entries}
    paths = {line: keys.path(entry, build) for line, entry in by_line.items()}
    absent = {line for line, path in paths.items() if known(by_line[line], path, True) is None}
    build.mkdir(parents=True, exist_ok=True)
    pieces: dict[str, list[Mapping[str, Any]]] = {}
    for path in tables_of(dataset):
        lines = read_table(path, columns=["catalog_line"])["catalog_line"].to_pylist()
        if absent.isdisjoint(lines):
            continue
        table = read_table(path)
        for index, line in enumerate(lines):
            if line not in absent:
                continue
            (row,) = table.slice(index, 1).to_pylist()  # one at a time: as objects they are large
            if row["library_version"] in (None, library_of(by_line[line]).version):
                line_pieces = pieces.setdefault(line, [])
                line_pieces.append(row)
                if len(line_pieces) == (row["num_pieces"] or 1):
                    _write(pieces.pop(line), paths[line])
    for path in sorted((dataset / FAILURES.name).glob("*.parquet")):
        for row in read_table(path).to_pylist():
            if row["catalog_line"] in absent and row["stage"] != SPLIT_STAGE:
                write_text(paths[row["catalog_line"]].with_suffix(FAILURE), row["reason"])
    return sum(known(by_line[line], paths[line], True) is not None for line in absent)


def _write(rows: Sequence[Mapping[str, Any]], path: Path) -> None:
    if all(row["validation"] for row in rows):
        write_checks(path, rows)
    ordered = sorted(rows, key=lambda row: row["piece_index"] or 0)
    write_table(({**row, **dict.fromkeys(KEPT)} for row in ordered), path)


def take_over(entries: Iterable[Entry], dataset: Path, build: Path, keys: Keys) -> None:
    """Call `seed`, and report the number of entries, if any."""
    if num_taken := seed(entries, dataset, build, keys):
        print(f"{num_taken:,} entries were captured before: `{dataset}` holds them")
