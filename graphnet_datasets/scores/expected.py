"""Comparison of records with the verdicts that rows of `compiler_bugs` expect."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ..decoding import load_json
from ..schema import ExpectedVerdict, Reason, Status
from .undecidable import undecidable_reason
from .variants import TOLERANCE


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
    """Return the verdict of one record at t = -3, None if its outputs allow no verdict.

    >>> str(verdict_of({"status": "ok", "min_t": -5.0}))
    'right'
    >>> str(verdict_of({"status": "compile_failed", "reason": "exception"}))
    'fails'
    """
    match record["status"]:
        case Status.OK if record["min_t"] is not None and not undecidable_reason(record):
            is_right = record["min_t"] <= TOLERANCE
            return ExpectedVerdict.RIGHT if is_right else ExpectedVerdict.WRONG
        case Status.OUTPUT_MISMATCH:
            return ExpectedVerdict.WRONG
        # A suspicion about times says nothing about outputs.
        case Status.COMPILE_FAILED | Status.RUN_FAILED if record["reason"] != Reason.TAMPERING:
            return ExpectedVerdict.FAILS
        case _:
            return None


def compare_with_expected(
    rows: Iterable[Mapping[str, Any]], records: Iterable[Mapping[str, Any]]
) -> list[Expectation]:
    """Return an expectation for each record whose compiler, options and variations a row expects.

    `rows` are rows of the config `compiler_bugs`; rows without the column `expected` are skipped.

    >>> wrong = {"compiler": "tvm", "options": "{}", "num_variations": 0, "version": "1",
    ...     "verdict": "wrong"}
    >>> record = {"sample_id": "a", "compiler": "tvm", "compiler_options": "{}", "settings": "{}",
    ...     "status": "ok", "min_t": -4.0, "compiler_version": "2"}
    >>> compare_with_expected([{"id": "a", "expected": [wrong]}], [record])[0].is_met
    False
    """
    items = {
        (row["id"], item["compiler"], item["num_variations"]): item
        for row in rows
        for item in row.get("expected") or ()
    }
    expectations = []
    for record in records:
        settings = load_json(record["settings"] or "{}", "the settings of a run")
        key = record["sample_id"], record["compiler"], settings.get("num_variations", 0)
        item = items.get(key)
        if item is not None and _agree(item["options"], record["compiler_options"]):
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


def describe_expectations(expectations: Sequence[Expectation]) -> str:
    """Return how many verdicts are as expected, and a line for each of the others.

    >>> met = Expectation("a", "tvm", ExpectedVerdict.WRONG, ExpectedVerdict.WRONG, "1", "1")
    >>> print(describe_expectations([met, dataclasses.replace(met, actual=ExpectedVerdict.RIGHT)]))
    1 of 2 verdicts are as expected. The others:
      a under tvm 1: right, expected wrong (tvm 1)
    """
    others = [expectation for expectation in expectations if not expectation.is_met]
    lines = [
        f"  {other.sample_id} under {other.compiler} {other.compiler_version}: "
        f"{other.actual or 'no verdict'}, expected {other.expected} ({other.compiler} "
        f"{other.version})"
        for other in others
    ]
    num_met = len(expectations) - len(others)
    end = ". The others:" if others else "."
    return "\n".join([f"{num_met} of {len(expectations)} verdicts are as expected{end}", *lines])


def _agree(expected: str, actual: str | None) -> bool:
    """Return whether two JSON objects of options agree; a newer version may have more of them."""
    options = load_json(actual or "{}", "the options of a run")
    return all(
        options.get(name, value) == value
        for name, value in load_json(expected, "the options of an arm").items()
    )
