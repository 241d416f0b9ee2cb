"""Verdicts of embedded records follow from their stored values and the present rules."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from builder.capturing import EMBEDDED
from builder.rejudging import Changed, Facts, _rejudged, _samples, lines_of
from graphnet_datasets.analysis.orders import find_orders
from graphnet_datasets.benchmark.judging.correctness import Output, compare_outputs
from graphnet_datasets.benchmark.records.records import read_runs
from graphnet_datasets.sample import Input, Op, Sample, Value
from graphnet_datasets.sample.arguments import Ref
from graphnet_datasets.schema.tables import RUNS
from graphnet_datasets.scores import as_table, speedup_score, split_arms
from graphnet_datasets.scores.variants import TOLERANCE, find_variant
from graphnet_datasets.scores.verdicts import Verdict, verdicts
from tests.scores.run_rows import make_run

NOTHING = Facts(False, (), None)


def record(eager: Any, candidate: Any, **columns: Any) -> dict[str, Any]:
    """Return a record as an earlier version judged it: with the mean of every output."""
    arms = [[Output(str(array.dtype), array)] for array in map(np.asarray, (eager, candidate))]
    (row,) = compare_outputs(*arms)
    if row["null_mean_t"] is None:
        row["null_mean_t"] = -math.inf
    row["constant_t"] = -0.5
    interval = {"speedup_low": 1.95, "speedup_high": 2.05}
    run = make_run("a", 2.0, min_t=row["min_t"], outputs=[row], **interval, is_noisy=True)
    return run | {"null_t": -math.inf, "warnings": []} | columns


def test_one_element_is_compared_with_zeros() -> None:
    before = record(np.float32(2.0), np.float32(2.000001))
    after = _rejudged(before, NOTHING)
    assert before["null_t"] == -math.inf < after["null_t"] == after["stale_t"] == -0.5
    assert after["outputs"][0]["null_mean_t"] is None
    assert speedup_score([after]).at(-3)["num_correct"] == 1


def test_noise_and_accuracy_follow_from_stored_values() -> None:
    before = record(np.float32([1, 2]), np.float32([1, 2]))
    after = _rejudged(before, NOTHING)
    assert (before["is_noisy"], after["is_noisy"]) == (True, False)
    after["outputs"][0] |= {"rmse_baseline": 1e-8, "rmse_candidate": 1e-3}
    (warning,) = _rejudged(after, NOTHING)["warnings"]
    assert warning.startswith("less_accurate_than_eager: output 0 is 0.001 from float64")
    after["warnings"] = [warning, "noisy: a busy machine"]
    after["outputs"][0] |= {"rmse_candidate": 1e-8}
    assert _rejudged(after, NOTHING)["warnings"] == ["noisy: a busy machine"]


@pytest.mark.parametrize(("is_drawn", "is_decided"), [(True, False), (False, True)])
def test_random_outputs_that_were_compared_by_stream_are_undecidable(
    is_drawn: bool, is_decided: bool
) -> None:
    facts = Facts(True, (is_drawn,), None)
    after = _rejudged(record(np.float32([1, 2]), np.float32([3, 9])), facts)
    assert (after["undecidable_reason"] is None) is is_decided
    same = _rejudged(record(np.float32([1, 2]), np.float32([1, 2])), facts)
    assert same["undecidable_reason"] is None
    assert same["outputs"][0]["random_test"] == ("same stream" if is_drawn else None)


def test_positions_that_were_compared_for_equality_are_undecidable() -> None:
    inputs = (Input("input", Value("float32", (3,))),)
    sample = Sample("a", "torch", "other", inputs, (Op("torch.argsort", (Ref(0),)),), Ref(1))
    facts = Facts(False, (False,), find_orders(sample))
    after = _rejudged(record([0, 1, 2], [1, 0, 2]), facts)
    assert "positions that `torch.argsort` (operator 0) returned" in after["undecidable_reason"]
    assert _rejudged(record([0, 1, 2], [1, 0, 2]), NOTHING)["undecidable_reason"] is None


def test_changes_are_counted_before_they_are_listed() -> None:
    changed = [Changed("tc", name, "wrong", "faster", None) for name in ("a", "b")]
    assert next(iter(lines_of(changed))) == "2 wrong > faster"
    assert len(list(lines_of(changed))) == 3


@pytest.fixture(scope="module")
def embedded() -> tuple[Any, Mapping[str, Facts]]:
    runs = read_runs(Path(EMBEDDED) / RUNS.name)
    return runs, {sample.id: Facts.of(sample) for sample in _samples(Path(EMBEDDED), runs)}


def test_no_random_graph_and_no_single_element_is_among_the_wrong_records(
    embedded: tuple[Any, Mapping[str, Facts]],
) -> None:
    runs, facts = embedded
    wrong = []
    for table in split_arms(as_table(runs)).values():
        judged = verdicts(table, find_variant("report"))
        rows = zip(table.to_pylist(), judged, strict=True)
        wrong += [row for row, verdict in rows if verdict is Verdict.WRONG]
    assert len(wrong) > 50
    assert [row["sample_id"] for row in wrong if facts[row["sample_id"]].is_random] == []
    for row in wrong:
        failing = [output for output in row["outputs"] if output["min_t"] > TOLERANCE]
        assert any(output["num_elements"] > 1 for output in failing), row["sample_id"]


def test_no_control_of_an_embedded_record_is_bit_equal(
    embedded: tuple[Any, Mapping[str, Facts]],
) -> None:
    rows = embedded[0].select(["sample_id", "null_t", "stale_t", "status"]).to_pylist()
    assert [row["sample_id"] for row in rows if row["null_t"] == -math.inf] == []
    assert all(row["stale_t"] is not None for row in rows if row["status"] == "ok")


def test_embedded_records_are_judged_by_the_present_rules(
    embedded: tuple[Any, Mapping[str, Facts]],
) -> None:
    runs, facts = embedded
    for row in runs.to_pylist():
        again = _rejudged(row, facts.get(row["sample_id"]))
        assert again == row, row["run_id"]
