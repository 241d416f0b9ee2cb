"""The result of a diagnosis, its last lines on a terminal, and its JSON object."""

from __future__ import annotations

import dataclasses
import functools
import statistics
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa

from ..bisection import Bisection
from ..bisection.result import TEST_FILE
from ..schema.tables import COMPILER_BUGS
from ..scores import Expectation, Outcome, Summary, as_table, summarise
from ..scores.intervals import Mean
from ..scores.latency import split_by_size
from ..scores.summary_text import (
    compared_with_eager,
    describe_run,
    mean_text,
    no_interval,
    score_text,
    short_compiler,
    times_text,
)
from ..scores.variants import TOLERANCE
from ..terminal import counted, first_few, printable_line
from .choosing import Subset
from .machine import Machine

REPORT_NAME, RUNS_NAME = "report.html", "runs"
MAX_NAMED = 3
"""Maximum number of samples named per outcome, and of operators named per finding."""
MAX_REASON = 120
"""Maximum length of the reason why a sample was not reduced, in a line."""


def is_known_bug(sample_id: str) -> bool:
    """Return whether an id is of the config `compiler_bugs`.

    >>> is_known_bug("compiler_bugs/tvm/pad"), is_known_bug("torch/resnet-18")
    (True, False)
    """
    return sample_id.startswith(f"{COMPILER_BUGS.name}/")


@dataclasses.dataclass(frozen=True)
class Finding:
    """A wrong, failed or slow sample, with its bisection or the reason why it is missing."""

    sample_id: str
    outcome: Outcome
    verdict: str
    bisection: Bisection | None = None
    files: Mapping[str, Path] = dataclasses.field(default_factory=dict)
    reason: str = ""

    @property
    def kind(self) -> str:
        """The outcome in a word: wrong, failed or slow."""
        return "slow" if self.outcome is Outcome.RIGHT else str(self.outcome)

    @property
    def minimal_case(self) -> str:
        """The operators of the minimal part, or the reason why it is missing."""
        if self.bisection is None:
            reason = " ".join(self.reason.split())
            short = reason if len(reason) <= MAX_REASON else f"{reason[:MAX_REASON]}…"
            return f"not reduced: {short}"
        num_ops = counted(len(self.bisection.ops), "operator")
        text = f"{num_ops} of {self.bisection.whole.num_ops}"
        if not self.bisection.is_minimal:
            text += " (not yet minimal)"
        return f"{text}, {first_few([*dict.fromkeys(self.bisection.targets)], MAX_NAMED)}"

    def to_dict(self) -> dict[str, Any]:
        """Return plain data for JSON."""
        bisection = self.bisection
        return {
            "sample_id": self.sample_id,
            "kind": self.kind,
            "verdict": self.verdict,
            "failure": str(bisection.failure) if bisection else None,
            "targets": list(bisection.targets) if bisection else None,
            "is_minimal": bisection.is_minimal if bisection else None,
            "test": str(self.files[TEST_FILE]) if self.files else None,
            "reason": self.reason or None,
        }


