"""Verdicts of run records: a closed list of words."""

from __future__ import annotations

import enum

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ..schema import Status
from .records import is_counted, is_undecidable, make_records
from .variants import TOLERANCE, Variant
from .warnings import is_impossible


class Verdict(enum.StrEnum):
    """The verdict on a sample under a compiler, from best to worst."""

    FASTER = "faster"
    """Right, and the whole interval of the speedup is above 1."""
    EVEN = "even"
    """Right, and the interval contains 1."""
    SLOWER = "slower"
    """Right, and the whole interval is below 1."""
    WRONG = "wrong"
    """It ran, but its outputs are not right."""
    UNDECIDABLE = "undecidable"
    """It ran, but its outputs allow no verdict: eager itself is as far from float64, zeros or a
    stored answer are as near, or the record has an `undecidable_reason`.
    """
    MISMATCH = "output mismatch"
    """It ran, but returned outputs with a different number, shape or dtype."""
    RUN_FAILED = "run failed"
    COMPILE_FAILED = "compile failed"
    NOT_COUNTED = "not counted"
    """The record says nothing about the compiler: eager or the harness failed, eager differs from
    itself, or the time is impossible.
    """


FAILED = (Verdict.WRONG, Verdict.MISMATCH, Verdict.RUN_FAILED, Verdict.COMPILE_FAILED)


class Outcome(enum.StrEnum):
    """A `Verdict` without the distinction between faster and slower, or between failures."""

    RIGHT = "right"
    WRONG = "wrong"
    """Its outputs are wrong, or differ in shape, dtype or number."""
    FAILED = "failed"
    """It raised, crashed, or ran out of memory or time while compiling or running."""
    UNDECIDABLE = "undecidable"
    NOT_COUNTED = "not counted"


OUTCOME_OF = {
    Verdict.FASTER: Outcome.RIGHT,
    Verdict.EVEN: Outcome.RIGHT,
    Verdict.SLOWER: Outcome.RIGHT,
    Verdict.WRONG: Outcome.WRONG,
    Verdict.MISMATCH: Outcome.WRONG,
    Verdict.RUN_FAILED: Outcome.FAILED,
    Verdict.COMPILE_FAILED: Outcome.FAILED,
    Verdict.UNDECIDABLE: Outcome.UNDECIDABLE,
    Verdict.NOT_COUNTED: Outcome.NOT_COUNTED,
}

_BY_STATUS = {
    Status.OUTPUT_MISMATCH: Verdict.MISMATCH,
    Status.RUN_FAILED: Verdict.RUN_FAILED,
    Status.COMPILE_FAILED: Verdict.COMPILE_FAILED,
}


def verdicts(table: pa.Table, variant: Variant) -> list[Verdict]:
    """Return the verdict of each record of one arm (from `as_table`).

    Outputs are right by the criterion of `compare`: they pass at a t at which zeros would not.
    """
    statuses = table["status"].to_pylist()
    in_score = is_counted(table, variant)
    is_undecidable_run = is_undecidable(table) & [
        status == Status.OK and not is_impossible(warnings)
        for status, warnings in zip(statuses, table["warnings"].to_pylist(), strict=True)
    ]
    is_right, is_decided = (np.zeros(table.num_rows, dtype=bool) for _ in range(2))
    records = make_records(table, variant)
    is_right[in_score] = records.is_right_at(TOLERANCE)
    is_decided[in_score] = records.is_decidable_at(TOLERANCE)
    speedup = _floats(table, "speedup")
    low, high = (_floats(table, name) for name in ("speedup_low", "speedup_high"))
    low = np.where(np.isnan(low), speedup, low)
    high = np.where(np.isnan(high), speedup, high)
    results = []
    for index, status in enumerate(statuses):
        if not in_score[index]:
            is_judged = not is_undecidable_run[index]
            results.append(Verdict.NOT_COUNTED if is_judged else Verdict.UNDECIDABLE)
        elif status != Status.OK:
            results.append(_BY_STATUS.get(status, Verdict.NOT_COUNTED))
        elif not is_decided[index]:
            results.append(Verdict.UNDECIDABLE)
        elif not is_right[index]:
            results.append(Verdict.WRONG)
        elif low[index] > 1:
            results.append(Verdict.FASTER)
        else:
            results.append(Verdict.SLOWER if high[index] < 1 else Verdict.EVEN)
    return results


def _floats(table: pa.Table, column: str) -> np.ndarray:
    return pc.fill_null(table[column], np.nan).to_numpy().astype(np.float64)
