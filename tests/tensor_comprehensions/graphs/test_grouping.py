"""Groups are convex, begin with a contraction, and have no views at their edges."""

from __future__ import annotations

import operator

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.fx.experimental.proxy_tensor import make_fx

from graphnet_datasets.tensor_comprehensions.graphs.grouping import (
    group_nodes,
    is_contraction,
    is_view,
    reason_against,
)
from graphnet_datasets.tensor_comprehensions.graphs.subscripts import Subscript, reshaped


def groups_of(function, *inputs: torch.Tensor):
    module = make_fx(function, tracing_mode="fake")(*inputs)
    refused = {
        node: reason
        for node in module.graph.nodes
        if node.op == "call_function" and (reason := reason_against(node))
    }
    return group_nodes(module.graph, refused), module.graph


def assert_no_cycle(groups, graph) -> None:
    number = {node: place for place, group in enumerate(groups) for node in group}
    users: dict = {}
    for node in graph.nodes:
        own = number.get(node, node)
        for operand in node.all_input_nodes:
            other = number.get(operand, operand)
            if own != other:
                users.setdefault(other, set()).add(own)
    state: dict = {}

    def visit(each) -> None:
        assert state.get(each) != "open", "the groups depend on each other"
        if each not in state:
            state[each] = "open"
            for user in users.get(each, ()):
                visit(user)
            state[each] = "done"

    for each in list(users):
        visit(each)


@given(st.lists(st.tuples(st.integers(0, 4), st.integers(0, 9), st.integers(0, 9)), max_size=14))
@settings(max_examples=30)
def test_groups_never_depend_on_each_other(steps: list) -> None:
    def function(x: torch.Tensor) -> torch.Tensor:
        values = [x, x * 2]
        for kind, first, second in steps:
            a, b = values[first % len(values)], values[second % len(values)]
            upper, lower = (a + 1).split([1, 2], 0)
            # `cumsum` has no rule, so that it stands between groups.
            made = (a + b, torch.mm(a, b), a.cumsum(0), a.t() * b, upper * b)
            values.append(made[kind])
            if kind == 4:
                values.append(lower[:1].expand(3, 3))
        return sum(values[1:], values[0])

    groups, graph = groups_of(function, torch.randn(3, 3))
    assert_no_cycle(groups, graph)
    for group in groups:
        assert sum(is_contraction(node) for node in group) <= 1
        own = set(group)
        for node in group:
            is_part = node.target is operator.getitem
            if is_view(node):
                assert any(each in own for each in node.all_input_nodes)
                assert is_part or any(each in own for each in node.users)
            if isinstance(node.meta["val"], list | tuple):  # only its parts can leave
                assert all(each in own for each in node.users)


@given(st.data())
def test_a_reshape_maps_every_element_to_itself(data: st.DataObject) -> None:
    factors = data.draw(st.lists(st.integers(1, 4), min_size=1, max_size=4))

    def merged() -> tuple[int, ...]:
        sizes, size = [], 1
        for factor in factors:
            size *= factor
            if data.draw(st.booleans()):
                sizes.append(size)
                size = 1
        return (*sizes, size)

    old, new = merged(), merged()
    names = [f"i{place}" for place in range(len(new))]
    made = reshaped(
        [Subscript.index(name, size) for name, size in zip(names, new, strict=True)], old, new
    )
    source = torch.arange(torch.tensor(old).prod().item()).reshape(old)
    for place in torch.cartesian_prod(*(torch.arange(n) for n in new)).reshape(-1, len(new)):
        at = dict(zip(names, place.tolist(), strict=True))
        where = tuple(value(each, at) for each in made)
        assert source[where] == source.reshape(new)[tuple(place.tolist())]


def value(subscript: Subscript, at: dict[str, int]) -> int:
    if subscript.affine is not None:
        return subscript.affine.evaluate(at)
    # The text is the language's, whose `/` rounds down: evaluate it with the language itself.
    from graphnet_datasets.tensor_comprehensions import define

    names = list(at)
    parameters = ", ".join(f"int32 {name}_" for name in names)
    text = subscript.text
    for name in names:
        text = text.replace(name, f"{name}_")
    source = f"def f({parameters}) -> (O) {{ O = {text} }}"
    return int(define(source).interpret("f", *at.values()))


def test_views_alone_make_no_group() -> None:
    groups, _ = groups_of(lambda x: x.t().reshape(2, 6).unsqueeze(0), torch.randn(3, 4))
    assert groups == []


@pytest.mark.parametrize(
    ("extent", "factor", "offset", "divisor", "expected"),
    [
        (8, 1, 0, 8, ("0", "i")),
        (4, 8, 3, 8, ("i", "3")),
        (4, 8, 0, 4, ("2*i", "0")),
        (9, 1, 0, 4, ("(i) / 4", "(i) % 4")),
    ],
)
def test_divisions_are_resolved_where_ranges_allow(
    extent: int, factor: int, offset: int, divisor: int, expected: tuple[str, str]
) -> None:
    subscript = Subscript.index("i", extent).times(factor).shifted(offset)
    assert (subscript.over(divisor).text, subscript.modulo(divisor).text) == expected
