"""What was found for a set of weights serves others that have it."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from graphnet_datasets import Sample
from graphnet_datasets.sample import Input, Op, Provenance, Statistics, Value
from graphnet_datasets.sample.arguments import Ref
from graphnet_datasets.storage.calibrating.sharing import SharedCalibrations


def row(name: str, *, rows: int = 4, dtype: str = "float32", mode: str = "eval") -> dict[str, Any]:
    data = Input("input", Value(dtype, (rows, 16)))
    weights = [
        Input("parameter", Value(dtype, (16, 16)), source_name=f"layer_{number}.weight")
        for number in range(2)
    ]
    ops = (
        Op("torch.nn.functional.linear", (Ref(0), Ref(1))),
        Op("torch.nn.functional.linear", (Ref(3), Ref(2))),
    )
    sample = Sample(
        name, "torch", "other", (data, *weights), ops, Ref(4), provenance=Provenance(mode=mode)
    )
    return sample.to_row()


def fitted(
    given: dict[str, Any], std: float = 0.5, calibration: str = "calibrated"
) -> dict[str, Any]:
    sample = Sample.from_row(given)
    inputs = list(sample.inputs)
    inputs[2] = dataclasses.replace(inputs[2], calibrated=Statistics(0.0, std))
    changed = dataclasses.replace(sample, inputs=tuple(inputs), calibration=calibration)
    return given | {name: changed.to_row()[name] for name in ("calibration", "calibrated_inputs")}


def found_std(shared: SharedCalibrations, given: dict[str, Any]) -> float | None:
    found = shared.find(given)
    if found is None:
        return None
    assert found["calibration"] == "shared"
    inputs = Sample.from_row(given | found).inputs
    assert inputs[1].calibrated is None
    assert inputs[2].calibrated is not None
    return inputs[2].calibrated.std


@pytest.mark.torch
def test_the_same_weights_at_another_batch_and_precision_share() -> None:
    shared = SharedCalibrations()
    assert shared.find(row("a/large", rows=64)) is None
    shared.add(fitted(row("a/small")))
    assert found_std(shared, row("a/large", rows=64)) == 0.5
    assert found_std(shared, row("a/half", dtype="bfloat16")) == 0.5
    assert found_std(shared, row("a/train", mode="train")) == 0.5
    shared.add(fitted(row("a/spectral", dtype="complex64")))
    assert found_std(shared, row("a/spectral-2", rows=8, dtype="complex64")) == 0.5


@pytest.mark.torch
def test_other_weights_and_statistics_of_training_are_not_shared() -> None:
    shared = SharedCalibrations()
    shared.add(fitted(row("a/train", mode="train")))
    assert found_std(shared, row("a/eval")) is None
    assert found_std(shared, row("a/other", mode="train")) == 0.5
    other = row("a/named", mode="train")
    other["inputs"][2]["source_name"] = "layer_9.weight"
    assert shared.find(other) is None
    other = row("a/wide", mode="train")
    other["inputs"][2]["shape"] = [16, 17]
    assert shared.find(other) is None


@pytest.mark.torch
def test_a_run_of_the_whole_graph_comes_first_then_the_own_source_and_precision() -> None:
    shared = SharedCalibrations()
    shared.add(fitted(row("a/0"), 0.1, "shared"))
    assert found_std(shared, row("a/1")) == 0.1
    shared.add(fitted(row("a/2", dtype="bfloat16"), 0.2))
    assert found_std(shared, row("a/1")) == 0.2
    shared.add(fitted(row("a/3"), 0.3))
    shared.add(fitted(row("a/4"), 0.4))
    assert found_std(shared, row("a/1")) == 0.3
    assert found_std(shared, row("a/1", dtype="bfloat16")) == 0.2
    shared.add(fitted(row("b/1") | {"source": "b"}, 0.5))
    assert found_std(shared, row("b/2", dtype="bfloat16") | {"source": "b"}) == 0.5


@pytest.mark.torch
def test_unneeded_calibration_is_reported_and_equal_names_share() -> None:
    shared = SharedCalibrations()
    shared.add(row("a/small") | {"calibration": "unneeded"})
    assert shared.find(row("a/large", rows=8)) == {
        "calibration": "shared",
        "calibrated_inputs": None,
    }
    same = row("a/same")
    same["inputs"][2]["source_name"] = same["inputs"][1]["source_name"]
    shared.add(same | {"calibration": "unneeded"})
    assert shared.find(same) is None
    assert SharedCalibrations().find({"inputs": []}) is None
