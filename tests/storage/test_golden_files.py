"""A file that version 0.1.0 wrote: it still loads, and its samples keep their identities."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("torch")

import torch
from torch import nn

from graphnet_datasets import extract, load_dataset
from graphnet_datasets.analysis.hashes import signature_hash
from graphnet_datasets.benchmark.records.records import sample_digest
from graphnet_datasets.sample import Sample
from graphnet_datasets.storage.selection import select_rows
from graphnet_datasets.storage.table import read_table

GOLDEN = Path(__file__).parents[1] / "golden" / "graphs-0.1.0.parquet"

# The id, the stored signature hash, and the digest from which the ids of run records are made.
IDENTITIES = [
    ("golden/mlp", "8117bf2419c869ececbcab0eb716c5b8", "3bc45970a8966d77d714ef26"),
    ("golden/data_dependent", "a4cdb8f7ed2d87ca33adcb4d2fee3960", "bf2e8d7dd0500a9338f1014a"),
    ("golden/dynamic", "3622434092115fcc82b037bf384cb37e", "9c66be5f966b03639818dcd5"),
    ("golden/broken/subgraph_0", "57819a7982ac434ee91aa9faf1a6556b", "6bb0fa3ffb9f4175a955676c"),
    ("golden/broken/subgraph_1", "df689d081df82c64debd6db851ddae95", "a475466aafd1b8c9a3b2aad5"),
    ("golden/export", "7aa06ac7f9a54f8d253e771b158d1699", "87634323cf16930c5c6551c7"),
    ("golden/paddle", "750801bf5984f8ab70f01eb854303c8e", "e81e8372bc159180e495ed01"),
]


def test_rows_keep_their_ids_hashes_and_digests() -> None:
    rows = read_table(GOLDEN).to_pylist()
    samples = [Sample.from_row(row) for row in rows]
    assert [
        (sample.id, row["signature_hash"], sample_digest(sample))
        for sample, row in zip(samples, rows, strict=True)
    ] == IDENTITIES


def test_a_run_and_a_dataset_read_the_same_samples() -> None:
    expected = sorted((sample_id, signature) for sample_id, signature, _ in IDENTITIES)
    for rows in (select_rows(GOLDEN), load_dataset(str(GOLDEN), split="train")):
        assert sorted((row["id"], row["signature_hash"]) for row in rows) == expected


class Repeats(nn.Module):
    """The model of `golden/data_dependent`."""

    def forward(self, x: torch.Tensor, counts: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        repeated = torch.repeat_interleave(x, counts, dim=0)
        size = counts.max().item()
        torch._check(size >= 1)
        torch._check(size <= 3)
        return repeated.relu(), x.new_zeros(size)


def test_a_new_capture_has_the_hash_of_the_old_sample() -> None:
    (row,) = read_table(GOLDEN, filters=[("id", "=", "golden/data_dependent")]).to_pylist()
    module = extract(name="golden/data_dependent")(Repeats())
    module(torch.randn(3, 2), torch.tensor([1, 2, 3]))
    assert signature_hash(module.samples[0]) == signature_hash(Sample.from_row(row))
