"""How much of the embedded graphs the compiler `tc` covers and how well it agrees with eager.

    python benchmarks/tensor_comprehension_graphs.py --max-params 1e6 --limit 50
    python benchmarks/tensor_comprehension_graphs.py --static --max-ops 3000 --limit 600

One JSON line per graph (share of the operators covered, error against eager relative to the largest
value of each output, seconds of compiling) and one for all of them.
"""

from __future__ import annotations

import argparse
import collections
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
from graphnet_datasets.storage.filters import Filters
from graphnet_datasets.storage.selection import select_rows
from graphnet_datasets.tensor_comprehensions.compiler import TensorComprehensions
from graphnet_datasets.tensor_comprehensions.graphs.capturing import capture_graph
from graphnet_datasets.tensor_comprehensions.graphs.compiling import plan_graph


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


def count(row: dict[str, Any], reasons: collections.Counter[str]) -> dict[str, Any]:
    """Count what rules and groups cover of one graph, and note why the rest is left."""
    sample = Sample.from_row(row)
    module = materialize(sample, weights="parameters")
    inputs = make_inputs(sample, weights="parameters")
    plan = plan_graph(capture_graph("tc", module, inputs).module.graph)
    reasons.update(f"{node.target}: {reason}" for node, reason in plan.refused.items())
    return {
        "graph": sample.id,
        "num_ops": sample.num_ops,
        "covered": round(1 - plan.fallback_share, 3),
        "num_groups": len(plan.groups),
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
    parser.add_argument("--static", action="store_true", help="count only, in all formats")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    filters = Filters(framework=("torch",))
    rows = [
        row
        for row in select_rows("all", filters, dataset="graphnet")
        if (row["num_params"] or 0) <= arguments.max_params
        and row["num_ops"] <= arguments.max_ops
        and (arguments.static or row["dtype"] == "float32")
    ]
    random.Random(arguments.seed).shuffle(rows)  # noqa: S311 - a choice of graphs, no secret
    found: list[dict[str, Any]] = []
    reasons: collections.Counter[str] = collections.Counter()
    refused = 0
    for row in rows[: arguments.limit]:
        try:
            found.append(count(row, reasons) if arguments.static else measure(row))
            print(json.dumps(found[-1]), flush=True)
        except Exception as error:  # a graph that cannot be exported is counted and named
            refused += 1
            text = f"{type(error).__name__}: {error}".splitlines()[0]
            print(json.dumps({"graph": row["id"], "refused": text[:200]}), flush=True)
    covered = [each["covered"] for each in found]
    summary: dict[str, Any] = {"graphs": len(found), "refused": refused}
    if found:
        summary["median_covered"] = statistics.median(covered)
        summary["mean_covered"] = round(statistics.fmean(covered), 3)
        summary["share_with_0.6_covered"] = sum(each >= 0.6 for each in covered) / len(found)
    if arguments.static:
        summary["left_most"] = reasons.most_common(12)
    elif found:
        right = sum(each["error"] < 1e-4 for each in found)
        summary["share_with_error_below_1e-4"] = right / len(found)
    print(json.dumps(summary))


if __name__ == "__main__":
    main()
