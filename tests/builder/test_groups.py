"""Groups of nearly equal graphs: what is linked, that no graph moves, that nothing leaks."""

from __future__ import annotations

import collections
import functools
import random
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from builder.groups import near_links, similarities, split_groups
from graphnet_datasets.analysis.splits import split_of
from graphnet_datasets.sample.vocabulary import TASKS
from graphnet_datasets.storage.loading import STARTER


def row(name: str, targets: str, **columns: Any) -> dict[str, Any]:
    """Return what groups see of a chain of operators, of a family and a model of its own."""
    ops = [{"target": each, "operands": [index]} for index, each in enumerate(targets.split())]
    base = {"id": name, "family": name, "source": "x", "model_name": "", "num_inputs": 1}
    return {**base, "num_params": 10 ** len(name), "ops": ops, **columns}


def table(*rows: dict[str, Any]) -> pa.Table:
    return pa.Table.from_pylist(list(rows))


def same_split(group: str) -> str:
    """Return another name of a group that is in the same split."""
    return next(f"{n}" for n in range(10**6) if split_of(f"{n}") == split_of(group))


def other_split(group: str) -> str:
    return next(f"{n}" for n in range(10**6) if split_of(f"{n}") != split_of(group))


BLOCK = "linear relu norm add "


def test_another_head_depth_or_family_is_the_same_group() -> None:
    graphs = table(
        row("a", BLOCK * 8),
        row("deeper", BLOCK * 16),
        row("headed", BLOCK * 8 + "softmax"),
        row("else", "conv pool " * 4),
        row("named", "sin", family="a"),
        row("m1", "exp", model_name="BertModel"),
        row("m2", "log exp", model_name="BertForMaskedLM"),
    )
    groups = split_groups(graphs)
    assert groups[0] == groups[1] == groups[2] == groups[4]
    assert groups[5] == groups[6]
    assert len(set(groups)) == 3


def test_the_same_counts_in_another_order_are_another_group() -> None:
    graphs = table(row("a", "p q r s t u"), row("b", "u t s r q p", num_params=99))
    assert [links.tolist() for links in near_links(graphs)] == [[], []]


def test_spellings_of_equally_large_graphs_are_linked() -> None:
    linear, views = "torch.nn.functional.linear", "torch.Tensor.view torch.Tensor.to"
    silu, swish = "torch.nn.functional.silu", "paddle._C_ops.swish"
    torch_graph = row("a", f"{linear} {views} {silu} " * 3, num_params=1000)
    paddle_graph = row("b", f"paddle._C_ops.matmul {swish} " * 3, num_params=1009)
    larger = row("c", f"{linear} {silu} " * 3, num_params=1020)
    links = near_links(table(torch_graph, paddle_graph, larger))
    assert [near.tolist() for near in links] == [[1], [0], []]


def test_a_published_name_is_one_group_in_all_sources() -> None:
    names = ("resnet-50", "ResNet50", "resnet101")
    rows = [
        row(str(index), f"op{index}", model_name=name, source=f"s{index}", num_params=10**index)
        for index, name in enumerate(names)
    ]
    groups = split_groups(table(*rows))
    assert groups[0] == groups[1] != groups[2]


def test_a_neighbourhood_is_an_operator_with_those_its_operands_come_from() -> None:
    first = row("a", "p q add")
    first["ops"][2]["operands"] = [1, 2]
    second = row("b", "p q add")
    second["ops"][2]["operands"] = [2, 1]  # the order of operands counts
    ((_, cosine, shared),) = similarities(table(first, second))
    assert cosine[0, 1] == pytest.approx(1)
    assert shared[0, 1] == pytest.approx(2 / 3)
    assert shared[0, 0] == 1


def test_known_groups_stay_and_new_graphs_join_them() -> None:
    graphs = table(row("a", BLOCK * 8), row("b", BLOCK * 9), row("c", "conv"))
    assert split_groups(graphs, {"b": "kept"}) == ["kept", "kept", "c"]


def test_graphs_that_would_link_two_splits_have_no_split() -> None:
    graphs = table(row("a", BLOCK * 8), row("bridge", BLOCK * 9), row("c", BLOCK * 10))
    apart = {"a": "g", "c": other_split("g")}
    assert split_groups(graphs, apart) == ["g", None, apart["c"]]
    together = {"a": "g", "c": same_split("g")}
    assert split_groups(graphs, together)[1] in together.values()


def test_between_two_groups_of_a_split_a_graph_joins_that_of_its_family() -> None:
    graphs = table(row("a", BLOCK * 8), row("b", BLOCK * 9, family="f"), row("c", BLOCK * 10))
    known = {"a": same_split("g"), "c": "g"}
    assert split_groups(graphs, known)[1] == min(known.values())
    graphs = table(*graphs.to_pylist(), row("d", BLOCK * 9, family="c"))
    assert split_groups(graphs, known)[3] == known["c"] != min(known.values())


