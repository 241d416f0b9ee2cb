"""What it takes to choose samples of the embedded dataset, before anything is run.

    python benchmarks/selection.py

A fresh process for each choice, as `graphnet run` makes it: wall seconds of `select_rows` alone,
the peak of memory of the process, and how many samples were chosen. One JSON line each.
"""

from __future__ import annotations

import json
import subprocess
import sys

STEPS = """
import json, resource, sys, time
from graphnet_datasets.storage.filters import Filters
from graphnet_datasets.storage.selection import select_rows
name, filters = json.loads(sys.argv[1])
begin = time.perf_counter()
rows = select_rows(name, Filters(**filters))
took = time.perf_counter() - begin
print(json.dumps({
    "benchmark": "selection",
    "name": name,
    "filters": filters,
    "samples": len(rows),
    "seconds": round(took, 2),
    "peak_mb": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024),
}))
"""

CHOICES = (
    ("all", {"limit": 10}),
    ("all", {"tag": ["small"]}),
    ("cv", {"max_ops": 100}),
    ("torchvision/resnet18", {}),
)


def main() -> None:
    """Measure each choice in a separate process."""
    for choice in CHOICES:
        command = [sys.executable, "-c", STEPS, json.dumps(choice)]
        subprocess.run(command, check=True)  # noqa: S603 (our own text)


if __name__ == "__main__":
    main()
