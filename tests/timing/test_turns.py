"""Two arms that take turns, here in two threads, which the pipes between them do not notice."""

from __future__ import annotations

import itertools
import os
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from graphnet_datasets.errors import RunError
from graphnet_datasets.timing.calls import Arm, ArmFailedError
from graphnet_datasets.timing.clocks import WallClock
from graphnet_datasets.timing.pairs import TimingSettings
from graphnet_datasets.timing.turns import MIN_ROUNDS, Turn, TurnTimes, measure_turns

SETTINGS = TimingSettings(warmup_s=0, min_warmup_calls=1, budget_s=0.1, hard_budget_s=5)


@pytest.fixture
def pipes(tmp_path: Path) -> tuple[Path, Path]:
    paths = tmp_path / "eager", tmp_path / "candidate"
    for path in paths:
        os.mkfifo(path)
    return paths


def in_turns(pipes: tuple[Path, Path], calls: dict[Arm, Any]) -> dict[Arm, TurnTimes]:
    measured: dict[Arm, TurnTimes] = {}

    def run(arm: Arm) -> None:
        mine, theirs = pipes if arm == "baseline" else reversed(pipes)
        with Turn(mine, theirs) as turn:
            if arm == "baseline":
                turn.wait()
            measured[arm] = measure_turns(
                arm, calls[arm], turn, settings=SETTINGS, clock=WallClock()
            )

    threads = [threading.Thread(target=run, args=(arm,)) for arm in calls]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return measured


def test_the_blocks_of_two_arms_never_overlap(pipes: tuple[Path, Path]) -> None:
    said: list[tuple[str, float]] = []

    def call(arm: Arm, seconds: float) -> None:
        said.append((arm, seconds))
        time.sleep(seconds)

    measured = in_turns(
        pipes,
        {
            "baseline": lambda: call("baseline", 0.01),
            "candidate": lambda: call("candidate", 0.005),
        },
    )
    baseline, candidate = measured["baseline"], measured["candidate"]
    assert len(baseline.block_lengths) == len(candidate.block_lengths) >= MIN_ROUNDS
    for times, least_ms in ((baseline, 10), (candidate, 5)):
        assert sum(times.block_lengths) == len(times.times_ms) == len(times.usage)
        assert min(times.times_ms) >= least_ms
    first = next(place for place, (arm, _) in enumerate(said) if arm == "baseline")
    changes = sum(one[0] != other[0] for one, other in itertools.pairwise(said))
    assert changes <= 2 * len(baseline.block_lengths) + 1, "each block is whole"
    assert all(arm == "candidate" for arm, _ in said[:first]), "it is warm before eager begins"


def test_an_arm_that_raises_says_so(pipes: tuple[Path, Path]) -> None:
    def failing() -> None:
        raise ValueError("broken")

    with Turn(*pipes) as turn, pytest.raises(ArmFailedError):
        measure_turns("candidate", failing, turn, settings=SETTINGS, clock=WallClock())


def test_a_partner_that_never_answers_is_waited_for_only_so_long(pipes: tuple[Path, Path]) -> None:
    with Turn(*pipes) as turn, pytest.raises(RunError) as error:
        turn.wait(0.05)
    assert str(error.value) == "The other process did not return the turn within 0.05 s."
