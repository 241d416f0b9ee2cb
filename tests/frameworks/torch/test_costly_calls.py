"""Calls that are refused by their operands alone (whole samples: `test_shapes`)."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from graphnet_datasets.errors import MemoryLimitError
from graphnet_datasets.frameworks.torch.operators import lookup
from graphnet_datasets.frameworks.torch.walking.costly_calls import check_call, check_result

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
    with pytest.raises(MemoryLimitError, match="gives an integer of 65 bits, not 64 at most"):
        check_result(2**64)
    with pytest.raises(MemoryLimitError, match="gives 100001 items, not 100000 at most"):
        check_result([0] * 100_001)
