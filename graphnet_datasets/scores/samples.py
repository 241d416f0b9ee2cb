"""The runs of one arm sample by sample, ordered by remaining headroom."""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping
from typing import Any

import pyarrow as pa

from ..errors import ScoreError, raises_only
from .records import is_counted, make_records
from .result import interval, number, percentage
from .run_sets import Duplicates, as_table, single_arm, without_duplicates
from .undecidable import UNDECIDABLE, undecidable_reason, vacuous_reason
from .variants import TOLERANCE, find_variant
from .warnings import IMPOSSIBLE, is_impossible

COLUMNS = (
    "sample_id", "task", "family", "status", "is_right", "latency_ms", "speedup", "speedup_low",
    "speedup_high", "is_noisy", "min_t", "floor_ms", "roofline_share", "compile_time_s",
    "first_call_s", "break_even_calls", "baseline_num_kernels", "candidate_num_kernels", "null_t",
    "stale_t", "eager_t", "undecidable_reason", "warnings",
)  # fmt: skip


@raises_only(ScoreError)
def by_sample(runs: Any, *, duplicates: Duplicates = "refuse") -> list[dict[str, Any]]:
    """Return a row per sample with the names of `COLUMNS`, the largest headroom first.

    `latency_ms` is the median latency of the candidate. `roofline_share` is its share of the peak
    rate: `floor_ms / latency_ms`, where `floor_ms` is the shortest time that the device's measured
    peak rates allow. A compiler can gain at most a factor of `1 / roofline_share`. `is_right` uses
    the criterion of `compare`: outputs pass at t = -3 and zeros would not. It is None for samples
    that no score counts or that allow no verdict, as explained by `undecidable_reason`. The
    speedup, the roofline share and the number of calls that pay for compiling are None if
    `is_right` is false. Samples without a known floor follow, the slowest first, then samples
    without a time.

    Raises:
        ScoreError: The records belong to several compilers, or a sample has several runs.

    >>> def run(name, floor_ms):
    ...     return {"sample_id": name, "status": "ok", "speedup": 1.0, "min_t": -9.0,
    ...             "candidate_latency_ms": [2.0], "floor_ms": floor_ms}
    >>> rows = by_sample([run("near", 1.0), run("unknown", None), run("far", 0.1)])
    >>> [(row["sample_id"], row["roofline_share"]) for row in rows]
    [('far', 0.05), ('near', 0.5), ('unknown', None)]
    """
    table = as_table(runs)
    single_arm(table)
    rows = []
    table = without_duplicates(table, duplicates)
    right = _right_samples(table)
    for record in table.to_pylist():
        times_ms = record["candidate_latency_ms"]
        latency_ms = statistics.median(times_ms) if times_ms else None
        floor_ms = record["floor_ms"]
        figures = {
            "latency_ms": latency_ms,
            "roofline_share": floor_ms / latency_ms if floor_ms and latency_ms else None,
            "is_right": right.get(record["sample_id"]),
            "undecidable_reason": _why_undecidable(record, right),
        }
        if figures["is_right"] is False:
            figures |= dict.fromkeys(_OF_RIGHT_ONES)
        rows.append({name: figures.get(name, record.get(name)) for name in COLUMNS})
    return sorted(rows, key=_head_room)


def cells_by_sample(rows: list[dict[str, Any]]) -> tuple[list[str], list[list[str]]]:
    """Format the result of `by_sample` as the head and cells of a table.

    "of roofline" is `roofline_share`, "pays after" the number of calls that pay for compiling,
    "kernels" the kernels of eager and of the candidate (operators on a CPU).
    """
    head = [
        *("sample", "ms", "speedup", "95 %", "min_t", "of roofline", "compile s", "pays after"),
        "kernels",
    ]
    cells = [
        [
            row["sample_id"],
            "-" if row["latency_ms"] is None else f"{row['latency_ms']:.3g}",
            _speedup(row),
            _interval(row),
            "-" if row["min_t"] is None else f"{row['min_t']:.1f}",
            _share(row["roofline_share"]),
            "-" if row["compile_time_s"] is None else f"{row['compile_time_s']:.2f}",
            "never" if _never_pays(row) else _count(row["break_even_calls"]),
            f"{_count(row['baseline_num_kernels'])} > {_count(row['candidate_num_kernels'])}",
        ]
        for row in rows
    ]
    return head, cells


def plain(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return rows for JSON, with infinities as strings.

    >>> plain([{"min_t": -math.inf, "speedup": 2.0}])
    [{'min_t': '-inf', 'speedup': 2.0}]
    """
    return [
        {
            name: str(value) if isinstance(value, float) and not math.isfinite(value) else value
            for name, value in row.items()
        }
        for row in rows
    ]


_OF_RIGHT_ONES = (
    "speedup", "speedup_low", "speedup_high", "roofline_share", "break_even_calls",
)  # fmt: skip


def _right_samples(table: pa.Table) -> dict[str, bool]:
    """Return whether each counted and decidable sample is right."""
    variant = find_variant("report")
    counted = table.filter(pa.array(is_counted(table, variant)))
    records = make_records(table, variant)
    is_right, is_decidable = records.is_right_at(TOLERANCE), records.is_decidable_at(TOLERANCE)
    is_decided = is_decidable | (records.code != 0)
    verdicts = zip(
        counted["sample_id"].to_pylist(), is_right.tolist(), is_decided.tolist(), strict=True
    )
    return {sample_id: right for sample_id, right, decided in verdicts if decided}


def _interval(row: dict[str, Any]) -> str:
    """Return the interval of a displayed speedup, marked as `noisy` if its timing was."""
    if row["speedup"] is None or row["status"] != "ok" or _speedup(row) != number(row["speedup"]):
        return ""
    return interval(row["speedup_low"], row["speedup_high"]) + (" noisy" if row["is_noisy"] else "")


def _why_undecidable(record: Mapping[str, Any], right: Mapping[str, bool]) -> str | None:
    """Return why a record allows no verdict at t = `TOLERANCE`, or None."""
    if why := undecidable_reason(record):
        return why
    if record["status"] != "ok" or record["sample_id"] in right or record["min_t"] is None:
        return None
    if is_impossible(record["warnings"]) or record["is_deterministic"] is False:
        return None
    return vacuous_reason(record)


def _speedup(row: dict[str, Any]) -> str:
    if is_impossible(row["warnings"]):
        return IMPOSSIBLE
    if row["status"] == "ok" and row["undecidable_reason"]:
        return UNDECIDABLE
    if row["status"] == "ok" and row["is_right"] is False:
        return f"not right at t = {TOLERANCE}"
    return number(row["speedup"]) if row["status"] == "ok" else row["status"]


def _head_room(row: dict[str, Any]) -> tuple[int, float]:
    if row["roofline_share"] is not None:
        return 0, row["roofline_share"]
    if row["latency_ms"] is not None:
        return 1, -row["latency_ms"]
    return 2, 0.0


def _share(share: float | None) -> str:
    return percentage(share) if share is None or share >= 0.1 else f"{100 * share:.2g} %"


def _never_pays(row: dict[str, Any]) -> bool:
    is_timed = row["status"] == "ok" and row["compile_time_s"] is not None
    return is_timed and row["is_right"] is not False and row["break_even_calls"] is None


def _count(count: int | None) -> str:
    return "-" if count is None else str(count)
