"""Comparison of two run sets on the samples that both decide."""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ..errors import ScoreError, raises_only
from . import intervals
from .comparison import Basis, Comparison
from .conditions import different_between
from .intervals import NORMAL_QUANTILE
from .records import Floats, Records, is_counted, is_decidable, make_records
from .run_sets import Duplicates, as_table, single_arm, without_duplicates
from .scoring import score_records
from .variants import TOLERANCE, TOLERANCES, check_parameters, find_variant
from .warnings import LESS_ACCURATE, kinds_of, warnings_of


@raises_only(ScoreError)
def compare(
    runs_a: Any,
    runs_b: Any,
    p: float | None = None,
    b: float = 0.1,
    variant: str = "report",
    *,
    basis: Basis = "speedup",
    tolerance: int = TOLERANCE,
    threshold: float = 0.05,
    duplicates: Duplicates = "refuse",
) -> Comparison:
    """Compare the runs of one compiler with those of another compiler or version.

    With the basis "speedup", B's speedup over its own eager is divided by A's. A disturbance of the
    machine affects both arms of a run, so it cancels out. With "latency", A's time is divided by
    B's: use it for two devices, or if eager itself changed. Outputs must be right at t =
    `tolerance`, but never at a t at which zeros pass: see `Comparison`.

    Raises:
        ScoreError: A parameter is out of range, a run set contains several compilers, or no sample
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
    if tolerance not in TOLERANCES[:11]:
        raise ScoreError(
            f"The tolerance is {tolerance}, but it must be an integer from -10 to 0: greater "
            "tolerances forgive failures."
        )
    if not 0 <= threshold < 1:
        raise ScoreError(f"The threshold is {threshold}, but it must be at least 0 and below 1.")
    arms, tables, whole = [], [], []
    for runs in (runs_a, runs_b):
        table = as_table(runs)
        arms.append(single_arm(table))
        table = without_duplicates(table, duplicates)
        whole.append(table)
        tables.append(table.filter(pa.array(is_counted(table, chosen))))
    places = [_places(table) for table in tables]
    common = sorted(
        sample_id
        for sample_id, (_, graph) in places[0].items()
        if sample_id in places[1] and _is_same_graph(graph, places[1][sample_id][1])
    )
    if not common:
        raise ScoreError(
            f"No sample counts in both run sets: {len(places[0])} count in A, {len(places[1])} in "
            "B. Compare runs of the same samples."
        )
    paired = [
        table.take(pa.array([place[sample_id][0] for sample_id in common]))
        for table, place in zip(tables, places, strict=True)
    ]
    records = [make_records(table, chosen) for table in paired]
    log_ratio, log_error = _log_ratios(paired, records, basis)
    outcomes = _outcomes(records, tolerance)
    is_pair = outcomes.is_correct[0] & outcomes.is_correct[1] & ~outcomes.is_undecidable
    scores = [
        tuple(
            score_records(table, metric, p, b, chosen, compiler=arm)
            for table, arm in zip(records, arms, strict=True)
        )
        for metric in ("S", "ES")
    ]
    samples = _samples(paired, outcomes, log_ratio, log_error, threshold)
    over_samples, over_families = intervals.geometric_means(
        log_ratio[is_pair], log_error[is_pair], records[0].family[is_pair]
    )
    warned = [
        [LESS_ACCURATE in kinds_of(warnings) for warnings in warnings_of(table)] for table in paired
    ]
    return Comparison(
        name_a=arms[0],
        name_b=arms[1],
        basis=basis,
        tolerance=tolerance,
        threshold=threshold,
        s=(scores[0][0], scores[0][1]),
        es=(scores[1][0], scores[1][1]),
        speedup=over_samples.value,
        low=over_samples.low,
        high=over_samples.high,
        family_speedup=over_families.value,
        family_low=over_families.low,
        family_high=over_families.high,
        num_pairs=int(is_pair.sum()),
        only_in_a=tuple(sorted(set(places[0]) - set(common))),
        only_in_b=tuple(sorted(set(places[1]) - set(common))),
        less_accurate=tuple(
            sample_id
            for sample_id, in_a, in_b in zip(common, *warned, strict=True)
            if in_b and not in_a
        ),
        conditions=different_between(*whole),
        samples=tuple(samples),
    )


@dataclasses.dataclass(frozen=True, slots=True)
class _Outcomes:
    """For each sample: which arms ended well, which are correct, and whether it is decidable."""

    is_ended: tuple[npt.NDArray[np.bool_], npt.NDArray[np.bool_]]
    is_correct: tuple[npt.NDArray[np.bool_], npt.NDArray[np.bool_]]
    is_undecidable: npt.NDArray[np.bool_]


def _outcomes(records: list[Records], tolerance: int) -> _Outcomes:
    """Decide each sample at `tolerance`, or just below the t at which zeros pass.

    Both runs should agree about eager; where they differ, the stricter value applies.
    """
    vacuous_from = np.fmin(records[0].vacuous_from, records[1].vacuous_from)
    eager_t = np.fmax(records[0].eager_t, records[1].eager_t)
    is_vacuous = vacuous_from <= tolerance
    is_ended = [record.code == 0 for record in records]
    is_correct = [
        ended & (record.min_t <= tolerance) & ~(is_vacuous & (record.min_t >= vacuous_from - 1e-8))
        for record, ended in zip(records, is_ended, strict=True)
    ]
    return _Outcomes(
        (is_ended[0], is_ended[1]),
        (is_correct[0], is_correct[1]),
        (is_ended[0] | is_ended[1]) & ~is_decidable(vacuous_from, eager_t, tolerance),
    )


def _places(table: pa.Table) -> dict[str, tuple[int, str | None]]:
    """Return each sample's row and the hash of its graph, or None if the record has no hash."""
    rows = table.select(["sample_id", "signature_hash"]).to_pylist()
    return {row["sample_id"]: (i, row["signature_hash"]) for i, row in enumerate(rows)}


