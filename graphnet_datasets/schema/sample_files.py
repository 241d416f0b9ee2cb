"""Samples as job files: one row of `graphs` as an Arrow file.

Parquet is not used, because its reader would import pandas in each worker.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa

from ..sample import Sample
from .from_row import sample_from_row
from .graphs import GRAPHS_SCHEMA
from .to_row import sample_to_row

SAMPLE_FILE = "sample.arrow"


def write_row(row: Mapping[str, Any], directory: Path) -> None:
    """Write a complete row of `graphs`, including derived columns, to the directory of a job."""
    write_packed(pack_row(row), directory)


def pack_sample(sample: Sample) -> pa.Buffer:
    """Return the file contents of a sample, for several jobs or for later use.

    The first call in a process takes a tenth of a second, because pyarrow imports pandas.
    """
    return pack_row(sample_to_row(sample))


def write_packed(packed: pa.Buffer, directory: Path) -> None:
    """Write the file contents of a sample to the directory of a job."""
    (directory / SAMPLE_FILE).write_bytes(packed)


def write_sample(sample: Sample, directory: Path) -> None:
    """Write a sample to the directory of a job.

    >>> import tempfile
    >>> from graphnet_datasets.sample import Input, Value
    >>> identity = Sample("example/identity", "torch", "other",
    ...     inputs=(Input("input", Value("float32", (2,))),), ops=(), outputs=None)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_sample(identity, Path(folder))
    ...     read_sample(Path(folder)) == identity
    True
    """
    write_packed(pack_sample(sample), directory)


def read_sample(directory: Path) -> Sample:
    """Return the sample in the directory of a job.

    Raises:
        SampleError: the row does not describe a sample.
    """
    with (directory / SAMPLE_FILE).open("rb") as file, pa.ipc.open_file(file) as reader:
        return sample_from_row(reader.get_batch(0).to_pylist()[0])


def pack_row(row: Mapping[str, Any], compression: str | None = None) -> pa.Buffer:
    """Return the file contents of a complete row of `graphs`."""
    table = pa.Table.from_pylist([dict(row)], schema=GRAPHS_SCHEMA)
    with pa.BufferOutputStream() as stream:
        options = pa.ipc.IpcWriteOptions(compression=compression)
        with pa.ipc.new_file(stream, table.schema, options=options) as out:
            out.write_table(table)
        return stream.getvalue()
