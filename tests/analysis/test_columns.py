"""The derived columns of a row."""

from __future__ import annotations

from hypothesis import given, settings

from graphnet_datasets.analysis.columns import cost_columns, derived_columns
from graphnet_datasets.analysis.hashes import family, signature_hash, structure_hash
from graphnet_datasets.analysis.subtasks import subtask
from graphnet_datasets.sample import Sample
from graphnet_datasets.schema import ANALYSIS_COLUMNS, VALIDATION_COLUMNS, sample_to_row
from tests.strategies import samples


@settings(max_examples=20)
@given(samples())
def test_derived_columns_are_hashes_and_costs_and_fit_into_a_row(sample: Sample) -> None:
    derived = derived_columns(sample)
    assert derived.keys() == set(ANALYSIS_COLUMNS)
    assert derived == derived | {
        "subtask": subtask(sample),
        "family": family(sample),
        "structure_hash": structure_hash(sample),
        "signature_hash": signature_hash(sample),
        **cost_columns(sample),
    }
    row = sample_to_row(sample, derived)
    assert {name: row[name] for name in ANALYSIS_COLUMNS} == derived
    assert [row[name] for name in VALIDATION_COLUMNS] == [None, None]
