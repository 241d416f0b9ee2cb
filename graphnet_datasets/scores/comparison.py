"""The result of a comparison of two run sets, sample by sample."""

from __future__ import annotations

import dataclasses
from typing import Any, Literal

from ..terminal import counted
from .result import Scores, interval, notes, number
from .text import text_table

Basis = Literal["speedup", "latency"]
VERDICTS = ("broken", "slower", "same", "faster", "fixed", "failing", "undecidable")


@dataclasses.dataclass(frozen=True, repr=False)
class Comparison:
    """Run set B compared with run set A on the samples that count in both.

    `speedup` is the geometric mean of the factor by which B is faster, over the samples that are
    correct in both. `low` and `high` are its 95 % interval over families (None with fewer than
    five). In `family_speedup`, `family_low` and `family_high`, each family counts once.

    A sample is correct if it passes at t = `tolerance` and zeros would not pass there. If its
    `null_t` is at or below `tolerance`, the sample is decided just below its `null_t`. If that is
    below the sample's `eager_t`, or `null_t` is -inf, the sample is undecidable.

    `samples` has a row per sample: `sample_id`, `family`, `status_a`, `status_b`, `speedup` with
    `low` and `high` (None unless both are correct) and `verdict`. The verdict is "slower" or
    "faster" if the speedup differs from 1 by more than `threshold` and its interval excludes 1,
    else "same"; "broken" if only A is correct, "fixed" if only B is, "failing" if neither is; and
    "undecidable" if t does not decide, except that a sample is "broken" if A ended well and B did
    not.

    `conditions` contains the conditions that differ, with the values of both sets; `less_accurate`
    lists the samples on which only B is farther from float64 than eager.
    """

    name_a: str
    name_b: str
    basis: Basis
    tolerance: int
    threshold: float
    s: tuple[Scores, Scores]
    es: tuple[Scores, Scores]
    speedup: float | None
    low: float | None
    high: float | None
    family_speedup: float | None
    family_low: float | None
    family_high: float | None
    num_pairs: int
    only_in_a: tuple[str, ...]
    only_in_b: tuple[str, ...]
    less_accurate: tuple[str, ...]
    conditions: dict[str, tuple[str, str]]
    samples: tuple[dict[str, Any], ...] = dataclasses.field(repr=False)

    @property
    def regressions(self) -> list[dict[str, Any]]:
        """The samples that B broke, then the samples that it made slower, the worst first."""
        worse = [row for row in self.samples if row["verdict"] in ("broken", "slower")]
        return sorted(worse, key=lambda row: row["speedup"] or 0.0)

    @property
    def counts(self) -> dict[str, int]:
        """The number of samples of each verdict."""
        verdicts = [row["verdict"] for row in self.samples]
        return {verdict: verdicts.count(verdict) for verdict in VERDICTS}

    def to_dict(self) -> dict[str, Any]:
        """Return plain data for JSON."""
        (s_a, s_b), (es_a, es_b) = self.s, self.es
        return {
            "a": {"name": self.name_a} | s_a.to_dict() | es_a.to_dict(),
            "b": {"name": self.name_b} | s_b.to_dict() | es_b.to_dict(),
            "basis": self.basis,
            "tolerance": self.tolerance,
            "threshold": self.threshold,
            "speedup": self.speedup,
            "speedup_low": self.low,
            "speedup_high": self.high,
            "family_speedup": self.family_speedup,
            "family_speedup_low": self.family_low,
            "family_speedup_high": self.family_high,
            "pairs": self.num_pairs,
            "counts": self.counts,
            "only_in_a": list(self.only_in_a),
            "only_in_b": list(self.only_in_b),
            "less_accurate": list(self.less_accurate),
            "conditions": {name: {"a": a, "b": b} for name, (a, b) in self.conditions.items()},
            "regressions": self.regressions,
            "samples": list(self.samples),
        }

    def __str__(self) -> str:
        s = self.s[0]
        lines = [
            f"A: {self.name_a}",
            f"B: {self.name_b}",
            f"{counted(s.num_samples, 'sample')} in both; p = {s.p:g}, b = {s.b:g}, "
            f"variant {s.variant}",
            "",
            text_table(["t", "S of A", "S of B", "ES of A", "ES of B"], self._score_cells()),
            "",
            self._summary(),
            ", ".join(f"{count} {verdict}" for verdict, count in self.counts.items()),
        ]
        for name, missing in (("A", self.only_in_a), ("B", self.only_in_b)):
            if missing:
                number_of = counted(len(missing), "sample")
                lines.append(f"Only {name} has, or counts, {number_of}: {_listed(missing)}")
        if self.less_accurate:
            number_of = counted(len(self.less_accurate), "sample")
            lines.append(
                f"Less accurate than eager in B alone: {number_of}: {_listed(self.less_accurate)}"
            )
        for name, scores in (("A", self.s[0]), ("B", self.s[1])):
            lines += [f"{name}: {note}" for note in notes(scores)]
        if self.conditions:
            lines += ["", "Made under different conditions:"]
            lines += [f"  {name}: A {a}; B {b}" for name, (a, b) in self.conditions.items()]
        if self.regressions:
            lines += ["", f"Regressions (slower by more than {self.threshold:.0%}, or broken):"]
            lines.append(text_table(["sample", "B over A", "95 %", "A", "B"], self._regressions()))
        return "\n".join(lines)

    def __repr__(self) -> str:
        return str(self)

    def _score_cells(self) -> list[list[str]]:
        columns = [self.s[0]["S"], self.s[1]["S"], self.es[0]["ES"], self.es[1]["ES"]]
        return [
            [str(t), *map(number, row)] for t, *row in zip(self.s[0]["t"], *columns, strict=True)
        ]

    def _regressions(self) -> list[list[str]]:
        return [
            [
                row["sample_id"],
                number(row["speedup"]),
                interval(row["low"], row["high"]),
                row["status_a"],
                row["status_b"],
            ]
            for row in self.regressions
        ]

    def _summary(self) -> str:
        if self.speedup is None:
            return f"No sample is correct in both at t = {self.tolerance}, so there is no speedup."
        bounds = interval(self.low, self.high)
        by_family = interval(self.family_low, self.family_high)
        return (
            f"Speedup of B over A ({self.basis}): {number(self.speedup)}"
            + (f", 95 % over families {bounds}" if bounds else "")
            + f", by family {number(self.family_speedup)}"
            + (f", 95 % {by_family}" if by_family else "")
            + f"; {counted(self.num_pairs, 'sample')} correct in both at t = {self.tolerance}"
        )


def _listed(names: tuple[str, ...]) -> str:
    return ", ".join(names[:5]) + (", …" if len(names) > 5 else "")
