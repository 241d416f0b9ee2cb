"""Headers of the pages of a Parquet file, read without decoding the pages.

The footer of a Parquet file repeats sizes and counts of its pages. Readers allocate memory by the
sizes in page headers, so limits must be checked on these. Headers are structs in the compact
protocol of Thrift
(https://github.com/apache/parquet-format/blob/master/src/main/thrift/parquet.thrift).
"""

from __future__ import annotations

import dataclasses
from typing import BinaryIO

MAX_HEADER_BYTES = 2**24
"""The limit of Arrow's reader for the header of one page."""

_MAX_DEPTH = 8
_DATA, _DICTIONARY, _DATA_V2 = 0, 2, 3
_DETAILS = {_DATA: 5, _DICTIONARY: 7, _DATA_V2: 8}
_ENCODING_FIELD = {_DATA: 2, _DICTIONARY: 2, _DATA_V2: 4}
_DELTA_BYTE_ARRAY = 7


@dataclasses.dataclass(frozen=True, slots=True)
class ChunkSizes:
    """Sizes of one column in one row group, according to the headers of its pages.

    `num_bytes` is the size of all pages after decompression, `dictionary_bytes` the part of it that
    belongs to dictionaries. `repeats_beginnings` is true if a page has the encoding
    `DELTA_BYTE_ARRAY`, in which a value shares a prefix with the previous value.
    """

    num_values: int
    num_bytes: int
    dictionary_bytes: int
    repeats_beginnings: bool


def read_chunk_sizes(file: BinaryIO, start: int, num_bytes: int) -> ChunkSizes:
    """Return the sizes of the column chunk at `file[start : start + num_bytes]`.

    Raises:
        ValueError: The headers are damaged, or a page ends after the chunk.
        OSError: The file cannot be read.
    """
    values = size = dictionary = 0
    repeats = False
    end = start + num_bytes
    while start < end:
        fields, header_bytes = _read_header(file, start, end)
        page_bytes, compressed = fields.get(2), fields.get(3)
        if not isinstance(page_bytes, int) or not isinstance(compressed, int):
            raise ValueError("A page has no size.")
        start += header_bytes + compressed
        if page_bytes < 0 or compressed < 0 or start > end:
            raise ValueError("A page ends after its column.")
        size += page_bytes
        kind = fields.get(1)
        if not isinstance(kind, int) or kind not in _DETAILS:
            continue
        details = fields.get(_DETAILS[kind])
        num_values = details.get(1) if isinstance(details, dict) else None
        if not isinstance(details, dict) or not isinstance(num_values, int):
            raise ValueError("A page has no number of values.")
        if kind == _DICTIONARY:
            dictionary += page_bytes
        else:
            values += max(num_values, 0)
            repeats |= details.get(_ENCODING_FIELD[kind]) == _DELTA_BYTE_ARRAY
    return ChunkSizes(values, size, dictionary, repeats)


def _read_header(file: BinaryIO, start: int, end: int) -> tuple[dict[int, object], int]:
    """Return the fields of the header at `start`, and its size."""
    num_bytes = 256
    while True:
        file.seek(start)
        data = file.read(min(num_bytes, end - start))
        reader = _Reader(data)
        try:
            return reader.struct(0), reader.position
        except IndexError:
            if num_bytes >= min(end - start, MAX_HEADER_BYTES):
                raise ValueError("The header of a page is truncated.") from None
            num_bytes *= 8


class _Reader:
    """A reader of the compact protocol that raises an IndexError at the end of its data."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self.position = 0

    def struct(self, depth: int) -> dict[int, object]:
        """Return the integers and structs among the fields of a struct, by their numbers."""
        fields: dict[int, object] = {}
        number = 0
        while head := self._byte():
            number = number + (head >> 4) if head >> 4 else self._integer()
            fields[number] = self._value(head & 15, depth)
        return fields

    def _value(self, kind: int, depth: int) -> object:
        if depth > _MAX_DEPTH:
            raise ValueError("The header of a page is nested too deeply.")
        if kind in (1, 2):
            return kind == 1
        if kind == 3:
            return self._byte()
        if kind in (4, 5, 6):
            return self._integer()
        if kind == 7:
            return self._skip(8)
        if kind == 8:
            return self._skip(self._varint())
        if kind in (9, 10):
            head = self._byte()
            count = head >> 4 if head >> 4 < 15 else self._varint()
            for _ in range(count):
                if head & 15 in (1, 2):  # a boolean in a list takes a byte
                    self._byte()
                else:
                    self._value(head & 15, depth + 1)
            return None
        if kind == 12:
            return self.struct(depth + 1)
        raise ValueError("The header of a page has a field of an unknown type.")

    def _byte(self) -> int:
        byte = self._data[self.position]
        self.position += 1
        return byte

    def _skip(self, count: int) -> None:
        self.position += count
        if self.position > len(self._data):
            raise IndexError

    def _varint(self) -> int:
        result = 0
        for shift in range(0, 70, 7):
            byte = self._byte()
            result |= (byte & 127) << shift
            if byte < 128:
                return result
        raise ValueError("The header of a page has a number of more than 64 bits.")

    def _integer(self) -> int:
        number = self._varint()
        return (number >> 1) ^ -(number & 1)
