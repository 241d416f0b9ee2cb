"""Agreement of eager with itself in a queue: `python benchmarks/queue_agreement.py RECORDS`.

Prints, for parts and whole graphs of one dtype, how many intervals of the speedup contain 1, and
by how much speedups and kernel times of equal arms differ. Records of other compilers are compared
with eager by both clocks.
"""

from __future__ import annotations

import statistics
import sys
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from graphnet_datasets.benchmark import read_runs
from graphnet_datasets.schema import Status


def kind_of(record: Mapping[str, Any]) -> str:
    """Return the compiler of a record, and whether its graph is a part, whole, or in bfloat16."""
    name = record["sample_id"]
    kind = (
        "part" if "/ops_" in name else "bfloat16 graph" if name.endswith("/bfloat16") else "graph"
    )
    return f"{record['compiler']}, {kind}"


def main() -> None:
    """Print a row for each kind of record."""
    kinds = defaultdict(list)
    for record in read_runs(Path(sys.argv[1])).to_pylist():
        if record["status"] == Status.OK and record["candidate_kernel_ms"]:
            kinds[kind_of(record)].append(record)
    print("| records | number | interval contains 1 | speedup | kernels of eager / of the arm |")
    print("|---|---|---|---|---|")
    for kind, records in sorted(kinds.items()):
        num_even = sum(row["speedup_low"] <= 1 <= row["speedup_high"] for row in records)
        speedup = statistics.geometric_mean(row["speedup"] for row in records)
        kernels = statistics.geometric_mean(
            row["baseline_kernel_ms"] / row["candidate_kernel_ms"] for row in records
        )
        print(f"| {kind} | {len(records)} | {num_even} | {speedup:.3f} | {kernels:.3f} |")


if __name__ == "__main__":
    main()
