"""Time of scoring 2,700 run records at all t, with intervals, and of reading an upstream log.

    python benchmarks/scoring.py [LOG OF UPSTREAM'S BENCHMARK]

Prints one JSON object per figure: the best of five. The records are drawn (a third of them fail, a
thousand families, as many as upstream's corpus has); the loop over samples and t that stands
beside them is the report's sample-level definition (where zeros are correct at no t) in plain
Python, in the same run. The log is
repeated until it tells of 2,700 samples.
"""

from __future__ import annotations

import json
import math
import re
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from graphnet_datasets import error_aware_speedup_score, import_log, speedup_score
from graphnet_datasets.schema import RUNS_SCHEMA, empty_run
from graphnet_datasets.scores import TOLERANCES

LOG = Path(__file__).parents[2] / "shared/data/upstream_benchmark.log"
NUM_RECORDS = 2700
NUM_FAMILIES = 1000
REPEATS = 5


def draw_records() -> pa.Table:
    """Return run records whose speedups, tolerances and failures are drawn."""
    generator = np.random.default_rng(0)
    statuses = generator.choice(
        ["ok", "run_failed", "compile_failed"], NUM_RECORDS, p=[0.7, 0.15, 0.15]
    )
    rows = []
    for index, status in enumerate(statuses):
        row = empty_run() | {
            "run_id": str(index),
            "sample_id": f"sample/{index}",
            "compiler": "inductor",
            "device": "cpu",
            "family": f"family {generator.integers(NUM_FAMILIES)}",
            "status": str(status),
        }
        if status == "ok":
            row |= {
                "speedup": math.exp(generator.normal(0.2, 0.4)),
                "min_t": float(generator.normal(-5, 3)),
                "null_t": float(generator.normal(-1, 1)),
            }
        rows.append(row)
    return pa.Table.from_pylist(rows, schema=RUNS_SCHEMA)


def loop(table: pa.Table, p: float = 0.1, b: float = 0.1) -> list[float]:
    """Return S(t) for t <= 0 by looking at every sample at every t, without intervals."""
    rows = table.select(["status", "speedup", "min_t", "null_t"]).to_pylist()
    scores = []
    for t in TOLERANCES[:11]:
        total = 0.0
        for row in rows:
            if row["status"] == "ok" and row["min_t"] <= t and row["min_t"] < row["null_t"]:
                speedup = row["speedup"]
                total += math.log(speedup) * (1 if speedup >= 1 else p + 1)
            else:
                total += math.log(b)
        scores.append(math.exp(total / len(rows)))
    return scores


def best_ms(call: Callable[[], Any]) -> float:
    """Return the shortest of a few calls in milliseconds."""
    times = []
    for _ in range(REPEATS):
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return round(min(times) * 1e3, 2)


def main() -> None:
    """Print the figures."""
    table = draw_records()
    np.testing.assert_allclose(speedup_score(table)["S"][:11], loop(table), rtol=1e-12)
    figures = {
        "S, with intervals": lambda: speedup_score(table),
        "ES, with intervals": lambda: error_aware_speedup_score(table),
        "S, no intervals": lambda: speedup_score(table, has_intervals=False),
        "S, no intervals, loop in Python": lambda: loop(table),
    }
    for name, call in figures.items():
        print(json.dumps({"figure": name, "records": NUM_RECORDS, "best_ms": best_ms(call)}))
    log = Path(sys.argv[1]) if len(sys.argv) > 1 else LOG
    if not log.is_file():
        print(json.dumps({"figure": "import of a log", "skipped": f"there is no log at {log}"}))
        return
    text = log.read_text(errors="replace")
    num_samples = text.count("[Processing]")
    copies = math.ceil(NUM_RECORDS / num_samples)
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "long.log"
        with path.open("w") as file:
            for copy in range(copies):
                file.write(re.sub(r"(\[Processing\] .*)", rf"\1/{copy}", text))
        figure = {"figure": "import of a log", "samples": copies * num_samples}
        figure |= {"megabytes": round(path.stat().st_size / 1e6, 1)}
        print(json.dumps(figure | {"best_ms": best_ms(lambda: import_log(path))}))


if __name__ == "__main__":
    main()
