"""The embedded dataset: what it holds, and that each graph in it is whole and runs."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

import graphnet_datasets
from graphnet_datasets import Sample, make_inputs, materialize
from graphnet_datasets.frameworks.torch.building.unchecked import check_operators
from graphnet_datasets.frameworks.torch.shapes import measure_footprint
from graphnet_datasets.sample.vocabulary import TASKS
from graphnet_datasets.storage.table import read_table

STARTER = Path(graphnet_datasets.__file__).parent / "starter" / "graphnet"


@functools.cache
def samples() -> dict[str, Sample]:
    paths = [path for task in TASKS for path in sorted(STARTER.glob(f"{task}/*.parquet"))]
    tables = [read_table(path) for path in paths]
    return {row["id"]: Sample.from_row(row) for table in tables for row in table.to_pylist()}


def of_torch() -> dict[str, Sample]:
    """Return the samples of torch; `test_starter_paddle` runs the others."""
    return {name: each for name, each in samples().items() if each.framework == "torch"}


def small() -> list[str]:
    return [name for name, sample in of_torch().items() if "small" in sample.provenance.tags]


def test_it_has_enough_graphs_of_every_kind_and_is_small_itself() -> None:
    found = list(samples().values())
    assert len(found) >= 120
    assert {sample.task for sample in found} == set(TASKS)
    assert len(small()) >= 40
    assert sum(sample.is_dynamic for sample in found) >= 10
    dtypes = [{each.value.dtype for each in sample.inputs} for sample in found]
    assert sum("bfloat16" in each for each in dtypes) >= 10
    paths = [path for task in TASKS for path in STARTER.glob(f"{task}/*.parquet")]
    assert sum(path.stat().st_size for path in paths) <= 4 * 2**20
    assert max(sample.num_params for sample in found) > 1e9, "real sizes beside small ones"


def test_every_weight_has_statistics_and_no_data_input_is_invented() -> None:
    for name, sample in of_torch().items():
        for each in sample.inputs:
            if each.role in ("parameter", "buffer"):
                assert each.statistics is not None, (name, each.source_name)
            if each.role == "input":
                assert each.statistics is not None and each.statistics.is_measured, name


def test_rows_and_samples_are_each_other() -> None:
    for name, sample in samples().items():
        assert Sample.from_row(sample.to_row()) == sample, name


def test_no_graph_needs_leave_to_run() -> None:
    for sample in of_torch().values():
        check_operators(sample, allow_unchecked_operators=False)


SHAPED = [
    pytest.param(name, marks=[] if "small" in sample.provenance.tags else [pytest.mark.slow])
    for name, sample in of_torch().items()
]


@pytest.mark.parametrize("name", SHAPED)
def test_shapes_propagate_to_what_was_recorded(name: str) -> None:
    sample = samples()[name]
    footprint = measure_footprint(sample)
    assert not footprint.unchecked
    results = footprint.results
    for index, (found, op) in enumerate(zip(results, sample.ops, strict=True)):
        if found is None or op.results is None:
            continue
        if op.target == "operator.getitem" and not op.results:
            continue  # dynamo notes nothing of elements that it takes out for `tolist` itself
        assert len(found) == len(op.results), (index, op.target)
        for value, recorded in zip(found, op.results, strict=True):
            if value.shape is not None and recorded.shape is not None:
                assert value.dtype == recorded.dtype, (index, op.target)
                assert sample.shape_of(value) == sample.shape_of(recorded), (index, op.target)


def tensors(outputs: object) -> Iterator[torch.Tensor]:
    if isinstance(outputs, torch.Tensor):
        yield outputs
    elif isinstance(outputs, tuple | list):
        for item in outputs:
            yield from tensors(item)


@pytest.mark.parametrize("name", small())
def test_small_graphs_run_with_finite_outputs(name: str) -> None:
    sample = samples()[name]
    module = materialize(sample, weights="parameters")
    with torch.no_grad():
        outputs = list(tensors(module(**make_inputs(sample, weights="parameters"))))
    assert outputs
    for output in outputs:
        assert output.numel() > 0
        assert torch.isfinite(output).all()
