"""Rows of local files, read without `datasets`, whose import takes longer than reading them.

Commands read each row once, so that neither a cache nor columns in memory are needed. Only row
groups with a requested sample are read completely.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from ..schema import SCHEMA_VERSION
from .layout import layout_of
from .questions import check_columns, no_config, other_version
from .table import check_file, unreadable


def read_local_rows(
    place: Path,
    config: str | None = None,
    ids: Sequence[str] | None = None,
    columns: Sequence[str] | None = None,
) -> Iterator[dict[str, Any]]:
    """Yield the rows of a dataset directory's config, or of one Parquet file, over all splits.

    The rows equal those of `load_dataset(place, config, split="all")`, in the same order. `ids`
    selects rows by the column `id`, and `columns` selects existing columns. Files are checked
    before the first row is yielded.

    Raises:
        DatasetNotFoundError: the directory, file or config does not exist.
        SchemaError: a file is damaged, or lacks the column `id`.
        FormatVersionError: the table has another format version.

    >>> from graphnet_datasets.storage.loading import STARTER
    >>> [row["task"] for row in read_local_rows(STARTER, ids=["torchvision/resnet18"])]
    ['cv']
    """
    layout = layout_of(place)
    splits = layout.configs.get(config or layout.default)
    if splits is None:
        raise no_config(place, config, layout.configs)
    schemas = {path: check_file(path) for paths in splits.values() for path in paths}
    # Nullable columns may be added within a version; older files have null in them.
    widest = max(schemas.values(), key=lambda schema: len(schema.names))
    if ids is not None:
        check_columns(widest, None, ["id"], place)
    selected = [name for name in widest.names if columns is None or name in columns]
    for path, schema in schemas.items():
        # Always read the version, since rows of other versions have another meaning.
        read = [name for name in schema.names if name in selected or name == "schema_version"]
        for row in _read_file(path, ids, read):
            version = row.get("schema_version", SCHEMA_VERSION)
            if version != SCHEMA_VERSION:
                raise other_version(place, version)
            yield {name: row.get(name) for name in selected}


def read_local_ids(place: Path) -> list[str]:
    """Return the ids of all samples of the default config; raises like `read_local_rows`."""
    layout = layout_of(place)
    paths = [
        path
        for paths_of_split in layout.configs[layout.default].values()
        for path in paths_of_split
    ]
    for path in paths:
        check_columns(check_file(path), None, ["id"], place)
    return [row["id"] for path in paths for row in _read_file(path, None, ["id"])]


def _read_file(
    path: Path, ids: Sequence[str] | None, columns: Sequence[str]
) -> Iterator[dict[str, Any]]:
    wanted = frozenset(ids or ())
    try:
        with pq.ParquetFile(path) as file:
            for group in range(file.num_row_groups):
                if ids is None:
                    yield from file.read_row_group(group, columns=columns).to_pylist()
                    continue
                group_ids = file.read_row_group(group, columns=["id"])["id"].to_pylist()
                # Plain Python, because Arrow imports pandas to convert a list to an array.
                places = [place for place, sample_id in enumerate(group_ids) if sample_id in wanted]
                if places:
                    rows = file.read_row_group(group, columns=columns)
                    for place in places:
                        yield from rows.slice(place, 1).to_pylist()
    except (pa.ArrowException, OSError, OverflowError) as error:  # a date after the year 9999
        raise unreadable(path, error) from error
