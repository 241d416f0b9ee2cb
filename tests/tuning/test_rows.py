"""Tasks, candidates, measurements: round trips, and rows that cannot be."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graphnet_datasets.errors import TuningError
from graphnet_datasets.tuning import (
    Candidate,
    Measurement,
    Origin,
    Task,
    TaskSource,
    TrialStatus,
    normalised_throughput,
    task_key,
    trace_knobs,
)
from graphnet_datasets.tuning.knobs import knob_matrix

from .toy import TASKS

TIMES = st.lists(st.floats(1e-6, 1e6), min_size=1, max_size=5).map(tuple)
FEATURES = st.none() | st.lists(
    st.lists(st.floats(-1e6, 1e6, width=32), min_size=3, max_size=3), min_size=1, max_size=4
).map(lambda rows: np.array(rows, np.float32))


@st.composite
def measurements(draw: st.DrawFn) -> Measurement:
    status = draw(st.sampled_from(TrialStatus))
    return Measurement(
        task_id=draw(st.text(max_size=8)),
        trace_json=draw(st.text(max_size=20)),
        origin=draw(st.sampled_from(Origin)),
        status=status,
        times_ms=draw(TIMES) if status == TrialStatus.OK else (),
        error=draw(st.text(max_size=600)),
        predicted=draw(st.none() | st.floats(-10, 10)),
        features=draw(FEATURES),
        anchor_ms=draw(TIMES),
        trial_s=draw(st.none() | st.floats(0, 100)),
        tool_versions=draw(st.dictionaries(st.text(max_size=4), st.text(max_size=4), max_size=2)),
    )


@settings(max_examples=40)
@given(measurements())
def test_a_measurement_is_its_row(row: Measurement) -> None:
    back = Measurement.from_row(row.to_row())
    assert back.to_row() == row.to_row()
    assert back.candidate == row.candidate
    assert len(back.error) <= 500
    assert back.is_ok == math.isfinite(back.latency_ms)


@given(st.lists(st.tuples(st.text(max_size=5), st.text(max_size=5), st.integers(0, 9)), max_size=3))
def test_a_task_is_its_row(sources: list[tuple[str, str, int]]) -> None:
    task = dataclasses.replace(
        TASKS[0], sources=tuple(TaskSource(*each) for each in sources), tool_versions={"a": "1"}
    )
    assert Task.from_row(task.to_row()) == task
    assert task.weight == (sum(each[2] for each in sources) or 1)


@given(st.text(max_size=6), st.text(max_size=6), st.text(max_size=6), st.text(max_size=6))
def test_the_key_of_a_task_tells_workload_and_target_apart(a: str, b: str, c: str, d: str) -> None:
    assert (task_key(a, b) == task_key(c, d)) == ((a, b) == (c, d))


def test_rows_that_cannot_be() -> None:
    with pytest.raises(TuningError, match="at least one time, all finite"):
        Measurement("a", "[]", Origin.RANDOM, TrialStatus.OK)
    with pytest.raises(TuningError, match="at least one time, all finite"):
        Measurement("a", "[]", Origin.RANDOM, TrialStatus.OK, (1.0, math.nan))
    with pytest.raises(TuningError, match="is `crash` and has times"):
        Measurement("a", "[]", Origin.RANDOM, TrialStatus.CRASH, (1.0,))
    with pytest.raises(TuningError, match="have 1 dimensions"):
        Measurement("a", "[]", Origin.RANDOM, TrialStatus.CRASH, features=np.zeros(3))
    with pytest.raises(TuningError, match="is not a measurement: ValueError"):
        Measurement.from_row({"task_id": "a", "trace_json": "", "origin": "guess", "status": "ok"})
    with pytest.raises(TuningError, match="is not a measurement: KeyError"):
        Measurement.from_row({})
    with pytest.raises(TuningError, match="is not a task: KeyError"):
        Task.from_row({"task_id": "a"})
    with pytest.raises(TuningError, match="2 argument shapes and 1 dtypes"):
        Task("a", "", "", "t", "f", ((1,), (2,)), ("float32",))
    with pytest.raises(TuningError, match="Both must be at least 0"):
        Task("a", "", "", "t", "f", (), (), flops=-1)


def test_labels_are_relative_to_the_best_of_the_task() -> None:
    def row(task: str, *times: float) -> Measurement:
        status = TrialStatus.OK if times else TrialStatus.WRONG
        return Measurement(task, "[]", Origin.RANDOM, status, times)

    labels = normalised_throughput(
        [row("a", 4.0), row("b", 9.0), row("a", 1.0, 2.0, 3.0), row("b")]
    )
    assert labels.tolist() == [0.5, 1.0, 1.0, 0.0]
    assert normalised_throughput([row("c"), row("c")]).tolist() == [0.0, 0.0]


@pytest.mark.parametrize(
    "text",
    [
        *("", "3", "[]", "[1, 2]", "null", "[" * 100_000, '[[["A"]], [[0, null]]]'),
        '[[["SampleCategorical"]], [[0, "x"]]]',
        '[[["SamplePerfectTile"]], [[0, [0, 4]]]]',
    ],
)
def test_a_broken_trace_has_no_knobs(text: str) -> None:
    with pytest.raises(TuningError):
        trace_knobs(text)


def test_knobs_of_different_sketches_stand_side_by_side() -> None:
    matrix, names = knob_matrix([{"a": 1.0, "tile": 2.0}, {"a": 1.0, "place": 4.0}])
    assert names == ["place", "tile"]
    assert matrix.tolist() == [[0.0, 1.0], [1.0, 0.0]]
    empty, none = knob_matrix([])
    assert empty.shape == (0, 0)
    assert none == []
    with pytest.raises(TuningError, match="finite"):
        knob_matrix([{"a": math.inf}])


def test_a_candidate_is_known_by_its_text() -> None:
    one = Candidate("a", "[1]", Origin.RANDOM)
    other = Candidate("a", "[1]", Origin.PREDICT, 0.5)
    assert one.trace_hash == other.trace_hash
    assert Measurement.of(other, TrialStatus.CRASH).candidate == other
