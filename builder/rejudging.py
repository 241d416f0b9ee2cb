"""Recomputation of the verdicts of the embedded records from their stored values.

    python -m builder rejudge --docs docs/compilers.md

The rules of verdicts change more often than records are made. Stored values decide controls, noise,
accuracy and most outputs. They do not decide random outputs, which need several draws, and
positions of tied elements, which need the sorted keys: if such an output differs from eager's, the
record becomes undecidable.
"""

from __future__ import annotations

import dataclasses
import math
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from graphnet_datasets.analysis.orders import Orders, find_orders
from graphnet_datasets.analysis.randomness import is_random, random_outputs
from graphnet_datasets.benchmark.judging.correctness import (
    accuracy_warnings,
    overall_null_t,
    overall_stale_t,
)
from graphnet_datasets.benchmark.judging.random_outputs import SAME_STREAM
from graphnet_datasets.benchmark.judging.times import take_noise
from graphnet_datasets.benchmark.records.records import (
    TABLE_NAME,
    read_runs,
    rows_to_table,
    write_runs,
)
from graphnet_datasets.sample import Sample
from graphnet_datasets.schema import Status
from graphnet_datasets.schema.tables import RUNS
from graphnet_datasets.scores import as_table, split_arms
from graphnet_datasets.scores.undecidable import undecidable_reason
from graphnet_datasets.scores.variants import TOLERANCE, find_variant
from graphnet_datasets.scores.verdicts import verdicts
from graphnet_datasets.scores.warnings import LESS_ACCURATE, warning_kind
from graphnet_datasets.storage.table import read_table

from .arms import ship_runs
from .placing import tables_of


@dataclasses.dataclass(frozen=True, slots=True)
class Changed:
    """A record whose verdict changes under the current rules."""

    arm: str
    sample_id: str
    before: str
    after: str
    reason: str | None


def rejudge(dataset: Path) -> list[Changed]:
    """Judge the embedded records again, write them, and return the changed verdicts.

    Raises:
        DatasetNotFoundError: the dataset has no records.
    """
    runs = read_runs(dataset / RUNS.name)
    facts = {sample.id: Facts.of(sample) for sample in _samples(dataset, runs)}
    rows = [_rejudged(row, facts.get(row["sample_id"])) for row in runs.to_pylist()]
    judged = rows_to_table(rows)
    changed = list(_changes(runs, judged))
    with tempfile.TemporaryDirectory() as pool:
        write_runs(judged, Path(pool) / TABLE_NAME)
        ship_runs(Path(pool), dataset)
    return changed


def lines_of(changed: Sequence[Changed]) -> Iterator[str]:
    """Yield the changed verdicts as lines: counts by verdict, then each record.

    >>> list(lines_of([Changed("tc", "torch/schnet", "wrong", "faster", None)]))
    ['1 wrong > faster', 'tc, torch/schnet: wrong > faster']
    """
    counts = Counter((change.before, change.after) for change in changed)
    for (before, after), count in counts.most_common():
        yield f"{count} {before} > {after}"
    for change in changed:
        reason = f" ({change.reason})" if change.reason else ""
        yield f"{change.arm}, {change.sample_id}: {change.before} > {change.after}{reason}"


@dataclasses.dataclass(frozen=True, slots=True)
class Facts:
    """Properties of a sample that verdicts depend on."""

    is_random: bool
    random_outputs: tuple[bool, ...]
    orders: Orders | None

    @classmethod
    def of(cls, sample: Sample) -> Facts:
        """Return the facts of a sample."""
        return cls(is_random(sample), random_outputs(sample), find_orders(sample))


def _samples(dataset: Path, runs: pa.Table) -> Iterator[Sample]:
    names = runs["sample_id"].unique().to_pylist()
    for path in tables_of(dataset):
        for row in read_table(path, filters=[("id", "in", names)]).to_pylist():
            yield Sample.from_row(row)