@dataclasses.dataclass(frozen=True, kw_only=True)
class Diagnosis:
    """The verdicts of a compiler on a subset, its worst samples, and the state of the machine.

    `runs` is a table of records. `expectations` are the verdicts that the dataset expects on known
    bugs. The score leaves known bugs out, because they do not represent models.
    """

    compiler: str
    machine: Machine
    subset: Subset
    out: Path
    runs: pa.Table
    expectations: tuple[Expectation, ...]
    findings: tuple[Finding, ...]
    seconds: float

    @functools.cached_property
    def models(self) -> pa.Table:
        """The records of whole graphs and parts."""
        is_model = [not is_known_bug(name) for name in self.runs["sample_id"].to_pylist()]
        return self.runs.filter(pa.array(is_model, pa.bool_()))

    @functools.cached_property
    def summary(self) -> Summary | None:
        """The summary of whole graphs and parts; None if none of them ran."""
        return summarise(self.models, duplicates="newest") if self.models.num_rows else None

    @functools.cached_property
    def other_cpu_share(self) -> float | None:
        """The median share of the processors that other processes used; None if not measured."""
        shares = [share for share in self.runs["other_cpu_share"].to_pylist() if share is not None]
        return round(statistics.median(shares), 3) if shares else None

    @property
    def page(self) -> Path:
        """The path of the page."""
        return self.out / REPORT_NAME

    @property
    def has_failures(self) -> bool:
        """True if a run is wrong or failed, or a known bug has an unexpected verdict."""
        expected = {item.sample_id for item in self.expectations}
        return not all(item.is_met for item in self.expectations) or any(
            outcome in (Outcome.WRONG, Outcome.FAILED)
            for name, outcome in self.outcomes.items()
            if name not in expected
        )

    @functools.cached_property
    def outcomes(self) -> dict[str, Outcome]:
        """The outcome of each sample."""
        return {row["sample_id"]: describe_run(row)[0] for row in self.runs.to_pylist()}

    def lines(self) -> list[tuple[str, str, bool]]:
        """Return at most ten labelled lines, and whether each line is about a failure."""
        lines = [
            ("Machine", self._machine_text(), False),
            ("Subset", self._subset_text(), False),
            self._verdict_line(),
            ("Score", self._score_text(), False),
            ("By size", self._sizes_text(), False),
            self._bugs_line(),
            *(
                (
                    "Worst" if not number else "",
                    f"{finding.sample_id}: {finding.kind}; {finding.minimal_case}"
                    + (f" -> {finding.files[TEST_FILE]}" if finding.files else ""),
                    finding.kind != "slow",
                )
                for number, finding in enumerate(self.findings)
            ),
            ("Report", f"{self.page} (records: graphnet score {self.out / RUNS_NAME})", False),
        ]
        return [(label, printable_line(text), is_bad) for label, text, is_bad in lines if text]

    def to_dict(self) -> dict[str, Any]:
        """Return plain data for JSON."""
        summary = self.summary
        slowest = summary.slowest() if summary else None
        return {
            "compiler": self.compiler,
            "machine": self.machine.to_dict(),
            "subset": dataclasses.asdict(self.subset),
            "num_run": self.runs.num_rows,
            "other_cpu_share": self.other_cpu_share,
            "seconds": round(self.seconds, 1),
            "summary": summary.to_dict() if summary else None,
            "outcomes": {name: str(outcome) for name, outcome in self.outcomes.items()},
            "slowest": None
            if slowest is None
            else dict(zip(("id", "speedup"), slowest, strict=True)),
            "speedup_by_size": {size: mean.value for size, mean in self.speedups_by_size().items()},
            "worst": [finding.to_dict() for finding in self.findings],
            "has_failures": self.has_failures,
            "report": str(self.page),
        }

    def speedups_by_size(self) -> dict[str, Mean]:
        """Return the mean speedup of the right samples by eager's time."""
        means = {
            str(size): summarise(tables[""], duplicates="newest").speedup
            for size, tables in split_by_size({"": as_table(self.models)}).items()
        }
        return {size: mean for size, mean in means.items() if mean.value is not None}

    def _machine_text(self) -> str:
        noise = f"load {self.machine.load:.1f} before"
        if self.other_cpu_share is not None:
            noise += f", other processes {self.other_cpu_share * 100:.0f} % of the processors"
        threads = counted(self.machine.threads, "thread")
        return f"{threads}, {noise}; {self.machine.layers}; {self.machine.packages}"

    def _subset_text(self) -> str:
        minutes, seconds = divmod(round(self.seconds), 60)
        duration = f"{minutes} min {seconds} s" if minutes else f"{seconds} s"
        total = len(self.subset.ids)
        text = f"{self.subset}, chosen from {self.subset.num_graphs:,} graphs; {duration}"
        if self.runs.num_rows < total:
            text += (
                f"; {total - self.runs.num_rows} of {total} not run for lack of time: repeat the "
                "command"
            )
        return text

    def _verdict_line(self) -> tuple[str, str, bool]:
        summary = self.summary
        if summary is None:
            return "Verdict", "no graph was run", True
        num_right = summary.counts.get(Outcome.RIGHT, 0)
        parts = [f"{short_compiler(self.compiler)}: {num_right} of {summary.num_graphs} right"]
        worst_first = [finding.sample_id for finding in self.findings]
        for outcome in Outcome:
            names = summary.with_outcome(outcome)
            if outcome is Outcome.RIGHT or not names:
                continue
            names.sort(key=lambda name: (name not in worst_first, name))
            parts.append(f"{len(names)} {outcome} ({first_few(names, MAX_NAMED)})")
        is_bad = bool(summary.counts.get(Outcome.WRONG) or summary.counts.get(Outcome.FAILED))
        return "Verdict", ", ".join(parts), is_bad

    def _score_text(self) -> str:
        summary = self.summary
        if summary is None or summary.s is None:
            return "no S(-3): no run counts"
        score = Mean(summary.s, summary.s_low, summary.s_high, 0)
        text = f"S({TOLERANCE}) = {score_text(score)}"
        if summary.s_low is None:
            text += f", {no_interval(summary.s_family)}"
        if summary.counts.get(Outcome.WRONG) or summary.counts.get(Outcome.FAILED):
            text += f"; a wrong or failed graph counts as {summary.b:g}x"
        mean = summary.speedup
        if mean.value is not None:
            text += f"; right ones {mean_text(mean)}"
            text += "" if mean.direction is None else f", {compared_with_eager(mean)}"
        return text

    def _sizes_text(self) -> str:
        sizes = [
            f"{size} {times_text(mean.value)}" for size, mean in self.speedups_by_size().items()
        ]
        slowest = self.summary.slowest() if self.summary else None
        if slowest:
            sizes.append(f"slowest: {slowest[0]} {times_text(slowest[1])}")
        return ", ".join(sizes)

    def _bugs_line(self) -> tuple[str, str, bool]:
        """Return how many known bugs the compiler has, and its unexpected verdicts."""
        label, names = "Known bugs", [name for name in self.outcomes if is_known_bug(name)]
        if not names:
            return label, "", False
        bad = [name for name in names if self.outcomes[name] is not Outcome.RIGHT]
        text = f"{len(names) - len(bad)} of {len(names)} right"
        if bad:
            text += f"; not right: {first_few([_short_bug(name) for name in bad], MAX_NAMED)}"
        if self.expectations:
            changed = [
                f"{_short_bug(item.sample_id)} (expected {item.expected})"
                for item in self.expectations
                if not item.is_met
            ]
            text += (
                f"; unlike before: {first_few(changed, MAX_NAMED)}"
                if changed
                else "; all as expected"
            )
        expected = {item.sample_id for item in self.expectations}
        is_bad = not {*bad} <= expected or not all(item.is_met for item in self.expectations)
        return label, text, is_bad


def _short_bug(sample_id: str) -> str:
    """Return the id of a known bug without the name of its config."""
    return sample_id.partition("/")[2]
