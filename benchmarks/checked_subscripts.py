"""Time of kernels that limit gathered subscripts over that of kernels that trust them.

    python benchmarks/checked_subscripts.py

prints a JSON line for each gather: the median ratio of 40 interleaved pairs on one thread, and the
ratios at the 10th and the 90th percentile.
"""

from __future__ import annotations

import json
import sys
import warnings

import numpy as np
import torch

from graphnet_datasets.tensor_comprehensions import PreconditionWarning, define
from graphnet_datasets.tensor_comprehensions.options import Options

SOURCE = """
def rows(float(E,D) L, int64(B) I) -> (O) { O(b,d) = L(I(b),d) }
def elements(float(E) L, int64(B) I) -> (O) { O(b) = L(I(b)) }
"""
CASES = (
    ("rows", (10_000, 64), 4096),
    ("rows", (10_000, 4), 65_536),
    ("elements", (10_000,), 2**18),
)
NUM_PAIRS = 40


def main() -> None:
    """Print a line for each case."""
    definition, options = define(SOURCE), Options(threads=1)
    warnings.simplefilter("ignore", PreconditionWarning)
    for name, shape, count in CASES:
        arrays = torch.randn(*shape), torch.randint(0, shape[0], (count,))
        checked = definition.compile(name, *arrays, options=options)
        trusting = definition.compile(name, *arrays, options=options, check_bounds=False)
        ratios = [
            checked.profile(*arrays, num_runs=5, num_warm_up=1).least_ms
            / trusting.profile(*arrays, num_runs=5, num_warm_up=1).least_ms
            for _ in range(NUM_PAIRS)
        ]
        low, median, high = np.quantile(ratios, (0.1, 0.5, 0.9)).round(3).tolist()
        line = {"gather": name, "table": shape, "indices": count, "ratio": median}
        sys.stdout.write(json.dumps(line | {"low": low, "high": high}) + "\n")


if __name__ == "__main__":
    main()
