"""Calibration of all tables of a dataset, rewritten in place."""

from __future__ import annotations

import bisect
import collections
import dataclasses
import itertools
import math
import os
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from ...errors import DatasetNotFoundError
from ...frameworks.builds import check_device
from ...schema import config_named
from ...schema.graphs import CALIBRATION_COLUMNS
from ...schema.tables import GRAPHS
from ..layout import write_readme
from ..mapping import Count, ignore
from ..staging import Staging
from ..table import check_file, read_table, unreadable, write_table
from .rows import MAX_INPUT_BYTES, calibrate_rows
from .sharing import SharedCalibrations


@dataclasses.dataclass(frozen=True)
class CalibrationReport:
    """Number of rows per calibration, and reasons for missing calibrations by id."""

    counts: dict[str, int]
    failures: dict[str, str]


def calibrate_tables(
    path: str | os.PathLike[str],
    *,
    device: str = "cpu",
    jobs: int | None = None,
    is_again: bool = False,
    max_input_bytes: int = MAX_INPUT_BYTES,
    max_flops: float = math.inf,
    on_progress: Count = ignore,
) -> CalibrationReport:
    """Calibrate the rows of a Parquet file, or of all files of a dataset directory, in place.

    A file is replaced when all its rows are done. Until then finished rows are stored in a hidden
    directory beside it, so that after an interruption the same call resumes there. Calibrated rows
    are kept unless `is_again`. Graphs whose inputs take more than `max_input_bytes` are not run,
    and graphs with more than `max_flops` operations are run only at smaller sizes. Finally, graphs
    that were not run receive the calibration of another graph with the same weights
    (`SharedCalibrations`). Tables of runs and parts are left unchanged. The README of a dataset
    directory is updated. Torch graphs run on the `device`, others on the CPU.

    Raises:
        RunError: the device does not exist.
        DatasetNotFoundError: the file does not exist, or the directory has no table.
        SchemaError, FormatVersionError: a file is not a table of graphs of this format.
    """
    root = Path(path)
    files = [root] if root.is_file() else sorted(root.glob("*/*.parquet"))
    files = [file for file in files if config_named(file.parent.name).table is GRAPHS]
    if not files:
        raise DatasetNotFoundError(
            f"`{path}` has no table of graphs. Pass a dataset directory or a Parquet file."
        )
    check_device(device, ())
    frameworks = {
        name
        for file in files
        for name in read_table(file, columns=["framework"])["framework"].unique().to_pylist()
    }
    check_device(device, frameworks & {"torch"})
    shared, too_large = SharedCalibrations(), set[str]()
    total = sum(read_table(file, columns=["id"]).num_rows for file in files)
    counts: collections.Counter[str] = collections.Counter()
    failures: dict[str, str] = {}
    done = 0
    for file in files:
        rows = TableRows(file, dict.fromkeys(CALIBRATION_COLUMNS) if is_again else {})
        changes: dict[int, Mapping[str, Any]] = {}
        staging = Staging(file, "calibration")
        with staging.hold():
            for result in calibrate_rows(
                rows,
                device=device,
                jobs=jobs,
                max_input_bytes=max_input_bytes,
                max_flops=max_flops,
                staging=staging,
            ):
                if result.columns:
                    changes[result.place] = result.columns
                if result.reason:
                    failures[str(result.row.get("id"))] = result.reason
                shared.add(result.row)
                if result.is_too_large:
                    too_large.add(str(result.row.get("id")))
                done += 1
                on_progress(done, total)
            if changes or is_again:
                write_table(
                    ({**row, **changes.get(place, {})} for place, row in enumerate(rows)), file
                )
    for file in files:
        for name, kind in _share(file, shared, too_large).items():
            counts[kind or "none"] += 1
            if kind and name in too_large:
                failures.pop(name, None)
    if root.is_dir():
        write_readme(root)
    return CalibrationReport(dict(counts), failures)


class TableRows(Sequence[dict[str, Any]]):
    """The rows of a file, with `columns` in each; one row group at a time is in memory."""

    def __init__(self, path: Path, columns: Mapping[str, Any] | None = None) -> None:
        check_file(path)
        self._path, self._columns = path, columns or {}
        self._file = pq.ParquetFile(path)
        sizes = [
            self._file.metadata.row_group(group).num_rows
            for group in range(self._file.num_row_groups)
        ]
        self._ends = [*itertools.accumulate(sizes)]
        self._group, self._table = -1, pa.table({})

    def __len__(self) -> int:
        return self._ends[-1] if self._ends else 0

    def __getitem__(self, index: Any) -> Any:
        if not 0 <= index < len(self):
            raise IndexError(index)
        group = bisect.bisect_right(self._ends, index)
        if group != self._group:
            try:
                self._table = self._file.read_row_group(group)
            except (pa.ArrowException, OSError) as error:
                raise unreadable(self._path, error) from error
            self._group = group
        start = self._ends[group] - self._table.num_rows
        (row,) = self._table.slice(index - start, 1).to_pylist()
        return {**row, **self._columns}


def _share(
    file: Path, shared: SharedCalibrations, too_large: Collection[str]
) -> dict[str, str | None]:
    """Copy shared calibrations to rows that are too large; return the calibrations by id."""
    calibrations = read_table(file, columns=["id", "calibration"]).to_pylist()
    kinds: dict[str, str | None] = {row["id"]: row["calibration"] for row in calibrations}
    wanted = {name for name in too_large if name in kinds and not kinds[name]}
    if wanted:
        rows = TableRows(file)
        matches = {row["id"]: shared.find(row) for row in rows if row["id"] in wanted}
        if any(matches.values()):
            write_table(({**row, **(matches.get(row["id"]) or {})} for row in rows), file)
            kinds |= {name: match["calibration"] for name, match in matches.items() if match}
    return kinds
