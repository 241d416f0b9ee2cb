"""Peak memory of each verb over the whole embedded dataset.

    python benchmarks/peak_memory.py [VERB ...] [--seconds 60]

Prints a JSON line per verb: the peak memory of its process in MB, its exit status, and whether it
was stopped after `--seconds`. Verbs with a worker per graph would run for days, but their own
process reads one row group at a time, so it reaches its peak early. Workers do not count: options
limit their memory.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

VERBS = {
    "list": "list",
    "show": "show torch/resnet-18",
    "select": "select --count 30 --out ids.txt",
    "score": "score graphnet",
    "score --full": "score graphnet --full",
    "plot": "plot graphnet --out plots",
    "report": "report graphnet --out site",
    "export": "export copy",
    "run": "run all --compiler torchscript --budget 1 --out runs",
    "transform": "transform all --cast bfloat16 --out cast",
    "translate": "translate cv --to paddle --out translated.parquet",
    "validate": "validate all --out checks",
    "kernels": "kernels all --compiler inductor --out kernels",
    "tasks": "tasks all --out tasks",
    "tune": "tune all --trials 4 --out tuned",
    "tune --replay": "tune --replay graphnet --tuner random --trials 4",
    "calibrate": "calibrate copy",
    "bisect": "bisect torch/resnet-18 --compiler torchscript --out bisected",
    "convert": "convert torch/resnet-18 --to networkx --out converted",
}


def peak_of(words: str, folder: Path, seconds: float) -> dict[str, Any]:
    """Return the figures of one call of `graphnet`."""
    command = [sys.executable, "-m", "graphnet_datasets", "--quiet", *words.split()]
    started_s = time.monotonic()
    process = subprocess.Popen(  # noqa: S603 (our own program)
        command, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    peak_kb, is_stopped = 0, False
    while process.poll() is None:
        try:
            status = Path(f"/proc/{process.pid}/status").read_text()
            peak_kb = next(int(line.split()[1]) for line in status.splitlines() if "VmHWM" in line)
        except (OSError, StopIteration):
            continue  # it has just ended
        if not is_stopped and time.monotonic() - started_s > seconds:
            is_stopped = True
            process.terminate()
        time.sleep(0.02)
    return {
        "command": words,
        "peak_mb": round(peak_kb / 1024),
        "exit_status": process.returncode,
        "is_stopped": is_stopped,
        "wall_s": round(time.monotonic() - started_s, 1),
    }


def main() -> None:
    """Print the figures of each verb."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "verbs", nargs="*", metavar="VERB", help=f"Any of {', '.join(VERBS)}; all by default."
    )
    parser.add_argument("--seconds", type=float, default=60.0)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        for verb in options.verbs or VERBS:
            print(json.dumps(peak_of(VERBS[verb], Path(folder), options.seconds)), flush=True)


if __name__ == "__main__":
    main()
