"""Memory limit for decoding untrusted files, checked on declared sizes before decoding.

A few kilobytes of Parquet, `.npz` or JSON can decode to gigabytes, so every reader of such files
checks the size here first. The limit per file is `DEFAULT_BYTES`, or the value of the environment
variable `GRAPHNET_DATASETS_MAX_DECODED_BYTES`.
"""

from __future__ import annotations

import io
import json
import math
import os
import zipfile
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, BinaryIO

from .errors import DecodedSizeError
from .parquet_pages import ChunkSizes, read_chunk_sizes

if TYPE_CHECKING:
    import numpy as np

VARIABLE = "GRAPHNET_DATASETS_MAX_DECODED_BYTES"
DEFAULT_BYTES = 2**30
BYTES_PER_VALUE = 16
"""Estimated bytes per value of a Parquet column besides its content: Arrow's offsets and part of
the Python object.
"""

_WIDTHS = {"BOOLEAN": 1, "INT32": 4, "FLOAT": 4, "INT64": 8, "DOUBLE": 8, "INT96": 12}
_MAX_HEADER_BYTES = 2**16
_BYTES_PER_JSON_BYTE = 24
"""Maximum memory of Python per byte of JSON: 64 bytes and a pointer for `{},`."""

_BYTES_PER_FOOTER_BYTE = 20
"""Memory of Arrow per byte of a footer, rounded up."""

_COPIES = "DELTA_BYTE_ARRAY"
"""An encoding in which values share a prefix with the previous value."""


