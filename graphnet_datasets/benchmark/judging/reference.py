"""Comparison of runs with stored runs of another device, driver or compiler version.

New outputs are compared with the stored outputs on the same inputs, and new times with the stored
times.
"""

from __future__ import annotations

import dataclasses
import math
import os
import statistics
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.csv

from ...atomic import replaced
from ...errors import RunError
from ...schema import Reason, Status
from ...scores.text import text_table
from ...terminal import printable_cell
from ...timing.intervals import unpaired_speedup
from ..executors.jobs import SampleJob
from ..records.records import read_runs, sample_digest
from ..settings import Settings
from .correctness import compare_outputs, find_mismatch, overall_min_t
from .output_files import OutputStore

OUTPUT_VERDICTS = (
    "broken", "differs", "within", "equal", "undetermined", "fixed", "failing", "missing",
)  # fmt: skip
TIME_VERDICTS = ("slower", "same", "faster")
VERDICTS_NAME = "verdicts.csv"
VERDICTS_SCHEMA = pa.schema(
    [
        ("sample_id", pa.string()),
        ("compiler", pa.string()),
        ("outputs", pa.string()),
        ("min_t", pa.float64()),
        ("max_abs_error", pa.float64()),
        ("time", pa.string()),
        ("speedup", pa.float64()),
        ("speedup_low", pa.float64()),
        ("speedup_high", pa.float64()),
        ("reference_latency_ms", pa.float64()),
        ("latency_ms", pa.float64()),
        ("reference_status", pa.string()),
        ("status", pa.string()),
        ("reference_device", pa.string()),
        ("device", pa.string()),
        ("reference_version", pa.string()),
        ("version", pa.string()),
        ("reference_run_id", pa.string()),
        ("run_id", pa.string()),
    ]
)
"""The columns of the verdicts. `min_t` is the smallest tolerance at which all outputs agree with
the stored ones (-inf: bit for bit). `speedup` is the stored time divided by the new time."""


@dataclasses.dataclass(frozen=True, repr=False)
class Verdicts:
    """Verdicts on new runs compared with stored runs; `rows` has the columns of `VERDICTS_SCHEMA`.

    `outputs` is "equal" (bit for bit), "within" (equal at tolerance t) or "differs". It is "broken"
    if only the stored run was ok, "fixed" if only the new run is ok and "failing" if neither is. It
    is "undetermined" if eager disagrees with itself and "missing" without a stored run. `time` is
    "slower" or "faster" if the speedup differs from 1 by more than `threshold` and its 95 %
    interval excludes 1, otherwise "same". It is None if either run failed.
    """

    rows: tuple[dict[str, Any], ...]
    tolerance: int
    threshold: float

    @property
    def regressions(self) -> list[dict[str, Any]]:
        """Runs that are broken, differ or are slower, in this order, the slowest first."""
        worse = [
            row
            for row in self.rows
            if row["outputs"] in ("broken", "differs") or row["time"] == "slower"
        ]
        return sorted(
            worse, key=lambda row: (OUTPUT_VERDICTS.index(row["outputs"]), row["speedup"] or 0.0)
        )

    @property
    def counts(self) -> dict[str, int]:
        """The number of runs per verdict."""
        verdicts = [row["outputs"] for row in self.rows] + [row["time"] for row in self.rows]
        return {name: verdicts.count(name) for name in (*OUTPUT_VERDICTS, *TIME_VERDICTS)}

    def to_table(self) -> pa.Table:
        """Return the rows as a table."""
        return pa.Table.from_pylist(list(self.rows), schema=VERDICTS_SCHEMA)

    def write(self, path: str | os.PathLike[str]) -> None:
        """Atomically write the rows as CSV, without formulas of spreadsheets."""
        rows = [
            {
                name: printable_cell(value) if isinstance(value, str) else value
                for name, value in row.items()
            }
            for row in self.rows
        ]
        with replaced(path) as place:
            pyarrow.csv.write_csv(pa.Table.from_pylist(rows, schema=VERDICTS_SCHEMA), place)

    def __str__(self) -> str:
        cells = [
            [
                row["sample_id"],
                row["compiler"],
                row["outputs"],
                _number(row["min_t"]),
                row["time"] or "",
                _number(row["speedup"]),
                ""
                if row["speedup_low"] is None
                else f"[{row['speedup_low']:.3f}, {row['speedup_high']:.3f}]",
            ]
            for row in self.rows
        ]
        head = ["sample", "compiler", "outputs", "min t", "time", "speedup", "95 %"]
        counts = ", ".join(f"{count} {name}" for name, count in self.counts.items() if count)
        return (
            f"{text_table(head, cells)}\n\n{counts} (outputs at t = {self.tolerance}, times beyond "
            f"{self.threshold:.0%}; speedup is stored time over new time)"
        )

    def __repr__(self) -> str:
        return str(self)


