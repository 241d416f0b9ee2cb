"""Time two compilers on the same graphs, compare them sample by sample, and draw both.

python examples/compare_two_compilers.py OUT
"""

from __future__ import annotations

import sys
from pathlib import Path

from graphnet_datasets import error_aware_speedup_score, load_dataset, run
from graphnet_datasets.scores import compare


def main(out: str = "runs") -> None:
    small = [("framework", "=", "torch"), ("tags", "contains", "small")]
    rows = load_dataset("graphnet", "cv", split="train", filters=small)
    rows = rows.select(range(min(2, len(rows))))
    arms = {
        name: run(rows, compiler=name, out=Path(out) / name) for name in ("eager", "torchscript")
    }
    for name, runs in arms.items():
        print(name)
        print(error_aware_speedup_score(runs))
    print(compare(arms["eager"], arms["torchscript"]))


if __name__ == "__main__":
    main(*sys.argv[1:2])
