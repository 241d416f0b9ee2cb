"""What was calibrated of a file before all of it is: a stop loses no graph that was done."""

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
    """Lies beside a file of rows until that is written anew: a line for each row that is done.

    Its first line says of which bytes it tells, and whether of rows that were calibrated before as
    well; a journal of others is not read.

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
        """Return the columns of the rows that are done, by their places."""
        lines = read_bytes(self.path).splitlines() if self.path.is_file() else []
        if not lines or parse_json(lines[0]) != self._header:
            return {}
        found = {}
        for line in lines[1:]:  # the last one may have been cut off
            told = parse_json(line)
            if isinstance(told, dict) and type(told.get("place")) is int:
                found[told["place"]] = {name: told.get(name) for name in CALIBRATION_COLUMNS}
        return found

    def add(self, place: int, row: Mapping[str, Any]) -> None:
        """Note a row that is done."""
        is_new = not self.path.is_file() or not self._is_mine()
        with self.path.open("w" if is_new else "a") as file:
            if is_new:
                file.write(json.dumps(self._header) + "\n")
            told = {"place": place, **{name: row.get(name) for name in CALIBRATION_COLUMNS}}
            file.write(json.dumps(told) + "\n")

    def remove(self) -> None:
        """Take it away: the file holds all of it."""
        self.path.unlink(missing_ok=True)

    def _is_mine(self) -> bool:
        with self.path.open("rb") as file:
            return parse_json(file.readline()) == self._header
