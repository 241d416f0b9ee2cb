"""The records that are shipped with the package: whole, of several kinds, fit for replays."""

from __future__ import annotations

import pytest

from graphnet_datasets import load_dataset
from graphnet_datasets.tuning import Pool
from graphnet_datasets.tuning.leaderboard import replay_tuners
from graphnet_datasets.tuning.records import read_records
from tests.embedded import EMBEDDED

pytestmark = pytest.mark.skipif(
    not (EMBEDDED / "tuning_records").is_dir(),
    reason="the embedded dataset has no config `tuning_records` (`python -m builder tuning`)",
)


@pytest.mark.slow
def test_they_are_many_of_many_tasks_and_all_can_be_read() -> None:
    found = read_records("graphnet", with_features=False)
    assert not found.skipped
    assert len(found.measurements) >= 6000 and len(found.tasks) >= 40
    families = {task.family for task in found.tasks.values()}
    assert {"matmul", "conv2d", "norm", "softmax", "batch_matmul"} <= families
    ids = set(load_dataset("graphnet", "all", split="all", columns=["id"])["id"])
    sources = {each.sample_id for task in found.tasks.values() for each in task.sources}
    assert sources <= ids  # every task is of a graph that is here
    assert sum(path.stat().st_size for path in EMBEDDED.glob("tuning_*/*")) <= 25 * 2**20


def test_tuners_are_compared_on_a_part_of_them() -> None:
    pytest.importorskip("sklearn", reason="scikit-learn is not installed")
    whole = Pool.load("graphnet")
    tasks = [
        task
        for task in whole.tasks.values()
        if task.family in ("matmul", "batch_matmul") and len(whole.rows(task)) >= 100
    ][:6]
    part = Pool(tasks, [row for task in tasks for row in whole.rows(task)])
    board = replay_tuners(
        part, ["random", "alt"], seeds=range(2), trials=32, tuner_options=None, slot_trials=8
    )
    rows = {row["tuner"]: row for row in board.rows()}
    assert rows["alt"]["share_of_best"] > 0.5 and rows["random"]["share_of_best"] > 0.3
    assert not board.refused