@settings(max_examples=30, deadline=None)
@given(st.lists(st.lists(st.sampled_from("pqrst"), min_size=1, max_size=6), max_size=12), st.data())
def test_no_link_ever_joins_two_splits_however_a_dataset_grows(
    graphs: list[list[str]], data: st.DataObject
) -> None:
    rows = [row(f"{index:02}", " ".join(each)) for index, each in enumerate(graphs)]
    if not rows:
        return
    known: dict[str, str] = {}
    for size in sorted({data.draw(st.integers(1, len(rows))), len(rows)}):
        part = table(*rows[:size])
        groups = split_groups(part, known)
        assert all(groups[index] == known.get(each["id"], groups[index])
                   for index, each in enumerate(rows[:size]))  # fmt: skip
        for index, near in enumerate(near_links(part)):
            for other in near.tolist():
                here, there = groups[index], groups[other]
                if here is not None and there is not None:
                    assert split_of(here) == split_of(there)
        known = {each["id"]: g for each, g in zip(rows, groups, strict=False) if g is not None}


def test_neither_order_nor_blocks_decide() -> None:
    rows = [row(f"{n:03}", f"{BLOCK * (n % 7 + 1)} op{n % 11}") for n in range(600)]
    groups = dict(zip([each["id"] for each in rows], split_groups(table(*rows)), strict=True))
    random.Random(0).shuffle(rows)  # noqa: S311 (no secret)
    assert split_groups(table(*rows)) == [groups[each["id"]] for each in rows]


OPS = ("ops.list.element.target", "ops.list.element.operands.list.element")
"""Of the operators no more is read than what groups look at: all of them are many."""


def shipped(*columns: str) -> pa.Table:
    """Return columns of all shipped graphs, and in `stands` the split whose table holds each."""
    tables = []
    for path in sorted(STARTER.glob("*/*-*.parquet")):
        if path.parent.name in TASKS:
            table = pq.ParquetFile(path).read(columns=list(columns))
            stands = pa.array([path.name.partition("-")[0]] * table.num_rows)
            tables.append(table.append_column("stands", stands))
    return pa.concat_tables(tables)


class Graph:
    """What a graph has of operators: how often each is called, and on results of which."""

    def __init__(self, num_inputs: int, ops: pa.ListScalar) -> None:
        assert ops.values is not None
        self._num_inputs = num_inputs
        self._targets = ops.values.field("target")
        self._operands = ops.values.field("operands")
        self.counts = collections.Counter(self._targets.to_pylist())

    @functools.cached_property
    def neighbourhoods(self) -> set[tuple[str, ...]]:
        targets = self._targets.to_pylist()
        names = [""] * self._num_inputs + targets
        return {
            (target, *(names[value] for value in operands))
            for target, operands in zip(targets, self._operands.to_pylist(), strict=True)
        }


def test_few_held_out_graphs_nearly_equal_a_training_graph() -> None:
    """Counted again by operators and their neighbourhoods, without the code that makes groups."""
    rows = shipped("id", "split", "split_group", "num_inputs", *OPS)
    splits = rows["stands"].to_pylist()
    assert splits == rows["split"].to_pylist()
    assert splits == [split_of(group) for group in rows["split_group"].to_pylist()]
    graphs = [
        Graph(*each) for each in zip(rows["num_inputs"].to_pylist(), rows["ops"], strict=True)
    ]
    names = {name: place for place, name in enumerate(set().union(*(g.counts for g in graphs)))}
    histograms = np.zeros((len(graphs), len(names)))
    for place, graph in enumerate(graphs):
        histograms[place, [names[name] for name in graph.counts]] = list(graph.counts.values())
    histograms /= np.linalg.norm(histograms, axis=1, keepdims=True)
    is_train = np.array(splits) == "train"
    train, held_out = np.flatnonzero(is_train), np.flatnonzero(~is_train)
    assert len(train) > len(held_out) > 0
    cosines = histograms[held_out] @ histograms[train].T
    leaking = []
    for index, near in zip(held_out, cosines >= 0.99, strict=True):
        neighbourhoods = graphs[index].neighbourhoods
        shared = (len(neighbourhoods & graphs[other].neighbourhoods) for other in train[near])
        if any(count >= 0.8 * len(neighbourhoods) for count in shared):
            leaking.append(rows["id"][index])
    assert len(leaking) <= 0.01 * len(held_out), leaking


def test_a_group_is_in_one_split_and_a_family_in_one_group() -> None:
    group_of: dict[str, str] = {}
    for each in shipped("family", "split_group").to_pylist():
        assert split_of(each["split_group"]) == each["stands"]
        assert group_of.setdefault(each["family"], each["split_group"]) == each["split_group"]
