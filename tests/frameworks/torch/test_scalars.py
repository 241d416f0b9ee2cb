"""Which values are numbers."""

from __future__ import annotations

from graphnet_datasets.frameworks.torch.building.scalars import find_scalars
from graphnet_datasets.sample import Input, Op, Symbol, Value
from graphnet_datasets.sample.arguments import ListArg, Ref

from .building import MATRIX, build


def test_numbers_are_distinguished_from_tensors() -> None:
    sample = build(
        ("torch.Tensor.size", Ref(0)),  # 2: a shape
        ("operator.getitem", Ref(2), 0),  # 3
        ("operator.add", Ref(3), Ref(1)),  # 4
        ("operator.mul", Ref(0), Ref(4)),  # 5: a tensor
        ("torch.Tensor.item", Ref(5)),  # 6
        ("operator.getitem", Ref(0), 0),  # 7: a tensor
        ("torch.sym_sum", ListArg((1, Ref(3)))),  # 8
        ("math.sqrt", Ref(8)),  # 9
        ("builtins.max", Ref(3), Ref(6)),  # 10
        ("torch.sum", Ref(0)),  # 11: a tensor
        Op("torch.ops.aten.sym_size.int", (Ref(0), 1)),  # 12
        ("torch.Tensor.ndim", Ref(0)),  # 13
        ("torch.ops.aten._local_scalar_dense", Ref(11)),  # 14
        inputs=(MATRIX, Input("symbol", Value("int64", ()), "s0")),
        symbols=(Symbol("s0", 4),),
    )
    assert find_scalars(sample) == {1, 2, 3, 4, 6, 8, 9, 10, 12, 13, 14}
