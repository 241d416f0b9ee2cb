"""Tuners compared on a pool: every tuner, seed and task, and who cannot be replayed."""

from __future__ import annotations

import json

import pytest
from typer.testing import CliRunner

from graphnet_datasets.cli.app import app
from graphnet_datasets.errors import TuningError
from graphnet_datasets.tuning.leaderboard import replay_tuners

from .toy import make_pool


def test_each_tuner_has_a_standing_for_every_task_and_seed() -> None:
    pool = make_pool(each=24)
    told: list[tuple[int, int]] = []
    board = replay_tuners(
        pool, ["random"], seeds=[0, 1, 2], trials=8, on_run=lambda *count: told.append(count)
    )
    assert told == [(1, 3), (2, 3), (3, 3)]
    assert len(board.standings) == 3 * len(pool.tasks)
    (row,) = board.rows()
    assert (row["tuner"], row["tasks"], row["seeds"]) == ("random", len(pool.tasks), 3)
    assert row["trials_to_95_low"] <= row["trials_to_95"] <= row["trials_to_95_high"] <= 9
    assert 0 < row["share_of_best"] <= 1 and len(board.areas["random"]) == 3
    again = replay_tuners(pool, ["random"], seeds=[0, 1, 2], trials=8)
    assert [each.share_of_best for each in again.standings] == [
        each.share_of_best for each in board.standings
    ]
    lines = [json.loads(line) for line in board.json_lines().splitlines()]
    assert {each["seed"] for each in lines} == {0, 1, 2}
    assert "| random | " in board.markdown()


def test_more_trials_than_candidates_find_the_best() -> None:
    board = replay_tuners(make_pool(each=8), ["random"], seeds=[0], trials=8)
    assert all(each.trials == 8 for each in board.standings)
    assert board.rows()[0]["missed"] <= 1 / 3  # odd repetitions may prefer another one


def test_a_tuner_that_needs_more_than_a_pool_is_named() -> None:
    board = replay_tuners(
        make_pool(each=8), ["random", "tests.tuning.test_leaderboard:Never"], seeds=[0], trials=4
    )
    assert list(board.areas) == ["random"]
    assert "needs a machine" in board.markdown()
    with pytest.raises(TuningError, match="needs a machine"):
        replay_tuners(
            make_pool(each=8), ["tests.tuning.test_leaderboard:Never"], seeds=[0], trials=4
        )


def Never(*_: object, **__: object) -> None:  # noqa: N802 - stands for a class
    raise TuningError("It needs a machine.")


@pytest.mark.slow
def test_the_embedded_records_are_replayed_by_name() -> None:
    arguments = ["--tuner", "random", "--trials", "4", "--seeds", "1", "--json"]
    result = CliRunner().invoke(app, ["tune", "--replay", "graphnet", *arguments])
    assert result.exit_code == 0, result.output
    rows = [json.loads(line) for line in result.stdout.splitlines()]
    assert {row["tuner"] for row in rows} == {"random"}
    assert len({row["task_id"] for row in rows}) > 10
