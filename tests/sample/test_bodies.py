from __future__ import annotations

import dataclasses
import json
from typing import Any

import pytest

from graphnet_datasets.errors import SampleError, SchemaError
from graphnet_datasets.sample import Input, Op, Sample, Value
from graphnet_datasets.sample.arguments import MAX_BODY_DEPTH, Graph, ListArg, Ref
from graphnet_datasets.sample.invariants import MAX_VALUES

COND = "torch.ops.higher_order.cond"
DIFFERENCE = Graph(2, (Op("torch.sub", (Ref(0), Ref(1)), (("alpha", 2),)),), (Ref(2),))
PRODUCT = Graph(2, (Op("torch.mul", (Ref(1), Ref(0)), (), None, "layer"),), (Ref(2),))


def branching(true: Graph = DIFFERENCE, false: Any = PRODUCT) -> Sample:
    tensor = Input("input", Value("float32", (2, 3)))
    condition = Input("input", Value("bool", ()))
    return Sample(
        "example/branch",
        "torch",
        "other",
        (condition, tensor, tensor),
        (
            Op(COND, (Ref(0), true, false, (Ref(1), Ref(2))), (), (Value("float32", (2, 3)),)),
            Op("operator.getitem", (Ref(3), 0)),
        ),
        (Ref(4),),
    )


def nested(depth: int) -> Graph:
    body = DIFFERENCE
    for _ in range(depth - 1):
        body = Graph(2, (Op(COND, (True, body, body, (Ref(0), Ref(1)))),), Ref(2))
    return body


def with_bodies(*bodies: list[Any]) -> dict[str, Any]:
    """Return a row of `branching` with other JSON for its bodies."""
    row = branching().to_row()
    row["ops"][0]["args"] = json.dumps(
        [{}, *({"graph": body} for body in bodies), {"tuple": [{}, {}]}]
    )
    return row


def test_a_row_restores_bodies() -> None:
    sample = branching(Graph(2, (Op("torch.cat", (ListArg((Ref(0), Ref(1))), -1)),), Ref(2)))
    assert Sample.from_row(sample.to_row()) == sample
    assert sample.to_row()["ops"][0]["operands"] == [0, 1, 2]
    assert sample.num_ops == 2


def test_a_row_restores_bodies_inside_of_bodies() -> None:
    sample = branching(nested(MAX_BODY_DEPTH), nested(1))
    assert Sample.from_row(sample.to_row()) == sample


def test_bodies_are_samples() -> None:
    sample = branching()
    difference, product = sample.bodies[0]
    assert list(sample.iterate_bodies()) == [difference, product]
    assert difference.ops == DIFFERENCE.ops
    assert len(product.inputs) == 2
    targets = [op.target for op in sample.iterate_ops()]
    assert targets == [COND, "operator.getitem", "torch.sub", "torch.mul"]


def test_a_body_in_the_longest_id_is_a_sample() -> None:
    sample = dataclasses.replace(branching(), id="a/" * 255 + "aa")
    assert all(body.num_ops == 1 for body in sample.iterate_bodies())


@pytest.mark.parametrize(
    ("body", "problem"),
    [
        (Graph(2, (Op("torch.sub", (Ref(0), Ref(3))),), Ref(2)), "uses value 3"),
        (Graph(2, (Op("torch.relu", (Ref(2),)),), Ref(2)), "uses value 2"),
        (Graph(2, (), Ref(2)), "output structure of a body uses value 2"),
        (Graph(-1, (), None), "invalid number of inputs"),
        (Graph(2, (Op("a b", (Ref(0),)),), Ref(0)), "has the target 'a b'"),
        (Graph(2, (Op("torch.relu", (), (("a b", 1),)),), Ref(0)), "has the keyword 'a b'"),
        (Graph(2, (Op("torch.relu", (), (), ()),), Ref(0)), "recorded results"),
        (Graph(2, (Op("torch.relu", ((DIFFERENCE,),)),), Ref(0)), "argument of type `Graph`"),
        (Graph(MAX_VALUES, (), None), "values in bodies"),
        (nested(MAX_BODY_DEPTH + 1), "nests bodies deeper than 8 levels"),
    ],
)
def test_invalid_bodies_are_refused(body: Graph, problem: str) -> None:
    with pytest.raises(SampleError, match=problem):
        branching(body)


def test_a_body_inside_itself_is_refused() -> None:
    body = Graph(0, (), None)
    object.__setattr__(body, "ops", (Op(COND, (True, body, body, ())),))
    with pytest.raises(SampleError, match="nests bodies deeper"):
        branching(body)


@pytest.mark.parametrize(
    "body",
    [
        [],
        [2, []],
        [2, [], []],
        [2.0, [], [[], None]],
        [True, [], [[], None]],
        [2, {}, [[], None]],
        [2, [["torch.relu", [0], [{}], {}]], [[], None]],
        [2, [["torch.relu", [], [{}], {}, ""]], [[], None]],
        [2, [["torch.relu", [0, 1], [{}], {}, ""]], [[], None]],
        [2, [["torch.relu", ["0"], [{}], {}, ""]], [[], None]],
        [2, [[1, [0], [{}], {}, ""]], [[], None]],
        [2, [], [[0], None]],
        [2, [], [[], {}]],
        "body",
        None,
    ],
)
def test_json_that_is_no_body_is_refused(body: Any) -> None:
    with pytest.raises(SchemaError, match="contains a body that is not"):
        Sample.from_row(with_bodies(body, body))


def test_json_with_too_many_levels_of_bodies_is_refused() -> None:
    body: list[Any] = [0, [], [[], None]]
    for _ in range(MAX_BODY_DEPTH):
        body = [0, [[COND, [], [{"graph": body}], {}, ""]], [[], None]]
    with pytest.raises(SchemaError, match="nests bodies deeper than 8 levels"):
        Sample.from_row(with_bodies(body))


def test_a_body_inside_of_another_argument_is_refused() -> None:
    row = branching().to_row()
    row["ops"][0].update(args='[[{"graph":[0,[],[[],null]]}]]', operands=[])
    with pytest.raises(SchemaError, match="is not a template"):
        Sample.from_row(row)
