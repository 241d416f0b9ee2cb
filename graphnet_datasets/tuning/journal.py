"""The files of a running tuning run: one appended line per measurement, and the last state.

A kill loses at most the candidate being measured: its line is written to the disk before the next
candidate starts.
"""

from __future__ import annotations

import datetime
import json
import secrets
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ..atomic import append_json, write_text
from ..decoding import read_journal, read_json
from ..errors import TuningError
from .interfaces import State
from .measurement import Measurement


class Journal:
    """The files of one run in a directory: its settings, its rows and its last state.

    >>> import tempfile
    >>> from graphnet_datasets.tuning import Candidate, Origin, TrialStatus
    >>> row = Measurement.of(Candidate("a", "[]", Origin.RANDOM), TrialStatus.CRASH, error="gone")
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     journal = Journal(Path(folder), {"seed": 0})
    ...     journal.append(row)
    ...     journal.save_state({})
    ...     [row.error for row in Journal(Path(folder), {"seed": 0}).rows]
    ['gone']
    """

    def __init__(self, directory: Path, settings: Mapping[str, Any]) -> None:
        """Open or create the run of a directory.

        Raises:
            TuningError: the directory has a run with other settings, or its rows cannot be read.
        """
        self.directory = directory
        self._records, self._state = directory / "records.jsonl", directory / "state.json"
        self._check_settings(settings)
        self.rows = _read_rows(self._records)
        self.state: State | None = _read_json(self._state) if self._state.exists() else None
        if self.state is None and self.rows:
            raise TuningError(
                f"`{directory}` contains measurements of a run but no state. Remove the directory "
                "to start over."
            )

    def append(self, row: Measurement) -> None:
        """Write a row to the disk."""
        columns = row.to_row()
        if row.created_at is not None:
            columns["created_at"] = row.created_at.isoformat()
        append_json(self._records, columns)

    def save_state(self, state: State) -> None:
        """Replace the saved state."""
        write_text(self._state, json.dumps(state))

    def _check_settings(self, settings: Mapping[str, Any]) -> None:
        path = self.directory / "settings.json"
        new_settings = json.loads(json.dumps(settings))
        self.run_id = secrets.token_hex(8)
        if path.exists():
            old_settings = _read_json(path)
            changed = [
                name for name in new_settings if old_settings.get(name) != new_settings[name]
            ]
            if changed:
                name = changed[0]
                raise TuningError(
                    f"`{self.directory}` contains a run with other settings: `{name}` was "
                    f"{_short(old_settings.get(name))} and is now {_short(new_settings[name])}. "
                    "Resume with the same settings, choose another `out`, or remove the directory."
                )
            self.run_id = str(old_settings.get("run_id", ""))
        else:
            self.directory.mkdir(parents=True, exist_ok=True)
            write_text(path, json.dumps({**new_settings, "run_id": self.run_id}))


def _read_rows(path: Path) -> list[Measurement]:
    rows: list[Measurement] = []
    try:
        for columns in read_journal(path, is_strict=True):
            if columns.get("created_at"):
                columns["created_at"] = datetime.datetime.fromisoformat(columns["created_at"])
            rows.append(Measurement.from_row(columns))
    except (ValueError, AttributeError, TypeError) as error:
        raise TuningError(
            f"`{path}` has a line that is not a measurement: {error}. Remove the directory to "
            "start over."
        ) from error
    return rows


def _read_json(path: Path) -> dict[str, Any]:
    try:
        content = read_json(path)
    except ValueError as error:
        raise TuningError(f"`{path}` cannot be read: {error}. Remove its directory.") from error
    if not isinstance(content, dict):
        raise TuningError(f"`{path}` must contain a JSON object. Remove its directory.")
    return content


def _short(value: Any) -> str:
    text = json.dumps(value)
    return text if len(text) <= 80 else f"{text[:77]}…"
