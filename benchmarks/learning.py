"""The baselines of the learning tasks, with grouped and random folds.

    python benchmarks/learning.py [TASK ...]

Prints a JSON line per task, baseline and split: the metrics over the test rows of five folds.
"""

from __future__ import annotations

import argparse
import json

from graphnet_datasets import disable_progress_bars
from graphnet_datasets.learning import BASELINES, TASKS, cross_validate, load_learning_task


def main() -> None:
    """Print the metrics of each task."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("tasks", nargs="*", metavar="TASK", help=", ".join(TASKS))
    arguments = parser.parse_args()
    disable_progress_bars()
    for name in arguments.tasks or TASKS:
        task = load_learning_task(name)
        for baseline in BASELINES:
            if task.kind == "ranking" and baseline == "graph_network":
                continue
            for split in ("grouped", "random"):
                score = cross_validate(task, baseline, split)
                line = {"benchmark": "learning", "task": name, "rows": len(task.ids)}
                line |= {"groups": len(set(task.groups)), "baseline": baseline, "split": split}
                print(json.dumps(line | {key: round(score[key], 3) for key in score}), flush=True)


if __name__ == "__main__":
    main()
