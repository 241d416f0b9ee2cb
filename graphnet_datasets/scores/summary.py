"""The summary of one arm's records: verdicts, S(-3), ES(1), speedup, compile time and memory."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from ..errors import ScoreError, raises_only
from .intervals import Mean, geometric_means
from .records import is_counted, make_records
from .run_sets import Duplicates, as_table, device_kind, single_arm, without_duplicates
from .scoring import score_records
from .variants import TOLERANCE, find_variant
from .verdicts import OUTCOME_OF, Outcome, verdicts

FORGIVING_T = 1
"""The t of ES in a summary: wrong outputs are forgiven, failures are not."""


@dataclasses.dataclass(frozen=True, slots=True)
class RightSample:
    """The speedup of a sample with right outputs: its logarithm, standard error and family."""

    log_speedup: float
    log_error: float
    family: str


@dataclasses.dataclass(frozen=True, slots=True)
class Summary:
    """One arm's records in one row.

    `counts` contains the number of records of each `Outcome`. `s`, `s_low` and `s_high` are S(-3)
    and its interval over families, `es` is ES(1); they are None if no record counts. `s_family` is
    S(-3) in which each family counts once. `speedup` is the geometric mean over the right samples.
    `compile_s` is the median compile time in seconds and `memory_ratio` the median of candidate
    over eager peak memory; both are None if not measured. `right_samples` maps ids to the right
    samples.
    """

    name: str
    compiler: str
    device: str
    variant: str
    b: float
    num_graphs: int
    counts: Mapping[Outcome, int]
    s: float | None
    s_low: float | None
    s_high: float | None
    es: float | None
    s_family: Mean
    speedup: Mean
    compile_s: float | None
    memory_ratio: float | None
    outcomes: Mapping[str, Outcome] = dataclasses.field(repr=False)
    right_samples: Mapping[str, RightSample] = dataclasses.field(repr=False)

    def slowest(self) -> tuple[str, float] | None:
        """Return the right sample with the smallest speedup, and that speedup; None without one."""
        if not self.right_samples:
            return None
        name = min(self.right_samples, key=lambda name: self.right_samples[name].log_speedup)
        return name, float(np.exp(self.right_samples[name].log_speedup))

    def with_outcome(self, outcome: Outcome) -> list[str]:
        """Return the ids of the samples with an outcome, in the order of the records."""
        return [name for name, sample_outcome in self.outcomes.items() if sample_outcome is outcome]

    def to_dict(self) -> dict[str, Any]:
        """Return plain data for JSON."""
        return {
            "graphs": self.num_graphs,
            **{str(outcome): self.counts.get(outcome, 0) for outcome in Outcome},
            "S(-3)": self.s,
            "S(-3)_low": self.s_low,
            "S(-3)_high": self.s_high,
            "ES(1)": self.es,
            "S(-3)_family": self.s_family.value,
            "S(-3)_family_low": self.s_family.low,
            "S(-3)_family_high": self.s_family.high,
            "scored_families": self.s_family.num_families,
            "speedup": self.speedup.value,
            "speedup_low": self.speedup.low,
            "speedup_high": self.speedup.high,
            "families": self.speedup.num_families,
            "compile_s": self.compile_s,
            "memory_ratio": self.memory_ratio,
        }


@raises_only(ScoreError)
def summarise(
    runs: Any,
    name: str = "",
    p: float | None = None,
    b: float = 0.1,
    variant: str = "report",
    *,
    duplicates: Duplicates = "refuse",
) -> Summary:
    """Return the summary of the runs of one arm; parameters are those of `speedup_score`.

    A sample is right if its outputs agree with eager at t = -3 and zeros would not. Outputs of
    another shape, dtype or number are wrong, not failed.

    Raises:
        ScoreError: the records are of several arms, a sample has several runs, or a parameter is
            out of range.

    >>> rows = [
    ...     {"sample_id": "a", "status": "ok", "speedup": 2.0, "min_t": -5.0},
    ...     {"sample_id": "b", "status": "compile_failed"},
    ... ]
    >>> summary = summarise(rows)
    >>> summary.counts[Outcome.RIGHT], summary.counts[Outcome.FAILED], round(summary.s, 3)
    (1, 1, 0.447)
    """
    chosen = find_variant(variant)
    p = chosen.default_p if p is None else p
    table = as_table(runs)
    arm = single_arm(table)
    table = without_duplicates(table, duplicates)
    ids = table["sample_id"].to_pylist()
    outcomes = [OUTCOME_OF[verdict] for verdict in verdicts(table, chosen)]
    records = make_records(table, chosen)
    names = ("S", "S_low", "S_high", "S_family", "S_family_low", "S_family_high")
    s: dict[str, Any] = dict.fromkeys(names)
    es = None
    num_families = 0
    if records.num_samples:
        scores = score_records(records, "S", p, b, chosen)
        s, num_families = scores.at(TOLERANCE), scores.num_families
        es = score_records(records, "ES", p, b, chosen, has_intervals=False).at(FORGIVING_T)["ES"]
    is_right = np.array([outcome is Outcome.RIGHT for outcome in outcomes], dtype=bool)
    is_in = is_right[is_counted(table, chosen)]
    speedup, _ = geometric_means(
        records.log_speedup[is_in], records.log_error[is_in], records.family[is_in]
    )
    right = table.filter(pa.array(is_right))
    right_samples = {
        sample_id: RightSample(float(log_speedup), float(log_error), family or sample_id)
        for sample_id, family, log_speedup, log_error in zip(
            right["sample_id"].to_pylist(),
            right["family"].to_pylist(),
            records.log_speedup[is_in],
            records.log_error[is_in],
            strict=True,
        )
    }
    compilers = [compiler for compiler in table["compiler"].to_pylist() if compiler]
    memory = [
        candidate / baseline
        for candidate, baseline in zip(
            table["candidate_peak_memory_bytes"].to_pylist(),
            table["baseline_peak_memory_bytes"].to_pylist(),
            strict=True,
        )
        if candidate is not None and baseline
    ]
    return Summary(
        name=name or arm,
        compiler=compilers[0] if compilers else "",
        device=device_kind(table),
        variant=chosen.name,
        b=b,
        num_graphs=len(ids),
        counts=Counter(outcomes),
        s=s["S"],
        s_low=s["S_low"],
        s_high=s["S_high"],
        es=es,
        s_family=Mean(s["S_family"], s["S_family_low"], s["S_family_high"], num_families),
        speedup=speedup,
        compile_s=_median(table["compile_time_s"].to_pylist()),
        memory_ratio=_median(memory),
        outcomes=dict(zip(ids, outcomes, strict=True)),
        right_samples=right_samples,
    )


def summarise_arms(arms: Mapping[str, Any], **options: Any) -> list[Summary]:
    """Return the summary of each arm, the largest S(-3) first; options are those of `summarise`."""
    summaries = [summarise(table, name, **options) for name, table in arms.items()]
    return sorted(summaries, key=lambda summary: -(summary.s or 0.0))


def relative_speedup(first: Summary, second: Summary) -> Mean:
    """Return how many times faster the second arm is on the samples that both get right.

    Each arm's time is first divided by that of its own eager run, which cancels most differences
    between the two measurements.

    >>> def run(compiler, speedup):
    ...     rows = [{"sample_id": "a", "status": "ok", "speedup": speedup, "min_t": -5.0}]
    ...     return summarise(rows, compiler)
    >>> relative_speedup(run("x", 1.0), run("y", 2.0)).value
    2.0
    """
    names = [name for name in first.right_samples if name in second.right_samples]
    pairs = [(first.right_samples[name], second.right_samples[name]) for name in names]
    families: dict[str, int] = {}
    numbers = [families.setdefault(before.family, len(families)) for before, _ in pairs]
    ratios = [after.log_speedup - before.log_speedup for before, after in pairs]
    errors = [np.hypot(before.log_error, after.log_error) for before, after in pairs]
    mean, _ = geometric_means(
        np.array(ratios), np.array(errors, dtype=np.float64), np.array(numbers, dtype=np.int64)
    )
    return mean


def can_be_compared(first: Summary, second: Summary) -> bool:
    """Return whether two arms ran on one kind of device and share a right sample."""
    return first.device == second.device and not first.right_samples.keys().isdisjoint(
        second.right_samples
    )


def _median(values: Sequence[float | None]) -> float | None:
    finite = [value for value in values if value is not None and np.isfinite(value)]
    return float(np.median(finite)) if finite else None
