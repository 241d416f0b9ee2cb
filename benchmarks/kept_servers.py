"""What a call of `run` and of `validate` takes in one process, with worker processes kept or not.

    python benchmarks/kept_servers.py [ID] [--calls N]

Calls with and without `keep_servers` alternate, after one of each that is not counted. Prints one
JSON line a function: the seconds of each call, and the ratio of the medians.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from typing import Any

from graphnet_datasets import Sample, load_dataset, validate
from graphnet_datasets.benchmark import run
from graphnet_datasets.isolation import keep_servers


def compare(call: Callable[[], Any], num_calls: int) -> dict[str, Any]:
    """Return seconds of calls whose processes end with them, and of calls that take them over."""
    ended: list[float] = []
    kept: list[float] = []
    with keep_servers():
        for number in range(num_calls + 1):
            with keep_servers(most=0):
                ended_s = _seconds(call)
            kept_s = _seconds(call)
            if number:  # the first of each pays for imports in this process
                ended.append(ended_s)
                kept.append(kept_s)
    ratio = statistics.median(kept) / statistics.median(ended)
    return {"ended_s": ended, "kept_s": kept, "kept_to_ended": round(ratio, 3)}


def _seconds(call: Callable[[], Any]) -> float:
    start = time.perf_counter()
    call()
    return round(time.perf_counter() - start, 3)


def main() -> None:
    """Measure both functions on one graph."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("id", nargs="?", default="torch/gcn-small")
    parser.add_argument("--calls", type=int, default=5)
    given = parser.parse_args()
    splits = load_dataset("graphnet", "all", filters=[("id", "=", given.id)])
    sample = Sample.from_row(next(row for split in splits.values() for row in split))

    def run_it() -> None:
        with tempfile.TemporaryDirectory() as out:
            run(sample, "eager", out=out, num_threads=1)

    for name, call in (("run", run_it), ("validate", lambda: validate(sample))):
        figures = compare(call, given.calls)
        line = {"benchmark": "kept_servers", "function": name, "sample": sample.id, **figures}
        sys.stdout.write(json.dumps(line) + "\n")


if __name__ == "__main__":
    main()
