"""The site's data about one arm: scores, verdicts, classes of failures, and records."""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import re
from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ...errors import ScoreError
from ...json_text import parse_json
from ...scores import Scores, error_aware_speedup_score, speedup_score, split_by
from ...scores.conditions import leaves
from ...scores.machines import MAX_MACHINE, machine_name
from ...scores.run_sets import ARM_COLUMNS, NAMELESS, Duplicates, without_duplicates
from ...scores.variants import find_variant
from ...scores.verdicts import FAILED, Verdict, verdicts
from ..names import slug
from .quantiles import SHARES, quantiles

_HAS_SUBTASK = pc.field("subtask").is_valid() & (pc.field("subtask") != "")
_MEDIAN = SHARES.index(0.5)
MAX_MESSAGE = 2_000
"""Maximum length of an error message on a page."""

_COLUMNS = (
    "run_id", "sample_id", "task", "subtask", "framework", "source", "family", "num_ops",
    "structure_hash", "signature_hash", "dataset", "compiler", "compiler_options", "device",
    "weights", "input_mode", "seed", "cache_mode", "launch_mode", "num_threads", "status", "phase",
    "reason", "error_type", "error_message", "speedup", "speedup_low", "speedup_high", "min_t",
    "null_t", "eager_t", "floor_ms", "compile_time_s", "first_call_s", "break_even_calls",
    "baseline_num_kernels", "candidate_num_kernels", "baseline_peak_memory_bytes",
    "candidate_peak_memory_bytes", "is_noisy", "load", "warnings", "environment", "started_at",
)  # fmt: skip


@dataclasses.dataclass(frozen=True)
class ErrorClass:
    """Failures with the same message: their number and the first of them."""

    verdict: Verdict
    reason: str
    error_type: str
    message: str
    count: int
    rows: tuple[dict[str, Any], ...]


@dataclasses.dataclass(frozen=True)
class Arm:
    """The records of one arm by sample, and its scores; None if no record counts.

    `rows` contains the displayed columns of the records, and `verdict`, `baseline_ms`,
    `candidate_ms` (medians), `baseline_quantiles`, `candidate_quantiles`, `roofline_share`,
    `environment_name` and `arm`, this arm.
    """

    name: str
    slug: str
    number: int
    """The place among all arms, which decides the colour in each chart."""
    table: pa.Table
    rows: list[dict[str, Any]]
    scores: Mapping[str, Scores] | None
    by_task: Mapping[str, Mapping[str, Scores]]
    by_subtask: Mapping[tuple[str, str], Mapping[str, Scores]]
    """By task and subtask; records without a subtask are left out."""

    @functools.cached_property
    def conditions(self) -> dict[str, str]:
        """The properties by which `split_arms` distinguishes this arm."""
        record = self.table.slice(0, 1).select(list(ARM_COLUMNS)).to_pylist()[0]
        return {name: str(value) for name, value in record.items() if value not in (None, "", "{}")}

    @functools.cached_property
    def place(self) -> str:
        """The device of the records, as far as it affects comparisons: CPU, or the GPU model."""
        device = self.conditions.get("device", "cpu")
        if device == "cpu":
            return "CPU"
        environment = next((row["environment"] for row in self.rows if row["environment"]), None)
        return machine_name(environment, device) or device[:MAX_MACHINE]

    @functools.cached_property
    def error_classes(self) -> list[ErrorClass]:
        """Failures by verdict, reason, type and message without numbers, most frequent first."""
        by_class: dict[tuple[str, ...], list[dict[str, Any]]] = {}
        for row in self.rows:
            if row["verdict"] in (*FAILED, Verdict.NOT_COUNTED):
                message = _pattern(row["error_message"] or "")
                key = (row["verdict"], row["reason"] or "", row["error_type"] or "", message)
                by_class.setdefault(key, []).append(row)
        classes = [
            ErrorClass(Verdict(key[0]), key[1], key[2], key[3], len(rows), tuple(rows[:5]))
            for key, rows in by_class.items()
        ]
        return sorted(
            classes, key=lambda failure: (-failure.count, failure.verdict, failure.message)
        )


