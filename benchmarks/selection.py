"""Cost of choosing samples of the embedded dataset, before anything is run.

    python benchmarks/selection.py

Each choice runs in a fresh process. Prints a JSON line per choice: wall seconds, the peak memory of
the process and the number of samples. `read` is `select_rows`. `map` creates the items that
`transform`, `kernels`, `tasks`, `translate` and `validate` pass to their workers one by one, and
`run` creates the jobs of `graphnet run`.
"""

from __future__ import annotations

import json
import subprocess
import sys

STEPS = """
import json, resource, sys, time
from graphnet_datasets.benchmark.executors.jobs import SampleJob
from graphnet_datasets.sample import Sample
from graphnet_datasets.storage.filters import Filters
from graphnet_datasets.storage.mapping import row_item
from graphnet_datasets.storage.selection import require, select_rows
how, name, filters = json.loads(sys.argv[1])
begin = time.perf_counter()
if how == "read":
    number = len(select_rows(name, Filters(**filters)))
elif how == "map":
    number = sum(bool(row_item(row).digest) for row in require(name, Filters(**filters)).stream())
else:
    rows = require(name, Filters(**filters)).stream()
    number = len([SampleJob(Sample.from_row(row), row, ()).packed() for row in rows])
took = time.perf_counter() - begin
print(json.dumps({
    "benchmark": "selection",
    "how": how,
    "name": name,
    "filters": filters,
    "samples": number,
    "seconds": round(took, 2),
    "peak_mb": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024),
}), flush=True)
"""

CHOICES = (
    ("read", "all", {"limit": 10}),
    ("read", "all", {"tag": ["small"]}),
    ("read", "cv", {"max_ops": 100}),
    ("read", "torchvision/resnet18", {}),
    ("map", "all", {}),
    ("map", "typical", {}),
    ("run", "all", {}),
)


def main() -> None:
    """Measure each choice in a separate process."""
    for choice in CHOICES:
        command = [sys.executable, "-c", STEPS, json.dumps(choice)]
        subprocess.run(command, check=True)  # noqa: S603 (our own text)


if __name__ == "__main__":
    main()
