"""Comparison of tuners on a pool of records, over the same tasks and many seeds."""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from ..errors import GraphNetError
from .curves import area, best_total, bootstrap, incumbent_scores, total_curve, trials_to
from .loop import Budget, tune
from .registry import make_allocator, make_tuner
from .replay import Pool, PoolSpace, ReplayMeasurer

TARGET_SHARE = 0.95

Count = Callable[[int, int], None]
"""Called with the number of finished runs and the total number."""


@dataclasses.dataclass(frozen=True)
class Standing:
    """The result of one tuner on one task with one seed.

    `trials_to_target` is the number of trials until the tuner's best reaches `TARGET_SHARE` of the
    pool's best, or one more than its budget if it does not. `share_of_best` is the pool's best time
    over that of the tuner's choice, scored by hidden repetitions.
    """

    tuner: str
    seed: int
    task_id: str
    task_name: str
    family: str
    trials: int
    trials_to_target: int
    share_of_best: float


@dataclasses.dataclass(frozen=True)
class Leaderboard:
    """All standings, the areas under the total latency per tuner, and tuners that cannot replay."""

    standings: tuple[Standing, ...]
    areas: Mapping[str, tuple[float, ...]]
    refused: Mapping[str, str]
    trials: int

    def rows(self) -> list[dict[str, Any]]:
        """Return a row for each tuner, fewest trials to the target first.

        95 % intervals are bootstrapped over tasks, with all seeds of a task together.
        """
        rows = []
        for tuner in dict.fromkeys(standing.tuner for standing in self.standings):
            own = [standing for standing in self.standings if standing.tuner == tuner]
            trials = _by_task(own, "trials_to_target")
            shares = _by_task(own, "share_of_best")
            mean, low, high = bootstrap(trials)
            share, share_low, share_high = bootstrap(shares)
            rows.append(
                {
                    "tuner": tuner,
                    "tasks": len(trials),
                    "seeds": trials.shape[1],
                    "trials_to_95": round(mean, 2),
                    "trials_to_95_low": round(low, 2),
                    "trials_to_95_high": round(high, 2),
                    "missed": round(float((trials > self.trials).mean()), 4),
                    "share_of_best": round(share, 4),
                    "share_of_best_low": round(share_low, 4),
                    "share_of_best_high": round(share_high, 4),
                    "area_ms_s": round(float(np.median(self.areas[tuner])), 3),
                }
            )
        return sorted(rows, key=lambda row: row["trials_to_95"])

    def markdown(self) -> str:
        """Return the leaderboard as a Markdown table."""
        lines = [
            f"Trials until the chosen candidate is within 5 % of the pool's best, at most "
            f"{self.trials}; mean over tasks and seeds with a 95 % interval over tasks.",
            "",
            "| tuner | trials to 95 % | missed | share of the best at the end | area, ms s |",
            "|---|---|---|---|---|",
        ]
        for row in self.rows():
            lines.append(
                f"| {row['tuner']} | {row['trials_to_95']} ({row['trials_to_95_low']} to "
                f"{row['trials_to_95_high']}) | {row['missed']:.1%} | {row['share_of_best']} "
                f"({row['share_of_best_low']} to {row['share_of_best_high']}) | "
                f"{row['area_ms_s']} |"
            )
        lines += [
            "",
            *(f"`{name}` cannot be replayed: {reason}" for name, reason in self.refused.items()),
        ]
        return "\n".join(lines).rstrip() + "\n"

    def json_lines(self) -> str:
        """Return all standings as JSON lines."""
        return "".join(
            f"{json.dumps(dataclasses.asdict(standing))}\n" for standing in self.standings
        )


def replay_tuners(
    pool: Pool,
    tuners: Sequence[str],
    *,
    seeds: Sequence[int],
    trials: int = 24,
    allocator: str = "round-robin",
    slot_trials: int = 4,
    tuner_options: Mapping[str, Any] | None = None,
    on_run: Count | None = None,
) -> Leaderboard:
    """Replay each tuner on all tasks of a pool with each seed, with `trials` per task on average.

    Tuners that need more than a pool offers, such as neighbours, are listed in `refused` with the
    reason.

    Raises:
        UnknownTunerError: the tuner or allocator does not exist.
        TuningError: the pool is too small for the trials.
    """
    standings: list[Standing] = []
    areas: dict[str, tuple[float, ...]] = {}
    refused: dict[str, str] = {}
    tasks = list(pool.tasks.values())
    num_done, num_runs = 0, len(tuners) * len(seeds)
    for name in tuners:
        tuner_standings: list[Standing] = []
        own_areas = []
        for seed in seeds:
            try:
                space = PoolSpace(pool)
                result = tune(
                    tasks,
                    make_tuner(name, space, seed=seed, options=tuner_options),
                    ReplayMeasurer(pool),
                    make_allocator(
                        allocator, tasks, seed=seed, options={"slot_trials": slot_trials}
                    ),
                    Budget(trials * len(tasks)),
                    tuner_name=name,
                    seed=seed,
                )
            except GraphNetError as error:
                if len(tuners) == 1:
                    raise
                refused[name] = str(error)
                tuner_standings = []
                break
            for task in tasks:
                own = [row for row in result.rows if row.task_id == task.task_id]
                scores = incumbent_scores(pool, own)
                last = float(scores[-1]) if len(scores) else math.inf
                tuner_standings.append(
                    Standing(
                        name,
                        seed,
                        task.task_id,
                        task.task_name,
                        task.family,
                        len(own),
                        trials_to(pool, task, result.rows, share=TARGET_SHARE, cap=trials),
                        pool.best_score_ms(task) / last,
                    )
                )
            seconds, totals = total_curve(pool, result.rows)
            own_areas.append(area(seconds, totals, float(seconds[-1]), best_total(pool)))
            num_done += 1
            if on_run is not None:
                on_run(num_done, num_runs)
        if tuner_standings:
            standings += tuner_standings
            areas[name] = tuple(own_areas)
    return Leaderboard(tuple(standings), areas, refused, trials)


def _by_task(standings: Sequence[Standing], name: str) -> np.ndarray:
    """Return an attribute of the standings as float64 [tasks, seeds]."""
    tasks: dict[str, list[float]] = {}
    for standing in standings:
        tasks.setdefault(standing.task_id, []).append(float(getattr(standing, name)))
    return np.array(list(tasks.values()))
