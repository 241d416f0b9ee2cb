"""Limit on what files of others become in memory, checked on declared sizes before decoding.

A few kilobytes of Parquet, `.npz` or JSON can stand for gigabytes. Every reader of such files asks
here first. The limit is `DEFAULT_BYTES` for one file; the environment variable
`GRAPHNET_DATASETS_MAX_DECODED_BYTES` sets another one.
"""

from __future__ import annotations

import math
import os
import zipfile
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from .errors import DecodedSizeError

VARIABLE = "GRAPHNET_DATASETS_MAX_DECODED_BYTES"
DEFAULT_BYTES = 2**30
BYTES_PER_VALUE = 16
"""Bytes that are counted for a value of a Parquet column beside its content: offsets of Arrow, and
part of the object that Python makes of it."""

_WIDTHS = {"BOOLEAN": 1, "INT32": 4, "FLOAT": 4, "INT64": 8, "DOUBLE": 8, "INT96": 12}
_MAX_HEADER_BYTES = 2**16
_COPIES = "DELTA_BYTE_ARRAY"
"""An encoding whose values repeat the beginning of the value before."""


def decoded_limit() -> int:
    """Return the bytes that one file may take when it is decoded.

    Raises:
        DecodedSizeError: the environment variable is not a positive integer.
    """
    text = os.environ.get(VARIABLE, "")
    if not text:
        return DEFAULT_BYTES
    if not (text.isascii() and text.isdigit() and int(text)):
        raise DecodedSizeError(
            f"The environment variable `{VARIABLE}` is `{text}`; it must be a number of bytes, at "
            "least 1."
        )
    return int(text)


def check_decoded_size(num_bytes: int, name: object) -> None:
    """Raise unless a file may take so many bytes when it is decoded.

    Raises:
        DecodedSizeError: they exceed the limit.
    """
    limit = decoded_limit()
    if num_bytes > limit:
        raise DecodedSizeError(
            f"`{name}` takes {num_bytes:,} bytes when it is decoded; at most {limit:,} are allowed "
            f"for one file. If you trust it, set the environment variable `{VARIABLE}` higher."
        )


def read_bytes(path: str | os.PathLike[str]) -> bytes:
    """Return the content of a file of limited size.

    Raises:
        DecodedSizeError: it is larger than the limit.
        OSError: it cannot be read.
    """
    limit = decoded_limit()
    with Path(path).open("rb") as file:
        content = file.read(limit + 1)
    check_decoded_size(len(content), path)
    return content


def check_parquet(
    source: Any,
    name: object,
    columns: Collection[str] | None = None,
    *,
    is_remote: bool = False,
) -> None:
    """Raise unless the columns of a Parquet file fit into the limit once they are decoded.

    `source` is a path or an open file. The sizes are those of the file's own metadata. It lacks the
    size of strings in a dictionary: unless `is_remote`, these are decoded as indices and counted.

    Raises:
        DecodedSizeError: they do not fit.
        pyarrow.ArrowInvalid, OSError: the file is not Parquet, or cannot be read.
    """
    import pyarrow.parquet as pq

    total, copied = 0, 0
    in_dictionary: dict[str, int] = {}
    metadata = pq.read_metadata(source)
    for group in range(metadata.num_row_groups):
        row_group = metadata.row_group(group)
        for index in range(row_group.num_columns):
            column = row_group.column(index)
            path = column.path_in_schema
            if columns is not None and path.partition(".")[0] not in columns:
                continue
            count, size = max(column.num_values, 0), max(column.total_uncompressed_size, 0)
            width = _WIDTHS.get(column.physical_type)
            if width is None and column.physical_type == "FIXED_LEN_BYTE_ARRAY":
                width = metadata.schema.column(index).length
            total += count * (BYTES_PER_VALUE + (width or 0)) + (size if width is None else 0)
            if width is None and _COPIES in column.encodings:
                copied += count * size
            elif width is None and any("DICTIONARY" in text for text in column.encodings):
                in_dictionary[path] = in_dictionary.get(path, 0) + count * size
    check_decoded_size(total + copied, name)
    if not is_remote and total + copied + sum(in_dictionary.values()) > decoded_limit():
        content = sum(_dictionary_bytes(source, [*in_dictionary], metadata.num_row_groups))
        check_decoded_size(total + copied + content, name)


def _dictionary_bytes(source: Any, paths: list[str], num_groups: int) -> Iterator[int]:
    """Yield the bytes that strings in dictionaries take once they are repeated."""
    import pyarrow.parquet as pq

    with pq.ParquetFile(source, read_dictionary=paths) as file:
        for group in range(num_groups):
            for path in paths:
                table = file.read_row_group(group, columns=[path], use_threads=False)
                for chunk in table.combine_chunks().columns:
                    yield from map(_repeated_bytes, chunk.chunks)


def _repeated_bytes(array: Any) -> int:
    import pyarrow as pa
    import pyarrow.compute as pc

    if isinstance(array, pa.DictionaryArray):
        lengths = pc.fill_null(pc.call_function("binary_length", [array.dictionary]), 0).to_numpy()
        indices = array.indices.drop_null().to_numpy()
        return int((np.bincount(indices, minlength=len(lengths)) * lengths.astype(np.int64)).sum())
    if isinstance(array, pa.StructArray):
        return sum(_repeated_bytes(field) for field in array.flatten())
    if isinstance(array, pa.MapArray):
        return _repeated_bytes(array.keys) + _repeated_bytes(array.items)
    if isinstance(array, pa.ListArray | pa.LargeListArray | pa.FixedSizeListArray):
        return _repeated_bytes(array.flatten())
    return int(array.nbytes)


def read_npz(path: str | os.PathLike[str]) -> dict[str, np.ndarray]:
    """Return the arrays of an `.npz` whose declared sizes fit into the limit.

    Raises:
        DecodedSizeError: the arrays take more than the limit.
        OSError, ValueError, EOFError, zipfile.BadZipFile: it is not an `.npz`, an array holds
            objects, or an array's header does not account for its bytes.
    """
    arrays = {}
    with zipfile.ZipFile(path) as archive:
        entries = archive.infolist()
        check_decoded_size(sum(entry.file_size for entry in entries), path)
        for entry in entries:
            with archive.open(entry) as file:
                version = np.lib.format.read_magic(file)
                read_header = {
                    (1, 0): np.lib.format.read_array_header_1_0,
                    (2, 0): np.lib.format.read_array_header_2_0,
                }.get(version)
                if read_header is None:
                    raise ValueError(f"The array `{entry.filename}` is of another format version")
                shape, is_fortran, dtype = read_header(file, max_header_size=_MAX_HEADER_BYTES)
                if dtype.hasobject:
                    raise ValueError(f"The array `{entry.filename}` holds objects of Python")
                size = math.prod(shape) * dtype.itemsize
                if size > entry.file_size:
                    raise ValueError(
                        f"The array `{entry.filename}` is shorter than its header says"
                    )
                data = file.read(size + 1)
                if len(data) != size:
                    raise ValueError(f"`{entry.filename}` has another size than declared")
            array = np.frombuffer(data, dtype)
            ordered = array.reshape(shape, order="F" if is_fortran else "C")
            arrays[entry.filename.removesuffix(".npy")] = ordered
    return arrays