def _rejudged(row: Mapping[str, Any], facts: Facts | None) -> dict[str, Any]:
    """Return a record with the fields that follow from its stored values."""
    record = {**row, "warnings": [*(row["warnings"] or ())]}
    if record["speedup"] is not None:
        take_noise(record)
    if record["status"] != Status.OK:
        return record
    record["undecidable_reason"] = None
    outputs = record["outputs"] = [_output(output) for output in row["outputs"]]
    record["null_t"] = overall_null_t(outputs)
    record["stale_t"] = overall_stale_t(outputs)
    record["warnings"] = [
        warning for warning in record["warnings"] if warning_kind(warning) != LESS_ACCURATE
    ] + accuracy_warnings(outputs)
    if facts is not None:
        record["undecidable_reason"] = _of_draws(outputs, facts) or _of_orders(outputs, facts)
        record["is_random"] = any(output["is_random"] for output in outputs)
    record["undecidable_reason"] = undecidable_reason(record)
    return record


def _output(output: Mapping[str, Any]) -> dict[str, Any]:
    """Return the row of an output, without the mean as a control if it reproduces the output."""
    mean_t = output["null_mean_t"]
    if (output["num_elements"] or 0) < 2 or mean_t == -math.inf:
        mean_t = None
    return {**output, "null_mean_t": mean_t}


def _of_draws(outputs: Sequence[dict[str, Any]], facts: Facts) -> str | None:
    """Mark the random outputs; return why outputs that were compared element by element allow no
    verdict."""
    if not facts.is_random or any(output["rmse_baseline"] is not None for output in outputs):
        return None  # outputs that depend on the seed have no oracle
    are_listed = len(facts.random_outputs) <= len(outputs)
    may_vary = [*facts.random_outputs] if are_listed else []
    may_vary += [True] * (len(outputs) - len(may_vary))  # inputs that the graph writes to
    wrong = []
    for place, (output, is_drawn) in enumerate(zip(outputs, may_vary, strict=True)):
        output["is_random"] = is_drawn
        if is_drawn and output["min_t"] <= TOLERANCE:
            output["random_test"] = SAME_STREAM
        elif output["min_t"] > TOLERANCE:
            wrong.append(place)
    if not wrong or not all(may_vary[place] for place in wrong):
        return None
    return (
        f"Output {wrong[0]} depends on random draws and was compared with eager's by stream, not "
        "by distribution."
    )


def _of_orders(outputs: Sequence[dict[str, Any]], facts: Facts) -> str | None:
    """Return why outputs in an open order, which were compared for equality, allow no verdict."""
    if facts.orders is None:
        return None
    wrong = [place for place, output in enumerate(outputs) if output["min_t"] > TOLERANCE]
    operators = {place: number for place, (number, _) in facts.orders.direct.items()}
    for place, numbers in facts.orders.reached.items():
        for number in sorted(numbers):  # computed keys are hardly ever tied
            order = facts.orders.operators[number]
            is_sorting = not order.is_first and order.kind != "overwrite"
            if is_sorting and facts.orders.are_keys_exact[number]:
                operators.setdefault(place, number)
    if not wrong or not operators.keys() >= set(wrong):
        return None
    order = facts.orders.operators[operators[wrong[0]]]
    return (
        f"Output {wrong[0]} depends on positions that `{order.target}` (operator {order.position}) "
        "returned, and was compared for equality."
    )


def _changes(before: pa.Table, after: pa.Table) -> Iterator[Changed]:
    """Yield the records whose verdicts differ between two tables of the same records."""
    verdict_of: list[dict[str, tuple[str, str, str]]] = []
    for table in (before, after):
        of_table: dict[str, tuple[str, str, str]] = {}
        for arm, runs in split_arms(as_table(table)).items():
            names = runs["run_id"].to_pylist(), runs["sample_id"].to_pylist()
            judged = verdicts(runs, find_variant("report"))
            for run_id, sample_id, verdict in zip(*names, judged, strict=True):
                of_table[run_id] = arm, sample_id, str(verdict)
        verdict_of.append(of_table)
    reasons = dict(
        zip(after["run_id"].to_pylist(), after["undecidable_reason"].to_pylist(), strict=True)
    )
    for run_id, (arm, sample_id, verdict) in verdict_of[1].items():
        if (former := verdict_of[0][run_id][2]) != verdict:
            yield Changed(arm, sample_id, former, verdict, reasons[run_id])
