"""Calls that are refused by their operands alone (whole samples: `test_shapes`)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import torch

from graphnet_datasets import materialize
from graphnet_datasets.errors import GraphNetError, MemoryLimitError, TimeLimitError
from graphnet_datasets.frameworks.torch.costs import measure
from graphnet_datasets.frameworks.torch.operators import all_names, lookup
from graphnet_datasets.frameworks.torch.walking.costly_calls import (
    check_call,
    check_items,
    check_result,
    limit_name,
)
from graphnet_datasets.frameworks.torch.walking.forms import Form, Scalar
from graphnet_datasets.operators import OperatorNames
from graphnet_datasets.sample import Input, Op, Sample, Value
from graphnet_datasets.sample.arguments import ListArg, Ref

META = torch.empty(1, device="meta").expand(10**12)


@pytest.mark.parametrize(
    ("name", "args"),
    [
        ("operator.pow", (9, 387_420_489)),
        ("operator.ipow", (2**60, 64)),
        ("operator.lshift", (1, 10**9)),
        ("operator.mul", ([0], 10**10)),
        ("operator.imul", (10**10, (0,))),
        ("operator.mul", ("a", 10**10)),
        ("operator.mod", ("%1000000000d", 1)),
        ("operator.add", ("a", "b")),
        ("builtins.pow", (9, 10**9)),
        ("builtins.round", (7, -(10**9))),
        ("builtins.int", ("9" * 4_000,)),
        ("torch.ops.aten.mul", ([0], 10**10)),
        ("torch.unbind", (META,)),
        ("torch.Tensor.split", (META, 1)),
        ("torch.split", (META, 1, -1)),
        ("torch.chunk", (META, 10**9)),
        ("torch.tensor_split", (META, 10**9)),
        ("torch.Tensor.tolist", (META,)),
    ],
)
def test_a_call_that_would_cost_is_refused(name: str, args: tuple[Any, ...]) -> None:
    with pytest.raises(MemoryLimitError):
        check_call(lookup(name), args, {})


@pytest.mark.parametrize(
    ("name", "args"),
    [
        ("operator.pow", (2, 10)),
        ("operator.pow", (2, 0.5)),
        ("operator.pow", (torch.ones(2), 10**9)),
        ("operator.mul", ([0], 3)),
        ("operator.mul", (2**40, 2**20)),
        ("operator.eq", ("a", "b")),
        ("operator.add", ([1], [2])),
        ("builtins.round", (2.5, 1)),
        ("torch.ops.aten.sym_size.int", (META, 0)),
        ("torch.ops.aten.mul", (torch.ones(2), 3)),
        ("torch.split", (torch.ones(10), 2)),
        ("torch.split", (META, [10**11] * 10)),
        ("torch.chunk", (META, 4)),
    ],
)
def test_a_call_of_a_real_graph_passes(name: str, args: tuple[Any, ...]) -> None:
    check_call(lookup(name), args, {})


def test_results_are_bounded() -> None:
    check_result(2**63)
    check_result([0] * 100_000)
    with pytest.raises(MemoryLimitError, match="an integer of 65 bits; at most 64 are"):
        check_result(2**64)
    with pytest.raises(MemoryLimitError, match="has 100001 items; at most 100000 are"):
        check_result([0] * 100_001)


PARTS = {
    "split": (1,), "unbind": (), "tolist": (), "chunk": (10**9,), "tensor_split": (10**9,),
    "hsplit": (10**9,), "vsplit": (10**9,), "dsplit": (10**9,),
}  # fmt: skip
"""Operators that take a tensor apart, and arguments that make 10**9 parts or more."""

LOOPS = {"matrix_power": (10**9,), "polygamma": (10**9,), "mvlgamma": (10**9,),
         "multigammaln": (10**9,), "pca_lowrank": (6, True, 10**9), "svd_lowrank": (6, 10**9),
         "lobpcg": (None, None, None, 10**9)}  # fmt: skip


def overloads() -> Iterator[str]:
    """Yield every operator of the table, ATen's with each of its overloads."""
    yield from all_names()
    for packet in sorted(OperatorNames("aten")):
        yield f"torch.ops.aten.{packet}"
        if hasattr(torch.ops.aten, packet):
            for overload in getattr(torch.ops.aten, packet).overloads():
                yield f"torch.ops.aten.{packet}.{overload}"


LIMITED = [name for name in overloads() if limit_name(lookup(name)) in PARTS | LOOPS]


def test_limits_know_many_overloads() -> None:
    assert len(LIMITED) > 70
    assert {"torch.ops.aten.split.Tensor", "torch.ops.aten.unbind_copy.int", "torch.unsafe_chunk",
            "torch.ops.aten.mvlgamma_.default", "torch.Tensor.hsplit"} <= set(LIMITED)  # fmt: skip


