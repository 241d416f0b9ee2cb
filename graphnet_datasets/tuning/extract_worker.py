"""Extraction of the tasks of one graph, in a separate process."""

from __future__ import annotations

import functools
import importlib
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from ..compilers.exporting import export_flat
from ..compilers.tvm import lowered, to_relax, tvm_target
from ..errors import GraphNetError, TransformError
from ..frameworks import make_inputs, materialize, module
from ..inputs import prepare_blocks
from ..isolation import Reporter
from ..sample import Sample
from ..schema import SCHEMA_VERSION
from ..storage.mapping import map_items, refusal_of
from ..storage.table import to_arrow
from .extract import Extraction, extract_tasks
from .intrinsics import import_meta_schedule
from .tables import TUNING_TASKS
from .task import TaskSource


def prepare() -> Sequence[str]:
    """Import torch and TVM; return the modules that only some jobs import."""
    os.environ["TVM_NUM_THREADS"] = "1"  # read when TVM is imported
    lazy_modules = module("torch", "runtime").import_all(with_compiler=False)
    import_meta_schedule()
    importlib.import_module("tvm.relax.frontend.torch")
    prepare_blocks()
    return lazy_modules


def work(payload: Mapping[str, Any], reporter: Reporter, directory: Path) -> None:
    """Extract the tasks of a row."""
    map_items(payload, directory, functools.partial(_extract, reporter))


def _extract(
    reporter: Reporter, row: Mapping[str, Any], job: Mapping[str, Any]
) -> tuple[list[pa.Table], dict[str, Any]]:
    tasks, skipped, refused = (), {}, None
    try:
        extraction = cut(row, job, reporter)
        tasks, skipped = extraction.tasks, extraction.skipped
        if not tasks:
            refused = ", ".join(skipped) or "TVM finds no tunable operator", ""
    except GraphNetError as error:
        refused = refusal_of(error)
    notes = {"skipped": skipped, "refused": refused}
    rows = [{**task.to_row(), "schema_version": SCHEMA_VERSION} for task in tasks]
    return [to_arrow([task_row], TUNING_TASKS) for task_row in rows], notes


def cut(row: Mapping[str, Any], job: Mapping[str, Any], reporter: Reporter) -> Extraction:
    """Return the tasks of a row's graph at the sizes of its example inputs.

    Raises:
        TransformError: torch cannot export the graph, or TVM does not support it.
        GraphNetError: as raised by `materialize`.
    """
    import torch

    sample = Sample.from_row(row)
    # As in a timed run: computations on weights alone are folded and are not tasks.
    module = materialize(sample, weights="parameters", allow_unchecked_operators=True)
    inputs = make_inputs(sample, weights="parameters")
    reporter.enter("export")
    with torch.no_grad():
        try:
            _, program = export_flat("tvm", module, inputs, dynamic=False)
        except GraphNetError:
            raise
        except Exception as error:
            raise _failed(sample, "torch cannot export the graph", error) from error
        reporter.enter("lower")
        try:
            target = tvm_target(job["mcpu"], job["threads"])
            graph = lowered(to_relax(program), target)
        except Exception as error:
            raise _failed(sample, "TVM does not support the graph", error) from error
    source = TaskSource(sample.id, str(row.get("structure_hash") or ""), 0)
    return extract_tasks(graph, target, source)


def _failed(sample: Sample, reason: str, error: Exception) -> TransformError:
    lines = str(error).strip().splitlines() or [type(error).__name__]
    return TransformError(
        f"`{sample.id}`: {reason}: {lines[-1].strip()[:300]}",
        reason=f"{reason} ({type(error).__name__})",
    )
