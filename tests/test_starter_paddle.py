"""Paddle's part of the embedded dataset: what it holds, and that each small graph of it runs."""

from __future__ import annotations

import pytest

from graphnet_datasets import make_inputs, materialize
from graphnet_datasets.frameworks.outputs import leaves
from graphnet_datasets.sample.vocabulary import TASKS

from .embedded import column_rows, others, samples, small
from .frameworks.paddle.installed import paddle

pytestmark = pytest.mark.paddle

SMALL = small("paddle")
OTHERS = others("paddle", one_in=3)


def test_it_has_graphs_of_every_task_at_real_sizes_and_at_small_ones() -> None:
    rows = column_rows("framework", "task", "is_dynamic", "source", "num_params")
    rows = [row for row in rows if row["framework"] == "paddle"]
    assert len(rows) >= 60
    assert {row["task"] for row in rows} == set(TASKS)
    assert len(SMALL) >= 40
    assert sum(row["is_dynamic"] for row in rows) >= 5
    assert sum(row["source"] == "PaddlePaddle/Paddle" for row in rows) >= 25
    assert max(row["num_params"] for row in rows) > 1e8


@pytest.mark.slow
def test_all_were_captured_by_the_extractor_with_measured_inputs_and_shapes() -> None:
    for name, sample in samples((*SMALL, *OTHERS)).items():
        assert sample.provenance.capture == "to_static", name
        for each in sample.inputs:
            # The state of a recurrent layer's dropout is empty until the layer is trained.
            if not each.source_name.endswith("_dropout_state"):
                assert each.statistics is not None and each.statistics.is_measured, name
        assert all(op.results is not None for op in sample.ops[-1:]), name


@pytest.mark.parametrize("name", SMALL)
def test_small_graphs_run_with_finite_outputs_of_the_recorded_shapes(name: str) -> None:
    sample = samples((*SMALL, *OTHERS))[name]
    # Many operators of single layers are not checked.
    layer = materialize(sample, weights="parameters", allow_unchecked_operators=True)
    with paddle.no_grad():
        outputs = list(leaves(layer(**make_inputs(sample, weights="parameters"))))
    assert outputs
    for output in outputs:
        assert output.size > 0
        assert bool(paddle.isfinite(output).all())