@pytest.mark.parametrize("name", LIMITED)
def test_every_overload_has_the_limit_of_its_operator(name: str) -> None:
    wide = Form((10**12,), (0,), torch.float32)
    family = limit_name(lookup(name))
    numbers = {**PARTS, **LOOPS}[family]
    with pytest.raises((MemoryLimitError, TimeLimitError)):
        check_call(lookup(name), (wide, *numbers), {})


@pytest.mark.parametrize("verb", [materialize, measure])
@pytest.mark.parametrize("name", [name for name in LIMITED if limit_name(lookup(name)) in PARTS])
def test_no_overload_takes_a_sample_apart(name: str, verb: Any) -> None:
    """Before, most overloads went round a loop for each of 300,000,000 parts."""
    wide = Input("input", Value("float32", (300_000_000,), (0,)))
    op = Op(name, (Ref(0), *PARTS[limit_name(lookup(name))]))
    with pytest.raises(GraphNetError):
        verb(Sample("example/parts", "torch", "other", (wide,), (op,), Ref(1)))


@pytest.mark.parametrize(
    ("name", "args"),
    [
        ("torch.split", (META, torch.tensor(1))),
        ("torch.chunk", (META, Scalar(torch.tensor(10**9)))),
        ("torch.ops.aten.split.Tensor", (Form((10**12,), (0,), torch.float32), 1)),
        ("torch.ops.aten.unbind.Dimname", (META, "rows")),
        ("builtins.sum", ([[0]] * 20_000, [])),
        ("math.lcm", tuple(range(2**62, 2**62 + 40))),
        ("torch.cat", ([[[0] * 1000] * 1000],)),
        ("torch.linalg.multi_dot", ([META] * 3000,)),
        ("torch.ops.aten.linalg_multi_dot.default", ([META] * 3000,)),
        ("torch.chain_matmul", (META,) * 3000),
        ("torch.einsum", ("ij", *(META,) * 3000)),
        ("torch.meshgrid", ([META] * 3000,)),
        ("torch.combinations", (META, 10**9)),
    ],
)
def test_work_that_arguments_count_is_refused(name: str, args: tuple[Any, ...]) -> None:
    with pytest.raises((MemoryLimitError, TimeLimitError)):
        check_call(lookup(name), args, {})


NUMBER = Input("constant", Value("int64", ()), data=(200_000_000).to_bytes(8, "little"))


@pytest.mark.parametrize("verb", [materialize, measure])
@pytest.mark.parametrize(
    ("target", "args"),
    [
        ("operator.mul", (ListArg((0,)), Ref(0))),
        ("operator.mul", (Ref(0), (1, 2))),
        ("torch.linalg.multi_dot", (ListArg((Ref(1),) * 3000),)),
        ("torch.ops.aten.linalg_multi_dot", (ListArg((Ref(1),) * 3000),)),
        ("torch.einsum", ("ij", ListArg((Ref(1),) * 3000))),
    ],
)
def test_limits_come_before_work(target: str, args: tuple[Any, ...], verb: Any) -> None:
    """The quick walk too compares before it computes; each of these took minutes."""
    matrix = Input("input", Value("float32", (8, 8)))
    with pytest.raises((MemoryLimitError, TimeLimitError)):
        verb(
            Sample("example/work", "torch", "other", (NUMBER, matrix), (Op(target, args),), Ref(2))
        )


@pytest.mark.slow
def test_shared_lists_do_not_grow_without_end() -> None:
    """Sixty lists, each of which holds the one before twice, have 2**60 leaves."""
    pairs = [Op("operator.add", (ListArg((Ref(at),)), ListArg((Ref(at),)))) for at in range(60)]
    matrix = Input("input", Value("float32", (8, 8)))
    for verb in (materialize, measure):
        with pytest.raises(MemoryLimitError, match="have more than 100000 items in total"):
            verb(Sample("example/pairs", "torch", "other", (matrix,), tuple(pairs), Ref(60)))


@pytest.mark.slow
def test_lists_count_as_memory() -> None:
    lists = tuple(Op("operator.mul", (ListArg((0,)), 90_000)) for _ in range(40))
    outputs = tuple(map(Ref, range(40)))
    with pytest.raises(MemoryLimitError, match="increases the memory of live tensors to"):
        materialize(
            Sample("example/lists", "torch", "other", (), lists, outputs),
            memory_limit_bytes=10**8,
        )


def test_nested_lists_are_counted_and_bounded_in_depth() -> None:
    check_items([[0] * 100] * 900)
    nested: list[Any] = []
    for _ in range(40):
        nested = [nested]
    with pytest.raises(MemoryLimitError, match="levels deep"):
        check_items(nested)
    with pytest.raises(MemoryLimitError, match="The result has 65 axes"):
        check_result(torch.empty((1,) * 65, device="meta"))