def _is_same_graph(first: str | None, second: str | None) -> bool:
    """Compare graph hashes, as names may be reused later; True without hashes."""
    return first is None or second is None or first == second


def _log_ratios(
    tables: list[pa.Table], records: list[Records], basis: Basis
) -> tuple[Floats, Floats]:
    """Return the logarithm of B over A for each sample, and its standard error.

    The two runs are independent, so the squared errors add up. Records without an interval have an
    error of 0.
    """
    error = np.hypot(records[0].log_error, records[1].log_error)
    if basis == "speedup":
        return records[1].log_speedup - records[0].log_speedup, error
    latencies = [_log_latency(table) for table in tables]
    return latencies[0] - latencies[1], error


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


def _samples(
    tables: list[pa.Table],
    outcomes: _Outcomes,
    log_ratio: Floats,
    log_error: Floats,
    threshold: float,
) -> list[dict[str, Any]]:
    columns = ["sample_id", "family", "status"]
    rows = []
    for index, (row_a, row_b) in enumerate(
        zip(*(table.select(columns).to_pylist() for table in tables), strict=True)
    ):
        ended = [bool(flags[index]) for flags in outcomes.is_ended]
        correct = [bool(flags[index]) for flags in outcomes.is_correct]
        is_undecidable = bool(outcomes.is_undecidable[index])
        middle, width = float(log_ratio[index]), NORMAL_QUANTILE * float(log_error[index])
        if is_undecidable:
            verdict = "broken" if ended == [True, False] else "undecidable"
        else:
            verdict = _verdict((correct[0], correct[1]), middle, width, threshold)
        is_pair = all(correct) and not is_undecidable
        rows.append(
            {
                "sample_id": row_a["sample_id"],
                "family": row_a["family"] or row_b["family"],
                "status_a": _describe(row_a["status"], correct[0] or is_undecidable),
                "status_b": _describe(row_b["status"], correct[1] or is_undecidable),
                "speedup": math.exp(middle) if is_pair else None,
                "low": math.exp(middle - width) if is_pair else None,
                "high": math.exp(middle + width) if is_pair else None,
                "verdict": verdict,
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
