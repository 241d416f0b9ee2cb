"""Worker that compares eager with float64 on the sample of a row."""

from __future__ import annotations

import functools
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from graphnet_datasets.benchmark.child.arms import Arm, Workload
from graphnet_datasets.benchmark.handover import read_outputs
from graphnet_datasets.benchmark.judging.correctness import eager_t
from graphnet_datasets.benchmark.judging.floors import least_bytes
from graphnet_datasets.errors import GraphNetError
from graphnet_datasets.frameworks import FRAMEWORK_VARIABLE, module
from graphnet_datasets.frameworks.runtime import make_runtime
from graphnet_datasets.inputs import prepare_blocks
from graphnet_datasets.isolation import Reporter, describe_error
from graphnet_datasets.sample import Sample
from graphnet_datasets.storage.mapping import map_items

PHASES = ("compare",)


def prepare() -> None:
    """Import the framework and the modules that all jobs need."""
    framework = os.environ[FRAMEWORK_VARIABLE]
    make_runtime(framework, "cpu", 1)  # jobs run in parallel; sums keep their order
    module(framework, "runtime").import_all()
    module(framework, "oracle")
    prepare_blocks()


def work(payload: Mapping[str, Any], reporter: Reporter, directory: Path) -> None:
    """Compare eager with float64 on samples."""
    del reporter  # a job starts in the only phase
    map_items(payload, directory, functools.partial(compare_row, directory=directory))


def compare_row(
    row: Mapping[str, Any], job: Mapping[str, Any], *, directory: Path
) -> tuple[tuple[()], dict[str, Any]]:
    """Return no tables, and notes about the sample of a row.

    The notes are `bytes`, which every program must read and write, and `eager_t`, which is None if
    the graph cannot run in float64 or draws random numbers. If eager cannot run the graph, the only
    note is the `reason`. Outputs are written to files in `directory`.
    """
    sample = Sample.from_row(row)
    try:
        return (), _compare(sample, job["memory_limit_bytes"], directory)
    except GraphNetError as error:
        return (), {"reason": str(error)}
    except Exception as error:  # operators may raise any type
        described = describe_error(error)
        return (), {"reason": f"{described['type']}: {described['message']}"}


def _compare(sample: Sample, memory_limit_bytes: int | None, directory: Path) -> dict[str, Any]:
    runtime = make_runtime(sample.framework, "cpu", 1)
    workload = Workload(
        runtime,
        sample,
        device="cpu",
        weights="parameters",
        mode="replay",
        seed=0,
        memory_limit_bytes=memory_limit_bytes,
    )
    workload.note_writes()
    arm = Arm(workload, workload.module)
    arm.prepare(0)
    arm()
    described = runtime.write_outputs(arm.results(), directory / "eager")
    eager = read_outputs(directory / "eager", described)
    num_bytes = least_bytes(sample, sum(output.elements.nbytes for output in eager))
    notes: dict[str, Any] = {"bytes": num_bytes, "eager_t": None}
    arm.discard()
    try:
        results = module(sample.framework, "oracle").float64_outputs(workload, sample)
    except Exception as error:  # operators without float64 may raise any type
        return {**notes, "oracle_problem": describe_error(error)["message"]}
    if results is not None:
        described = runtime.write_outputs(results, directory / "float64")
        notes["eager_t"] = eager_t(eager, read_outputs(directory / "float64", described))
    return notes
