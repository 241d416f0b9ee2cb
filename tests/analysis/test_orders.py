"""Open orders are found by operator, argument and flow, for torch and paddle."""

from __future__ import annotations

from typing import Any

import pytest

from graphnet_datasets.analysis.orders import find_orders, keys_sample
from graphnet_datasets.sample import Input, Op, Sample, Value
from graphnet_datasets.sample.arguments import Graph, ListArg, Ref, SliceArg

X = Ref(0)
SOURCE = Ref(0)
WHOLE = SliceArg(None, None, None)


def sample_of(*ops: Op, outputs: Any = None, framework: str = "torch") -> Sample:
    inputs = (Input("input", Value("float32", (4, 8))),)
    outputs = Ref(len(ops)) if outputs is None else outputs
    return Sample("test/orders", framework, "other", inputs=inputs, ops=ops, outputs=outputs)


OPEN = [
    ("torch", Op("torch.argsort", (X,)), ["positions"]),
    ("torch", Op("torch.argsort", (X,), (("descending", True), ("stable", False))), ["positions"]),
    ("torch", Op("torch.Tensor.argsort", (X, 0)), ["positions"]),
    ("torch", Op("torch.ops.aten.argsort.default", (X,)), ["positions"]),
    ("torch", Op("torch.sort", (X,)), [None, "positions"]),
    ("torch", Op("torch.ops.aten.sort.default", (X, 1, True)), [None, "positions"]),
    ("torch", Op("torch.topk", (X, 3)), [None, "positions"]),
    ("torch", Op("torch.topk", (X, 3), (("sorted", False),)), ["values", "positions"]),
    ("torch", Op("torch.median", (X, 1)), [None, "positions"]),
    ("torch", Op("torch.mode", (X,)), ["values", "positions"]),
    ("torch", Op("torch.kthvalue", (X, 2)), [None, "positions"]),
    ("torch", Op("torch.cummax", (X, 1)), [None, "positions"]),
    ("torch", Op("torch.max", (X, 1)), [None, "positions"]),
    ("torch", Op("torch.argmax", (X,)), ["positions"]),
    ("torch", Op("torch.unique", (X, False)), ["values"]),
    ("torch", Op("torch.unique", (X, False, True, True)), ["values", "inverse", "counts"]),
    ("torch", Op("torch.ops.aten._unique2.default", (X, False)), ["values", "inverse", "counts"]),
    ("paddle", Op("paddle.argsort", (X,)), ["positions"]),
    ("paddle", Op("paddle._C_ops.argsort", (X, -1, False, False)), [None, "positions"]),
    ("paddle", Op("paddle.topk", (X, 3)), [None, "positions"]),
    ("paddle", Op("paddle.argmax", (X, 1)), ["positions"]),
    ("paddle", Op("paddle.mode", (X,)), ["values", "positions"]),
    ("paddle", Op("paddle.median", (X, 1), (("mode", "min"),)), [None, "positions"]),
]
CLOSED = [
    ("torch", Op("torch.argsort", (X,), (("stable", True),))),
    ("torch", Op("torch.ops.aten.sort.stable", (X,), (("stable", True), ("dim", 1)))),
    ("torch", Op("torch.max", (X,))),
    ("torch", Op("torch.median", (X,))),
    ("torch", Op("torch.unique", (X,))),
    ("torch", Op("torch.nonzero", (X,))),
    ("torch", Op("torch.msort", (X,))),
    ("paddle", Op("paddle.argsort", (X, -1, False, True))),
    ("paddle", Op("paddle.sort", (X,))),
    ("paddle", Op("paddle.unique", (X,))),
    ("paddle", Op("paddle.median", (X, 1))),
]


@pytest.mark.parametrize(("framework", "op", "results"), OPEN)
def test_results_in_an_open_order(framework: str, op: Op, results: list[str | None]) -> None:
    orders = find_orders(sample_of(op, framework=framework))
    assert orders is not None
    assert [orders.direct.get(place, (0, None))[1] for place in range(len(results))] == results
    assert orders.reached == {}
    assert orders.are_keys_exact == (True,)


