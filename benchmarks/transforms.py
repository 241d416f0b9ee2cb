"""What the transforms cost: one JSON line a figure, medians of several calls in this process.

`seconds` are of the clock, `cpu_seconds` of the processor, which other processes do not take away.

    python benchmarks/transforms.py [ID]

On one graph of the embedded dataset (default: one of about 500 operators): cutting it into the
groups that a fusing compiler would make one kernel of, into single operators, casting it with and
without the check, and finding what recurs in all graphs.
"""

from __future__ import annotations

import json
import statistics
import sys
import time
from collections.abc import Callable
from typing import Any

from graphnet_datasets import Sample
from graphnet_datasets.frameworks import observe
from graphnet_datasets.frameworks.runtime import make_runtime
from graphnet_datasets.storage.selection import select_rows
from graphnet_datasets.transforms import Cutter, cast, find_fusible
from graphnet_datasets.transforms.parts import make_parts
from graphnet_datasets.transforms.repeats import find_repeats, trace

USUAL = "transformers/SwinForMaskedImageModeling"
CALLS = 5


def measure(name: str, call: Callable[[], Any], calls: int = CALLS, **known: Any) -> Any:
    """Print the median of some calls after a first one, and return what the last one gave."""
    found = call()
    seconds, cpu_seconds = [], []
    for _ in range(calls):
        start, cpu_start = time.perf_counter(), time.process_time()
        found = call()
        seconds.append(time.perf_counter() - start)
        cpu_seconds.append(time.process_time() - cpu_start)
    line = {
        "name": name,
        "seconds": round(statistics.median(seconds), 4),
        "cpu_seconds": round(statistics.median(cpu_seconds), 4),
        **known,
    }
    print(json.dumps(line), flush=True)
    return found


def main() -> None:
    name = sys.argv[1] if len(sys.argv) > 1 else USUAL
    (row,) = select_rows(name)
    sample = Sample.from_row(row)
    make_runtime(sample.framework, "cpu", 1)
    known = {"id": sample.id, "num_ops": sample.num_ops}
    measure("walk", lambda: Cutter(sample), **known)
    seen = measure("observe", lambda: observe(sample, allow_unchecked_operators=True), 1, **known)
    measure("cut_fusible", lambda: cut_fusible(sample), **known)
    cutter = Cutter(sample, seen=seen)
    for method in ("sole_op", "rules"):
        parts = measure(f"parts_{method}", lambda: list(make_parts(cutter, method)), **known)  # noqa: B023
        print(json.dumps({"name": f"num_parts_{method}", "count": len(parts), **known}))
    for dtype in ("bfloat16", "float64"):
        measure(f"cast_{dtype}", lambda: cast(sample, dtype, check=False), **known)  # noqa: B023
    measure("cast_bfloat16_checked", lambda: cast(sample, "bfloat16"), 1, **known)
    rows = select_rows("all")
    start = time.perf_counter()
    traces = [trace(Sample.from_row(each)) for each in rows]
    seconds = round(time.perf_counter() - start, 3)
    num_ops = sum(len(each.targets) for each in traces)
    print(json.dumps({"name": "trace", "seconds": seconds, "graphs": len(rows), "ops": num_ops}))
    families = [each["family"] for each in rows]
    found = measure("find_repeats", lambda: find_repeats(traces, families), 1, ops=num_ops)
    covered = sum(each.num_covered for each in found)
    line = {"name": "repeats", "sequences": len(found), "share": round(covered / num_ops, 4)}
    print(json.dumps(line))


def cut_fusible(sample: Sample) -> int:
    """Cut a sample into its groups, from nothing."""
    cutter = Cutter(sample)
    return len([cutter.cut(group) for group in find_fusible(cutter)])


if __name__ == "__main__":
    main()
