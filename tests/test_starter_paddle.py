"""Paddle's part of the embedded dataset: what it holds, and that each small graph of it runs."""

from __future__ import annotations

import functools
from pathlib import Path

import pytest

import graphnet_datasets
from graphnet_datasets import Sample, make_inputs, materialize
from graphnet_datasets.frameworks.outputs import leaves
from graphnet_datasets.sample.vocabulary import TASKS
from graphnet_datasets.storage.table import read_table

from .frameworks.paddle.installed import paddle

pytestmark = pytest.mark.paddle

STARTER = Path(graphnet_datasets.__file__).parent / "starter" / "graphnet"


@functools.cache
def samples() -> dict[str, Sample]:
    tables = [
        read_table(path, filters=[("framework", "=", "paddle")])
        for task in TASKS
        for path in sorted(STARTER.glob(f"{task}/*.parquet"))
    ]
    return {row["id"]: Sample.from_row(row) for table in tables for row in table.to_pylist()}


def small() -> list[str]:
    return [name for name, sample in samples().items() if "small" in sample.provenance.tags]


def test_it_has_graphs_of_every_task_at_real_sizes_and_at_small_ones() -> None:
    found = list(samples().values())
    assert len(found) >= 60
    assert {sample.task for sample in found} == set(TASKS)
    assert len(small()) >= 40
    assert sum(sample.is_dynamic for sample in found) >= 5
    assert sum(sample.provenance.source == "PaddlePaddle/Paddle" for sample in found) >= 25
    assert max(sample.num_params for sample in found) > 1e8


def test_all_were_captured_by_the_extractor_with_measured_inputs_and_shapes() -> None:
    for name, sample in samples().items():
        assert sample.provenance.capture == "to_static", name
        for each in sample.inputs:
            # The state of a recurrent layer's dropout is empty until the layer is trained.
            if not each.source_name.endswith("_dropout_state"):
                assert each.statistics is not None and each.statistics.is_measured, name
        assert all(op.results is not None for op in sample.ops[-1:]), name


@pytest.mark.parametrize("name", small())
def test_small_graphs_run_with_finite_outputs_of_the_recorded_shapes(name: str) -> None:
    sample = samples()[name]
    layer = materialize(sample, weights="parameters")
    with paddle.no_grad():
        outputs = list(leaves(layer(**make_inputs(sample, weights="parameters"))))
    assert outputs
    for output in outputs:
        assert output.size > 0
        assert bool(paddle.isfinite(output).all())
