"""Replays: only what was measured, half of the repetitions shown, the other half the score."""

from __future__ import annotations

import dataclasses
import statistics
from pathlib import Path

import numpy as np
import pytest

from graphnet_datasets.errors import DatasetNotFoundError, ReplayError, TuningError
from graphnet_datasets.tuning import (
    Budget,
    Candidate,
    Measurement,
    Origin,
    Pool,
    PoolSpace,
    ReplayMeasurer,
    TrialStatus,
    make_allocator,
    make_tuner,
    tune,
)
from graphnet_datasets.tuning.curves import (
    area,
    best_total,
    bootstrap,
    incumbent_scores,
    total_curve,
    trials_to,
)
from graphnet_datasets.tuning.records import write_tuning

from .toy import TASKS, make_pool, make_task


def test_a_tuner_sees_odd_repetitions_and_even_ones_score() -> None:
    row = Measurement("a", "[]", Origin.RANDOM, TrialStatus.OK, (1.0, 9.0, 2.0, 8.0, 3.0, 7.0))
    task = dataclasses.replace(TASKS[0], task_id="a")
    pool = Pool([task], [row])
    (shown,) = ReplayMeasurer(pool).measure([Candidate("a", "[]", Origin.PREDICT, 0.5)])
    assert shown.times_ms == (1.0, 2.0, 3.0)
    assert (shown.origin, shown.predicted) == (Origin.PREDICT, 0.5)
    assert pool.score_ms("a", row.trace_hash) == 8.0
    assert pool.best_score_ms(task) == 8.0


def test_a_candidate_outside_of_the_pool_is_an_error() -> None:
    pool = make_pool()
    measurer = ReplayMeasurer(pool)
    inside = PoolSpace(pool).enumerate(TASKS[0])[0]
    with pytest.raises(ReplayError, match="Let the tuner choose among the pool's candidates"):
        list(measurer.measure([inside, Candidate(TASKS[0].task_id, "[[], []]", Origin.RANDOM)]))
    with pytest.raises(ReplayError, match="no record of the task"):
        pool.rows(make_task(1, 1, 1))
    with pytest.raises(TuningError, match="does not implement `mutate`"):
        PoolSpace(pool).mutate(inside, 0)


def test_rows_that_cannot_be_replayed_are_counted() -> None:
    one = Measurement("a", "1", Origin.RANDOM, TrialStatus.OK, (1.0,))
    two = dataclasses.replace(one, trace_json="2", times_ms=(2.0, 2.0))
    more = dataclasses.replace(two, times_ms=(3.0, 3.0, 3.0))
    failed = Measurement("a", "3", Origin.RANDOM, TrialStatus.TIMEOUT)
    task = dataclasses.replace(TASKS[0], task_id="a")
    pool = Pool([task], [one, two, more, failed, dataclasses.replace(two, task_id="b")])
    assert (pool.num_single, pool.num_foreign) == (1, 1)
    assert [row.latency_ms for row in pool.rows(task)] == [3.0, np.inf]
    with pytest.raises(TuningError, match="no record to replay: 1 belong to unknown tasks"):
        Pool([], [one])
    other = [dataclasses.replace(two, feature_set=each, trace_json=each) for each in ("x", "y")]
    with pytest.raises(TuningError, match="mixes 2 feature sets: x, y"):
        PoolSpace(Pool([task], other))


def test_a_pool_is_read_from_a_dataset(tmp_path: Path) -> None:
    pool = make_pool(each=12)
    rows = [
        dataclasses.replace(row, record_id=f"{task.task_id}/{index}")
        for task in TASKS
        for index, row in enumerate(pool.rows(task))
    ]
    write_tuning(tmp_path / "pool", TASKS, rows)
    read = Pool.load(tmp_path / "pool")
    for task in TASKS:
        assert [row.trace_hash for row in read.rows(task)] == [
            row.trace_hash for row in pool.rows(task)
        ]
        assert read.best_score_ms(task) == pool.best_score_ms(task)
    with pytest.raises(DatasetNotFoundError):
        Pool.load(tmp_path / "nothing")


def test_equal_seeds_replay_alike_and_others_differ() -> None:
    pool = make_pool()

    def run(seed: int) -> list[str]:
        result = tune(
            TASKS,
            make_tuner("random", PoolSpace(pool), seed=seed),
            ReplayMeasurer(pool),
            make_allocator("gradient", TASKS, seed=seed, options={"slot_trials": 4}),
            Budget(40),
        )
        return [row.trace_hash for row in result.rows]

    assert run(1) == run(1) != run(2)


def test_curves_charge_trials_and_the_tuner() -> None:
    task = dataclasses.replace(TASKS[0], task_id="a", sources=())
    rows = [
        Measurement("a", str(i), Origin.RANDOM, TrialStatus.OK, (t, t), trial_s=2.0, tuner_s=0.5)
        for i, t in enumerate((6.0, 8.0, 2.0, 4.0))
    ]
    pool = Pool([task], rows)
    seconds, totals = total_curve(pool, rows)
    assert seconds.tolist() == [0.0, 2.5, 5.0, 7.5, 10.0]
    assert totals.tolist() == [5.0, 6.0, 6.0, 2.0, 2.0]
    assert best_total(pool) == 2.0
    assert area(seconds, totals, until=10.0, floor=2.0) == 2.5 * (3 + 4 + 4)
    assert area(seconds, totals, until=6.0) == 2.5 * (5 + 6) + 6.0
    assert incumbent_scores(pool, rows).tolist() == [6.0, 6.0, 2.0, 2.0]
    assert trials_to(pool, task, rows, cap=4) == 3
    assert trials_to(pool, task, rows, cap=2) == 3  # missed: cap + 1
    assert trials_to(pool, task, rows, share=0.3, cap=4) == 1


def test_the_incumbent_is_chosen_by_visible_repetitions() -> None:
    task = dataclasses.replace(TASKS[0], task_id="a")
    lucky = Measurement("a", "1", Origin.RANDOM, TrialStatus.OK, (1.0, 9.0))
    steady = Measurement("a", "2", Origin.RANDOM, TrialStatus.OK, (2.0, 2.0))
    pool = Pool([task], [lucky, steady])
    shown = list(ReplayMeasurer(pool).measure([steady.candidate, lucky.candidate]))
    assert incumbent_scores(pool, shown).tolist() == [2.0, 9.0]


def test_the_bootstrap_covers_the_mean() -> None:
    rng = np.random.default_rng(0)
    covered = 0
    for seed in range(60):
        centre, low, high = bootstrap(rng.normal(3.0, 1.0, 40), seed=seed, draws=300)
        assert low < centre < high
        covered += low < 3.0 < high
    assert covered >= 50
    median, *_ = bootstrap(np.array([1.0, 2.0, 9.0]), lambda each: float(np.median(each)))
    assert median == statistics.median([1.0, 2.0, 9.0])
