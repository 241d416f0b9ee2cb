"""The embedded dataset: what it holds, and that each graph in it is whole and runs."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator

import pyarrow.parquet as pq
import pytest
import torch
import yaml

from graphnet_datasets import Sample, make_inputs, materialize
from graphnet_datasets.analysis.splits import SPLITS
from graphnet_datasets.frameworks.torch.building.unchecked import check_operators
from graphnet_datasets.frameworks.torch.shapes import measure_footprint
from graphnet_datasets.sample.symbols import evaluate
from graphnet_datasets.sample.vocabulary import TASKS

from .embedded import EMBEDDED, column_rows, others, paths, samples, small

SMALL = small("torch")
OTHERS = others("torch", one_in=60)
CONFIGS = (*TASKS, "truncated", "excluded")
NAMES = [*SMALL, *(pytest.param(name, marks=pytest.mark.slow) for name in OTHERS)]
UNCHECKED = ("torch/while-k-means",)
"""Graphs with a loop whose body has tensors of sizes that depend on elements."""


def test_it_has_enough_graphs_of_every_kind_and_is_small_itself() -> None:
    rows = column_rows("task", "is_dynamic", "dtype", "num_params")
    assert len(rows) >= 120
    assert {row["task"] for row in rows} == set(TASKS)
    assert len(SMALL) >= 40
    assert sum(row["is_dynamic"] for row in rows) >= 10
    assert sum(row["dtype"] == "bfloat16" for row in rows) >= 10
    assert max(row["num_params"] for row in rows) > 1e9, "real sizes beside small ones"
    assert sum(path.stat().st_size for path in EMBEDDED.rglob("*.parquet")) <= 60 * 2**20


def chosen() -> dict[str, Sample]:
    return samples((*SMALL, *OTHERS))


@pytest.mark.slow
def test_every_weight_has_statistics_and_no_data_input_is_invented() -> None:
    for name, sample in chosen().items():
        for value in sample.inputs:
            if value.role in ("parameter", "buffer"):
                # Infinite ones have none.
                is_known = value.statistics is not None or value.data is not None
                assert is_known, (name, value.source_name)
            # Two kinds of data are not measured: those that one piece of a model passes to the
            # next, since weights have no elements, and gradients of the loss.
            is_derived = "/subgraph_" in name or value.source_name.startswith("tangent_")
            if value.role == "input" and not is_derived:
                assert value.statistics is not None and value.statistics.is_measured, name


@pytest.mark.slow
def test_each_row_says_how_it_was_made_and_no_whole_graph_that_it_is_truncated() -> None:
    """The shapes of the catalog's input specification are among those of the inputs."""
    columns = ["id", "is_truncated", "input_specification", "parent_id", "inputs", "symbols"]
    num_compared = 0
    for path in paths(*TASKS):
        table = pq.read_table(path, columns=columns)
        assert not any(table["is_truncated"].to_pylist()), path
        for row in table.take(list(range(0, len(table), 4))).to_pylist():
            if row["parent_id"] or not row["input_specification"]:
                continue
            sizes = {each["name"]: each["hint"] for each in row["symbols"]}
            given = [each["shape"] for each in row["inputs"] if each["role"] == "input"]
            shapes = {tuple(int(evaluate(size, sizes)) for size in each or ()) for each in given}
            said = re.findall(r"=\w+\(([\d,]+)", row["input_specification"])
            wanted = {tuple(map(int, each.strip(",").split(","))) for each in said}
            if shapes and wanted:
                num_compared += 1
                assert shapes & wanted, (row["id"], row["input_specification"], shapes)
    assert num_compared > 1_100


@pytest.mark.slow
def test_rows_and_samples_are_each_other() -> None:
    for name, sample in chosen().items():
        assert Sample.from_row(sample.to_row()) == sample, name


@pytest.mark.parametrize("name", NAMES)
def test_no_graph_needs_leave_to_run(name: str) -> None:
    check_operators(chosen()[name], allow_unchecked_operators=False)


@pytest.mark.parametrize("name", NAMES)
def test_propagated_shapes_equal_the_recorded_ones(name: str) -> None:
    sample = chosen()[name]
    footprint = measure_footprint(sample)
    assert bool(footprint.unchecked) == (name in UNCHECKED)
    results = footprint.results
    for index, (found, op) in enumerate(zip(results, sample.ops, strict=True)):
        if found is None or op.results is None:
            continue
        if op.target == "operator.getitem" and not op.results:
            continue  # dynamo notes nothing of elements that it takes out for `tolist` itself
        assert len(found) == len(op.results), (index, op.target)
        for value, recorded in zip(found, op.results, strict=True):
            if value.shape is not None and recorded.shape is not None:
                assert value.dtype == recorded.dtype, (index, op.target)
                assert sample.shape_of(value) == sample.shape_of(recorded), (index, op.target)


def tensors(outputs: object) -> Iterator[torch.Tensor]:
    if isinstance(outputs, torch.Tensor):
        yield outputs
    elif isinstance(outputs, tuple | list):
        for item in outputs:
            yield from tensors(item)


@pytest.mark.parametrize("name", SMALL)
def test_small_graphs_run_with_finite_outputs(name: str) -> None:
    sample = chosen()[name]
    module = materialize(sample, weights="parameters", allow_unchecked_operators=name in UNCHECKED)
    with torch.no_grad():
        outputs = list(tensors(module(**make_inputs(sample, weights="parameters"))))
    assert outputs
    for output in outputs:
        assert output.numel() > 0
        assert torch.isfinite(output).all()


def test_all_files_of_a_config_have_the_same_columns() -> None:
    for folder in sorted({path.parent for path in EMBEDDED.glob("*/*.parquet")}):
        columns = {tuple(pq.read_schema(path).names) for path in folder.glob("*.parquet")}
        assert len(columns) == 1, folder.name


def test_the_card_counts_the_graphs_that_are_loaded() -> None:
    card = (EMBEDDED / "README.md").read_text()
    for config in CONFIGS:
        splits = Counter(row["split"] for row in column_rows("split", configs=(config,)))
        line = next(line for line in card.splitlines() if line.startswith(f"| `{config}` |"))
        cells = [cell.strip().replace(",", "") for cell in line.split("|")[2:-1]]
        assert [*map(int, (cells[0], *cells[3:6]))] == [
            splits.total(), *(splits[split] for split in SPLITS)
        ]  # fmt: skip
    tasks = yaml.safe_load((EMBEDDED / "eval.yaml").read_text())["tasks"]
    assert [(task["config"], task["split"]) for task in tasks] == [(task, "test") for task in TASKS]
