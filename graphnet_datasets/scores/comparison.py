"""Two run sets compared sample by sample: is B faster than A, and what got worse?"""

from __future__ import annotations

import dataclasses
import math
from typing import Any, Literal

import numpy as np
import pyarrow as pa

from ..errors import ScoreError
from . import bootstrap
from .records import Floats, Records, is_counted, make_records
from .result import Scores, interval, number
from .run_sets import Duplicates, as_table, single_arm, without_duplicates
from .scoring import score_records
from .text import text_table
from .variants import check_parameters, find_variant

Basis = Literal["speedup", "latency"]
VERDICTS = ("broken", "slower", "same", "faster", "fixed", "failing")

_DECIDING_T = 0


@dataclasses.dataclass(frozen=True, repr=False)
class Comparison:
    """Run set B against run set A on the samples that count in both.

    `speedup` is the geometric mean of "how many times faster B is" over the samples that are
    correct in both at t = 0, `low` and `high` its 95 % interval by a bootstrap over families (None
    with fewer than two families), `family_speedup` the mean in which each family counts once, with
    `family_low` and `family_high` of the same draws.

    `samples` has a row per sample: `sample_id`, `family`, `status_a`, `status_b`, `speedup` with
    `low` and `high` (None where one is not correct) and `verdict`: "slower" or "faster" where the
    speedup differs from 1 by more than `threshold` and its interval does not hold 1, else "same";
    "broken" where only A is correct, "fixed" where only B is, "failing" where none is.
    """

    name_a: str
    name_b: str
    basis: Basis
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
    samples: tuple[dict[str, Any], ...] = dataclasses.field(repr=False)

    @property
    def regressions(self) -> list[dict[str, Any]]:
        """The samples that B broke, then those that it made slower, the worst first."""
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
            "regressions": self.regressions,
            "samples": list(self.samples),
        }

    def __str__(self) -> str:
        s = self.s[0]
        lines = [
            f"A: {self.name_a}",
            f"B: {self.name_b}",
            f"{s.num_samples} samples count in both; p = {s.p:g}, b = {s.b:g}, variant {s.variant}",
            "",
            text_table(["t", "S of A", "S of B", "ES of A", "ES of B"], self._score_cells()),
            "",
            self._summary(),
            ", ".join(f"{count} {verdict}" for verdict, count in self.counts.items()),
        ]
        for name, missing in (("A", self.only_in_a), ("B", self.only_in_b)):
            if missing:
                listed = ", ".join(missing[:5]) + (", …" if len(missing) > 5 else "")
                lines.append(f"Only {name} has, or counts, {len(missing)} samples: {listed}")
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
            return "No sample is correct in both at t = 0, so that no speedup can be given."
        found = interval(self.low, self.high)
        by_family = interval(self.family_low, self.family_high)
        return (
            f"Speedup of B over A ({self.basis}): {number(self.speedup)}"
            + (f", 95 % over families {found}" if found else "")
            + f", by family {number(self.family_speedup)}"
            + (f", 95 % {by_family}" if by_family else "")
            + f"; {self.num_pairs} samples are correct in both at t = 0"
        )


def compare(
    runs_a: Any,
    runs_b: Any,
    p: float | None = None,
    b: float = 0.1,
    variant: str = "report",
    *,
    basis: Basis = "speedup",
    threshold: float = 0.05,
    duplicates: Duplicates = "refuse",
    seed: int = 0,
) -> Comparison:
    """Compare the runs of one compiler with those of another, or of another version.

    With the basis "speedup" B's speedup over its own eager is divided by A's: what disturbs a
    machine between the two runs disturbs eager too, and falls out. With "latency" A's time is
    divided by B's: for two devices, or where eager itself changed.

    Raises:
        ScoreError: a parameter is out of range, a run set is of several compilers, or no sample
            counts in both.

    >>> def run(speedup):
    ...     return {"sample_id": "x", "status": "ok", "speedup": speedup, "min_t": -9.0}
    >>> comparison = compare([run(2.0)], [run(1.5)])
    >>> comparison.speedup, comparison.regressions[0]["verdict"]
    (0.75, 'slower')
    """
    chosen = find_variant(variant)
    p = chosen.default_p if p is None else p
    check_parameters(p, b)
    if basis not in ("speedup", "latency"):
        raise ScoreError(f"The basis is `{basis}`, but it must be `speedup` or `latency`.")
    if not 0 <= threshold < 1:
        raise ScoreError(f"The threshold is {threshold}, but it must be at least 0 and below 1.")
    arms, tables = [], []
    for runs in (runs_a, runs_b):
        table = as_table(runs)
        arms.append(single_arm(table))
        table = without_duplicates(table, duplicates)
        tables.append(table.filter(pa.array(is_counted(table, chosen))))
    places = [_places(table) for table in tables]
    common = sorted(
        sample_id
        for sample_id, (_, graph) in places[0].items()
        if sample_id in places[1] and _is_same_graph(graph, places[1][sample_id][1])
    )
    if not common:
        raise ScoreError(
            f"No sample counts in both run sets: A has {len(places[0])} that count, B "
            f"{len(places[1])}."
        )
    paired = [
        table.take(pa.array([place[sample_id][0] for sample_id in common]))
        for table, place in zip(tables, places, strict=True)
    ]
    records = [make_records(table, chosen) for table in paired]
    log_ratio, half_width = _log_ratios(paired, records, basis)
    are_correct = [(each.code == 0) & (each.min_t <= _DECIDING_T) for each in records]
    is_pair = are_correct[0] & are_correct[1]
    scores = [
        tuple(
            score_records(each, metric, p, b, chosen, compiler=arm, seed=seed)
            for each, arm in zip(records, arms, strict=True)
        )
        for metric in ("S", "ES")
    ]
    samples = _samples(paired, are_correct, log_ratio, half_width, threshold)
    return Comparison(
        name_a=arms[0],
        name_b=arms[1],
        basis=basis,
        threshold=threshold,
        s=(scores[0][0], scores[0][1]),
        es=(scores[1][0], scores[1][1]),
        **_overall(log_ratio[is_pair], records[0].family[is_pair], seed),
        num_pairs=int(is_pair.sum()),
        only_in_a=tuple(sorted(set(places[0]) - set(common))),
        only_in_b=tuple(sorted(set(places[1]) - set(common))),
        samples=tuple(samples),
    )


