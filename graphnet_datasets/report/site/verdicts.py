"""What a record says of its compiler, in one word out of a closed list."""

from __future__ import annotations

import enum

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ...schema import Status
from ...scores.comparison import TOLERANCE
from ...scores.records import is_counted, make_records
from ...scores.variants import Variant


class Verdict(enum.StrEnum):
    """How a sample went under a compiler; the order is from best to worst."""

    FASTER = "faster"
    """Right, and the whole interval of the speedup is above 1."""
    EVEN = "even"
    """Right, and the interval holds 1."""
    SLOWER = "slower"
    """Right, and the whole interval is below 1."""
    WRONG = "wrong"
    """It ran, but its outputs are not right."""
    UNDECIDABLE = "undecidable"
    """It ran, but nothing can be told of its outputs: eager itself is as far from float64, or zeros
    are as near."""
    MISMATCH = "output mismatch"
    """It ran, and gave another number of outputs, another shape or another dtype."""
    RUN_FAILED = "run failed"
    COMPILE_FAILED = "compile failed"
    NOT_COUNTED = "not counted"
    """The record says nothing of the compiler: eager or the harness failed, eager differs from
    itself, or the time is impossible."""


FAILED = (Verdict.WRONG, Verdict.MISMATCH, Verdict.RUN_FAILED, Verdict.COMPILE_FAILED)

_BY_STATUS = {
    Status.OUTPUT_MISMATCH: Verdict.MISMATCH,
    Status.RUN_FAILED: Verdict.RUN_FAILED,
    Status.COMPILE_FAILED: Verdict.COMPILE_FAILED,
}


def verdicts(table: pa.Table, variant: Variant) -> list[Verdict]:
    """Return the verdict of each record of one arm (as `as_table` gives them).

    Right is what `compare` calls so: at t = -3, and at a t at which zeros would not pass.
    """
    in_score = is_counted(table, variant)
    is_right, is_told = (np.zeros(table.num_rows, dtype=bool) for _ in range(2))
    records = make_records(table, variant)
    is_right[in_score] = records.is_right_at(TOLERANCE)
    is_told[in_score] = records.is_told_at(TOLERANCE)
    speedup = _floats(table, "speedup")
    low = np.where(np.isnan(_floats(table, "speedup_low")), speedup, _floats(table, "speedup_low"))
    high = _floats(table, "speedup_high")
    high = np.where(np.isnan(high), speedup, high)
    statuses = table["status"].to_pylist()
    found = []
    for index, status in enumerate(statuses):
        if not in_score[index]:
            found.append(Verdict.NOT_COUNTED)
        elif status != Status.OK:
            found.append(_BY_STATUS.get(status, Verdict.NOT_COUNTED))
        elif not is_told[index]:
            found.append(Verdict.UNDECIDABLE)
        elif not is_right[index]:
            found.append(Verdict.WRONG)
        elif low[index] > 1:
            found.append(Verdict.FASTER)
        else:
            found.append(Verdict.SLOWER if high[index] < 1 else Verdict.EVEN)
    return found


def _floats(table: pa.Table, column: str) -> np.ndarray:
    return pc.fill_null(table[column], np.nan).to_numpy().astype(np.float64)
