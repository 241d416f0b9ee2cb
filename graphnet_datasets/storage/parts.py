"""Parts of a dataset under construction, stored as files that are complete or absent.

A part contains rows and notes about them. It is an Arrow file with one row per batch, so that each
row can be read separately, or with a single batch if rows are small. The notes are JSON in the
metadata of its schema.
"""

from __future__ import annotations

import collections
import json
import secrets
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from ..atomic import write_bytes
from ..decoding import load_json
from ..schema import GRAPHS_SCHEMA
from .staging import PART_SUFFIX

if TYPE_CHECKING:
    from .mapping import Result

_NOTES = b"notes"
MAX_OPEN_PARTS = 128


def encode_part(
    rows: Sequence[pa.Table], notes: Mapping[str, Any], schema: pa.Schema = GRAPHS_SCHEMA
) -> bytes:
    """Encode a part with a batch for each table of `rows`, which must have equal columns.

    Each table must have one row, unless there is a single table.

    >>> import tempfile
    >>> from graphnet_datasets.storage.table import to_arrow
    >>> with tempfile.TemporaryDirectory() as directory:
    ...     path = save_part(encode_part([to_arrow([{"id": "a"}])], {"of": "b"}), Path(directory))
    ...     read_notes(path), PartReader().row(path, 0)["id"][0].as_py()
    ({'of': 'b'}, 'a')
    """
    sink = pa.BufferOutputStream()
    schema = schema.with_metadata({_NOTES: json.dumps(notes)})
    options = pa.ipc.IpcWriteOptions(compression="lz4")
    with pa.ipc.new_file(sink, schema, options=options) as writer:
        for table in rows:
            for batch in table.replace_schema_metadata().combine_chunks().to_batches():
                writer.write_batch(batch.replace_schema_metadata(schema.metadata))
    return sink.getvalue().to_pybytes()


def save_part(content: bytes, folder: Path) -> Path:
    """Write a part under a unique name, and return its path."""
    return write_bytes(folder / f"{secrets.token_hex(8)}{PART_SUFFIX}", content)


def read_notes(path: Path) -> dict[str, Any]:
    """Return the notes of a part.

    Raises:
        ValueError: the file is not a complete part.
    """
    try:
        with pa.memory_map(str(path)) as file, pa.ipc.open_file(file) as reader:
            return load_json((reader.schema.metadata or {})[_NOTES], "the notes of a part")
    except (OSError, KeyError) as error:
        raise ValueError(
            f"`{path}` is not a complete part: {error}. Delete it and repeat the command."
        ) from error


class PartReader:
    """A reader of single rows of many parts that keeps recently used parts open."""

    def __init__(self) -> None:
        self._open: collections.OrderedDict[Path, pa.ipc.RecordBatchFileReader | pa.RecordBatch] = (
            collections.OrderedDict()
        )

    def rows(self, result: Result) -> Iterator[pa.Table]:
        """Yield a single-row table for each row of a result of a map."""
        for index in range(result.first_row, result.first_row + result.num_rows):
            yield self.row(result.part, index)

    def row(self, path: Path, index: int) -> pa.Table:
        """Return a single-row table from a part."""
        part = self._open.pop(path, None)
        if part is None:
            part = pa.ipc.open_file(pa.OSFile(str(path)))
            if part.num_record_batches == 1:
                part = part.get_batch(0)
        self._open[path] = part
        if len(self._open) > MAX_OPEN_PARTS:
            self._open.popitem(last=False)
        is_single_batch = isinstance(part, pa.RecordBatch)
        batch = part.slice(index, 1) if is_single_batch else part.get_batch(index)
        return pa.Table.from_batches([batch]).replace_schema_metadata()