def decoded_limit() -> int:
    """Return the maximum decoded size of one file in bytes.

    Raises:
        DecodedSizeError: The environment variable is not a positive integer.
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


def check_decoded_size(num_bytes: int, name: object, most_bytes: int | None = None) -> None:
    """Check that a decoded size is at most `most_bytes`, by default the limit of files.

    Raises:
        DecodedSizeError: The size exceeds the limit.
    """
    limit = decoded_limit() if most_bytes is None else most_bytes
    if num_bytes > limit:
        raise DecodedSizeError(
            f"`{name}` takes {num_bytes:,} bytes after decoding; at most {limit:,} are allowed for "
            f"one file. If you trust it, increase the environment variable `{VARIABLE}`."
        )


def read_bytes(path: str | os.PathLike[str]) -> bytes:
    """Return the content of a file of limited size.

    Raises:
        DecodedSizeError: The file is larger than the limit.
        OSError: The file cannot be read.
    """
    limit = decoded_limit()
    with open_without_waiting(path) as file:
        check_decoded_size(os.fstat(file.fileno()).st_size, path)  # 0 for devices
        content = file.read(limit + 1) or b""
    check_decoded_size(len(content), path)
    return content


def open_without_waiting(path: str | os.PathLike[str]) -> BinaryIO:
    """Open a file for reading; a pipe without a writer is empty.

    Raises:
        OSError: The file cannot be opened.
    """
    # Without O_NONBLOCK, opening a pipe that has no writer would block.
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        return os.fdopen(descriptor, "rb")
    except OSError as error:  # a directory
        os.close(descriptor)
        raise OSError(error.errno, error.strerror, os.fspath(path)) from None


def read_text(path: str | os.PathLike[str]) -> str:
    """Return the content of a UTF-8 file of limited size.

    Bytes that are not UTF-8 become U+FFFD.

    Raises:
        DecodedSizeError: The file is larger than the limit.
        OSError: The file cannot be read.
    """
    return read_bytes(path).decode(errors="replace")


def read_json(path: str | os.PathLike[str]) -> Any:
    """Return the value of a JSON file of limited size.

    Raises:
        DecodedSizeError: The value may take more memory than the limit.
        ValueError: The file is not JSON.
        OSError: The file cannot be read.
    """
    return load_json(read_bytes(path), path)


def load_json(text: str | bytes, name: object) -> Any:
    """Parse a JSON string of limited size; error messages refer to it as `name`.

    Raises:
        DecodedSizeError: The value may take more memory than the limit.
        ValueError: The text is not JSON, or is nested too deep.

    >>> load_json('{"mode": "max"}', "options.json")
    {'mode': 'max'}
    """
    check_decoded_size(len(text) * _BYTES_PER_JSON_BYTE, name)
    try:
        return json.loads(text)
    except RecursionError as error:
        raise ValueError(f"`{name}` is nested too deep for JSON") from error


def read_json_lines(path: str | os.PathLike[str]) -> list[Any]:
    """Return the values of a JSON Lines file, ignoring empty lines.

    Raises:
        DecodedSizeError: The values may take more memory than the limit.
        ValueError: A line is not JSON.
        OSError: The file cannot be read.
    """
    content = read_bytes(path)
    check_decoded_size(len(content) * _BYTES_PER_JSON_BYTE, path)
    return [load_json(line, path) for line in content.splitlines() if line.strip()]


def read_journal(path: str | os.PathLike[str], *, is_strict: bool = False) -> list[Any]:
    """Return the values of a file written by `atomic.append_json`, or [] if it is missing.

    An incomplete last line, left by a killed process, is ignored. Other lines that are not JSON are
    ignored unless `is_strict`.

    Raises:
        DecodedSizeError: The file, or the value of a line, may take more memory than the limit.
        ValueError: With `is_strict`, a complete line is not JSON.
        OSError: The file cannot be read.
    """
    content = read_bytes(path) if Path(path).exists() else b""
    values = []
    for line in content[: content.rfind(b"\n") + 1].splitlines():
        try:
            values.append(load_json(line, path))
        except ValueError:
            if is_strict:
                raise
    return values


def check_parquet(
    source: Any,
    name: object,
    columns: Collection[str] | None = None,
    *,
    is_remote: bool = False,
) -> None:
    """Check that the decoded columns of a Parquet file are within the limit.

    `source` is a path or an open file. The check uses the sizes declared in page headers, which
    Arrow allocates. Headers omit the size of strings in dictionaries, so such columns are decoded
    as indices and counted. For `is_remote` files, only the footer is read, which may be wrong.

    Raises:
        DecodedSizeError: The size exceeds the limit, or the footer declares another number of
            values.
        pyarrow.ArrowInvalid, OSError: The file is not Parquet, or cannot be read.
    """
    if isinstance(source, str | os.PathLike):
        with Path(source).open("rb") as file:
            return check_parquet(file, name, columns, is_remote=is_remote)
    import pyarrow.parquet as pq

    total, copied = 0, 0
    in_dictionary: dict[str, int] = {}
    if not is_remote:
        check_decoded_size(_footer_bytes(source) * _BYTES_PER_FOOTER_BYTE, name)
    metadata = pq.read_metadata(source)
    for group in range(metadata.num_row_groups):
        row_group = metadata.row_group(group)
        for index in range(row_group.num_columns):
            column = row_group.column(index)
            path = column.path_in_schema
            if columns is not None and path.partition(".")[0] not in columns:
                continue
            sizes = (
                _declared_sizes(column)
                if is_remote
                else _chunk_sizes(source, column, row_group.num_rows, name)
            )
            count, size = sizes.num_values, sizes.num_bytes
            description = metadata.schema.column(index)
            width = _WIDTHS.get(column.physical_type)
            if width is None and column.physical_type == "FIXED_LEN_BYTE_ARRAY":
                width = description.length
            overhead = BYTES_PER_VALUE + 8 * max(description.max_repetition_level - 2, 0)
            total += count * (overhead + (width or 0)) + (size if width is None else 0)
            if width is None and sizes.repeats_beginnings:
                copied += count * size
            elif width is None and sizes.dictionary_bytes:
                in_dictionary[path] = in_dictionary.get(path, 0) + count * sizes.dictionary_bytes
    check_decoded_size(total + copied, name)
    if not is_remote and total + copied + sum(in_dictionary.values()) > decoded_limit():
        content = sum(_dictionary_bytes(source, [*in_dictionary], metadata.num_row_groups))
        check_decoded_size(total + copied + content, name)


def _footer_bytes(file: BinaryIO) -> int:
    """Return the size that the end of a Parquet file declares for its footer."""
    file.seek(0, os.SEEK_END)
    size = file.tell()
    file.seek(max(size - 8, 0))
    return min(int.from_bytes(file.read(8)[:4], "little"), size)


def _declared_sizes(column: Any) -> ChunkSizes:
    size = max(column.total_uncompressed_size, 0)
    has_dictionary = any("DICTIONARY" in encoding for encoding in column.encodings)
    return ChunkSizes(
        max(column.num_values, 0), size, size if has_dictionary else 0, _COPIES in column.encodings
    )


def _chunk_sizes(file: BinaryIO, column: Any, num_rows: int, name: object) -> ChunkSizes:
    """Return the sizes of a column chunk after comparing them with the footer.

    Raises:
        DecodedSizeError: The pages contain another number of values, or fewer values than rows.
        pyarrow.ArrowInvalid: The headers of the pages are damaged.
    """
    import pyarrow as pa

    start = column.data_page_offset
    # A column without values has no data page; its offset is 0.
    if column.has_dictionary_page and 0 < column.dictionary_page_offset < (start or math.inf):
        start = column.dictionary_page_offset
    try:
        if start < 0:
            raise ValueError("It begins before the file.")
        sizes = read_chunk_sizes(file, start, max(column.total_compressed_size, 0))
    except ValueError as error:
        reason = str(error).removesuffix(".")
        raise pa.ArrowInvalid(f"The pages of a column cannot be read: {reason}") from error
    if sizes.num_values != column.num_values or num_rows > sizes.num_values:
        raise DecodedSizeError(
            f"The footer of `{name}` declares {column.num_values:,} values in {num_rows:,} rows "
            f"for the column `{column.path_in_schema}`, whose pages contain {sizes.num_values:,} "
            "values. Omit the file, or write it again with a Parquet library."
        )
    return sizes


def _dictionary_bytes(source: Any, paths: list[str], num_groups: int) -> Iterator[int]:
    """Yield the expanded sizes in bytes of strings that are stored in dictionaries."""
    import pyarrow.parquet as pq

    with pq.ParquetFile(source, read_dictionary=paths) as file:
        for group in range(num_groups):
            for path in paths:
                table = file.read_row_group(group, columns=[path], use_threads=False)
                for chunk in table.combine_chunks().columns:
                    yield from map(_repeated_bytes, chunk.chunks)


def _repeated_bytes(array: Any) -> int:
    import numpy as np
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


def read_npy(path: str | os.PathLike[str]) -> np.ndarray:
    """Return the array of an `.npy` file of limited size.

    Raises:
        DecodedSizeError: The file is larger than the limit.
        OSError, ValueError, EOFError: It is not an `.npy` file, or the array contains objects.
    """
    content = read_bytes(path)
    return _read_array(io.BytesIO(content), path, len(content))


def read_npz(path: str | os.PathLike[str]) -> dict[str, np.ndarray]:
    """Return the arrays of an `.npz` file of limited decoded size.

    Raises:
        DecodedSizeError: the arrays take more than the limit.
        OSError, ValueError, EOFError, zipfile.BadZipFile: it is not an `.npz`, an array contains
            objects, or an array's header does not match its size.
    """
    arrays = {}
    with zipfile.ZipFile(path) as archive:
        entries = archive.infolist()
        check_decoded_size(sum(entry.file_size for entry in entries), path)
        for entry in entries:
            with archive.open(entry) as file:
                array = _read_array(file, entry.filename, entry.file_size)
            arrays[entry.filename.removesuffix(".npy")] = array
    return arrays


def _read_array(file: IO[bytes], name: object, file_bytes: int) -> np.ndarray:
    """Return the array in a file, whose header must match the size `file_bytes`.

    Raises:
        ValueError, EOFError: The header is damaged or wrong, or declares objects.
    """
    import numpy as np

    read_header = {
        (1, 0): np.lib.format.read_array_header_1_0,
        (2, 0): np.lib.format.read_array_header_2_0,
    }.get(np.lib.format.read_magic(file))
    if read_header is None:
        raise ValueError(f"The array `{name}` is of another format version")
    shape, is_fortran, dtype = read_header(file, max_header_size=_MAX_HEADER_BYTES)
    if dtype.hasobject:
        raise ValueError(f"The array `{name}` contains Python objects")
    size = math.prod(shape) * dtype.itemsize
    if size > file_bytes:
        raise ValueError(f"The array `{name}` is shorter than its header says")
    data = file.read(size + 1)
    if len(data) != size:
        raise ValueError(f"`{name}` differs from its declared size")
    return np.frombuffer(data, dtype).reshape(shape, order="F" if is_fortran else "C")
