"""The jobs of a transform's workers: transforming a row, and writing tables."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from ...analysis.columns import derived_columns
from ...analysis.splits import split_of_row
from ...errors import GraphNetError, TransformError
from ...frameworks import FRAMEWORK_VARIABLE, module
from ...frameworks.runtime import make_runtime
from ...inputs import prepare_blocks
from ...isolation import Reporter
from ...sample import Sample
from ...schema import Table, config_named, config_of, sample_to_row
from ...schema.tables import GRAPHS, SUBGRAPHS
from ...transforms.registry import Running, Step, apply, branches
from ...transforms.subgraphs import subgraph_hash
from ..mapping import map_items
from ..plans import write_plans
from ..table import to_arrow

PHASES = ("transform", "write")
MODULES_VARIABLE = "GRAPHNET_DATASETS_TRANSFORM_MODULES"
"""Environment variable of a server: the framework modules to import before forking."""


def prepare() -> None:
    """Import the modules that all jobs need; writing tables needs no framework."""
    framework = os.environ.get(FRAMEWORK_VARIABLE)
    if not framework:
        return
    make_runtime(framework, "cpu", 1)  # jobs run in parallel
    module(framework, "runtime").import_all(with_fakes=True)
    module(framework, "observing")
    module(framework, "results")
    for name in os.environ.get(MODULES_VARIABLE, "").split():
        # If an import fails, each sample is rejected with the reason.
        with contextlib.suppress(GraphNetError):
            module(framework, name)
    prepare_blocks()


def work(payload: Mapping[str, Any], reporter: Reporter, directory: Path) -> None:
    """Transform a row, or write the tables of its plan."""
    if "plan" in payload:
        reporter.enter("write")
        write_plans(payload["plan"])
        return
    map_items(payload, directory, transform_row)


def transform_row(
    row: Mapping[str, Any], job: Mapping[str, Any]
) -> tuple[list[pa.Table], dict[str, Any]]:
    """Return the samples that a job's steps create from a row, and notes about them."""
    steps = [Step(step["name"], step["options"]) for step in job["steps"]]
    split = split_of_row(row)
    rows: list[dict[str, Any]] = []
    notes_of_samples: list[dict[str, Any]] = []
    refused: dict[tuple[str, str], list[Any]] = {}
    for chain, outcome in _apply(row, steps, job["may_run"]):
        if isinstance(outcome, TransformError):
            entry = refused.setdefault(
                (outcome.operator, outcome.reason or str(outcome)), [str(outcome), 0]
            )
            entry[1] += 1
            continue
        config = chain[-1].config or config_of(row)
        method = chain[-1].options.get("method")
        note, columns = _describe(outcome, config_named(config).table, row["family"], method)
        notes_of_samples.append({"place": [config, split], **note})
        rows.append(columns)
    notes = {
        "family": row["family"],
        "task": row["task"],
        "has_run": job["may_run"],
        "made": notes_of_samples,
        "refused": [
            {"operator": operator, "reason": reason, "message": message, "count": count}
            for (operator, reason), (message, count) in refused.items()
        ],
    }
    # Thousands of small parts of graphs in a batch each would take ten times the disk space.
    table = SUBGRAPHS if any("subgraph_hash" in columns for columns in rows) else GRAPHS
    groups = [rows] if table is SUBGRAPHS else [[columns] for columns in rows]
    return [to_arrow(group, table) for group in groups if group], notes


def _apply(
    row: Mapping[str, Any], steps: Sequence[Step], may_run: bool
) -> Iterator[tuple[tuple[Step, ...], Sample | TransformError]]:
    """Yield the samples and errors of each chain applied to a row."""
    running = Running(may_run, allow_unchecked_operators=True)
    chains = branches(steps)
    chain = chains[0]
    try:
        sample = Sample.from_row(row)
        for chain in chains:
            yield from ((chain, result) for result in apply(sample, chain, running))
    except GraphNetError as error:
        yield chain, TransformError(str(error), reason=f"the row cannot be read: {error}")
    except MemoryError:  # exceeds the process limit, but may succeed without a run
        raise
    except Exception as error:  # any failure of a sample must be reported
        kind = type(error).__name__
        yield (
            chain,
            TransformError(
                f"The transform failed, which is a bug in the transform: {kind}: {error}",
                reason=f"a bug in the transform: {kind}",
            ),
        )


def _describe(
    sample: Sample, table: Table, family: str, method: str | None
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the notes of a sample, and its row."""
    row = sample_to_row(sample, {**derived_columns(sample), "family": family})
    note: dict[str, Any] = {"id": sample.id, "num_ops": sample.num_ops}
    if table is SUBGRAPHS:
        has_statistics = all(
            value.statistics is not None or value.data is not None
            for value in sample.inputs
            if value.role not in ("symbol", "scalar")
        )
        part_columns = {"subgraph_hash": subgraph_hash(sample), "has_statistics": has_statistics}
        row |= part_columns | {"method": method}
        note |= {"count": sample.provenance.num_occurrences or 1, "method": method, **part_columns}
        note["structure_hash"] = row["structure_hash"]
    return note, row