def _places(table: pa.Table) -> dict[str, tuple[int, str | None]]:
    """Return the row of each sample, and the hash of its graph, where the record has one."""
    rows = table.select(["sample_id", "signature_hash"]).to_pylist()
    return {row["sample_id"]: (i, row["signature_hash"]) for i, row in enumerate(rows)}


def _is_same_graph(first: str | None, second: str | None) -> bool:
    """A name may stand for another graph in a later dataset; without hashes the name decides."""
    return first is None or second is None or first == second


def _log_ratios(
    tables: list[pa.Table], records: list[Records], basis: Basis
) -> tuple[Floats, Floats]:
    """Return the logarithm of B over A per sample, and the half width of its interval.

    The two runs are independent, so the half widths add as squares. Without an interval in the
    records the width is 0.
    """
    half_widths = [_half_width(table) for table in tables]
    width = np.sqrt(half_widths[0] ** 2 + half_widths[1] ** 2)
    if basis == "speedup":
        return records[1].log_speedup - records[0].log_speedup, width
    latencies = [_log_latency(table) for table in tables]
    return latencies[0] - latencies[1], width


def _half_width(table: pa.Table) -> Floats:
    widths = [
        (math.log(high) - math.log(low)) / 2 if low and high else 0.0
        for low, high in zip(
            table["speedup_low"].to_pylist(), table["speedup_high"].to_pylist(), strict=True
        )
    ]
    return np.array(widths)


def _log_latency(table: pa.Table) -> Floats:
    values = []
    for row in table.select(["sample_id", "status", "candidate_latency_ms"]).to_pylist():
        times = row["candidate_latency_ms"]
        if not times and row["status"] == "ok":
            raise ScoreError(
                f"The run of `{row['sample_id']}` has no `candidate_latency_ms`, so that latencies "
                "cannot be compared; compare speedups."
            )
        values.append(float(np.mean(np.log(times))) if times else 0.0)
    return np.array(values)


def _overall(log_ratio: Floats, family: Any, seed: int) -> dict[str, float | None]:
    """Return the geometric means over samples and over families, each with its interval."""
    names = ("speedup", "low", "high", "family_speedup", "family_low", "family_high")
    if len(log_ratio) == 0:
        return dict.fromkeys(names)
    _, family = np.unique(family, return_inverse=True)
    totals, sizes = bootstrap.family_totals(log_ratio[None, :], family, int(family.max()) + 1)
    means = log_ratio.mean(), bootstrap.family_means(totals, sizes)[0]
    found = bootstrap.intervals(totals, sizes, seed=seed)
    values: list[float | None] = []
    for index, mean in enumerate(means):
        ends = (None, None) if found is None else np.exp(found[index][:, 0]).tolist()
        values += [math.exp(mean), *ends]
    return dict(zip(names, values, strict=True))


def _samples(
    tables: list[pa.Table],
    are_correct: list[Any],
    log_ratio: Floats,
    half_width: Floats,
    threshold: float,
) -> list[dict[str, Any]]:
    columns = ["sample_id", "family", "status"]
    rows = []
    for index, (row_a, row_b) in enumerate(
        zip(*(table.select(columns).to_pylist() for table in tables), strict=True)
    ):
        correct = (bool(are_correct[0][index]), bool(are_correct[1][index]))
        is_pair = all(correct)
        middle, width = float(log_ratio[index]), float(half_width[index])
        rows.append(
            {
                "sample_id": row_a["sample_id"],
                "family": row_a["family"] or row_b["family"],
                "status_a": _describe(row_a["status"], correct[0]),
                "status_b": _describe(row_b["status"], correct[1]),
                "speedup": math.exp(middle) if is_pair else None,
                "low": math.exp(middle - width) if is_pair else None,
                "high": math.exp(middle + width) if is_pair else None,
                "verdict": _verdict(correct, middle, width, threshold),
            }
        )
    return rows


def _describe(status: str, is_correct: bool) -> str:
    return "wrong" if status == "ok" and not is_correct else status


def _verdict(correct: tuple[bool, bool], middle: float, width: float, threshold: float) -> str:
    if correct == (True, False):
        return "broken"
    if correct == (False, True):
        return "fixed"
    if correct == (False, False):
        return "failing"
    if middle < math.log1p(-threshold) and middle + width < 0:
        return "slower"
    if middle > -math.log1p(-threshold) and middle - width > 0:
        return "faster"
    return "same"
