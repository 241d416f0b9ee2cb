"""The rows of a queue, and the balance of every prefix of their order."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from builder.capturing import EMBEDDED
from builder.gpu_records.queue import (
    GRAPHS_FILE,
    HALF_FILE,
    MAX_FLOPS,
    MIN_FLOPS,
    PART_CONFIGS,
    PARTS_FILE,
    Key,
    balanced_order,
    choose_graphs,
    choose_parts,
    fair_shares,
    fits,
    in_bfloat16,
    write_queue,
)
from graphnet_datasets import Sample
from graphnet_datasets.storage.selection import select_rows
from graphnet_datasets.storage.table import read_table

MAX_DEVIATION = 2.0
"""Rows by which a stratum of a prefix may differ from its share; 1.5 was the most that was seen."""


def deviation(rows: Sequence[Mapping[str, Any]], keys: Sequence[Key]) -> float:
    """Return the largest difference between a stratum's count in a prefix and its share."""
    largest = 0.0
    for key in keys:
        totals = Counter(map(key, rows))
        counts: Counter[Hashable] = Counter()
        for length, row in enumerate(rows, 1):
            counts[key(row)] += 1
            share = length / len(rows)
            largest = max(largest, *(abs(counts[name] - totals[name] * share) for name in totals))
    return largest


KEYS: tuple[Key, ...] = tuple(
    lambda row, name=name: row[name] for name in ("task", "size", "source")
)


@st.composite
def queues(draw: st.DrawFn) -> list[dict[str, Any]]:
    """Rows whose strata have very different sizes and may depend on each other."""
    rng = random.Random(draw(st.integers(0, 2**32)))  # noqa: S311
    numbers = [draw(st.integers(1, 7)) for _ in range(3)]
    weights = [rng.random() ** 3 + 1e-9 for _ in range(numbers[0])]
    rows = []
    for number in range(draw(st.integers(1, 120))):
        task, size = rng.choices(range(numbers[0]), weights)[0], rng.randrange(numbers[1])
        source = (task + size) % numbers[2] if rng.random() < 0.5 else rng.randrange(numbers[2])
        family = str(rng.randrange(9))
        rows.append(
            {"id": str(number), "family": family, "tags": [], "task": task, "size": size,
             "source": source}
        )  # fmt: skip
    return rows


@given(queues())
def test_every_prefix_of_an_order_is_balanced(rows: list[dict[str, Any]]) -> None:
    order = balanced_order(rows, KEYS)
    assert sorted(row["id"] for row in order) == sorted(row["id"] for row in rows)
    assert deviation(order, KEYS) <= MAX_DEVIATION


def test_a_random_order_is_not_balanced() -> None:
    rows = [{"id": str(i), "task": i % 2, "size": i % 3, "source": i % 5} for i in range(300)]
    random.Random(0).shuffle(rows)  # noqa: S311
    assert deviation(rows, KEYS) > MAX_DEVIATION


def test_an_order_depends_on_the_rows_and_the_seed_alone() -> None:
    rows = [
        {"id": str(i), "family": str(i % 4), "tags": [], "task": i % 3, "size": 0, "source": i % 2}
        for i in range(40)
    ]
    order = [row["id"] for row in balanced_order(rows, KEYS)]
    assert [row["id"] for row in balanced_order(rows[::-1], KEYS)] == order
    assert [row["id"] for row in balanced_order(rows, KEYS, seed=1)] != order


def test_families_take_turns_and_small_rows_come_last() -> None:
    rows = [
        {"id": f"{family}{i}", "family": family, "tags": ["small"] if i == 2 else [], "task": "cv"}
        for family in "ab"
        for i in range(3)
    ]
    order = balanced_order(rows, [lambda row: row["task"]])
    assert [{row["family"] for row in order[i : i + 2]} for i in (0, 2, 4)] == [{"a", "b"}] * 3
    assert [row["id"][1] for row in order[4:]] == ["2", "2"]


