"""The loop: budgets, failures, and that a run which was stopped goes on as if it had not been."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Sequence

import pytest

from graphnet_datasets.errors import TuningError
from graphnet_datasets.tuning import (
    Budget,
    Candidate,
    Measurement,
    Measurer,
    Progress,
    TrialStatus,
    TuningResult,
    make_allocator,
    make_tuner,
    tune,
)
from graphnet_datasets.tuning.loop import MAX_FAILURES

from .toy import TASKS, SmallSpace, ToyMeasurer, ToySpace

OPTIONS = {
    "ansor": {"population": 16, "generations": 1, "rounds": 5},
    "alt": {"pool_size": 32, "trees": 8},
}


def run(tuner: str, allocator: str, trials: int, **options: object) -> TuningResult:
    space = ToySpace()
    return tune(
        TASKS,
        make_tuner(tuner, space, seed=3, options=OPTIONS.get(tuner)),
        options.pop("measurer", ToyMeasurer(space)),  # type: ignore[arg-type]
        make_allocator(allocator, TASKS, seed=3, options={"slot_trials": 4}),
        Budget(trials),
        **options,  # type: ignore[arg-type]
    )


def test_a_run_uses_its_budget_without_repetitions() -> None:
    result = run("random", "round-robin", 30)
    assert len(result.rows) == 30
    assert len({(row.task_id, row.trace_hash) for row in result.rows}) == 30
    assert set(result.best) == {task.task_id for task in TASKS}
    assert [row.trial for row in result.rows] == list(range(30))
    for task_id, best in result.best.items():
        assert best.latency_ms == min(
            row.latency_ms for row in result.rows if row.task_id == task_id
        )


def test_seconds_end_a_run_within_a_batch() -> None:
    space = ToySpace()
    result = tune(
        TASKS,
        make_tuner("random", space),
        ToyMeasurer(space),
        make_allocator("round-robin", TASKS, options={"slot_trials": 8}),
        Budget(trials=1000, seconds=10_000.0),
    )
    charged = sum((row.trial_s or 0) + (row.tuner_s or 0) for row in result.rows)
    assert 10_000 <= result.seconds < 11_500
    assert charged == pytest.approx(result.seconds, abs=1.0)
    assert 7 <= len(result.rows) <= 20


class StoppedError(Exception):
    pass


class StoppingMeasurer(Measurer):
    """Is killed in the middle of a batch."""

    is_replay = True

    def __init__(self, after: int) -> None:
        self.inner = ToyMeasurer(ToySpace())
        self.after = after

    def measure(self, candidates: Sequence[Candidate]) -> Iterator[Measurement]:
        for row in self.inner.measure(candidates):
            if self.inner.measured > self.after:
                raise StoppedError
            yield row


@pytest.mark.parametrize("tuner", ["random", "ansor", "alt"])
@pytest.mark.parametrize("allocator", ["gradient", "dynatune"])
def test_a_stopped_run_goes_on_as_if_it_had_not_been(tuner: str, allocator: str) -> None:
    # The toy charges so many seconds a trial that the tuner's own, which differ, decide nothing.
    whole = run(tuner, allocator, 40)
    for after in (0, 17, 33):
        rows: list[Measurement] = []
        states: list[str] = []
        with pytest.raises(StoppedError):
            run(
                tuner,
                allocator,
                40,
                measurer=StoppingMeasurer(after),
                keep=rows.append,
                save_state=lambda state, kept=states: kept.append(json.dumps(state)),
            )
        assert len(rows) == after
        resumed = run(tuner, allocator, 40, state=json.loads(states[-1]), rows=rows)
        assert [row.trace_hash for row in resumed.rows] == [row.trace_hash for row in whole.rows]
        assert resumed.best.keys() == whole.best.keys()


class FailingMeasurer(ToyMeasurer):
    def measure(self, candidates: Sequence[Candidate]) -> Iterator[Measurement]:
        for row in super().measure(candidates):
            if row.task_id != TASKS[1].task_id:
                yield row
            else:
                failed = Measurement.of(
                    row.candidate, TrialStatus.CRASH, error=f"signal {self.measured}"
                )
                yield failed


def test_a_task_that_only_fails_ends_after_16_with_the_first_error() -> None:
    result = run("random", "gradient", 120, measurer=FailingMeasurer(ToySpace()))
    failed = [row for row in result.rows if row.task_id == TASKS[1].task_id]
    assert len(failed) == MAX_FAILURES
    assert result.ended == {
        TASKS[1].task_id: f"every trial failed, the first crash: {failed[0].error}"
    }
    assert len(result.rows) == 120


def test_a_space_that_ends_ends_the_run() -> None:
    space = SmallSpace()
    count = len(space.enumerate(TASKS[0]))
    result = tune(
        TASKS[:1],
        make_tuner("bolt", space),
        ToyMeasurer(space),
        make_allocator("round-robin", TASKS[:1]),
        Budget(10_000),
    )
    assert len(result.rows) == count
    assert "exhausted" in result.ended[TASKS[0].task_id]


def test_progress_tells_trials_failures_and_time_left() -> None:
    seen: list[Progress] = []
    result = run("random", "round-robin", 24, on_trial=seen.append)
    assert [each.trials for each in seen] == list(range(1, 25))
    assert seen[-1].failures == sum(not row.is_ok for row in result.rows)
    assert seen[-1].seconds_left == 0.0
    assert seen[5].seconds_left > seen[20].seconds_left > 0
    assert seen[-1].best_ms == result.best[seen[-1].task.task_id].latency_ms


def test_invalid_runs_are_refused() -> None:
    space = ToySpace()
    tuner, allocator = make_tuner("random", space), make_allocator("round-robin", TASKS)
    with pytest.raises(TuningError, match="`tasks` is empty"):
        tune([], tuner, ToyMeasurer(space), allocator, Budget(9))
    with pytest.raises(TuningError, match="same id"):
        tune([TASKS[0]] * 2, tuner, ToyMeasurer(space), allocator, Budget(100))
    with pytest.raises(TuningError) as error:
        tune(TASKS, tuner, ToyMeasurer(space), allocator, Budget(23))
    assert str(error.value) == (
        "23 trials are too few for 3 tasks with slots of 8 trials. Allow 24 trials, tune fewer "
        "tasks, or use smaller slots."
    )
    with pytest.raises(TuningError, match="Both values must be above 0"):
        Budget(5, seconds=math.nan)
    with pytest.raises(TuningError, match="and no `state`"):
        run("random", "round-robin", 30, rows=run("random", "round-robin", 30).rows)


def test_a_state_that_does_not_belong_is_refused() -> None:
    states: list[dict] = []
    rows = run("random", "gradient", 30, save_state=states.append).rows
    with pytest.raises(TuningError, match="not to `AltTuner`"):
        run("alt", "gradient", 30, state=states[-1], rows=rows)
    with pytest.raises(TuningError, match="not to `DynaTune`"):
        run("random", "dynatune", 30, state=states[-1], rows=rows)
    with pytest.raises(TuningError, match="rows, but only"):
        run("random", "gradient", 30, state=states[-1], rows=rows[:5])
    with pytest.raises(TuningError, match="is invalid"):
        run("random", "gradient", 30, state={"observed": "x"}, rows=rows)
