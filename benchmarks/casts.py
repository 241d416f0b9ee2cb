"""Number of graphs that can be cast: a JSON line per format and framework, and one per reason.

    python benchmarks/casts.py [--max-input-gb 0.05] [--max-ops 400] [--keep DIRECTORY] [DTYPE ...]

Each float32 graph of the embedded dataset whose inputs take at most that much is cast and run once
in the new format, in a separate process. Results are stored in the directory.
"""

from __future__ import annotations

import argparse
import collections
import json
import tempfile
import time
from pathlib import Path

from graphnet_datasets.storage.filters import Filters
from graphnet_datasets.storage.selection import select_rows
from graphnet_datasets.storage.table import read_table
from graphnet_datasets.storage.transforming import GraphOutcome, read_report, transform_dataset
from graphnet_datasets.transforms.cast import EMULATED, RUNS_NOWHERE
from graphnet_datasets.transforms.registry import Step


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("dtypes", nargs="*", default=["bfloat16", "float16", "float64"])
    parser.add_argument("--transform", default="cast", choices=("cast", "autocast"))
    parser.add_argument("--max-input-gb", type=float, default=0.05)
    parser.add_argument("--max-ops", type=int)
    parser.add_argument("--every", type=int, default=1, help="take every n-th graph")
    parser.add_argument("--emulate", action="store_true", help="as `graphnet transform` has it")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--keep", type=Path)
    options = parser.parse_args()
    rows = [
        row
        for row in select_rows("all", Filters(max_ops=options.max_ops))
        if row["dtype"] == "float32" and row["input_bytes"] <= options.max_input_gb * 2**30
        if options.transform == "cast" or row["framework"] == "torch"
    ][:: options.every]
    with tempfile.TemporaryDirectory() as folder:
        for dtype in options.dtypes:
            place = (options.keep or Path(folder)) / f"{options.transform}-{dtype}"
            place.parent.mkdir(parents=True, exist_ok=True)
            start = time.perf_counter()
            if place.exists():
                outcomes = tuple(read_report(place / "transform-report.jsonl"))
            else:
                emulate = {"emulate": True} if options.emulate else {}
                step = Step(options.transform, {"dtype": dtype, **emulate})
                outcomes = transform_dataset(rows, [step], place, jobs=options.jobs).outcomes
            seconds = time.perf_counter() - start
            print_table(options.transform, dtype, outcomes, seconds, count_emulated(place))


def count_emulated(place: Path) -> dict[str, int]:
    """Return how many samples of each framework no CPU runs in their format."""
    counts: collections.Counter[str] = collections.Counter()
    for path in place.glob("*/*.parquet"):
        for row in read_table(path, ["framework", "tags"]).to_pylist():
            counts[row["framework"]] += EMULATED in row["tags"]
    return counts


def print_table(
    transform: str,
    dtype: str,
    outcomes: tuple[GraphOutcome, ...],
    seconds: float,
    emulated: dict[str, int],
) -> None:
    for framework in sorted({each.framework for each in outcomes}):
        some = [each for each in outcomes if each.framework == framework]
        reasons: collections.Counter[str] = collections.Counter()
        for each in some:
            for refusal in each.refused:
                reasons[f"{refusal.reason}: {refusal.operator}"] += 1
        unrunnable = sum(
            any(refusal.reason == RUNS_NOWHERE for refusal in each.refused) for each in some
        )
        num_cast = sum(bool(each.num_made) for each in some)
        runnable = len(some) - unrunnable
        line = {
            "name": f"{transform}_{dtype}_{framework}",
            "graphs": len(some),
            "runnable": runnable,
            "made": num_cast,
            "of_them_emulated": emulated.get(framework, 0),
            "share": round(num_cast / runnable, 4) if runnable else None,
            "seconds": round(seconds, 1),
            "refused": dict(reasons.most_common()),
        }
        print(json.dumps(line), flush=True)


if __name__ == "__main__":
    main()
