"""Tables of the costs of samples: sizes of graphs and median latencies, with columns per arm."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Mapping
from typing import Any

import pyarrow as pa

from ..errors import ScoreError, raises_only
from ..schema import Status
from .run_sets import as_table, split_arms
from .summary_text import CONTROLS

SIZE_COLUMNS = ("num_params", "flops", "bytes_moved", "peak_memory_bytes")
"""Columns of the `graphs` table that are added for given samples; see its schema."""
_KEY = ("sample_id", "device", "num_threads")
_EAGER_COLUMNS = (*_KEY, "baseline_latency_ms", "baseline_peak_memory_bytes")


@raises_only(ScoreError)
def costs(runs: Any, samples: Iterable[Mapping[str, Any]] | None = None) -> pa.Table:
    """Return an Arrow table with a row per sample, device and number of threads.

    `eager_ms` is the median latency of eager in milliseconds: the median over the runs of each
    run's median. `eager_memory_bytes` is the largest peak memory of eager. Each arm has columns
    `ARM_ms`, `ARM_speedup` and `ARM_compile_s` with the medians over its `ok` runs; a run that is
    not `ok` has no times. Missing figures are null. `to_pandas()` converts the table.

    Args:
        runs: run records, as `speedup_score` takes them.
        samples: rows of the `graphs` table. The table is then restricted to these samples, in
            their order, and has the columns `SIZE_COLUMNS`. A sample without runs has one row.

    Raises:
        ScoreError: the records are not run records.

    >>> def run(compiler, speedup):
    ...     return {"sample_id": "a", "status": "ok", "device": "cpu", "num_threads": 2,
    ...             "compiler": compiler, "speedup": speedup, "min_t": -9.0,
    ...             "baseline_latency_ms": [4.0, 4.2, 9.0],
    ...             "candidate_latency_ms": [4.2 / speedup]}
    >>> table = costs([run("inductor", 2.0), run("torchscript", 1.0)])
    >>> table.column_names[:4]
    ['sample_id', 'device', 'num_threads', 'eager_ms']
    >>> table["eager_ms"].to_pylist(), table["inductor_ms"].to_pylist()
    ([4.2], [2.1])
    """
    table = as_table(runs)
    rows: dict[tuple[Any, ...], dict[str, Any]] = {}
    names = ["eager_ms", "eager_memory_bytes"]
    for key, records in _grouped(table.select(_EAGER_COLUMNS).to_pylist()).items():
        memory_bytes = max(record["baseline_peak_memory_bytes"] or 0 for record in records)
        rows[key] = dict(zip(_KEY, key, strict=True)) | {
            "eager_ms": _median(_median(record["baseline_latency_ms"]) for record in records),
            "eager_memory_bytes": memory_bytes or None,
        }
    for arm, records_of_arm in _arms(table).items():
        names += [f"{arm}_ms", f"{arm}_speedup", f"{arm}_compile_s"]
        for key, records in _grouped(records_of_arm.to_pylist()).items():
            timed = [record for record in records if record["status"] == Status.OK]
            rows[key] |= {
                f"{arm}_ms": _median(_median(record["candidate_latency_ms"]) for record in timed),
                f"{arm}_speedup": _median(record["speedup"] for record in timed),
                f"{arm}_compile_s": _median(record["compile_time_s"] for record in timed),
            }
    columns = [*_KEY, *names]
    if samples is not None:
        columns[len(_KEY) : len(_KEY)] = SIZE_COLUMNS
        rows = _of_samples(rows, samples)
    values = {name: [row.get(name) for row in rows.values()] for name in columns}
    return pa.table({name: pa.array(column, _type_of(name)) for name, column in values.items()})


def _arms(table: pa.Table) -> dict[str, pa.Table]:
    """Return the records by arm, with the same name on all devices, and without eager."""
    unplaced = table
    for name in ("device", "num_threads"):
        place = table.column_names.index(name)
        nulls = pa.nulls(table.num_rows, table.schema.field(name).type)
        unplaced = unplaced.set_column(place, name, nulls)
    numbered = unplaced.append_column("row", pa.array(range(table.num_rows), pa.int64()))
    return {
        name: table.take(arm["row"])
        for name, arm in split_arms(numbered).items()
        if name.partition(" (")[0] not in CONTROLS
    }


def _grouped(records: Iterable[dict[str, Any]]) -> dict[tuple[Any, ...], list[dict[str, Any]]]:
    groups: dict[tuple[Any, ...], list[dict[str, Any]]] = {}
    for record in records:
        groups.setdefault(tuple(record[name] for name in _KEY), []).append(record)
    return groups


def _of_samples(
    rows: Mapping[tuple[Any, ...], dict[str, Any]], samples: Iterable[Mapping[str, Any]]
) -> dict[tuple[Any, ...], dict[str, Any]]:
    by_sample: dict[str, list[dict[str, Any]]] = {}
    for row in rows.values():
        by_sample.setdefault(row["sample_id"], []).append(row)
    chosen: dict[tuple[Any, ...], dict[str, Any]] = {}
    for sample in samples:
        sizes = {name: sample.get(name) for name in SIZE_COLUMNS}
        for row in by_sample.get(sample["id"], [{"sample_id": sample["id"]}]):
            chosen[tuple(row.get(name) for name in _KEY)] = row | sizes
    return chosen


def _median(values: Iterable[float | None] | None) -> float | None:
    numbers = [value for value in values or () if value is not None]
    return statistics.median(numbers) if numbers else None


def _type_of(name: str) -> pa.DataType:
    if name in ("sample_id", "device"):
        return pa.string()
    if name == "num_threads" or name in SIZE_COLUMNS or name.endswith("_bytes"):
        return pa.int64()
    return pa.float64()
