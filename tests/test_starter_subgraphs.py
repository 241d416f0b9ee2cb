"""The parts that stand beside the embedded graphs."""

from __future__ import annotations

import functools
import zlib
from collections import Counter, defaultdict
from typing import Any

import pytest
import torch

from graphnet_datasets import Sample, make_inputs, materialize
from graphnet_datasets.analysis.splits import SPLITS
from graphnet_datasets.sample.vocabulary import TASKS
from graphnet_datasets.storage.table import read_table
from graphnet_datasets.transforms import cut
from graphnet_datasets.transforms.cut import Cutter
from graphnet_datasets.transforms.subgraphs import subgraph_hash

from .embedded import EMBEDDED, column_rows, samples

LEAST = {"sole_op": 20_000, "fusible": 5_000, "typical": 1_000}
CONFIGS = tuple(LEAST)
PARENTS = (*TASKS, "truncated")


@functools.cache
def columns(config: str) -> dict[str, list[dict[str, Any]]]:
    """Return some columns of a config, by split."""
    names = [
        *("id", "parent_id", "parent_ops", "num_ops", "family", "subgraph_hash", "method"),
        *("num_occurrences", "num_families", "splits", "framework", "kind", "structure_hash"),
    ]
    return {
        split: [
            row
            for path in sorted((EMBEDDED / config).glob(f"{split}-*.parquet"))
            for row in read_table(path, names).to_pylist()
        ]
        for split in SPLITS
    }


def rows_of(config: str, every: int, framework: str = "torch") -> list[dict[str, Any]]:
    """Return some whole rows, spread over the first table of the training split."""
    path = EMBEDDED / config / "train-0000.parquet"
    found = read_table(path, filters=[("framework", "=", framework), ("num_ops", "<", 40)])
    return found.take(list(range(0, found.num_rows, every))).to_pylist()


def test_there_are_enough_and_they_take_little() -> None:
    for config, least in LEAST.items():
        assert sum(map(len, columns(config).values())) >= least, config
    paths = [path for config in CONFIGS for path in (EMBEDDED / config).glob("*.parquet")]
    assert sum(path.stat().st_size for path in paths) <= 25 * 2**20


@pytest.mark.parametrize("config", CONFIGS)
def test_a_part_is_stored_once_and_its_structure_in_one_split(config: str) -> None:
    split_of_graph = {
        row["id"]: row["split"] for row in column_rows("id", "split", configs=PARENTS)
    }
    splits_of_structure: dict[str, set[str]] = defaultdict(set)
    split_of_structure: dict[str, str] = {}
    for row in (row for rows in columns(config).values() for row in rows):
        splits_of_structure[row["structure_hash"]].update(row["splits"])
    num_methods = Counter(row["subgraph_hash"] for rows in columns(config).values() for row in rows)
    hashes: set[tuple[str, str]] = set()
    ids: set[str] = set()
    for split, rows in columns(config).items():
        for row in rows:
            assert split_of_graph[row["parent_id"]] in row["splits"]
            assert row["splits"] == [name for name in SPLITS if name in row["splits"]]
            # Earlier than its graphs if a graph with a similar part was replaced.
            of_structure = splits_of_structure[row["structure_hash"]]
            assert SPLITS.index(split) <= min(map(SPLITS.index, of_structure))
            assert split_of_structure.setdefault(row["structure_hash"], split) == split
            assert row["num_families"] >= 1
            # Families are counted over all methods, and each method counts its own occurrences.
            if num_methods[row["subgraph_hash"]] == 1:
                assert row["num_occurrences"] >= row["num_families"]
            assert row["kind"] == "subgraph"
        hashes.update((row["subgraph_hash"], row["method"]) for row in rows)
        ids.update(row["id"] for row in rows)
        sizes = [row["num_ops"] for row in rows]
        assert sizes == sorted(sizes)
    count = sum(map(len, columns(config).values()))
    assert len(hashes) == len(ids) == count


@pytest.mark.parametrize("config", CONFIGS)
def test_they_are_parts_of_embedded_graphs(config: str) -> None:
    sizes = {row["id"]: row["num_ops"] for row in column_rows("id", "num_ops", configs=PARENTS)}
    covered = 0
    for rows in columns(config).values():
        for row in rows:
            assert max(row["parent_ops"]) < sizes[row["parent_id"]]
            assert len(row["parent_ops"]) == row["num_ops"]
            covered += row["num_occurrences"] * row["num_ops"]
    if config != "sole_op":  # whose tuples and regions are cut more than once
        assert covered <= sum(sizes.values())


@pytest.mark.parametrize(
    "config",
    [pytest.param(name, marks=pytest.mark.slow if name == "fusible" else ()) for name in CONFIGS],
)
def test_a_part_is_cut_out_of_its_parent_again(config: str) -> None:
    row = rows_of(config, 400)[-1]
    parent = samples((row["parent_id"],), PARENTS)[row["parent_id"]]
    again = cut(parent, row["parent_ops"]).sample
    assert subgraph_hash(again) == row["subgraph_hash"]
    assert [op.target for op in again.ops] == [op["target"] for op in row["ops"]]


@pytest.mark.parametrize("framework", ["torch", "paddle"])
def test_all_parts_of_some_graphs_are_cut_out_of_their_parents_again(framework: str) -> None:
    parts: dict[str, list[dict[str, Any]]] = {}
    one_in = {"torch": 48, "paddle": 16}[framework]
    for row in (row for each in CONFIGS for rows in columns(each).values() for row in rows):
        if row["framework"] == framework and zlib.crc32(row["parent_id"].encode()) % one_in == 0:
            parts.setdefault(row["parent_id"], []).append(row)
    assert sum(map(len, parts.values())) > 100
    for name, parent in samples(tuple(parts), PARENTS).items():
        cutter = Cutter(parent)
        for row in parts.pop(name):
            again = cutter.cut(row["parent_ops"]).sample
            assert subgraph_hash(again) == row["subgraph_hash"], row["id"]
    assert not parts


@pytest.mark.parametrize("config", CONFIGS)
def test_parts_run(config: str) -> None:
    for row in rows_of(config, 600):
        sample = Sample.from_row(row)
        assert subgraph_hash(sample) == row["subgraph_hash"]
        if row["input_bytes"] > 2**24:
            continue
        with torch.no_grad():
            outputs = materialize(sample, allow_unchecked_operators=True)(**make_inputs(sample))
        assert outputs is not None, sample.id
