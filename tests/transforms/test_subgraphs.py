"""The different parts of several graphs, each once."""

from __future__ import annotations

import re

import pytest

from graphnet_datasets import Sample
from graphnet_datasets.errors import SampleError
from graphnet_datasets.sample import Input, Op, Value
from graphnet_datasets.sample.arguments import Ref
from graphnet_datasets.transforms import Cutter, Subgraphs
from graphnet_datasets.transforms.subgraphs import find_sole_ops
from tests.transforms.test_cut import small_graphs

TALL = Input("input", Value("float32", (8, 4)))
WIDE = Input("input", Value("float32", (4, 8)))


def relus(name: str, tensor: Input, depth: int) -> Sample:
    ops = tuple(Op("torch.relu", (Ref(index),)) for index in range(depth))
    return Sample(f"test/{name}", "torch", "other", (tensor,), ops, Ref(depth))


def test_equal_operators_are_one_and_are_counted_with_their_families() -> None:
    found = Subgraphs("sole_op")
    found.add(relus("a", TALL, 2), family="a", split="train")
    found.add(relus("b", TALL, 3), family="b", split="train")
    found.add(relus("c", WIDE, 1), family="b", split="test")
    tall, wide = found
    assert len(found) == 2
    assert (tall.num_occurrences, tall.families, tall.splits) == (5, {"a", "b"}, {"train"})
    assert (wide.num_occurrences, wide.families, wide.splits) == (1, {"b"}, {"test"})
    assert tall.sample.provenance.num_occurrences == 5
    assert tall.sample.provenance.parent_id == "test/a"
    assert not tall.leaks


def test_a_part_in_families_of_two_splits_is_reported() -> None:
    found = Subgraphs("sole_op")
    found.add(relus("a", TALL, 1), family="a", split="train")
    found.add(relus("b", TALL, 1), family="b", split="test")
    (only,) = found
    assert only.leaks


def test_strides_arguments_and_kinds_of_numbers_tell_parts_apart() -> None:
    ops = [
        (Op("torch.Tensor.t", (Ref(0),)), Op("torch.relu", (Ref(1),))),
        (Op("torch.Tensor.reshape", (Ref(0), (4, 8))), Op("torch.relu", (Ref(1),))),
    ]
    found = Subgraphs("sole_op")
    for index, each in enumerate(ops):
        sample = Sample(f"test/{index}", "torch", "other", (TALL,), each, Ref(2))
        found.add(sample, family=str(index), split="train")
    assert len(found) == 4  # of the two, one takes a tensor that is not contiguous
    found = Subgraphs("sole_op")
    for index, number in enumerate((1, 1.0, True)):
        sample = Sample(f"test/{index}", "torch", "other", (TALL,),
                        (Op("torch.add", (Ref(0), number)),), Ref(1))  # fmt: skip
        found.add(sample, family=str(index), split="train")
    assert len(found) == 3


def test_refused_parts_are_counted_by_reason() -> None:
    sample = Sample(
        "test/list", "torch", "other", (TALL,),
        (Op("torch.chunk", (Ref(0), 2)), Op("torch.cat", (Ref(1), 1))), Ref(2),
    )  # fmt: skip
    found = Subgraphs("sole_op")
    found.add(sample, family="a", split="train")
    ((reason, count),) = found.refused.items()
    assert reason.startswith("an operator of the graph returns neither a tensor")
    assert count == 2  # of either operator: the tuple cannot cross


def test_an_unknown_method_is_refused() -> None:
    message = (
        "There is no method 'magic' for cutting graphs. Choose one of sole_op, rules, inductor, "
        "inductor_cuda, repeats."
    )
    with pytest.raises(SampleError, match=f"^{re.escape(message)}$"):
        Subgraphs("magic")


def test_every_operator_that_computes_is_in_one_of_an_embedded_graphs_sole_operators() -> None:
    for sample in small_graphs("torch", 30)[::15]:
        cutter = Cutter(sample)
        groups = find_sole_ops(cutter)
        found = Subgraphs("sole_op")
        found.add(sample, family="a", split="train")
        counted = sum(each.num_occurrences for each in found)
        assert counted + sum(found.refused.values()) == len(groups)
        assert 0 < len(found) <= len(groups) <= sample.num_ops
