"""A sample in the directory of a job: one row of `graphs` as an Arrow file.

Not as Parquet, whose reader would import pandas in each worker.
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
    """Write a row of `graphs`, derived columns and all, into the directory of a job."""
    table = pa.Table.from_pylist([dict(row)], schema=GRAPHS_SCHEMA)
    with (directory / SAMPLE_FILE).open("wb") as file, pa.ipc.new_file(file, table.schema) as out:
        out.write_table(table)


def write_sample(sample: Sample, directory: Path) -> None:
    """Write a sample into the directory of a job.

    >>> import tempfile
    >>> from graphnet_datasets.sample import Input, Value
    >>> identity = Sample("example/identity", "torch", "other",
    ...     inputs=(Input("input", Value("float32", (2,))),), ops=(), outputs=None)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_sample(identity, Path(folder))
    ...     read_sample(Path(folder)) == identity
    True
    """
    write_row(sample_to_row(sample), directory)


def read_sample(directory: Path) -> Sample:
    """Return the sample that was written into the directory of a job.

    Raises:
        SampleError: the row does not describe a sample.
    """
    with (directory / SAMPLE_FILE).open("rb") as file, pa.ipc.open_file(file) as reader:
        return sample_from_row(reader.get_batch(0).to_pylist()[0])
