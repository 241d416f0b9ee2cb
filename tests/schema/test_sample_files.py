"""A sample reaches the process of a job as it is, its row with all columns."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given, settings

from graphnet_datasets.analysis.columns import derived_columns
from graphnet_datasets.sample import Sample
from graphnet_datasets.schema import sample_to_row
from graphnet_datasets.schema.sample_files import SAMPLE_FILE, read_sample, write_row, write_sample
from tests.strategies import samples


@given(samples())
@settings(max_examples=40)
def test_a_sample_reaches_the_worker_as_it_is(
    tmp_path_factory: pytest.TempPathFactory, sample: Sample
) -> None:
    directory = tmp_path_factory.mktemp("job")
    write_sample(sample, directory)
    assert read_sample(directory) == sample
    row = sample_to_row(sample, derived_columns(sample))
    write_row(row, directory)
    assert read_sample(directory) == sample
    with pa.ipc.open_file(str(directory / SAMPLE_FILE)) as reader:
        assert reader.read_all().to_pylist() == [row]
