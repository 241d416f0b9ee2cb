"""Rows of real graphs: upstream's samples, through a file and back."""

from __future__ import annotations

from pathlib import Path

import pytest

from graphnet_datasets import read_directory
from graphnet_datasets.schema import sample_from_row
from graphnet_datasets.storage.table import read_table, write_table
from tests.exact import exact


@pytest.mark.parametrize("step", [10, pytest.param(1, marks=pytest.mark.slow)])
def test_real_graphs_survive_a_file_exactly(
    upstream_samples: Path, tmp_path: Path, step: int
) -> None:
    directories = sorted({path.parent for path in upstream_samples.rglob("graph_net.json")})
    samples = [sample for each in directories[::step] for sample in read_directory(each)]
    assert {sample.framework for sample in samples} == {"torch", "paddle"}
    rows = read_table(write_table(samples, tmp_path / "graphs.parquet")).to_pylist()
    for sample, row in zip(samples, rows, strict=True):
        assert exact(sample_from_row(row)) == exact(sample)
        assert (row["num_ops"], row["num_params"]) == (sample.num_ops, sample.num_params)
        assert row["family"] and row["structure_hash"] and row["signature_hash"]
