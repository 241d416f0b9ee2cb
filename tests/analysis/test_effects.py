"""What operators depend on beside their arguments."""

from __future__ import annotations

import pytest

from graphnet_datasets.analysis.effects import find_effects
from graphnet_datasets.sample import Input, Op, Sample, Value
from graphnet_datasets.sample.arguments import ListArg, Ref

TENSOR = Input("input", Value("float32", (2, 3)))
READ = Op("torch.exp", (Ref(0),))


def seen(*ops: Op, num_inputs: int = 6) -> tuple[tuple[int, ...], ...]:
    sample = Sample("a/b", "torch", "other", (TENSOR,) * num_inputs, ops, None)
    return find_effects(sample).seen


def test_pure_operators_see_nothing() -> None:
    assert seen(READ, READ, Op("torch.relu", (Ref(6),))) == ((), (), ())


def test_a_value_that_was_written_is_seen_through_itself() -> None:
    add = Op("torch.Tensor.add_", (Ref(0), 1))
    assert seen(add, Op("torch.exp", (Ref(6),)), READ) == ((), (), (0,))


def test_running_statistics_are_written_and_the_result_is_new() -> None:
    args = (Ref(0), Ref(1), Ref(2), Ref(3), Ref(4), True)
    norm = Op("torch.nn.functional.batch_norm", args)
    mean, result = Op("torch.exp", (Ref(1),)), Op("torch.exp", (Ref(6),))
    assert seen(norm, mean, result, READ) == ((), (0,), (), ())
    frozen = Op("torch.nn.functional.batch_norm", (*args[:5], False))
    assert seen(frozen, mean) == ((), ())


def test_only_the_latest_write_is_seen() -> None:
    add = Op("torch.Tensor.add_", (Ref(0), 1))
    assert seen(add, add, READ) == ((), (0,), (1,))


@pytest.mark.parametrize(
    "view",
    [
        Op("torch.Tensor.view", (Ref(0), 6)),
        Op("operator.getitem", (Ref(0), 0)),
        Op("torch.ops.aten.view.default", (Ref(0), ListArg((6,)))),
        Op("torch.nn.functional.dropout", (Ref(0), 0.5, False)),
        Op("torch.Tensor.contiguous", (Ref(0),)),
        Op("torch.functional.einsum", ("ij->ji", Ref(0))),
    ],
    ids=lambda op: op.target,
)
def test_views_share_memory(view: Op) -> None:
    assert seen(view, Op("torch.Tensor.mul_", (Ref(6), 2)), READ)[2] == (1,)


def test_random_operators_follow_one_another() -> None:
    draw = Op("torch.rand_like", (Ref(0),))
    assert seen(draw, READ, draw) == ((), (), (0,))
    eval_dropout = Op("torch.nn.functional.dropout", (Ref(0), 0.5, False))
    assert seen(draw, eval_dropout) == ((), ())


def test_state_is_seen_by_all_that_follows() -> None:
    enter = Op("torch._C._set_grad_enabled", (False,))
    assert seen(READ, enter, READ, enter, READ) == ((), (), (1,), (1,), (3,))


def test_an_operator_outside_the_table_is_judged_by_its_name() -> None:
    assert seen(Op("custom.scale_", (Ref(0),)), READ) == ((), (0,))
    assert seen(Op("custom.scale", (Ref(0),)), READ) == ((), ())
