"""Checks of the verdicts on random graphs, for every framework."""

from __future__ import annotations

import math
from typing import Any

from graphnet_datasets.sample import Sample
from graphnet_datasets.scores import by_sample
from tests.adversarial.conftest import Trial


def random_verdict(trial: Trial, candidate: str, sample: Sample, module: str) -> dict[str, Any]:
    record = trial(candidate, sample, module=module)
    assert record["status"] == "ok", record["error_message"]
    assert record["is_random"] is True
    return record


def check_is_right(record: dict[str, Any]) -> None:
    assert record["min_t"] <= -3, record["warnings"]
    (output,) = record["outputs"]
    assert output["is_random"] is True
    assert output["p_value"] > 1e-6
    (scored,) = by_sample([record])
    assert scored["is_right"] is True


def check_is_wrong(record: dict[str, Any]) -> None:
    assert record["min_t"] == math.inf
    assert record["outputs"][0]["p_value"] < 1e-6
    assert any(warning.startswith("random_output: ") for warning in record["warnings"])
    (scored,) = by_sample([record])
    assert scored["is_right"] is False


def check_has_stream_of_eager(record: dict[str, Any]) -> None:
    (output,) = record["outputs"]
    assert (output["random_test"], output["p_value"]) == ("same stream", None)
    assert output["min_t"] == -math.inf