def make_arm(
    name: str, table: pa.Table, options: Mapping[str, Any], duplicates: Duplicates, number: int = 0
) -> Arm:
    """Create the site's data about one arm.

    Raises:
        ScoreError: A sample has several runs and these are refused, or a record is impossible.
    """
    table = without_duplicates(table, duplicates).sort_by("sample_id")
    rows = _rows(table, options["variant"])
    key = _key(table)
    by_task = split_by(table, "task")
    arm = Arm(
        name=name,
        slug=slug(key[0] or NAMELESS, *key),
        number=number,
        table=table,
        rows=rows,
        scores=_scores(table, options),
        by_task={
            task: scores
            for task, part in by_task.items()
            if (scores := _scores(part, options)) is not None
        },
        by_subtask={
            (task, subtask): scores
            for task, of_task in by_task.items()
            for subtask, part in split_by(of_task.filter(_HAS_SUBTASK), "subtask").items()
            if (scores := _scores(part, options)) is not None
        },
    )
    for row in rows:
        row["arm"] = arm
    return arm


def environment_name(text: str | None) -> str | None:
    """Return the name of an environment from its JSON; None if the record has no environment."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:12] if text else None


def environment_parts(text: str) -> dict[str, str]:
    """Flatten an environment to dotted names.

    >>> environment_parts('{"cpu": {"model": "x"}, "num_cpus": 2}')
    {'cpu.model': 'x', 'num_cpus': '2'}
    """
    parsed = parse_json(text, {"environment": text})
    return {name or "environment": value for name, value in leaves(parsed)}


def _scores(table: pa.Table, options: Mapping[str, Any]) -> dict[str, Scores] | None:
    try:
        return {
            "S": speedup_score(table, **options),
            "ES": error_aware_speedup_score(table, **options),
        }
    except ScoreError:
        if all(verdict is Verdict.NOT_COUNTED for verdict in _verdicts(table, options["variant"])):
            return None
        raise


def _verdicts(table: pa.Table, variant: str) -> list[Verdict]:
    return verdicts(table, find_variant(variant))


def _key(table: pa.Table) -> list[str]:
    """Return a key that identifies the arm, independent of other arms."""
    columns = [table[name].to_pylist() for name in ARM_COLUMNS]
    return [str(next((value for value in column if value is not None), "")) for column in columns]


def _rows(table: pa.Table, variant: str) -> list[dict[str, Any]]:
    columns: dict[str, list[Any]] = {name: _values(table[name]) for name in _COLUMNS}
    columns["verdict"] = list(_verdicts(table, variant))
    for arm in ("baseline", "candidate"):
        latencies = quantiles(table[f"{arm}_latency_ms"])
        columns[f"{arm}_quantiles"] = latencies.tolist()
        columns[f"{arm}_ms"] = _nullable(latencies[:, _MEDIAN])
    floor = pc.fill_null(table["floor_ms"], np.nan).to_numpy()
    median = np.array([value or np.nan for value in columns["candidate_ms"]], dtype=float)
    columns["roofline_share"] = _nullable(floor / median)
    columns["task"] = [task or "unknown" for task in columns["task"]]
    names_of = {text: environment_name(text) for text in set(columns["environment"])}
    columns["environment_name"] = [names_of[text] for text in columns["environment"]]
    columns["error_message"] = [
        text and (text if len(text) <= MAX_MESSAGE else f"{text[:MAX_MESSAGE]}…")
        for text in columns["error_message"]
    ]
    names = list(columns)
    return [dict(zip(names, row, strict=True)) for row in zip(*columns.values(), strict=True)]


def _values(column: pa.ChunkedArray) -> list[Any]:
    """Convert a column to objects and share equal strings: environments are long but few."""
    if not pa.types.is_string(column.type):
        return column.to_pylist()
    values: list[Any] = []
    for chunk in column.dictionary_encode().unify_dictionaries().chunks:
        words = chunk.dictionary.to_pylist()
        values += [None if index is None else words[index] for index in chunk.indices.to_pylist()]
    return values


def _nullable(values: np.ndarray) -> list[float | None]:
    return [None if np.isnan(value) else value for value in values.tolist()]


def _pattern(message: str) -> str:
    """Return the first line of a message without the parts that differ between samples.

    >>> _pattern("size 12 at 0x7f21 of `timm/a`\\nmore")
    'size # at # of `…`'
    """
    line = message.strip().partition("\n")[0][:300]
    line = re.sub(
        r"`[^`]*`|'[^']*'|\"[^\"]*\"", lambda match: f"{match[0][0]}…{match[0][-1]}", line
    )
    return re.sub(r"0x[0-9a-fA-F]+|\d+(?:\.\d+)?", "#", line)
