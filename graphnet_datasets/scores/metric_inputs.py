"""Conversion between run records and the inputs of `evaluate` metrics.

A metric receives compiled runs as predictions and eager runs as references. The same functions
score both formats, so a metric always agrees with `speedup_score`.
"""

from __future__ import annotations

import importlib.resources
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from ..errors import DatasetNotFoundError, ScoreError, raises_only
from ..schema import ERROR_CODES, Status
from .records import known_null_t
from .run_sets import Duplicates, as_table, single_arm, without_duplicates

METRICS = (
    "speedup_score",
    "error_aware_speedup_score",
    "latency_error",
    "outcome_accuracy",
    "schedule_ranking",
)

_PASSED_ON = (
    "min_t", "eager_t", "is_deterministic", "determinism_t", "speedup_low", "speedup_high",
    "warnings", "family",
)  # fmt: skip
"""Columns that a prediction shares with a record."""

_STATUS_OF_CODE = {1: Status.OK, 2: Status.RUN_FAILED, 3: Status.COMPILE_FAILED}


class MetricInputs(NamedTuple):
    """Predictions and references: unpack as a pair, or pass as `metric.compute(**inputs)`."""

    predictions: list[dict[str, Any]]
    references: list[dict[str, Any]]

    def keys(self) -> tuple[str, ...]:
        """Return the names of the two keywords."""
        return self._fields

    def __getitem__(self, key: Any) -> Any:
        return getattr(self, key) if isinstance(key, str) else tuple.__getitem__(self, key)

    def __iter__(self) -> Iterator[Any]:
        return tuple.__iter__(self)


@raises_only(ScoreError)
def metric_path(name: str) -> str:
    """Return the folder of a metric for `evaluate.load`.

    The result is a string because `evaluate.load` does not accept path objects.

    Raises:
        DatasetNotFoundError: No such metric exists.

    >>> Path(metric_path("speedup_score")).name
    'speedup_score'
    """
    if name not in METRICS:
        raise DatasetNotFoundError(
            f"There is no metric `{name}`. Choose one of "
            f"{', '.join(f'`{metric}`' for metric in METRICS)}."
        )
    # A checkout has this folder at the top level, an installed package inside the package.
    return str(Path(str(importlib.resources.files("graphnet_datasets.metrics"))) / name)


@raises_only(ScoreError)
def to_metric_inputs(runs: Any, *, duplicates: Duplicates = "refuse") -> MetricInputs:
    """Split run records into the predictions and references of our metrics.

    A latency is the geometric mean of the arm's timed calls in milliseconds, so that the ratio of
    reference and prediction is the record's speedup. A `null_t` that is infinite because outputs
    must be equal becomes None, because a metric does not receive dtypes and could not distinguish
    it from the `null_t` of outputs that are not finite.

    Raises:
        ScoreError: the records are of several compilers, or a sample has several runs.

    >>> inputs = to_metric_inputs(
    ...     [
    ...         {
    ...             "sample_id": "a",
    ...             "status": "ok",
    ...             "speedup": 2.0,
    ...             "min_t": -3.0,
    ...             "candidate_latency_ms": [4.0],
    ...         }
    ...     ]
    ... )
    >>> inputs.references
    [{'latency_ms': 8.0}]
    """
    table = as_table(runs)
    single_arm(table)
    table = without_duplicates(table, duplicates)
    predictions, references = [], []
    null_t = known_null_t(table)
    for row, row_null_t in zip(table.to_pylist(), null_t, strict=True):
        baseline, candidate = _latencies(row)
        predictions.append(
            {
                "latency_ms": candidate,
                "status": row["status"],
                "error_code": ERROR_CODES.get(Status(row["status"])),
                "null_t": row_null_t,
                **{name: row[name] for name in _PASSED_ON},
            }
        )
        references.append({"latency_ms": baseline})
    return MetricInputs(predictions, references)


def _latencies(row: Mapping[str, Any]) -> tuple[float | None, float | None]:
    candidate = _geometric_mean(row["candidate_latency_ms"])
    if row["speedup"] is None:
        return _geometric_mean(row["baseline_latency_ms"]), candidate
    # The record's speedup is the paired one, or that against undisturbed eager.
    candidate = 1.0 if candidate is None else candidate
    return candidate * row["speedup"], candidate


def _geometric_mean(latencies_ms: Sequence[float] | None) -> float | None:
    return float(np.exp(np.mean(np.log(latencies_ms)))) if latencies_ms else None


@raises_only(ScoreError)
def from_metric_inputs(
    predictions: Sequence[Mapping[str, Any]], references: Sequence[Mapping[str, Any]]
) -> pa.Table:
    """Convert `predictions` and `references` to run records.

    A prediction without a status gets it from its `error_code`: none or 1 means that it ended well
    (`min_t` decides correctness at t), 2 that the run failed, 3 that compilation failed.

    Raises:
        ScoreError: A status is unknown or contradicts its error code.

    >>> table = from_metric_inputs([{"latency_ms": 4.0, "min_t": 0.0}], [{"latency_ms": 8.0}])
    >>> table["speedup"].to_pylist(), table["status"].to_pylist()
    ([2.0], ['ok'])
    """
    rows = []
    for index, (prediction, reference) in enumerate(zip(predictions, references, strict=True)):
        candidate, baseline = prediction.get("latency_ms"), reference.get("latency_ms")
        status = _status(index, prediction)
        rows.append(
            {
                "sample_id": f"prediction {index}",
                "status": status,
                "speedup": baseline / candidate if baseline and candidate else None,
                "null_t": prediction.get("null_t"),
                **{name: prediction.get(name) for name in _PASSED_ON},
            }
        )
    return as_table(rows)


def _status(index: int, prediction: Mapping[str, Any]) -> str:
    status, code = prediction.get("status"), prediction.get("error_code")
    if code not in (None, *_STATUS_OF_CODE):
        raise ScoreError(
            f"Prediction {index} has the error code {code}; expected 1 (accuracy), 2 "
            "(runtime), 3 (compilation) or None."
        )
    if status is None:
        return _STATUS_OF_CODE[code] if code else Status.OK
    expected = ERROR_CODES.get(status) if status in set(Status) else None
    if code is not None and code != expected and not (code == 1 and status == Status.OK):
        raise ScoreError(
            f"Prediction {index} has the status `{status}` and the error code {code}, which "
            "contradict each other. Leave the error code out, or correct one of the two."
        )
    return status
