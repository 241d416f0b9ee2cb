"""Wall time of `graphnet doctor` on its default subset, with the load of the machine.

    python benchmarks/doctor.py [COMPILER ...] [--out DIR]

Prints a JSON line per compiler: seconds, load before and after, the share of the processors that
other processes used, the numbers of samples that ran and were chosen, and the worst samples.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any


def examine(compiler: str, out: Path) -> dict[str, Any]:
    """Return the figures of one call."""
    command = [sys.executable, "-m", "graphnet_datasets", "--quiet", "doctor", compiler, "--json"]
    load, started_s = os.getloadavg()[0], time.perf_counter()
    done = subprocess.run(  # noqa: S603 (our own program)
        [*command, "--out", str(out)], stdout=subprocess.PIPE, text=True, check=False
    )
    wall_s = time.perf_counter() - started_s
    if done.returncode not in (0, 3):
        raise SystemExit(f"`graphnet doctor {compiler}` exited with {done.returncode}.")
    answer = json.loads(done.stdout)
    chosen = sum(len(answer["subset"][kind]) for kind in ("graphs", "parts", "bugs"))
    return {
        "benchmark": "doctor",
        "compiler": compiler,
        "wall_s": round(wall_s, 1),
        "load": [round(load, 1), round(os.getloadavg()[0], 1)],
        "other_cpu_share": answer["other_cpu_share"],
        "threads": answer["machine"]["threads"],
        "num_run": answer["num_run"],
        "num_chosen": chosen,
        "worst": [
            {name: finding[name] for name in ("sample_id", "kind", "is_minimal", "reason")}
            for finding in answer["worst"]
        ],
    }


def main() -> None:
    """Print the figures of each compiler."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("compilers", nargs="*", default=["inductor"], metavar="COMPILER")
    parser.add_argument("--out", type=Path, help="Keep the pages and records in this directory.")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        for compiler in arguments.compilers:
            out = (arguments.out or Path(folder)) / Path(compiler).name.replace(":", "-")
            print(json.dumps(examine(compiler, out)), flush=True)


if __name__ == "__main__":
    main()
