"""Comparison of records with the verdicts that rows of `compiler_bugs` expect."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterable, Mapping
from typing import Any

from ..schema import ExpectedVerdict, Status

DECIDED_T = -3.0
"""The tolerance at which outputs count as right."""


@dataclasses.dataclass(frozen=True, slots=True)
class Expectation:
    """The expected verdict beside that of one record.

    `actual` is None for a record without a verdict: eager failed, or the worker was lost.
    `version` is the compiler version that the expectation is for.
    """

    sample_id: str
    compiler: str
    expected: ExpectedVerdict
    actual: ExpectedVerdict | None
    version: str
    compiler_version: str

    @property
    def is_met(self) -> bool:
        """True if the record reaches the expected verdict."""
        return self.actual == self.expected


def verdict_of(record: Mapping[str, Any]) -> ExpectedVerdict | None:
    """Return the verdict of one record at `DECIDED_T`, None if it has no verdict.

    >>> verdict_of({"status": "ok", "min_t": -5.0}), verdict_of({"status": "compile_failed"})
    (<ExpectedVerdict.RIGHT: 'right'>, <ExpectedVerdict.FAILS: 'fails'>)
    """
    match record["status"]:
        case Status.OK if record["min_t"] is not None:
            is_right = record["min_t"] <= DECIDED_T
            return ExpectedVerdict.RIGHT if is_right else ExpectedVerdict.WRONG
        case Status.OUTPUT_MISMATCH:
            return ExpectedVerdict.WRONG
        case Status.COMPILE_FAILED | Status.RUN_FAILED:
            return ExpectedVerdict.FAILS
        case _:
            return None


def compare_with_expected(
    rows: Iterable[Mapping[str, Any]], records: Iterable[Mapping[str, Any]]
) -> list[Expectation]:
    """Return an expectation for each record whose compiler and options a row of its sample expects.

    `rows` are rows of the config `compiler_bugs`; rows without the column `expected` are skipped.

    >>> expected = [{"compiler": "tvm", "options": "{}", "version": "1", "verdict": "wrong"}]
    >>> record = {"sample_id": "a", "compiler": "tvm", "compiler_options": "{}", "status": "ok",
    ...     "min_t": -4.0, "compiler_version": "2"}
    >>> compare_with_expected([{"id": "a", "expected": expected}], [record])[0].is_met
    False
    """
    items = {
        (row["id"], item["compiler"], _options(item["options"])): item
        for row in rows
        for item in row.get("expected") or ()
    }
    expectations = []
    for record in records:
        key = record["sample_id"], record["compiler"], _options(record["compiler_options"])
        if (item := items.get(key)) is not None:
            expectations.append(
                Expectation(
                    sample_id=record["sample_id"],
                    compiler=record["compiler"],
                    expected=ExpectedVerdict(item["verdict"]),
                    actual=verdict_of(record),
                    version=item["version"],
                    compiler_version=record["compiler_version"],
                )
            )
    return expectations


def _options(text: str | None) -> str:
    return json.dumps(json.loads(text or "{}"), sort_keys=True)
