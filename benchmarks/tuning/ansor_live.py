"""Ansor's search against random search at equal trials, live: tasks of a dataset, several seeds.

    taskset -c 0 python benchmarks/tuning/ansor_live.py TASKS --out build/study
    taskset -c 0 python benchmarks/tuning/ansor_live.py TASKS --tasks 1 --trials 16

Each tuner gets the same trials on each task with each seed, slots of all tasks in turns: Ansor has
one cost model, which learns of all of them. Then the best of both are timed again, in turns, and
the ratio of their medians is the figure: a lucky repetition of the search counts for nothing. What
a search found is in OUT/ansor-runs.jsonl, so that the same call continues. A line per task and
one with the geometric mean, also in OUT/ansor_live.jsonl for `study.py`.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from graphnet_datasets.atomic import append_json, write_text
from graphnet_datasets.decoding import read_journal
from graphnet_datasets.tuning import (
    Budget,
    Candidate,
    Origin,
    Task,
    make_allocator,
    make_tuner,
    tune,
)
from graphnet_datasets.tuning.curves import bootstrap
from graphnet_datasets.tuning.isolated_space import IsolatedSpace
from graphnet_datasets.tuning.measure import LiveMeasurer, TimingPlan
from graphnet_datasets.tuning.records import read_tasks
from graphnet_datasets.tuning.running import TaskChoice, usable

FAMILIES = ("matmul", "batch_matmul", "conv2d", "conv1d", "conv_transpose")
TUNERS: dict[str, dict[str, Any]] = {"random": {}, "ansor": {}}


def main(argv: Sequence[str] | None = None) -> None:
    """Search, time the winners in turns, and print the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("dataset", type=Path, help="a dataset with tuning_tasks")
    parser.add_argument("--out", type=Path, default=Path("build/study"))
    parser.add_argument("--tasks", type=int, default=8)
    parser.add_argument("--trials", type=int, default=64)
    parser.add_argument("--slot", type=int, default=16)
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--population", type=int, default=128)
    parser.add_argument("--generations", type=int, default=4)
    parser.add_argument("--turns", type=int, default=5, help="in which both winners are timed")
    given = parser.parse_args(argv)
    TUNERS["ansor"] = {"population": given.population, "generations": given.generations}
    choice = TaskChoice(
        family=FAMILIES, min_flops=1_000_000, max_flops=300_000_000, max_tasks=given.tasks
    )
    started, lines = time.monotonic(), []
    with IsolatedSpace() as space:
        tasks, skipped = usable(choice.choose(read_tasks(given.dataset).tasks.values()), space)
        if skipped:
            lines.append({"experiment": "ansor", "skipped": skipped})
        with LiveMeasurer(tasks, plan=TimingPlan(), mcpu=space.mcpu) as measurer:
            kept = Kept(given.out / "ansor-runs.jsonl")
            ids = [task.task_id for task in tasks]
            logs = np.empty((len(tasks), given.seeds))
            for seed in range(given.seeds):
                key = [ids, given.trials, given.slot, seed]
                best = {
                    name: kept.get(
                        [name, options, *key],
                        lambda n=name, o=options, s=seed: search(
                            tasks, n, o, s, space, measurer, given
                        ),
                    )
                    for name, options in TUNERS.items()
                }
                for place, task in enumerate(tasks):
                    traces = {
                        name: best_of_tuner[task.task_id]["trace"]
                        for name, best_of_tuner in best.items()
                    }
                    logs[place, seed] = kept.get(
                        [task.task_id, "ratio", TUNERS, *key],
                        lambda t=task, x=traces: ratio(t, x, measurer, given.turns),
                    )
            for task, own in zip(tasks, logs, strict=True):
                lines.append(line_of(task, own))
                print(json.dumps(lines[-1]), flush=True)
    centre, low, high = bootstrap(logs)
    lines.append(
        {
            "experiment": "ansor",
            "ansor_over_random": round(float(np.exp(centre)), 4),
            "interval": [round(float(np.exp(low)), 4), round(float(np.exp(high)), 4)],
            "tasks": len(tasks),
            "seeds": given.seeds,
            "trials": given.trials,
        }
    )
    print(json.dumps(lines[-1]))
    shown = f"python benchmarks/tuning/ansor_live.py TASKS --tasks {given.tasks}"
    shown += f" --trials {given.trials} --seeds {given.seeds}"
    header = {"part": "ansor", "shown": shown, "cpu_s": round(time.monotonic() - started, 1)}
    text = "".join(f"{json.dumps(line)}\n" for line in [header, *lines])
    write_text(given.out / "ansor_live.jsonl", text)


class Kept:
    """Measurements in a file with a line each, which are not repeated."""

    def __init__(self, path: Path) -> None:
        self.path = path
        path.parent.mkdir(parents=True, exist_ok=True)
        self.values = {json.dumps(key): value for key, value in read_journal(path)}

    def get(self, key: Any, make: Any) -> Any:
        """Return what was measured under a key, or measure it."""
        text = json.dumps(key)
        if text not in self.values:
            self.values[text] = json.loads(json.dumps(make()))
            append_json(self.path, [key, self.values[text]])
        return self.values[text]


def search(
    tasks: Sequence[Task],
    name: str,
    options: dict[str, Any],
    seed: int,
    space: IsolatedSpace,
    measurer: LiveMeasurer,
    given: argparse.Namespace,
) -> dict[str, Any]:
    """Return the best trace that a tuner found for each task, by task id, and its time."""
    started = time.monotonic()
    result = tune(
        tasks,
        make_tuner(name, space, seed=seed, options=options),
        measurer,
        make_allocator("round-robin", tasks, seed=seed, options={"slot_trials": given.slot}),
        Budget(given.trials * len(tasks)),
        seed=seed,
    )
    for task in tasks:
        if task.task_id not in result.best:
            raise SystemExit(f"Every trial of `{task.task_name}` failed: {result.ended}.")
    print(f"# {name}, seed {seed}: {time.monotonic() - started:.0f} s", file=sys.stderr, flush=True)
    return {
        task_id: {"trace": row.trace_json, "ms": row.latency_ms}
        for task_id, row in result.best.items()
    }


def ratio(task: Task, traces: dict[str, str], measurer: LiveMeasurer, turns: int) -> float:
    """Return the log of random's median time over Ansor's, both timed in turns."""
    if traces["random"] == traces["ansor"]:
        return 0.0
    candidates = {
        name: Candidate(task.task_id, trace, Origin.PREDICT) for name, trace in traces.items()
    }
    times: dict[str, list[float]] = {name: [] for name in candidates}
    for turn in range(turns):
        order = list(candidates)[:: 1 if turn % 2 == 0 else -1]
        for name, row in zip(order, measurer.measure([candidates[n] for n in order]), strict=True):
            if row.is_ok:
                times[name] += row.times_ms
    if not all(times.values()):
        raise SystemExit(f"A winner of `{task.task_name}` failed when it was timed again.")
    medians = {name: statistics.median(measured) for name, measured in times.items()}
    return float(np.log(medians["random"] / medians["ansor"]))


def line_of(task: Task, logs: np.ndarray) -> dict[str, Any]:
    """Return the line of a task; its interval is over seeds."""
    shapes = " x ".join(str(list(shape)) for shape in task.arg_shapes[:2])
    centre, low, high = bootstrap(logs)
    return {
        "experiment": "ansor",
        "task": f"{task.task_name} {shapes}",
        "ratio": round(float(np.exp(centre)), 4),
        "interval": [round(float(np.exp(low)), 4), round(float(np.exp(high)), 4)],
        "seeds": len(logs),
    }


if __name__ == "__main__":
    main()
