"""Compare compiled kernels of random definitions with the interpreter.

    python benchmarks/fuzz_kernels.py [--kernels 20000] [--seed 0] [--jobs 2]

Half of the definitions are arbitrary statements, scans and scatters; the others are convolutions,
poolings and windows in all layouts, types and paddings, and in place. Each is compiled four times:
without vectors, with the default options, with random ones, and with sizes as parameters. Prints a
JSON line per process; the exit status is 1 if a kernel differs or does not compile, with the
smallest such definition.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import sys
import time
from pathlib import Path

from hypothesis import HealthCheck, given, seed, settings

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from tests.tensor_comprehensions.definitions import Case, cases, windows
from tests.tensor_comprehensions.kernels import assert_agree

KERNELS_PER_DEFINITION = 4


def fuzz(options: tuple[int, int, str]) -> dict[str, object]:
    """Compare `count` definitions of a kind and return the figures."""
    number, count, kind = options
    num_compared = 0

    @seed(number)
    @settings(
        max_examples=count,
        deadline=None,
        database=None,
        suppress_health_check=list(HealthCheck),
    )
    @given(windows() if kind == "windows" else cases())
    def compare(case: Case) -> None:
        nonlocal num_compared
        assert_agree(case)
        num_compared += 1

    begin, failure = time.monotonic(), None
    try:
        compare()
    except Exception as error:
        failure = f"{type(error).__name__}: {error}"[:4000]
    return {
        "kind": kind,
        "seed": number,
        "kernels": num_compared * KERNELS_PER_DEFINITION,
        "seconds": round(time.monotonic() - begin),
        "failure": failure,
    }


def main() -> int:
    """Print the figures of each process and return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kernels", type=int, default=20_000, help="kernels to compile in all")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=2)
    options = parser.parse_args()
    parts = 2 * options.jobs
    count = -(-options.kernels // (KERNELS_PER_DEFINITION * parts))
    jobs = [
        (options.seed * parts + part, count, ("statements", "windows")[part % 2])
        for part in range(parts)
    ]
    failed = False
    with multiprocessing.get_context("spawn").Pool(options.jobs) as pool:
        for figures in pool.imap_unordered(fuzz, jobs):
            print(json.dumps(figures), flush=True)
            failed |= figures["failure"] is not None
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