def test_tasks_with_few_rows_give_all_and_others_share_the_rest() -> None:
    assert fair_shares({"a": 3, "b": 100, "c": 100}, 24, is_whole=True) == {
        "a": 3,
        "b": 10,
        "c": 11,
    }
    assert fair_shares({"a": 3, "b": 2}, 24, is_whole=True) == {"a": 3, "b": 2}


@pytest.mark.parametrize(
    "target",
    [
        "torch.ops.aten._scaled_dot_product_flash_attention_for_cpu.default",
        "torch.ops.mkldnn._linear_pointwise.default",
        "torch.ops.quantized.linear.default",
        "torch.Tensor.cpu",
        "torch.Tensor.numpy",
    ],
)
def test_rows_with_operators_of_the_cpu_do_not_fit_a_gpu(target: str) -> None:
    row = {
        "framework": "torch", "why_excluded": None, "peak_memory_bytes": 1, "input_bytes": 1,
        "op_histogram": [{"target": "torch.relu", "count": 1}],
    }  # fmt: skip
    assert fits(row)
    assert not fits({**row, "op_histogram": [{"target": target, "count": 1}]})
    assert not fits({**row, "framework": "paddle"})
    assert not fits({**row, "peak_memory_bytes": 5 * 2**30})


def test_parts_are_held_out_different_and_balanced() -> None:
    rows = choose_parts(EMBEDDED, 120)
    assert len(rows) == len({row["id"] for row in rows}) == 120
    assert len({row["subgraph_hash"] for row in rows}) == 120
    assert all("train" not in row["splits"] and fits(row) for row in rows)
    keys = (lambda row: row["task"], lambda row: row["source"], lambda row: row["method"])
    assert deviation(rows, keys[:2]) <= MAX_DEVIATION
    tasks = Counter(map(keys[0], rows))
    others = [number for task, number in tasks.items() if task != "other"]
    assert len(tasks) == 6
    assert max(others) - min(others) <= 1
    parents = {name for config in PART_CONFIGS for name in _parents(config)}
    assert {row["parent_id"] for row in rows} <= parents


def _parents(config: str) -> set[str]:
    return {
        name
        for path in (EMBEDDED / config).glob("*.parquet")
        for name in read_table(path, columns=["parent_id"])["parent_id"].to_pylist()
    }


def test_graphs_have_a_real_size_and_are_balanced() -> None:
    rows = choose_graphs(EMBEDDED, 60)
    assert all(MIN_FLOPS <= row["flops"] <= MAX_FLOPS for row in rows)
    assert {row["dtype"] for row in rows} == {"float32"}
    assert set(Counter(row["task"] for row in rows).values()) == {10}
    assert deviation(rows, [lambda row: row["task"], lambda row: row["source"]]) <= MAX_DEVIATION


def test_graphs_without_kernels_for_bfloat16_are_not_cast() -> None:
    (row,) = select_rows("torch/fno-2d-darcy")
    assert list(in_bfloat16([row])) == []
    (other,) = select_rows("torchvision/resnet18")
    (half,) = in_bfloat16([other])
    assert (half["id"], half["dtype"]) == ("torchvision/resnet18/bfloat16", "bfloat16")
    assert (half["flops"], half["split"]) == (other["flops"], other["split"])


def test_the_files_of_a_queue_hold_its_rows_in_order(tmp_path: Path) -> None:
    counts = write_queue(EMBEDDED, tmp_path, num_parts=4, num_graphs=2)
    assert counts == {PARTS_FILE: 4, GRAPHS_FILE: 2, HALF_FILE: 2}
    whole = read_table(tmp_path / GRAPHS_FILE).to_pylist()
    half = read_table(tmp_path / HALF_FILE).to_pylist()
    assert [row["id"] for row in half] == [f"{row['id']}/bfloat16" for row in whole]
    assert all(row["dtype"] == "bfloat16" and row["flops"] for row in half)
    for name, count in counts.items():
        rows = select_rows(str(tmp_path / name))
        assert len({Sample.from_row(row).id for row in rows}) == count