@pytest.mark.parametrize(("framework", "op"), CLOSED)
def test_operators_that_specify_their_order(framework: str, op: Op) -> None:
    assert find_orders(sample_of(op, framework=framework)) is None


def test_positions_are_followed_to_the_outputs() -> None:
    ops = (
        Op("torch.topk", (X, 3)),
        Op("operator.getitem", (Ref(1), 0)),
        Op("operator.getitem", (Ref(1), 1)),
        Op("torch.Tensor.to", (Ref(3), "torch.int32")),
        Op("torch.add", (Ref(3), 1)),
        Op("torch.relu", (Ref(2),)),
    )
    orders = find_orders(sample_of(*ops, outputs=tuple(map(Ref, (2, 3, 4, 5, 6, 0)))))
    assert orders is not None
    assert orders.direct == {1: (0, "positions"), 2: (0, "positions")}
    assert orders.reached == {3: frozenset({0})}


def test_a_write_carries_the_order_to_the_memory() -> None:
    ops = (
        Op("torch.argsort", (X,)),
        Op("torch.zeros_like", (X,)),
        Op("torch.Tensor.scatter_", (Ref(2), 1, Ref(1), X)),
    )
    orders = find_orders(sample_of(*ops, outputs=Ref(2)))
    assert orders is not None
    assert orders.reached == {0: frozenset({0, 1})}


def test_an_order_without_a_way_to_the_outputs_does_not_count() -> None:
    assert find_orders(sample_of(Op("torch.argsort", (X,)), Op("torch.relu", (X,)))) is None


def test_keys_that_are_computed_are_not_exact() -> None:
    ops = (Op("torch.nn.functional.gelu", (X,), results=(Value("float32", (4, 8)),)),)
    orders = find_orders(sample_of(*ops, Op("torch.argsort", (Ref(1),))))
    assert orders is not None
    assert orders.are_keys_exact == (False,)
    assert keys_sample(sample_of(*ops, Op("torch.argsort", (Ref(1),))), orders).outputs == (Ref(1),)


def test_keys_behind_a_view_of_an_input_are_exact() -> None:
    ops = (Op("torch.Tensor.view", (X, 8, 4)), Op("torch.argsort", (Ref(1),)))
    orders = find_orders(sample_of(*ops))
    assert orders is not None
    assert orders.are_keys_exact == (True,)


def test_each_result_of_an_operator_takes_a_place() -> None:
    value = Value("float32", (4, 8))
    ops = (Op("torch.aminmax", (X,), results=(value, value)), Op("torch.argsort", (X,)))
    orders = find_orders(sample_of(*ops, outputs=(Ref(1), Ref(2))))
    assert orders is not None
    assert orders.direct == {2: (0, "positions")}


