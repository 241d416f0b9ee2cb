"""Arrow streams from others: no damage crashes the reader, and no size is taken on trust."""

from __future__ import annotations

import random
import struct

import pyarrow as pa
import pytest

from graphnet_datasets.arrow_messages import read_batch, read_messages
from graphnet_datasets.errors import DecodedSizeError

TABLE = pa.table({"text": ["x" * 50, "y", None], "numbers": [[1, 2], [3], []]})
NUMBERS = (-1, 0, 1, 7, 2**31, 2**40, 2**62, -(2**63))


def encode(table: pa.Table, compression: str | None = None) -> bytes:
    options = pa.ipc.IpcWriteOptions(compression=compression)
    with pa.BufferOutputStream() as stream:
        with pa.ipc.new_stream(stream, table.schema, options=options) as writer:
            writer.write_table(table)
        return stream.getvalue().to_pybytes()


def decode(content: bytes) -> pa.Table:
    schema, messages = read_messages(pa.py_buffer(content))
    batches = [read_batch(message, schema, "the stream") for message in messages]
    return pa.Table.from_batches(batches, schema)


@pytest.mark.parametrize("compression", [None, "lz4", "zstd"])
def test_a_stream_is_read_exactly(compression: str | None) -> None:
    assert decode(encode(TABLE, compression)).equals(TABLE)


def test_declared_sizes_are_checked_before_they_are_allocated() -> None:
    content = encode(pa.table({"text": ["a" * 2**20]}), "zstd")
    assert len(content) < 2**14
    schema, (message,) = read_messages(pa.py_buffer(content))
    with pytest.raises(DecodedSizeError, match="`the stream` takes 1,048,601 bytes"):
        read_batch(message, schema, "the stream", most_bytes=2**20 - 1)
    before, _, after = content.rpartition(struct.pack("<q", 2**20))
    with pytest.raises(DecodedSizeError):
        decode(before + struct.pack("<q", 2**50) + after)


def test_an_incomplete_stream_is_refused() -> None:
    content = encode(TABLE)
    for end in (0, 4, len(content) // 2, len(content) - 1):
        with pytest.raises(ValueError, match="no end"):
            read_messages(pa.py_buffer(content[:end]))


def test_dictionaries_are_refused() -> None:
    table = pa.table({"text": pa.array(["x", "y"]).dictionary_encode()})
    with pytest.raises(ValueError, match="other messages than batches"):
        decode(encode(table))


def test_a_batch_in_place_of_the_schema_is_refused() -> None:
    """Arrow's `read_schema` crashes on it."""
    content = encode(TABLE)
    schema_bytes = 8 + struct.unpack_from("<i", content, 4)[0]
    with pytest.raises(ValueError, match="does not begin with a schema"):
        read_messages(pa.py_buffer(content[schema_bytes:]))


def test_mutated_streams_raise_errors_only() -> None:
    chance = random.Random(1)  # noqa: S311 - not a secret
    streams = [encode(TABLE, compression) for compression in (None, "lz4", "zstd")]
    num_refused = 0
    for _ in range(3000):
        content = bytearray(chance.choice(streams))
        for _ in range(chance.choice((1, 1, 2, 5))):
            place = chance.randrange(len(content) - 8)
            if chance.random() < 0.5:
                content[place] = chance.randrange(256)
            else:
                struct.pack_into("<q", content, place & ~7, chance.choice(NUMBERS))
        try:
            decode(bytes(content)).to_pylist()
        except ValueError:
            num_refused += 1
    assert 1000 < num_refused < 3000
