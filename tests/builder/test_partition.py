"""Groups and splits of a first version: few links across splits, enough groups per task."""

from __future__ import annotations

import collections
import random

import pyarrow as pa

from builder.groups import near_links
from builder.partition import MAX_SHARE, SHARE, choose_groups
from graphnet_datasets.analysis.splits import split_of


def chains(count: int) -> pa.Table:
    """Return models in which each is linked to the next by near-equal parameters and operators."""
    rows = []
    for model in range(count):
        for variant in range(1 + model % 3):
            names = [f"op{model + model // 10}"] * 9 + [f"op{model + 1 + model // 10}"] * 4
            rows.append(
                {
                    "id": f"{model:03}-{variant}", "family": f"f{model:03}-{variant}",
                    "source": "x", "model_name": f"Model{model:03}A", "num_inputs": 1,
                    "num_params": 1000, "task": "cv" if model % 2 else "nlp",
                    "ops": [{"target": name, "operands": [index]}
                            for index, name in enumerate(names)],
                }
            )  # fmt: skip
    random.Random(0).shuffle(rows)  # noqa: S311 (no secret)
    return pa.Table.from_pylist(rows)


def test_splits_are_balanced_and_hardly_any_link_crosses() -> None:
    graphs = chains(60)
    groups = choose_groups(graphs)
    splits = [split_of(group) for group in groups]
    held_out = [row for row, split in enumerate(splits) if split != "train"]
    leaking = [
        row
        for row, near in enumerate(near_links(graphs))
        if splits[row] != "train" and any(splits[other] == "train" for other in near.tolist())
    ]
    assert len(leaking) <= 0.1 * len(held_out)
    sizes = collections.Counter(splits)
    for split in ("validation", "test"):
        assert abs(sizes[split] - SHARE * len(splits)) <= 6
        tasks = {graphs["task"][row].as_py() for row in held_out if splits[row] == split}
        assert tasks == {"cv", "nlp"}


def test_a_model_is_one_group_and_a_large_group_is_for_training() -> None:
    graphs = pa.Table.from_pylist(
        [
            {
                "id": f"{index:02}", "family": f"{index:02}", "source": "x",
                "model_name": "BertModel" if index < 30 else f"M{index}", "num_inputs": 1,
                "num_params": index, "task": "nlp",
                "ops": [{"target": f"op{index}", "operands": [0]}],
            }
            for index in range(60)
        ]
    )  # fmt: skip
    groups = choose_groups(graphs)
    assert len(set(groups[:30])) == 1 and split_of(groups[0]) == "train"
    assert MAX_SHARE * len(groups) < 30
    assert len(set(groups[30:])) == 30


def test_equal_tables_have_equal_groups() -> None:
    graphs = chains(12)
    assert choose_groups(graphs) == choose_groups(graphs)
