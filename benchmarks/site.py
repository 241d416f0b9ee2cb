"""What the site of many records costs: seconds to write, files, bytes, and bytes that a page loads.

`python benchmarks/site.py [RECORDS] [--runs RUNS]` replicates the records of a directory (or a few
made here) over samples and arms, writes the site without pictures and prints one JSON line.
"""

from __future__ import annotations

import argparse
import json
import resource
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from graphnet_datasets.report import write_site
from graphnet_datasets.schema import RUNS_SCHEMA, empty_run
from graphnet_datasets.scores import as_table

NUM_ARMS = 20


def some_records(count: int) -> pa.Table:
    """Return records as a run of the small embedded graphs gives them: most right, some failed."""
    rng = np.random.default_rng(0)
    environment = json.dumps({"cpu": {"model": "made"}, "packages": dict.fromkeys("abcdefgh", "1")})
    rows: list[dict[str, Any]] = []
    for index in range(count):
        eager_ms, speedup = float(np.exp(rng.normal(0, 2))), float(np.exp(rng.normal(0, 0.4)))
        row = empty_run() | {
            "task": ("cv", "nlp", "audio", "other")[index % 4],
            "family": f"family {index % 37}",
            "num_ops": int(rng.integers(5, 2000)),
            "environment": environment,
            "device": "cpu",
        }
        if index % 12 == 0:
            row |= {"status": "compile_failed", "error_type": f"Error{index % 5}"}
        else:
            row |= {
                "status": "ok", "speedup": speedup, "speedup_low": speedup * 0.98,
                "speedup_high": speedup * 1.02, "min_t": float(rng.normal(-5, 1)), "null_t": -1.0,
                "baseline_latency_ms": (eager_ms * rng.gamma(80, 1 / 80, 40)).tolist(),
                "candidate_latency_ms": (eager_ms / speedup * rng.gamma(80, 1 / 80, 40)).tolist(),
                "compile_time_s": 3.0, "floor_ms": eager_ms / 50,
            }  # fmt: skip
        rows.append(row)
    return pa.Table.from_pylist(rows, schema=RUNS_SCHEMA)


def replicated(records: pa.Table, count: int, arm: int) -> pa.Table:
    """Return `count` records of one arm, each of a sample of its own."""
    start = arm * 7 % records.num_rows  # so that arms differ
    table = records.take(pa.array((np.arange(count) + start) % records.num_rows))
    for name, values in (
        ("sample_id", [f"library/model-{index:05}" for index in range(count)]),
        ("compiler", [f"compiler {arm:02}"] * count),
        ("run_id", [f"{arm}-{index}" for index in range(count)]),
    ):
        table = table.set_column(table.schema.get_field_index(name), name, pa.array(values))
    return table


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("records", type=int, nargs="?", default=100_000)
    parser.add_argument("--runs", help="take the records of this directory")
    arguments = parser.parse_args()
    records = as_table(arguments.runs) if arguments.runs else some_records(500)
    sets = {
        f"compiler {arm:02}": replicated(records, arguments.records // NUM_ARMS, arm)
        for arm in range(NUM_ARMS)
    }
    with tempfile.TemporaryDirectory() as directory:
        began, cpu = time.perf_counter(), time.process_time()
        site = write_site(sets, Path(directory, "site"), dataset=None)
        seconds, cpu = time.perf_counter() - began, time.process_time() - cpu
        sizes = {path: path.stat().st_size for path in site.rglob("*") if path.is_file()}
        data = [size for path, size in sizes.items() if path.parent.name == "data"]
        pages = sorted(size for path, size in sizes.items() if path.suffix == ".html")
        figures = {
            "records": sum(table.num_rows for table in sets.values()),
            "seconds": round(seconds, 1),
            "cpu_seconds": round(cpu, 1),
            "peak_memory_gb": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20, 2),
            "files": len(sizes),
            "megabytes": round(sum(sizes.values()) / 1e6, 1),
            "median_page_kb": round(pages[len(pages) // 2] / 1e3, 1),
            "largest_page_kb": round(pages[-1] / 1e3, 1),
            "data_megabytes": round(sum(data) / 1e6, 2),
            "largest_chunk_kb": round(max(data) / 1e3, 1),
        }
        print(json.dumps(figures))


if __name__ == "__main__":
    main()
