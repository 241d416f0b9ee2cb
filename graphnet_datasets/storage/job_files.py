"""Job files for workers: a row, too large for a message, together with its job."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa

from .table import to_arrow

_JOB = b"job"


def write_job(path: Path, row: Mapping[str, Any], job: Mapping[str, Any]) -> None:
    """Write a row of graphs to a file, with its job as JSON metadata.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_job(Path(folder) / "0.arrow", {"id": "a"}, {"cast": "float16"})
    ...     row, job = read_job(Path(folder) / "0.arrow")
    >>> row["id"], job
    ('a', {'cast': 'float16'})
    """
    table = to_arrow([row])
    schema = table.schema.with_metadata({_JOB: json.dumps(job)})
    with pa.OSFile(str(path), "wb") as file, pa.ipc.new_file(file, schema) as writer:
        writer.write_table(table.replace_schema_metadata(schema.metadata))


def read_job(path: str | Path) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the row and the job of a file written by `write_job`."""
    with pa.OSFile(str(path)) as file, pa.ipc.open_file(file) as reader:
        (row,) = reader.read_all().to_pylist()
        return row, json.loads((reader.schema.metadata or {})[_JOB])
