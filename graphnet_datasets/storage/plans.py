"""Plans of tables: lists of rows in parts, which worker processes write as tables.

A plan is a dict with the `folder` and the `split` of its shards, or with its only `file`. Its
`rows` are triples of the path of a part, an index, and the columns to replace.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from ..errors import RunError
from ..isolation import Pool, PoolJob
from ..schema import config_named
from .parts import PartReader
from .shards import row_groups, write_shards
from .staging import Staging
from .table import write_arrow


def run_plans(groups: Iterable[Sequence[Mapping[str, Any]]], staging: Staging, pool: Pool) -> None:
    """Write tables in a pool, with one job per group of plans.

    Raises:
        RunError: a table could not be written.
    """
    root = staging.directory.absolute()  # contains the parts and the staged dataset
    jobs = []
    for number, plans in enumerate(groups):
        path = root / f"plan-{number}.json"
        path.write_text(json.dumps(plans))
        jobs.append(PoolJob(path.stem, {"plan": str(path)}, writes=(str(root),)))
    for finished in pool.run(jobs):
        if not finished.is_success:
            raise RunError(
                f"A table of `{staging.target}` could not be written: {finished.reason}. The parts "
                "remain on disk; repeat the command to continue."
            )


def write_plans(path: str) -> None:
    """Write the tables of a file of plans, in a job of `run_plans`."""
    for plan in json.loads(Path(path).read_text()):
        rows = _rows(plan["rows"])
        if "file" in plan:
            write_arrow(row_groups(rows), plan["file"])
        else:
            folder = Path(plan["folder"])
            write_shards(rows, folder, plan["split"], table=config_named(folder.name).table)


def _rows(listed: list[tuple[str, int, dict[str, Any]]]) -> Iterator[pa.Table]:
    reader = PartReader()
    for path, index, columns in listed:
        row = reader.row(Path(path), index)
        for name, value in columns.items():
            position = row.schema.get_field_index(name)
            column = pa.array([value], row.schema.field(position).type)
            row = row.set_column(position, name, column)
        yield row
