"""The metrics as `evaluate` loads and drives them."""

from __future__ import annotations

import doctest
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from graphnet_datasets import metric_path, to_metric_inputs
from graphnet_datasets.scores import error_aware_speedup_score, speedup_score
from graphnet_datasets.scores.metric_inputs import METRICS

from ..scores.run_rows import BROKEN_EAGER, FOUR, make_run

evaluate = pytest.importorskip("evaluate", reason="evaluate is not installed")

NAMES = ["speedup_score", "error_aware_speedup_score"]
FUNCTIONS: dict[str, Callable[..., Any]] = {
    "speedup_score": speedup_score,
    "error_aware_speedup_score": error_aware_speedup_score,
}
RUNS = [*FOUR, BROKEN_EAGER]


@pytest.fixture(params=NAMES)
def name(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture
def metric(name: str) -> Any:
    return evaluate.load(metric_path(name))


def without_names(scores: dict[str, Any]) -> dict[str, Any]:
    """Leave out what metric inputs do not carry: the compiler and the samples' ids and errors."""
    return {key: value for key, value in scores.items() if key not in ("compiler", "excluded")}


@pytest.mark.parametrize("options", [{}, {"p": 0.0, "b": 0.5}, {"variant": "upstream-extended"}])
def test_compute_agrees_with_the_function(metric: Any, name: str, options: dict[str, Any]) -> None:
    found = metric.compute(**to_metric_inputs(RUNS), **options)
    expected = FUNCTIONS[name](RUNS, **options).to_dict()
    assert without_names(found) == without_names(expected)
    assert len(found["excluded"]) == len(expected["excluded"])


def test_batches_and_single_runs_add_up(metric: Any) -> None:
    predictions, references = to_metric_inputs(RUNS)
    expected = metric.compute(predictions=predictions, references=references)
    metric.add_batch(predictions=predictions[:2], references=references[:2])
    metric.add(prediction=predictions[2], reference=references[2])
    metric.add_batch(predictions=predictions[3:], references=references[3:])
    assert metric.compute() == expected


@pytest.mark.parametrize("add", ["compute", "add_batch", "add"])
@pytest.mark.parametrize("left_out", [(), ("family", "null_t"), ("status", "family", "warnings")])
def test_unknown_fields_may_be_none_or_missing(
    metric: Any, add: str, left_out: tuple[str, ...]
) -> None:
    for unknown in (
        {"latency_ms": 1.0, "min_t": -5.0},
        {"latency_ms": 1.0, "min_t": -5.0, **dict.fromkeys(left_out)},
    ):
        if add == "compute":
            found = metric.compute(predictions=[unknown], references=[{"latency_ms": 2.0}])
        else:
            if add == "add":
                metric.add(prediction=unknown, reference={"latency_ms": 2.0})
            else:
                metric.add_batch(predictions=[unknown], references=[{"latency_ms": 2.0}])
            found = metric.compute()
        key = "S" if "S" in found else "ES"
        assert found[key]["-5"] == pytest.approx(2.0)


def test_the_interval_of_the_timing_reaches_the_metric(metric: Any, name: str) -> None:
    runs = [
        make_run(str(i), 2.0, family=str(i), speedup_low=1.5, speedup_high=2.5, warnings=["noisy"])
        for i in range(6)
    ]
    found = metric.compute(**to_metric_inputs(runs))
    expected = FUNCTIONS[name](runs).to_dict()
    assert without_names(found) == without_names(expected)
    assert found["warnings"] == {"noisy": 6}


def test_both_metrics_combine() -> None:
    combined = evaluate.combine([metric_path(name) for name in NAMES], force_prefix=True)
    found = combined.compute(**to_metric_inputs(RUNS))
    assert found["speedup_score_S"]["0"] == found["error_aware_speedup_score_ES"]["0"]


def test_results_can_be_saved(metric: Any, tmp_path: Path) -> None:
    found = metric.compute(**to_metric_inputs(RUNS))
    evaluate.save(tmp_path / "scores.json", **found)
    saved = json.loads((tmp_path / "scores.json").read_text())
    assert saved["samples"] == 4


@pytest.mark.parametrize("name", METRICS)
def test_the_docstrings_examples_hold(metric: Any) -> None:
    examples = doctest.DocTestParser().get_doctest(
        metric.inputs_description, {}, metric.name, None, None
    )
    assert len(examples.examples) >= 4
    report: list[str] = []
    doctest.DocTestRunner().run(examples, out=report.append)
    assert "".join(report) == ""


@pytest.mark.parametrize("name", METRICS)
def test_the_cards_code_names_the_metric(name: str) -> None:
    card = (Path(metric_path(name)) / "README.md").read_text()
    assert f'metric_path("{name}")' in card
