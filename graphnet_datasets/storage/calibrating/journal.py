"""A journal of calibrated rows, so that an interruption loses no finished graph."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ...atomic import file_sha256
from ...decoding import read_bytes
from ...json_text import parse_json
from ...schema.graphs import CALIBRATION_COLUMNS


class Journal:
    """A file beside a table with a line per calibrated row, until the table is rewritten.

    The first line identifies the bytes of the table, and whether rows are calibrated again; a
    journal with another first line is ignored.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder) / "graphs.parquet"
    ...     _ = file.write_bytes(b"rows")
    ...     Journal(file, is_again=False).add(7, {"calibration": "unneeded"})
    ...     Journal(file, is_again=False).read()
    {7: {'calibration': 'unneeded', 'calibrated_inputs': None}}
    """

    def __init__(self, file: Path, *, is_again: bool) -> None:
        self.path = file.with_name(f".{file.name}.calibrating.jsonl")
        self._header = {"sha256": file_sha256(file), "is_again": is_again}

    def read(self) -> dict[int, dict[str, Any]]:
        """Return the columns of the finished rows by row number."""
        lines = read_bytes(self.path).splitlines() if self.path.is_file() else []
        if not lines or parse_json(lines[0]) != self._header:
            return {}
        columns_by_place = {}
        for line in lines[1:]:  # the last line may be truncated
            record = parse_json(line)
            if isinstance(record, dict) and type(record.get("place")) is int:
                columns_by_place[record["place"]] = {
                    name: record.get(name) for name in CALIBRATION_COLUMNS
                }
        return columns_by_place

    def add(self, place: int, row: Mapping[str, Any]) -> None:
        """Append a finished row."""
        is_new = not self.path.is_file() or not self._is_mine()
        with self.path.open("w" if is_new else "a") as file:
            if is_new:
                file.write(json.dumps(self._header) + "\n")
            record = {"place": place, **{name: row.get(name) for name in CALIBRATION_COLUMNS}}
            file.write(json.dumps(record) + "\n")

    def remove(self) -> None:
        """Delete the journal after the table was rewritten."""
        self.path.unlink(missing_ok=True)

    def _is_mine(self) -> bool:
        with self.path.open("rb") as file:
            return parse_json(file.readline()) == self._header
