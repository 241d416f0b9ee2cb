"""Rows of files on this machine, without `datasets`, whose import takes longer than reading them.

What a command reads of a table are the rows themselves, once: no cache, no columns in memory. Only
row groups that hold a wanted sample are read as a whole.
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
    """Yield the rows of a dataset directory's config, or of one Parquet file, of all splits.

    They are those of `load_dataset(place, config, split="all")`, in its order; with `ids` those
    whose column `id` is one of them, and of `columns` those that there are. Files are checked
    before the first row is yielded.

    Raises:
        DatasetNotFoundError: there is no such directory, file or config.
        SchemaError: a file is damaged, or lacks the column `id`.
        FormatVersionError: the table was written in another format version.

    >>> from graphnet_datasets.storage.loading import STARTER
    >>> [row["task"] for row in read_local_rows(STARTER, ids=["torchvision/resnet18"])]
    ['cv']
    """
    layout = layout_of(place)
    splits = layout.configs.get(config or layout.default)
    if splits is None:
        raise no_config(place, config, layout.configs)
    schemas = {path: check_file(path) for paths in splits.values() for path in paths}
    # A version may gain columns that may be null: files from before then have null there.
    widest = max(schemas.values(), key=lambda schema: len(schema.names))
    if ids is not None:
        check_columns(widest, None, ["id"], place)
    kept = [name for name in widest.names if columns is None or name in columns]
    for path, schema in schemas.items():
        # The version is read whatever is asked for: rows of another one mean something else.
        read = [name for name in schema.names if name in kept or name == "schema_version"]
        for row in _read_file(path, ids, read):
            version = row.get("schema_version", SCHEMA_VERSION)
            if version != SCHEMA_VERSION:
                raise other_version(place, version)
            yield {name: row.get(name) for name in kept}


def read_local_ids(place: Path) -> list[str]:
    """Return the ids of all samples of the default config; raises as `read_local_rows` does."""
    layout = layout_of(place)
    paths = [path for each in layout.configs[layout.default].values() for path in each]
    for path in paths:
        check_columns(check_file(path), None, ["id"], place)
    return [
        each for path in paths for each in pq.read_table(path, columns=["id"])["id"].to_pylist()
    ]


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
                found = file.read_row_group(group, columns=["id"])["id"].to_pylist()
                # Not by Arrow's functions: to make an array out of a list, it imports pandas.
                places = [place for place, each in enumerate(found) if each in wanted]
                if places:
                    rows = file.read_row_group(group, columns=columns)
                    for place in places:
                        yield from rows.slice(place, 1).to_pylist()
    except (pa.ArrowException, OSError) as error:
        raise unreadable(path, error) from error
