"""Comparison of records with the verdicts that rows of `compiler_bugs` expect."""

from __future__ import annotations

import dataclasses
import enum
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ..decoding import load_json
from ..schema import ExpectedVerdict, Reason, Status
from ..terminal import counted
from .undecidable import undecidable_reason
from .variants import TOLERANCE


class BugOutcome(enum.StrEnum):
    """The relation of a record's verdict to the expected one."""

    REPRODUCED = "reproduced"
    """A known bug shows as expected."""
    GONE = "gone"
    """The outputs of a graph with a known bug are right."""
    CHANGED = "changed"
    """A graph with wrong outputs fails now, or the other way round."""
    RIGHT = "right"
    """A right graph is still right."""
    BROKEN = "broken"
    """A right graph is wrong or fails."""
    UNDECIDED = "undecided"
    """The record has no verdict."""


@dataclasses.dataclass(frozen=True, slots=True)
class Expectation:
    """The expected verdict beside that of one record.

    `actual` is None for a record without a verdict: eager failed, or the worker was lost.
    `version` is the compiler version that the expectation is for, and `num_variations` the
    setting of that name.
    """

    sample_id: str
    compiler: str
    expected: ExpectedVerdict
    actual: ExpectedVerdict | None
    version: str
    compiler_version: str
    num_variations: int = 0

    @property
    def is_met(self) -> bool:
        """True if the record reaches the expected verdict."""
        return self.actual == self.expected

    @property
    def outcome(self) -> BugOutcome:
        """The relation of the verdict to the expected one."""
        if self.actual is None:
            return BugOutcome.UNDECIDED
        if self.expected == ExpectedVerdict.RIGHT:
            return BugOutcome.RIGHT if self.is_met else BugOutcome.BROKEN
        if self.actual == ExpectedVerdict.RIGHT:
            return BugOutcome.GONE
        return BugOutcome.REPRODUCED if self.is_met else BugOutcome.CHANGED


def verdict_of(record: Mapping[str, Any]) -> ExpectedVerdict | None:
    """Return the verdict of one record at t = -3, None if its outputs allow no verdict.

    A run with varied calls has no verdict if the compiled graph takes no other sizes or numbers.

    >>> str(verdict_of({"status": "ok", "min_t": -5.0}))
    'right'
    >>> str(verdict_of({"status": "compile_failed", "reason": "exception"}))
    'fails'
    """
    match record["status"]:
        case Status.OK if record.get("varied_verdict") == "unsupported":
            return None
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
                    num_variations=item["num_variations"],
                )
            )
    return expectations


_HEADINGS = {
    BugOutcome.REPRODUCED: ("known bug still reproduces", "known bugs still reproduce"),
    BugOutcome.GONE: ("known bug is gone", "known bugs are gone"),
    BugOutcome.CHANGED: ("known bug shows in another way", "known bugs show in another way"),
    BugOutcome.RIGHT: ("right graph is still right", "right graphs are still right"),
    BugOutcome.BROKEN: ("right graph is no longer right", "right graphs are no longer right"),
    BugOutcome.UNDECIDED: ("graph has no verdict", "graphs have no verdict"),
}


def describe_expectations(expectations: Sequence[Expectation]) -> str:
    """Return, for each compiler, which known bugs reproduce, and every verdict that differs.

    >>> met = Expectation("a", "tvm", ExpectedVerdict.WRONG, ExpectedVerdict.WRONG, "1", "2")
    >>> repaired = dataclasses.replace(met, sample_id="b", actual=ExpectedVerdict.RIGHT)
    >>> print(describe_expectations([met, repaired]))
    tvm 2, compared with tvm 1: 1 of 2 verdicts are as expected.
      1 known bug still reproduces: a
      1 known bug is gone:
        b: right, expected wrong
    """
    lanes: dict[tuple[str, str, str, int], list[Expectation]] = {}
    for item in expectations:
        key = item.compiler, item.compiler_version, item.version, item.num_variations
        lanes.setdefault(key, []).append(item)
    return "\n".join(line for key, lane in lanes.items() for line in _describe_lane(*key, lane))


def _describe_lane(
    compiler: str, actual: str, expected: str, num_variations: int, lane: Sequence[Expectation]
) -> list[str]:
    varied = f" with `--vary {num_variations}`" if num_variations else ""
    compared = f", compared with {compiler} {expected}" if actual != expected else ""
    num_met = sum(item.is_met for item in lane)
    verdicts = counted(len(lane), "verdict is", "verdicts are")
    lines = [f"{compiler} {actual}{varied}{compared}: {num_met} of {verdicts} as expected."]
    for outcome, (singular, plural) in _HEADINGS.items():
        items = [item for item in lane if item.outcome == outcome]
        if not items:
            continue
        heading = f"  {counted(len(items), singular, plural)}"
        if outcome == BugOutcome.RIGHT:
            lines.append(f"{heading}.")
        elif outcome == BugOutcome.REPRODUCED:
            names = f"{heading}: {', '.join(item.sample_id for item in items)}"
            lines += textwrap.wrap(names, 100, subsequent_indent="    ", break_on_hyphens=False)
        else:
            lines.append(f"{heading}:")
            lines += [
                f"    {item.sample_id}: {item.actual or 'no verdict'}, expected {item.expected}"
                for item in items
            ]
    return lines


def _agree(expected: str, actual: str | None) -> bool:
    """Return whether two JSON objects of options agree; a newer version may have more of them."""
    options = load_json(actual or "{}", "the options of a run")
    return all(
        options.get(name, value) == value
        for name, value in load_json(expected, "the options of an arm").items()
    )