def check_reference(
    path: str | os.PathLike[str], jobs: Iterable[SampleJob], settings: Settings
) -> None:
    """Check, before any run, that stored runs can be compared with the planned runs.

    Samples without a stored run pass, unless none of the samples has one.

    Raises:
        DatasetNotFoundError: there are no runs at `path`.
        RunError: a stored run has another sample, compiler, seed or input mode, its outputs are
            missing or damaged, or none of the samples has a stored run.
    """
    stored = _Stored(path)
    num_found, num_jobs = 0, 0
    for job in jobs:
        for _, candidate in job.candidates:
            num_jobs += 1
            wanted = {name: getattr(settings, name) for name in _SHARED}
            row = stored.find(job.sample.id, candidate.compiler, wanted)
            if row is None:
                continue
            num_found += 1
            if row["status"] != Status.OK:
                continue
            run = stored.outputs.load(row["run_id"])[0]
            if run.get("sample_digest") != sample_digest(job.sample):
                raise RunError(
                    f"The sample `{job.sample.id}` differs from the sample of the runs in "
                    f"`{path}`: its graph, statistics or stored data have changed. Use the version "
                    "of the dataset of those runs, or create the reference again."
                )
    if not num_found:
        raise RunError(
            f"`{path}` contains none of the {num_jobs} requested runs. Choose samples that it "
            f"contains, or create the runs with `graphnet run … --reference {path}`."
        )


def compare_with_reference(
    runs: str | os.PathLike[str],
    reference: str | os.PathLike[str],
    *,
    run_ids: Sequence[str] | None = None,
    tolerance: int = -3,
    threshold: float = 0.05,
) -> Verdicts:
    """Compare runs in one directory with those in another, both made with `keep_outputs`.

    Runs are paired by sample and compiler; the newest stored run counts.

    Args:
        runs: directory of the new runs.
        reference: directory of the stored runs.
        run_ids: restrict the comparison to these new runs.
        tolerance: the t at which outputs must agree.
        threshold: fraction by which times may differ, whatever their interval.

    Raises:
        DatasetNotFoundError: there are no runs.
        RunError: two runs of one sample used different inputs, or outputs are missing.
    """
    if not 0 <= threshold < 1:
        raise RunError(f"The threshold is {threshold}, but it must be at least 0 and below 1.")
    stored, outputs = _Stored(reference), OutputStore(runs)
    rows = read_runs(runs).to_pylist()
    if run_ids is not None:
        row_of = {row["run_id"]: row for row in rows}
        rows = [row_of[run_id] for run_id in run_ids if run_id in row_of]
    verdicts = []
    for row in rows:
        wanted = {name: row[name] for name in _SHARED}
        before = stored.find(row["sample_id"], row["compiler"], wanted)
        verdict: dict[str, Any] = dict.fromkeys(VERDICTS_SCHEMA.names)
        verdict |= {
            name: row[name] for name in ("sample_id", "compiler", "status", "device", "run_id")
        }
        verdict |= {"version": row["compiler_version"], "outputs": "missing"}
        if before is not None:
            verdict |= {
                "reference_status": before["status"],
                "reference_device": before["device"],
                "reference_version": before["compiler_version"],
                "reference_run_id": before["run_id"],
                "outputs": _WITHOUT_OUTPUTS[before["status"] == "ok", row["status"] == "ok"],
            }
            if before["status"] == row["status"] == Status.OK:
                verdict |= _compare_outputs(stored.outputs, before, outputs, row, tolerance)
                verdict |= _compare_times(before, row, threshold)
        verdicts.append(verdict)
    return Verdicts(tuple(verdicts), tolerance, threshold)


