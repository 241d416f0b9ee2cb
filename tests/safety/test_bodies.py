"""Bodies of branches and loops from untrusted rows."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest
import torch

from graphnet_datasets import make_inputs, materialize
from graphnet_datasets.errors import (
    GraphNetError,
    MaterializeError,
    MemoryLimitError,
    TimeLimitError,
    UncheckedOperatorError,
    UnknownOperatorError,
)
from graphnet_datasets.frameworks.torch.building import bodies
from graphnet_datasets.frameworks.torch.shapes import propagate
from graphnet_datasets.sample import Input, Op, Sample, Value
from graphnet_datasets.sample.arguments import Graph, ListArg, Ref

PREFIX = "torch.ops.higher_order."
MATRIX = Value("float32", (3, 4))
RELU = Graph(1, (Op("torch.relu", (Ref(0),)),), (Ref(1),))
ALWAYS = Graph(1, (Op("torch.Tensor.isfinite", (Ref(0),)), Op("torch.Tensor.any", (Ref(1),)),
                   Op("torch.Tensor.logical_not", (Ref(2),)),
                   Op("torch.Tensor.logical_or", (Ref(3), Ref(2)))), Ref(4))  # fmt: skip


def calling(name: str, *args: Any, inputs: tuple[Value, ...] = (MATRIX,)) -> Sample:
    return Sample(
        "example/hostile",
        "torch",
        "other",
        tuple(Input("input", value) for value in inputs),
        (Op(PREFIX + name, args), Op("operator.getitem", (Ref(len(inputs)), 0))),
        (Ref(len(inputs) + 1),),
    )


def branching(body: Graph) -> Sample:
    return calling("cond", True, body, body, (Ref(0),))


def body_of(*ops: Op) -> Graph:
    return Graph(1, ops, (Ref(len(ops)),))


@pytest.mark.parametrize(
    ("op", "error"),
    [
        (Op("torch.load", ("file",)), UnknownOperatorError),
        (Op("os.system", ("true",)), UnknownOperatorError),
        (Op("torch.ops.higher_order.wrap", (RELU, Ref(0))), UnknownOperatorError),
        (Op("torch.ops.aten._fused_adam_", (Ref(0),)), UncheckedOperatorError),
        (Op("torch.relu", (RELU,)), MaterializeError),
        (Op("torch.zeros", (10**12,)), MemoryLimitError),
        (Op("torch.Tensor.new_zeros", (Ref(0), 10**12)), MemoryLimitError),
        (Op("torch.Tensor.add_", (Ref(0), 1)), UncheckedOperatorError),
        (Op("torch.Tensor.unsqueeze_", (Ref(0), 0)), UncheckedOperatorError),
        (Op("torch.Tensor.view", (Ref(0), -1)), UncheckedOperatorError),
        (Op("torch.nonzero", (Ref(0),)), UncheckedOperatorError),
        (Op("torch.amp.autocast_mode._enter_autocast", ("cpu", None, True, None)),
         MaterializeError),
        (Op(f"{PREFIX}cond", (True, RELU, RELU, (Ref(0), Ref(0)))), MaterializeError),
    ],
)  # fmt: skip
def test_operators_of_bodies_obey_the_limits_of_all_operators(
    op: Op, error: type[GraphNetError]
) -> None:
    for depth in range(2):
        body = body_of(op)
        if depth:
            body = body_of(Op(f"{PREFIX}cond", (True, RELU, body, (Ref(0),))))
        with pytest.raises(error):
            materialize(branching(body))


@pytest.mark.parametrize(
    ("name", "args"),
    [
        ("cond", ()),
        ("cond", (True, RELU, (Ref(0),))),
        ("cond", (True, RELU, RELU)),
        ("cond", (True, RELU, RELU, Ref(0))),
        ("cond", (True, RELU, RELU, (Ref(0),), (Ref(0),))),
        ("cond", (True, RELU, RELU, (Ref(0), Ref(0)))),
        ("cond", (True, RELU, RELU, ("cpu",))),
        ("cond", (True, RELU, RELU, ((Ref(0),),))),
        ("while_loop", (RELU, (Ref(0),), ())),
        ("while_loop", (RELU, RELU, (Ref(0),))),
        ("scan", (RELU, RELU, ListArg((Ref(0),)))),
        ("scan", (RELU, ListArg(()), ListArg((1,)), ())),
    ],
)
def test_calls_of_another_form_are_refused(name: str, args: tuple[Any, ...]) -> None:
    with pytest.raises(MaterializeError):
        materialize(calling(name, *args))


def test_shapes_of_other_operators_with_bodies_are_refused() -> None:
    sample = calling("cond", True, RELU, RELU, (Ref(0),))
    sample = dataclasses.replace(sample, ops=(Op("torch.relu", (RELU,)), sample.ops[1]))
    with pytest.raises(MaterializeError, match="type `Graph` cannot be passed"):
        propagate(sample)


def test_a_loop_without_end_stops(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bodies, "MAX_ITERATIONS", 50)
    sample = calling("while_loop", ALWAYS, RELU, (Ref(0),), ())
    module, inputs = materialize(sample), make_inputs(sample)
    for _ in range(2):  # the plan, then the graph
        with pytest.raises(TimeLimitError, match="more than 50 iterations"):
            module(**inputs)
    module = materialize(sample)
    module.graph.lint()
    with pytest.raises(TimeLimitError, match="more than 50 iterations"):
        module(**inputs)


def test_a_loop_without_end_stops_at_the_time_limit() -> None:
    sample = calling("while_loop", ALWAYS, RELU, (Ref(0),), ())
    module = materialize(sample, time_limit_s=30.0)
    loop = next(part for part in module.modules() if isinstance(part, bodies.LoopChecks))
    loop(True)
    vars(loop)["_deadline"] = bodies.Deadline(0.0)
    with pytest.raises(TimeLimitError, match="takes longer than"):
        loop(False)


def test_a_finished_loop_does_not_count_for_the_next_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bodies, "MAX_ITERATIONS", 50)
    small = Graph(1, (Op("torch.Tensor.sum", (Ref(0),)), Op("operator.lt", (Ref(1), 30.5))), Ref(2))
    step = Graph(1, (Op("torch.add", (Ref(0), 1)),), (Ref(1),))
    sample = calling("while_loop", small, step, (Ref(0),), (), inputs=(Value("float32", ()),))
    module = materialize(sample)
    for _ in range(4):
        assert module(input_0=torch.tensor(0.0))[0] == 31


def test_loops_that_change_shapes_are_refused() -> None:
    growing = body_of(Op("torch.cat", (ListArg((Ref(0), Ref(0))),)))
    with pytest.raises(UncheckedOperatorError, match="unknown sizes"):
        materialize(calling("while_loop", ALWAYS, growing, (Ref(0),), ()))
    with pytest.raises(UncheckedOperatorError, match="unknown sizes"):
        materialize(calling("cond", True, growing, RELU, (Ref(0),)))


def test_scans_over_too_many_elements_are_refused() -> None:
    body = Graph(2, (Op("torch.add", (Ref(0), Ref(1))), Op("torch.neg", (Ref(2),))),
                 (Ref(2), Ref(3)))  # fmt: skip
    start, endless = Value("float32", ()), Value("float32", (10**9,), (0,))
    sample = calling("scan", body, ListArg((Ref(0),)), ListArg((Ref(1),)), (),
                     inputs=(start, endless))  # fmt: skip
    with pytest.raises(TimeLimitError, match="at most 1,000,000"):
        materialize(sample)


def test_a_scalar_that_a_body_receives_has_no_known_element() -> None:
    size = Value("int64", ())
    body = Graph(1, (Op("torch.Tensor.item", (Ref(0),)), Op("torch.zeros", (Ref(1),))), (Ref(2),))
    with pytest.raises(UncheckedOperatorError):
        materialize(calling("cond", True, body, body, (Ref(0),), inputs=(size,)))