@pytest.mark.parametrize(
    ("op", "dim"),
    [
        (Op("torch.scatter", (X, 1, Ref(1), SOURCE)), 1),
        (Op("torch.Tensor.scatter_", (X, 0, Ref(1), SOURCE)), 0),
        (Op("torch.ops.aten.scatter.src", (X, 0, Ref(1), SOURCE)), 0),
        (Op("torch.Tensor.index_copy_", (X, 0, Ref(1), SOURCE)), None),
        (Op("torch.index_put", (X, (Ref(1),), SOURCE)), None),
        (Op("torch.ops.aten.index_put.default", (X, ListArg((None, Ref(1))), SOURCE)), None),
        (Op("torch.Tensor.put_", (X, Ref(1), SOURCE)), None),
        (Op("operator.setitem", (X, (WHOLE, Ref(1)), SOURCE)), None),
        (Op("torch.scatter", (X, 1, Ref(1), 1.0)), "specified"),
        (Op("torch.scatter", (X, 1, Ref(1), SOURCE), (("reduce", "add"),)), "specified"),
        (Op("torch.index_put", (X, (Ref(1),), SOURCE, True)), "specified"),
        (Op("torch.index_put", (X, (Ref(1), Ref(1)), SOURCE)), None),
        (Op("operator.setitem", (X, 0, SOURCE)), "specified"),
        (Op("torch.scatter_add", (X, 1, Ref(1), SOURCE)), "specified"),
    ],
    ids=str,
)
def test_the_last_of_several_writes_is_unspecified(op: Op, dim: Any) -> None:
    index = Input("input", Value("int64", (4,)))
    inputs = (Input("input", Value("float32", (4, 8))), index)
    orders = find_orders(Sample("a/b", "torch", "other", inputs, (op,), Ref(2)))
    if dim == "specified":
        assert orders is None
    else:
        assert orders is not None
        assert (orders.operators[0].keys, orders.operators[0].dim) == (1, dim)
        assert (orders.direct, orders.reached) == ({}, {0: frozenset({0})})


@pytest.mark.parametrize(
    ("op", "is_open"),
    [(Op("torch.argsort", (X,)), True), (Op("torch.relu", (X,)), False)],
)
def test_an_order_in_a_body_affects_all_results_of_the_loop(op: Op, is_open: bool) -> None:
    condition = Graph(1, (op, Op("torch.Tensor.any", (Ref(1),))), Ref(2))
    step = Graph(1, (Op("torch.mul", (X, 2)),), (Ref(1),))
    loop = Op("torch.ops.higher_order.while_loop", (condition, step, (X,), ()))
    sample = sample_of(loop, Op("operator.getitem", (Ref(1), 0)))
    orders = find_orders(sample)
    assert (orders is not None) is is_open
    if orders is not None:
        assert (orders.reached, orders.are_keys_exact) == ({0: frozenset({0})}, (False,))
        assert keys_sample(sample, orders).outputs == ()


def test_an_order_in_a_body_that_writes_to_an_operand_is_open() -> None:
    ops = (Op("torch.argsort", (X,)), Op("torch.Tensor.copy_", (X, Ref(1))))
    branch = Graph(1, ops, (X,))
    op = Op("torch.ops.higher_order.cond", (True, branch, Graph(1, (), (X,)), (X,)))
    orders = find_orders(sample_of(op, outputs=X))
    assert orders is not None
    assert orders.reached == {0: frozenset({0})}


def test_values_of_a_maximum_in_a_body_are_specified() -> None:
    values = (Op("torch.max", (X, 1)), Op("operator.getitem", (Ref(1), 0)))
    branch = Graph(1, values, (Ref(2),))
    op = Op("torch.ops.higher_order.cond", (True, branch, branch, (X,)))
    assert find_orders(sample_of(op)) is None


def test_an_order_reaches_an_input_that_the_graph_writes_to() -> None:
    buffer = Input("buffer", Value("int64", (4, 8)))
    ops = (Op("torch.argsort", (X,)), Op("torch.Tensor.copy_", (Ref(1), Ref(2))))
    inputs = (Input("input", Value("float32", (4, 8))), buffer)
    sample = Sample("test/orders", "torch", "other", inputs, ops, X)
    orders = find_orders(sample)
    assert orders is not None
    assert orders.reached == {}
    assert orders.with_written([sample.input_names[1]]).reached == {1: frozenset({0})}


def test_keys_that_the_graph_overwrites_are_unknown() -> None:
    ops = (
        Op("torch.argsort", (X,)),
        Op("torch.Tensor.view", (X, -1)),
        Op("torch.Tensor.neg_", (Ref(2),)),
    )
    sample = sample_of(*ops, outputs=Ref(1))
    orders = find_orders(sample)
    assert orders is not None
    assert not orders.operators[0].are_keys_known
    assert keys_sample(sample, orders).outputs == ()
