"""The site's data about one sample: its records under all arms, the best first."""

from __future__ import annotations

import dataclasses
import functools
from collections import Counter
from collections.abc import Iterable
from typing import Any

from ...scores.verdicts import Verdict
from ..names import slug
from .arms import Arm

_RIGHT = (Verdict.FASTER, Verdict.EVEN, Verdict.SLOWER)


@dataclasses.dataclass(frozen=True)
class SampleRecords:
    """The records of one sample; `number` is its index among the site's samples."""

    id: str
    slug: str
    number: int
    rows: list[dict[str, Any]]

    @property
    def task(self) -> str:
        """The task of the best record, or "unknown"."""
        return self.rows[0]["task"]

    @property
    def subtask(self) -> str:
        """The subtask from the first record that has it, or ""."""
        return self.facts["subtask"] or ""

    @functools.cached_property
    def facts(self) -> dict[str, Any]:
        """The recorded facts about the sample itself."""
        names = (
            "subtask", "framework", "source", "num_ops", "family", "structure_hash", "dataset",
        )  # fmt: skip
        return {
            name: next((row[name] for row in self.rows if row[name] not in (None, "")), None)
            for name in names
        }

    @functools.cached_property
    def best(self) -> dict[str, Any] | None:
        """The record with the largest speedup among the right records."""
        first = self.rows[0]
        return first if first["verdict"] in _RIGHT else None

    @functools.cached_property
    def counts(self) -> Counter[Verdict]:
        """The number of records of each verdict."""
        return Counter(row["verdict"] for row in self.rows)


def group_by_sample(arms: Iterable[Arm]) -> list[SampleRecords]:
    """Group all arms' records by sample, sorted by id, and store the sample in each row."""
    by_sample: dict[str, list[dict[str, Any]]] = {}
    for arm in arms:
        for row in arm.rows:
            by_sample.setdefault(str(row["sample_id"]), []).append(row)
    samples = []
    for number, (sample_id, rows) in enumerate(sorted(by_sample.items())):
        sample = SampleRecords(sample_id, slug(sample_id), number, sorted(rows, key=_order))
        for row in rows:
            row["sample"] = sample
        samples.append(sample)
    return samples


def beside_best(row: dict[str, Any]) -> float | None:
    """Return how many times faster the best right compiler on the same device is, or None.

    This compares speedups over the same baseline, because times from different days are not
    comparable.
    """
    best = row["sample"].best
    if best is None or row["speedup"] is None or best is row or best["device"] != row["device"]:
        return None
    ratio = best["speedup"] / row["speedup"]
    return ratio if ratio > 1 else None


def _order(row: dict[str, Any]) -> tuple[int, float]:
    if row["verdict"] in _RIGHT:
        return 0, -(row["speedup"] or 0.0)
    return 1 + list(Verdict).index(row["verdict"]), 0.0