_SHARED = ("seed", "input_mode", "weights")
"""Settings that both runs must share, since inputs and times depend on them."""
_WITHOUT_OUTPUTS = {
    (True, True): "equal",
    (True, False): "broken",
    (False, True): "fixed",
    (False, False): "failing",
}


class _Stored:
    """Stored runs by sample and compiler."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._path = path
        self.outputs = OutputStore(path)
        self._of: dict[str, dict[str, list[dict[str, Any]]]] = {}
        for row in read_runs(path).to_pylist():  # in order of start
            self._of.setdefault(row["sample_id"], {}).setdefault(row["compiler"], []).append(row)

    def find(
        self, sample_id: str, compiler: str, wanted: Mapping[str, Any]
    ) -> dict[str, Any] | None:
        """Return the newest stored run of a sample under a compiler; None if the sample has no
        runs.

        Raises:
            RunError: the sample has runs, but only with other compilers or settings.
        """
        by_compiler = self._of.get(sample_id, {})
        if not by_compiler:
            return None
        if compiler not in by_compiler:
            others = ", ".join(f"`{name}`" for name in sorted(by_compiler))
            raise RunError(
                f"`{self._path}` contains runs of `{sample_id}` under {others}, but none under "
                f"`{compiler}`. Select one of them with `--compiler`, or create runs of "
                f"`{compiler}` with `--reference {self._path}`."
            )
        rows = by_compiler[compiler]
        for row in reversed(rows):
            if all(row[name] == value for name, value in wanted.items()):
                return row
        name = next(name for name in wanted if rows[-1][name] != wanted[name])
        raise RunError(
            f"The run of `{sample_id}` in `{self._path}` was made with {name} = "
            f"{rows[-1][name]}, but this run has {wanted[name]}. Run with the same `{name}`, or "
            "create the stored runs again."
        )


def _compare_outputs(
    stored: OutputStore,
    before: Mapping[str, Any],
    outputs: OutputStore,
    row: Mapping[str, Any],
    tolerance: int,
) -> dict[str, Any]:
    run_before, expected = stored.load(before["run_id"])
    run_now, actual = outputs.load(row["run_id"])
    if run_before.get("sample_digest") != run_now.get("sample_digest"):
        raise RunError(
            f"The two runs of `{row['sample_id']}` have different graphs with this name. Use the "
            "same version of the dataset for both."
        )
    reason, _ = find_mismatch(expected, actual)
    if reason is not Reason.NONE:
        return {"outputs": "differs"}
    compared = compare_outputs(expected, actual)
    min_t = overall_min_t(compared)
    comparison = {"min_t": min_t, "max_abs_error": max(row["max_abs_error"] for row in compared)}
    if min_t == -math.inf:
        return comparison | {"outputs": "equal"}
    if min_t is not None and min_t <= tolerance:
        return comparison | {"outputs": "within"}
    is_settled = all(
        run["is_deterministic"] is not False and not run["is_random"] for run in (before, row)
    )
    return comparison | {"outputs": "differs" if is_settled else "undetermined"}


def _compare_times(
    before: Mapping[str, Any], row: Mapping[str, Any], threshold: float
) -> dict[str, Any]:
    """Compare raw times; the runs are independent, so Welch's interval is used."""
    old, new = before["candidate_latency_ms"], row["candidate_latency_ms"]
    if not old or not new:
        return {}
    speedup, low, high = unpaired_speedup(old, new)
    verdict = "same"
    if speedup < 1 - threshold and (high is None or high < 1):
        verdict = "slower"
    elif speedup > 1 / (1 - threshold) and (low is None or low > 1):
        verdict = "faster"
    return {
        "time": verdict,
        "speedup": speedup,
        "speedup_low": low,
        "speedup_high": high,
        "reference_latency_ms": statistics.geometric_mean(old),
        "latency_ms": statistics.geometric_mean(new),
    }


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.3f}"
