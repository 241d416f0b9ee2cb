"""A small dataset of parts with two problems: `relu(linear)` and `softmax`."""

from __future__ import annotations

import dataclasses
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from graphnet_datasets.analysis.columns import derived_columns
from graphnet_datasets.sample import Input, Op, Provenance, Sample, Value
from graphnet_datasets.sample.arguments import Ref
from graphnet_datasets.schema import sample_to_row
from graphnet_datasets.schema.tables import SUBGRAPHS
from graphnet_datasets.storage.layout import write_readme
from graphnet_datasets.storage.shards import write_shards
from graphnet_datasets.storage.table import to_arrow
from graphnet_datasets.transforms.subgraphs import subgraph_hash

SIZES = ((4, 16, 8), (2, 32, 8), (8, 16, 16), (3, 24, 40), (16, 8, 8))


def linear_relu(rows: int, columns: int, features: int) -> Sample:
    return _part(
        f"linear-{rows}-{columns}-{features}",
        (rows, columns),
        (
            Op("torch.nn.functional.linear", (Ref(0), Ref(1))),
            Op("torch.relu", (Ref(2),), results=(Value("float32", (rows, features)),)),
        ),
        (features, columns),
    )


def softmax(rows: int, columns: int, dim: int) -> Sample:
    op = Op("torch.softmax", (Ref(0),), (("dim", dim),), (Value("float32", (rows, columns)),))
    return _part(f"softmax-{rows}-{columns}-{dim}", (rows, columns), (op,))


def write_parts(
    dataset: Path, samples: Sequence[Sample], config: str = "typical", splits: Any = ("train",)
) -> None:
    """Write samples as parts of a dataset."""
    rows = [
        {
            **sample_to_row(sample),
            **derived_columns(sample),
            "subgraph_hash": subgraph_hash(sample),
            "method": "repeats",
            "num_families": 1,
            "splits": list(splits),
            "has_statistics": False,
        }
        for sample in samples
    ]
    write_shards([to_arrow(rows, SUBGRAPHS)], dataset / config, "train", table=SUBGRAPHS)
    write_readme(dataset)


def write_problem_parts(dataset: Path) -> None:
    """Write the parts of both problems, one of them in two tables."""
    chains = [linear_relu(*sizes) for sizes in SIZES]
    softmaxes = [softmax(4, 8 + size, dim) for size, dim in ((0, 1), (8, 0), (16, 1), (24, -1))]
    write_parts(dataset, [*chains, *softmaxes])
    write_parts(dataset, [*chains[:1], softmax(4, 64, 1)], "fusible", ("test",))


def _compare(row: Mapping[str, Any], directory: Path) -> Mapping[str, Any]:
    from builder.problem_worker import compare_row

    return compare_row(row, {"memory_limit_bytes": None}, directory=directory)[1]


def _part(
    name: str, shape: tuple[int, ...], ops: tuple[Op, ...], weight: tuple[int, ...] = ()
) -> Sample:
    inputs = [Input("input", Value("float32", shape))]
    if weight:
        inputs.append(Input("parameter", Value("float32", weight)))
    sample = Sample(
        f"test/{name}", "torch", "other", tuple(inputs), ops, (Ref(len(inputs) + len(ops) - 1),)
    )
    provenance = Provenance(
        source="tests", license="MIT", parent_id=f"model/{shape[-1]}", num_occurrences=3
    )
    return dataclasses.replace(sample, kind="subgraph", provenance=provenance)


def write_problems(
    dataset: Path, samples: Sequence[Sample], notes: Mapping[str, Any] | None = None
) -> list[str]:
    """Write samples as parts and their problems, whatever their number; return the problems' ids.

    `notes` are those of every workload. Without them, the workloads are compared with float64 in
    this process, which requires torch.
    """
    from builder.problems import find_problems, to_row, write_rows

    write_parts(dataset, samples)
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for problem in find_problems(dataset):
            measured = {
                part.name: notes or _compare(part.row, Path(folder)) for part in problem.workloads
            }
            rows.append(to_row(problem, measured))
    write_rows(rows, dataset)
    write_readme(dataset)
    return [row["problem_id"] for row in rows]
