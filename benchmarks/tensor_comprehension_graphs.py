"""How much of the embedded graphs the compiler `tc` covers and how well it agrees with eager.

    python benchmarks/tensor_comprehension_graphs.py --max-params 1e6 --limit 50

One JSON line per graph (share of the operators covered, error against eager relative to the largest
value of each output, seconds of compiling) and one for all of them.
"""

from __future__ import annotations

import argparse
import json
import random
import statistics
import time
import warnings
from collections.abc import Iterator
from typing import Any

import torch
from torch.utils import _pytree as pytree

from graphnet_datasets import Sample, make_inputs, materialize
from graphnet_datasets.storage.selection import Filters, select_rows
from graphnet_datasets.tensor_comprehensions.compiler import TensorComprehensions


def measure(row: dict[str, Any]) -> dict[str, Any]:
    """Compile one graph and compare it with eager."""
    sample = Sample.from_row(row)
    module = materialize(sample, weights="parameters")

    def inputs() -> dict[str, Any]:
        return make_inputs(sample, weights="parameters")

    with torch.no_grad():
        expected = module(**inputs())
    compiler = TensorComprehensions()
    start = time.perf_counter()
    compiled = compiler.compile(module, inputs())
    seconds = time.perf_counter() - start
    errors = [0.0]
    found = compiled(**inputs())
    for mine, theirs in zip(leaves(found), leaves(expected), strict=True):
        scale = theirs.double().abs().nan_to_num().max().item() or 1.0
        errors.append((mine.double() - theirs.double()).abs().nan_to_num().max().item() / scale)
    return {
        "graph": sample.id,
        "num_ops": sample.num_ops,
        "covered": round(1 - (compiler.fallback_share or 0.0), 3),
        "error": max(errors),
        "num_kernels": compiler.num_kernels,
        "compile_s": round(seconds, 1),
    }


def leaves(outputs: Any) -> Iterator[torch.Tensor]:
    """Yield the tensors of outputs that have elements."""
    found = pytree.tree_leaves(outputs)
    return (each for each in found if isinstance(each, torch.Tensor) and each.numel())


def main() -> None:
    """Measure a random choice of graphs."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--max-params", type=float, default=1e6)
    parser.add_argument("--max-ops", type=int, default=400)
    parser.add_argument("--limit", type=int, default=50)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    filters = Filters(framework=("torch",))
    rows = [
        row
        for row in select_rows("all", filters, dataset="graphnet")
        if (row["num_params"] or 0) <= arguments.max_params
        and row["num_ops"] <= arguments.max_ops
        and row["dtype"] == "float32"
    ]
    random.Random(arguments.seed).shuffle(rows)  # noqa: S311 - a choice of graphs, no secret
    found, refused = [], 0
    for row in rows[: arguments.limit]:
        try:
            found.append(measure(row))
            print(json.dumps(found[-1]), flush=True)
        except Exception as error:  # a graph that cannot be exported is counted and named
            refused += 1
            text = f"{type(error).__name__}: {error}".splitlines()[0]
            print(json.dumps({"graph": row["id"], "refused": text[:200]}), flush=True)
    summary = {
        "graphs": len(found),
        "refused": refused,
        "median_covered": statistics.median(each["covered"] for each in found),
        "share_with_error_below_1e-4": sum(each["error"] < 1e-4 for each in found) / len(found),
    }
    print(json.dumps(summary))


if __name__ == "__main__":
    main()
