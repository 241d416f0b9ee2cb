"""Whether a cache of the first outputs is found out on every small embedded graph.

    python benchmarks/stored_answers.py [MOST OPERATORS] [FRAMEWORK]

Takes every embedded graph of at most so many operators (default 60), runs eager on the recorded
inputs and on sets that were drawn as for timed calls, and judges a candidate that returns the
first outputs for ever. Prints one JSON object a graph: `verdict`, which is `wrong` (not right at
t = -3), `constant` (refused, since outputs that hardly move do not follow their inputs),
`not_timed` (eager's outputs do not depend on the inputs) or `right`, which must not be; and
`constant_t`, the smallest t at which the cache would pass. The last line counts them.
"""

from __future__ import annotations

import json
import math
import os
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from graphnet_datasets import Sample, load_dataset
from graphnet_datasets.benchmark.child.arms import Workload
from graphnet_datasets.benchmark.handover import read_outputs
from graphnet_datasets.benchmark.judging.calls import DECIDED_T, compare_calls, find_constant
from graphnet_datasets.benchmark.judging.correctness import Output, find_mismatch, overall_min_t
from graphnet_datasets.frameworks.outputs import write_described
from graphnet_datasets.frameworks.runtime import make_runtime
from graphnet_datasets.schema import Reason

SETS = (2, 3, 4)


def main() -> None:
    most = int(sys.argv[1]) if len(sys.argv) > 1 else 60
    frameworks = sys.argv[2:] or ["torch", "paddle"]
    started = time.perf_counter()
    figures = []
    for sample in small_graphs(most, frameworks):
        figures.append(figure_of(sample))
        print(json.dumps(figures[-1]), flush=True)
    print(json.dumps(summary(figures) | {"seconds": round(time.perf_counter() - started, 1)}))


def small_graphs(most: int, frameworks: list[str]) -> Iterator[Sample]:
    """Yield the embedded graphs of at most `most` operators that are whole models."""
    for framework in frameworks:  # one after the other: both at once take their memory twice
        filters = [("framework", "=", framework), ("num_ops", "<=", most)]
        for row in load_dataset("graphnet", "all", split="all", filters=filters):
            if row["num_pieces"] is None:
                yield Sample.from_row(row)


def figure_of(sample: Sample) -> dict[str, Any]:
    """Return what becomes of a candidate that returns the outputs of its first call for ever."""
    runtime = make_runtime(sample.framework, "cpu", 1)
    workload = Workload(
        runtime,
        sample,
        device="cpu",
        weights="parameters",
        mode="replay",
        seed=0,
    )
    workload.note_writes()
    is_varied = workload.note_variation()
    figure: dict[str, Any] = {"sample": sample.id, "num_ops": len(sample.ops)}
    figure["is_fresh"] = workload.is_fresh
    if not is_varied:
        return figure | {"verdict": "not_timed"}
    first, *later = (_outputs(workload, index) for index in (0, *SETS))
    calls = [(first, first), *((each, first) for each in later)]
    if any(find_mismatch(*call)[0] is not Reason.NONE for call in calls):
        return figure | {"verdict": "wrong", "constant_t": math.inf}
    rows = compare_calls(calls)
    figure["constant_t"] = overall_min_t(rows)
    if figure["constant_t"] > DECIDED_T:
        return figure | {"verdict": "wrong"}
    return figure | {"verdict": "constant" if find_constant(rows, calls) else "right"}


def summary(figures: list[dict[str, Any]]) -> dict[str, Any]:
    """Return how many graphs there are of each verdict, with the names of the unusual ones."""
    named = {
        verdict: [each["sample"] for each in figures if each["verdict"] == verdict]
        for verdict in ("constant", "not_timed", "right")
    }
    is_kept = [each["sample"] for each in figures if not each["is_fresh"]]
    return {
        "graphs": len(figures),
        "wrong": sum(each["verdict"] == "wrong" for each in figures),
        **named,
        "as_recorded": is_kept,
    }


def _outputs(workload: Workload, index: int) -> list[Output]:
    arguments = workload.arguments(index)
    workload.runtime.seed(workload.seed + index)
    outputs = workload.module(**arguments)
    effects = workload.effects(arguments)
    taken = workload.runtime.excerpt((outputs, effects) if effects else outputs, None)
    handle, name = tempfile.mkstemp()
    os.close(handle)
    try:
        return read_outputs(Path(name), write_described(taken, Path(name)))
    finally:
        Path(name).unlink()


if __name__ == "__main__":
    main()
