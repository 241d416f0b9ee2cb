"""Cost from the start of an interpreter to the first outputs of a graph.

    python benchmarks/first_sample.py [ID ...]

A fresh process for each graph imports the library, loads its table, and runs `materialize`,
`make_inputs` and one call, on one thread. Prints a JSON line per graph: seconds of processor time
after each step, and the large packages that were imported although the graph does not need them.
"""

from __future__ import annotations

import subprocess
import sys

STEPS = """
import json, sys, time
from graphnet_datasets import Sample, load_dataset, make_inputs, materialize
took = {"import": time.process_time()}
splits = load_dataset("graphnet", "all", filters=[("id", "=", sys.argv[1])])
row = next(row for split in splits.values() for row in split)
took["load"] = time.process_time()
sample = Sample.from_row(row)
took["sample"] = time.process_time()
module = materialize(sample)
took["materialize"] = time.process_time()
import torch
torch.set_num_threads(1)
inputs = make_inputs(sample)
took["inputs"] = time.process_time()
module(**inputs)
took["outputs"] = time.process_time()
large = ("sympy", "scipy", "torch._dynamo", "torch._inductor", "matplotlib", "pandas")
print(json.dumps({
    "benchmark": "first_sample",
    "sample": sample.id,
    "cpu_s": {name: round(seconds, 3) for name, seconds in took.items()},
    "imported": [name for name in large if name in sys.modules],
}))
"""


def main() -> None:
    """Measure each graph in a separate process; the first of them fills the caches."""
    ids = sys.argv[1:] or ["torchvision/resnet18", "torch/gcn-small"]
    subprocess.run([sys.executable, "-c", STEPS, ids[0]], check=True, capture_output=True)  # noqa: S603 (our own text)
    for sample_id in ids:
        subprocess.run([sys.executable, "-c", STEPS, sample_id], check=True)  # noqa: S603 (our own text)


if __name__ == "__main__":
    main()
