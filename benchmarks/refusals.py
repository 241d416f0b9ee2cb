"""Times of refusals, and of a run that has nothing left to do.

    python benchmarks/refusals.py [--repeat 3]

Prints a JSON line per command: the median wall and CPU seconds of a fresh process.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time

RUN = "run torchvision/resnet18 --compiler inductor --budget 0.05 --threads 1 --out runs"
COMMANDS = (
    "run cv --device cuda",
    "run cv --device tpu",
    "run cv --compiler inductr",
    "run torch/no-such",
    "run cv --max-ops 0",
    "kernels cv --device tpu --out mine",
    "transform cv --cast float17 --out mine",
    "tune cv --tuner nothing --out mine",
    "validate cv --check nothing",
    "bisect torch/resnet-18 --compiler nothing",
)


def seconds_of(words: str, folder: str) -> tuple[float, float]:
    """Return the wall and CPU seconds of a call of `graphnet`."""
    command = [sys.executable, "-m", "graphnet_datasets", *words.split()]
    before, started_s = os.times(), time.perf_counter()
    subprocess.run(command, cwd=folder, capture_output=True, check=False)  # noqa: S603
    wall_s, after = time.perf_counter() - started_s, os.times()
    cpu_s = after.children_user + after.children_system
    return wall_s, cpu_s - before.children_user - before.children_system


def main() -> None:
    """Print the times of each command."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeat", type=int, default=3)
    repeat = parser.parse_args().repeat
    with tempfile.TemporaryDirectory() as folder:
        seconds_of(RUN, folder)  # makes the records that the last command finds
        for words in (*COMMANDS, RUN):
            times = [seconds_of(words, folder) for _ in range(repeat)]
            wall_s, cpu_s = (statistics.median(column) for column in zip(*times, strict=True))
            row = {"command": words, "wall_s": round(wall_s, 2), "cpu_s": round(cpu_s, 2)}
            print(json.dumps(row), flush=True)


if __name__ == "__main__":
    main()
