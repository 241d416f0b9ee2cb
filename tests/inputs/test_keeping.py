"""What is found out about a sample once."""

from __future__ import annotations

import dataclasses

from graphnet_datasets.inputs.boxes import find_boxes
from graphnet_datasets.inputs.keeping import once_per_sample
from graphnet_datasets.inputs.offsets import find_offsets
from graphnet_datasets.inputs.roles import find_roles
from graphnet_datasets.inputs.weights import find_weight_uses
from graphnet_datasets.sample import Sample

SAMPLE = Sample("example/empty", "torch", "other", (), (), ())


def test_results_are_cached_per_sample_even_if_none() -> None:
    asked: list[str] = []

    @once_per_sample
    def find_nothing(sample: Sample) -> None:
        asked.append(sample.id)

    @once_per_sample
    def find_name(sample: Sample) -> str:
        return sample.id

    other = dataclasses.replace(SAMPLE, id="example/other")
    for sample in (SAMPLE, SAMPLE, other):
        assert find_nothing(sample) is None
        assert find_name(sample) == sample.id
    assert asked == ["example/empty", "example/other"]


def test_each_question_has_its_own_answer() -> None:
    for find in (find_boxes, find_offsets, find_roles, find_weight_uses):
        assert find(SAMPLE) is find(SAMPLE)
    assert dataclasses.replace(SAMPLE) == SAMPLE
