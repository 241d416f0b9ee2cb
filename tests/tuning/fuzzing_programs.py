"""Mutations of the shipped workloads and traces: refused by the verifier, or harmless to TVM.

    python -m tests.tuning.fuzzing_programs --count 10000

prints how many were refused, and how many TVM loaded or refused itself. Every mutation that passes
the verifier is loaded in this process, and every trace replayed: a crash ends it with a signal.
"""

from __future__ import annotations

import argparse
import collections
import json
import random
import sys
from typing import Any

import pyarrow.parquet as pq

from graphnet_datasets.errors import GraphNetError, UnverifiedProgramError
from graphnet_datasets.storage.loading import STARTER

INTERESTING = (
    None, True, False, 0, 1, -1, 2, 7, 63, 64, 2**31 - 1, 2**31, -(2**63), 2**63 - 1, 2**64, 1.5,
    "", "main", "global", "shared", "None", "b0", "l1", '"x"', "handle", "float64", "int8",
    "tirx.call_extern", "tirx.exp", "pragma_import_llvm", [], {}, [0], ["b0"],
)  # fmt: skip


def shipped(config: str, columns: list[str]) -> list[dict[str, Any]]:
    """Return rows of a config of the embedded dataset."""
    files = sorted((STARTER / config).glob("*.parquet"))
    return [row for file in files for row in pq.read_table(file, columns=columns).to_pylist()]


def places(value: Any) -> list[tuple[Any, Any]]:
    """Return every container of a JSON value with each of its keys or indices."""
    found, waiting = [], [value]
    while waiting:
        value = waiting.pop()
        keys = value if isinstance(value, dict) else range(len(value))
        for key in keys:
            found.append((value, key))
            if isinstance(value[key], dict | list):
                waiting.append(value[key])
    return found


def mutate(content: Any, draw: random.Random) -> None:
    """Change one to three places of a JSON value: another value, a neighbour's, or none."""
    for _ in range(draw.choice((1, 1, 2, 3))):
        spots = places(content)
        if not spots:
            return
        container, key = draw.choice(spots)
        choice = draw.random()
        if choice < 0.4:
            container[key] = draw.choice(INTERESTING)
        elif choice < 0.6 and type(container[key]) is int:
            container[key] += draw.choice((-3, -2, -1, 1, 2, 3, 100))
        elif choice < 0.85:
            other, other_key = draw.choice(spots)
            container[key] = json.loads(json.dumps(other[other_key]))
        else:
            del container[key]


def main() -> None:
    """Mutate, verify and load, and print the counts as JSON."""
    from graphnet_datasets.tuning.extract import load_workload, replay
    from graphnet_datasets.tuning.intrinsics import import_meta_schedule

    parser = argparse.ArgumentParser()
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    import_meta_schedule()
    draw = random.Random(arguments.seed)  # noqa: S311 - repeatable, hides nothing
    tasks = {row["task_id"]: row for row in shipped("tuning_tasks", ["task_id", "workload_json"])}
    records = shipped("tuning_records", ["task_id", "trace_json"])
    counts: collections.Counter[str] = collections.Counter()
    for number in range(arguments.count):
        record = draw.choice(records)
        workload = tasks[record["task_id"]]["workload_json"]
        text = workload if number % 2 else record["trace_json"]
        content = json.loads(text)
        mutate(content, draw)
        text = json.dumps(content)
        try:
            if number % 2:
                load_workload(text)
            else:
                replay(load_workload(workload), text)
        except UnverifiedProgramError:
            counts["refused"] += 1
        except GraphNetError:
            counts["refused by TVM"] += 1
        else:
            counts["loaded"] += 1
    sys.stdout.write(json.dumps(counts) + "\n")


if __name__ == "__main__":
    main()
