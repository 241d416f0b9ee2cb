"""Parts of a dataset under construction, stored as files that are complete or absent.

A part contains rows and notes about them. It is an Arrow stream with one row per batch, so that
each row can be read separately, or with a single batch if rows are small. The notes are JSON in the
metadata of its schema. Parts come from workers, or from a folder of an interrupted command, so they
are checked like other files.
"""

from __future__ import annotations

import collections
import json
import secrets
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import pyarrow as pa

from ..arrow_messages import read_batch, read_messages
from ..atomic import write_bytes
from ..decoding import load_json
from ..errors import DecodedSizeError, SchemaError
from ..paths import check_is_regular
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
    with pa.ipc.new_stream(sink, schema, options=options) as writer:
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
    schema, _ = _read(path)
    try:
        return load_json((schema.metadata or {})[_NOTES], "the notes of a part")
    except KeyError as error:
        raise _damaged(path, "It has no notes.") from error


def _read(path: Path) -> tuple[pa.Schema, list[pa.Message]]:
    """Return the schema and the batches of a part, which stay on the disk until they are used.

    Raises:
        ValueError: the file is not a complete part.
    """
    try:
        check_is_regular(path)
        return read_messages(pa.memory_map(str(path)).read_buffer())
    except (OSError, ValueError) as error:
        raise _damaged(path, error) from error


def _damaged(path: Path, reason: object) -> ValueError:
    return ValueError(
        f"`{path}` is not a complete part: {str(reason).rstrip('.')}. Delete it and repeat the "
        "command."
    )


class _Part(NamedTuple):
    """An open part. `batch` is its only batch, or None if there are several."""

    schema: pa.Schema
    messages: Sequence[pa.Message]
    batch: pa.RecordBatch | None


class PartReader:
    """A reader of single rows of many parts that keeps recently used parts open."""

    def __init__(self) -> None:
        self._open: collections.OrderedDict[Path, _Part] = collections.OrderedDict()

    def rows(self, result: Result) -> Iterator[pa.Table]:
        """Yield a single-row table for each row of a result of a map."""
        for index in range(result.first_row, result.first_row + result.num_rows):
            yield self.row(result.part, index)

    def row(self, path: Path, index: int) -> pa.Table:
        """Return a single-row table from a part.

        Raises:
            SchemaError: the part is damaged.
            DecodedSizeError: the row would take more memory than the limit.
        """
        try:
            return self._row(path, index)
        except DecodedSizeError:
            raise
        except (ValueError, IndexError) as error:
            raise SchemaError(str(_damaged(path, error))) from error

    def _row(self, path: Path, index: int) -> pa.Table:
        part = self._open.pop(path, None) or _open(path)
        self._open[path] = part
        if len(self._open) > MAX_OPEN_PARTS:
            self._open.popitem(last=False)
        if part.batch is not None:
            batch = part.batch.slice(index, 1)
        else:
            batch = read_batch(part.messages[index], part.schema, path)
        return pa.Table.from_batches([batch]).replace_schema_metadata()


def _open(path: Path) -> _Part:
    schema, messages = _read(path)
    batch = read_batch(messages[0], schema, path) if len(messages) == 1 else None
    return _Part(schema, messages, batch)
