"""The shared strategies give samples that meet every invariant."""

from __future__ import annotations

from hypothesis import given, settings

from graphnet_datasets.sample import Sample
from tests.strategies import runnable_samples, samples


@given(samples())
@settings(max_examples=40)
def test_samples_meet_the_invariants(sample: Sample) -> None:
    assert len(sample.input_names) == len(set(sample.input_names))
    assert all(last <= sample.num_ops for last in sample.last_uses)


@given(runnable_samples())
def test_runnable_samples_return_values_of_the_graph(sample: Sample) -> None:
    assert sample.num_ops >= 1
    assert sample.num_ops in sample.last_uses
