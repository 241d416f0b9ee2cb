"""Run records as predictions and references, and back."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given

from graphnet_datasets.errors import DatasetNotFoundError, ScoreError
from graphnet_datasets.scores import (
    error_aware_speedup_score,
    from_metric_inputs,
    metric_path,
    speedup_score,
    to_metric_inputs,
)

from .run_rows import FOUR, make_run, run_rows


@pytest.mark.slow
@given(run_rows())
def test_predictions_and_references_score_as_the_records_do(rows: list[dict[str, Any]]) -> None:
    inputs = to_metric_inputs(rows)
    table = from_metric_inputs(*inputs)
    for score in (speedup_score, error_aware_speedup_score):
        expected, scores = score(rows), score(table)
        for name in expected.columns:
            np.testing.assert_allclose(
                np.array(scores[name], float), np.array(expected[name], float), rtol=1e-12
            )


def test_latencies_are_geometric_means_whose_ratio_is_the_speedup() -> None:
    run = make_run(
        "a", 3.0, baseline_latency_ms=[10.0, 14.4], candidate_latency_ms=[2.0, 8.0], family="f"
    )
    inputs = to_metric_inputs([run])
    assert inputs.references == [{"latency_ms": pytest.approx(12.0)}]
    assert inputs.predictions == [
        {
            "latency_ms": pytest.approx(4.0),
            "status": "ok",
            "error_code": None,
            "min_t": -5.0,
            "null_t": None,
            "family": "f",
            **dict.fromkeys(("eager_t", "is_deterministic", "determinism_t", "warnings")),
            **dict.fromkeys(("speedup_low", "speedup_high")),
        }
    ]


def test_a_failed_run_has_its_error_code_and_no_latency() -> None:
    (prediction,), (reference,) = to_metric_inputs(
        [make_run("a", status="compile_failed", baseline_latency_ms=[2.0, 8.0])]
    )
    assert (prediction["latency_ms"], prediction["error_code"]) == (None, 3)
    assert reference == {"latency_ms": pytest.approx(4.0)}


def test_they_unpack_and_serve_as_keywords() -> None:
    inputs = to_metric_inputs(FOUR)
    predictions, references = inputs
    assert dict(**inputs) == {"predictions": predictions, "references": references}
    assert inputs["predictions"] is predictions is inputs[0]


def test_error_codes_alone_will_do() -> None:
    predictions = [
        {"latency_ms": 1.0, "min_t": 0.0},
        {"error_code": 1, "latency_ms": 1.0, "min_t": math.inf},
        {"error_code": 2},
        {"error_code": 3},
    ]
    table = from_metric_inputs(predictions, [{"latency_ms": 2.0}] * 4)
    assert table["status"].to_pylist() == ["ok", "ok", "run_failed", "compile_failed"]


def test_a_contradiction_is_refused() -> None:
    with pytest.raises(ScoreError) as error:
        from_metric_inputs([{"status": "run_failed", "error_code": 3}], [{}])
    assert str(error.value) == (
        "Prediction 0 has the status `run_failed` and the error code 3, which contradict each "
        "other. Leave the error code out, or correct one of the two."
    )


def test_an_unknown_error_code_is_refused() -> None:
    with pytest.raises(ScoreError) as error:
        from_metric_inputs([{"error_code": 9}], [{}])
    assert str(error.value) == (
        "Prediction 0 has the error code 9; expected 1 (accuracy), 2 (runtime), 3 "
        "(compilation) or None."
    )


@pytest.mark.parametrize("name", ["speedup_score", "error_aware_speedup_score"])
def test_the_folders_of_the_metrics_are_found(name: str) -> None:
    assert (Path(metric_path(name)) / f"{name}.py").is_file()


def test_an_unknown_metric_is_refused() -> None:
    with pytest.raises(DatasetNotFoundError) as error:
        metric_path("../speedup_score")
    assert str(error.value) == (
        "There is no metric `../speedup_score`. Choose one of `speedup_score`, "
        "`error_aware_speedup_score`, `latency_error`, `outcome_accuracy`, `schedule_ranking`."
    )
