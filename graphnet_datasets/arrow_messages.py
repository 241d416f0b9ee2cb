"""Arrow streams from workers and folders, read one batch at a time after checks of their sizes.

Arrow's own readers allocate the sizes that a compressed buffer declares, and do not check offsets.
"""

from __future__ import annotations

import struct
from typing import Any

import pyarrow as pa

from .decoding import check_decoded_size

_END = b"\xff\xff\xff\xff\0\0\0\0"
_UNCOMPRESSED = -1
_HEADER, _BUFFERS, _COMPRESSION = 2, 2, 3
"""Numbers of fields in the tables `Message` and `RecordBatch` of Arrow's flatbuffers."""


def read_messages(content: pa.Buffer) -> tuple[pa.Schema, list[pa.Message]]:
    """Return the schema and the messages with the batches of a complete stream.

    Raises:
        ValueError: The stream is incomplete or damaged, or has dictionaries.
    """
    if content.size < len(_END) or content[-len(_END) :].to_pybytes() != _END:
        raise ValueError("The Arrow stream has no end.")
    try:
        reader = pa.ipc.MessageReader.open_stream(content)
        first, *messages = reader
        if first.type != "schema":  # reading it as a schema would crash
            raise ValueError("The Arrow stream does not begin with a schema.")
        schema = pa.ipc.read_schema(first)
    except (OSError, pa.ArrowException) as error:
        raise ValueError(f"The Arrow stream is damaged: {error}.") from error
    if any(message.type != "record batch" for message in messages):
        raise ValueError("The Arrow stream contains other messages than batches.")
    return schema, messages


def read_batch(
    message: pa.Message, schema: pa.Schema, name: object, *, most_bytes: int | None = None
) -> pa.RecordBatch:
    """Return the batch of a message of `read_messages`, whose offsets and strings are checked.

    Raises:
        DecodedSizeError: The decoded batch would take more memory than `most_bytes`, by default the
            limit of files.
        ValueError: The batch is damaged.
    """
    try:
        check_decoded_size(_declared_bytes(message), name, most_bytes)
        batch = pa.ipc.read_record_batch(message, schema)
        batch.validate(full=True)
    except (OSError, struct.error, pa.ArrowException) as error:
        raise ValueError(f"A batch of `{name}` is damaged: {error}.") from error
    return batch


def _declared_bytes(message: pa.Message) -> int:
    """Return the size of a batch's buffers after decompression."""
    metadata, body = memoryview(message.metadata), memoryview(message.body)
    (root,) = struct.unpack_from("<I", metadata)
    header = _follow(metadata, _field(metadata, root, _HEADER))
    vector = _follow(metadata, _field(metadata, header, _BUFFERS))
    (count,) = struct.unpack_from("<I", metadata, vector)
    is_compressed = _field(metadata, header, _COMPRESSION) > 0
    total = 0
    for place in range(count):
        offset, length = struct.unpack_from("<qq", metadata, vector + 4 + 16 * place)
        if is_compressed and length:
            (decoded,) = struct.unpack_from("<q", body, offset)
            total += max(length, decoded if decoded != _UNCOMPRESSED else 0)
        else:
            total += length
    return total


def _field(data: Any, table: int, number: int) -> int:
    """Return the position of a field of a flatbuffer's table, or 0 if it is absent."""
    (distance,) = struct.unpack_from("<i", data, table)
    (size,) = struct.unpack_from("<H", data, table - distance)
    if 4 + 2 * number >= size:
        return 0
    (offset,) = struct.unpack_from("<H", data, table - distance + 4 + 2 * number)
    return table + offset if offset else 0


def _follow(data: Any, position: int) -> int:
    """Return the target of a relative position."""
    (distance,) = struct.unpack_from("<I", data, position)
    return position + distance
