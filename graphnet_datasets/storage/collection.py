"""Resumable processing of graph rows by workers, with results stored as parts."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from ..isolation import Pool, PoolJob
from .job_files import write_job
from .parts import encode_part, read_notes, save_part
from .staging import PART_SUFFIX, Staging

Count = Callable[[int, int], None]
"""Called with the number of finished graphs and the total number."""


class Collection:
    """The results per graph so far; continues an earlier collection with an equal job.

    `job` is passed to workers beside the row, with a string `key`. Parts with another key are
    deleted, as are parts whose row has changed. A worker's result is a part with the notes `key`,
    `digest` and `id`. A graph whose process did not return gets a part without rows of `schema`,
    whose notes contain `nothing` and the reason (`refused`).
    """

    def __init__(
        self,
        staging: Staging,
        job: Mapping[str, Any],
        schema: pa.Schema,
        nothing: Mapping[str, Any],
    ) -> None:
        self.staging, self.job = staging, job
        self.num_resumed = 0
        """Number of graphs finished by an earlier collection."""
        self._schema, self._nothing = schema, nothing
        self._notes: dict[str, tuple[dict[str, Any], Path]] = {}

    def fill(self, rows: Sequence[Mapping[str, Any]], pool: Pool, count: Count) -> None:
        """Process the rows without a part in the pool."""
        by_id = {str(row["id"]): row for row in rows}
        for path in sorted(self.staging.parts.glob(f"*{PART_SUFFIX}")):
            self._take(path, by_id)
        self.num_resumed = len(self._notes)
        count(len(self._notes), len(by_id))
        waiting = [row for name, row in by_id.items() if name not in self._notes]
        for finished in pool.run(self._jobs(waiting)):
            Path(finished.job.payload["row"]).unlink(missing_ok=True)
            content = finished.result
            if content is None:
                content = self._lost(by_id[finished.job.name], finished.reason)
            self._take(save_part(content, self.staging.parts), by_id)
            count(len(self._notes), len(by_id))

    def parts_of(self, rows: Iterable[Mapping[str, Any]]) -> list[tuple[dict[str, Any], Path]]:
        """Return the notes and the part of each distinct row, in the order of the rows."""
        return [self._notes[name] for name in dict.fromkeys(str(row["id"]) for row in rows)]

    def _jobs(self, rows: Iterable[Mapping[str, Any]]) -> Iterator[PoolJob]:
        """Yield the jobs, writing each row to a file in the hidden directory on demand."""
        folder = self.staging.directory / "jobs"
        folder.mkdir(exist_ok=True)
        for number, row in enumerate(rows):
            path = folder.absolute() / f"{number}.arrow"
            write_job(path, row, {**self.job, "digest": _digest(row)})
            yield PoolJob(str(row["id"]), {"row": str(path)}, reads=(str(path),))

    def _take(self, path: Path, by_id: Mapping[str, Mapping[str, Any]]) -> None:
        """Register a part, or delete it if it belongs to another call or an old row."""
        try:
            note = read_notes(path)
        except ValueError:
            path.unlink()
            return
        row = by_id.get(note["id"])
        if row is None or note["key"] != self.job["key"] or note["digest"] != _digest(row):
            path.unlink()
        else:
            self._notes[note["id"]] = note, path

    def _lost(self, row: Mapping[str, Any], reason: str) -> bytes:
        """Return the part of a graph whose process did not return, so that it is not retried."""
        short_reason = f"its process ended: {reason.partition(':')[0]}"
        notes = {
            "key": self.job["key"],
            "digest": _digest(row),
            "id": row["id"],
            **self._nothing,
            "refused": [short_reason, reason],
        }
        return encode_part([], notes, self._schema)


def _digest(row: Mapping[str, Any]) -> str:
    """Return a hash that changes with the row."""
    return hashlib.sha256(repr(sorted(row.items())).encode()).hexdigest()[:16]
