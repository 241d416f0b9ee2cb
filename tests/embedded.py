"""The rows of the embedded dataset for tests: some columns of all, and whole samples of some."""

from __future__ import annotations

import functools
import zlib
from pathlib import Path
from typing import Any

import graphnet_datasets
from graphnet_datasets import Sample
from graphnet_datasets.sample.vocabulary import TASKS
from graphnet_datasets.storage.table import read_table

EMBEDDED = Path(graphnet_datasets.__file__).parent / "starter" / "graphnet"


def paths(*configs: str) -> list[Path]:
    """Return the tables of some configs."""
    return [path for config in configs for path in sorted(EMBEDDED.glob(f"{config}/*.parquet"))]


def column_rows(*names: str, configs: tuple[str, ...] = TASKS) -> list[dict[str, Any]]:
    """Return some columns of all graphs of some configs, a dict each."""
    return [row for path in paths(*configs) for row in read_table(path, list(names)).to_pylist()]


def small(framework: str) -> list[str]:
    """Return the ids of the graphs that a laptop runs in milliseconds."""
    rows = column_rows("id", "framework", "tags")
    return [
        row["id"]
        for row in rows
        if row["framework"] == framework and "small" in (row["tags"] or ())
    ]


def others(framework: str, one_in: int) -> list[str]:
    """Return about one in so many ids of the other graphs, the same ones as the dataset grows."""
    left_out = set(small(framework))
    names = [row["id"] for row in column_rows("id", "framework") if row["framework"] == framework]
    return [
        name for name in names if name not in left_out and zlib.crc32(name.encode()) % one_in == 0
    ]


@functools.cache
def samples(names: tuple[str, ...], configs: tuple[str, ...] = TASKS) -> dict[str, Sample]:
    """Return samples by id."""
    tables = [read_table(path, filters=[("id", "in", names)]) for path in paths(*configs)]
    return {row["id"]: Sample.from_row(row) for table in tables for row in table.to_pylist()}
