"""Calls of which paddle's core would make an end of the process are refused before."""

from __future__ import annotations

import pytest

from graphnet_datasets.errors import MaterializeError
from graphnet_datasets.sample import Input, Op, Sample, Value
from graphnet_datasets.sample.arguments import ListArg, Ref

pytest.importorskip("paddle", reason="paddlepaddle is not installed")

from graphnet_datasets.frameworks.paddle.plan import Plan
from graphnet_datasets.frameworks.paddle.shapes import propagate

CONCAT = "paddle._C_ops.concat"
FATAL = [
    (Op(CONCAT), "Expected 2 arguments (x, axis), got 0."),
    (Op(CONCAT, (ListArg((Ref(0),)),)), "Expected 2 arguments (x, axis), got 1."),
    (Op(CONCAT, (ListArg((Ref(0),)), 0, 1)), "Expected 2 arguments (x, axis), got 3."),
    (Op(CONCAT, (), (("alpha", 1), ("dim", -2))), "Expected the keywords x, axis, got `alpha`."),
    (
        Op(CONCAT, (ListArg((None, None)), 0)),
        "Expected lists of values, got a list in which all are None.",
    ),
]


def _sample(*ops: Op) -> Sample:
    tensor = Input("input", Value("float32", (2, 3)))
    return Sample("a/b", "paddle", "other", (tensor,), ops, Ref(len(ops)))


@pytest.mark.parametrize(("op", "message"), FATAL)
def test_a_fatal_call_is_refused(op: Op, message: str) -> None:
    with pytest.raises(MaterializeError) as caught:
        Plan(_sample(op))
    assert str(caught.value) == f"Op 0 (`{CONCAT}`) of `a/b` cannot run: {message}"


def test_keywords_are_passed_at_the_positions_of_their_parameters() -> None:
    op = Op(CONCAT, (), (("axis", 1), ("x", ListArg((Ref(0), Ref(0))))))
    assert propagate(_sample(op)) == ((Value("float32", (2, 6)),),)


def test_values_that_turn_out_absent_stay_unknown() -> None:
    # item 1 of a bare tensor is a hidden result, which is None
    absent = Op("operator.getitem", (Ref(1), 1))
    joined = Op(CONCAT, (ListArg((Ref(2),)), 0))
    assert propagate(_sample(Op("paddle._C_ops.relu", (Ref(0),)), absent, joined))[2] is None
