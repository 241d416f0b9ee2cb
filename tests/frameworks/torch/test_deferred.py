"""Modules whose graph is made when somebody asks for it."""

from __future__ import annotations

import copy
import inspect
import io
import pickle
import weakref
from collections.abc import Callable
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from torch._subclasses.fake_tensor import FakeTensorMode

from graphnet_datasets.frameworks import make_inputs, materialize
from graphnet_datasets.frameworks.torch.building.deferred import settle
from graphnet_datasets.frameworks.torch.watching import watched
from graphnet_datasets.sample import Input, Sample, Value
from graphnet_datasets.sample.arguments import ListArg, Ref, SliceArg

from ... import strategies
from .building import MATRIX, build
from .original import bits, flatten

WEIGHT = Input("parameter", Value("float32", (2, 3)))


def sample() -> Sample:
    """Return operators of all kinds, with nested operands."""
    return build(
        ("torch.Tensor.clone", Ref(0)),
        ("operator.iadd", Ref(2), Ref(1)),
        ("torch.cat", ListArg((Ref(3), Ref(1))), 0),
        ("operator.getitem", Ref(4), (SliceArg(None, 3, None), 0)),
        ("torch.Tensor.shape", Ref(4)),
        ("operator.getitem", Ref(6), 0),
        ("operator.mul", Ref(5), Ref(7)),
        inputs=(MATRIX, WEIGHT),
        outputs=(Ref(8), ListArg((Ref(3), 2.5))),
    )


def is_made(module: Any) -> bool:
    return "_graph" in vars(module)


def same(left: Any, right: Any) -> bool:
    return list(map(bits, flatten(left))) == list(map(bits, flatten(right)))


def test_the_first_call_makes_no_graph_and_the_second_does() -> None:
    module, inputs = materialize(sample()), make_inputs(sample())
    assert isinstance(module, torch.fx.GraphModule) and not is_made(module)
    first = module(*inputs.values())
    assert not is_made(module)
    second = module(**inputs)
    assert is_made(module)
    assert same(first, second) and same(second, module(**inputs))


def test_a_settled_module_equals_that_of_torch() -> None:
    """What is timed as eager has no member, class or text of its own."""
    module = materialize(sample(), weights="parameters")
    settle(module)
    plain = torch.fx.GraphModule(module, copy.deepcopy(module.graph))
    assert type(module).__base__ is torch.fx.GraphModule
    assert vars(type(module)).keys() == vars(type(plain)).keys()
    assert vars(module).keys() == vars(plain).keys()
    assert type(module).forward.__code__.co_code == type(plain).forward.__code__.co_code
    assert module.code == plain.code
    assert module.graph.owning_module is module
    assert not module.training
    assert type(module).__name__ == "GraphModule"


ASKING: dict[str, Callable[[Any], Any]] = {
    "graph": lambda module: module.graph,
    "code": lambda module: module.code,
    "print": str,
    "forward": lambda module: module.forward,
    "forward of the class": lambda module: type(module).forward,
    "signature": lambda module: inspect.signature(module.forward),
    "copy": copy.copy,
    "deepcopy": copy.deepcopy,
    "pickle": pickle.dumps,
    "save": lambda module: torch.save(module, io.BytesIO()),
    "recompile": lambda module: module.recompile(),
    "meta": lambda module: module.meta,
    "watched": watched,
    "interpreter": torch.fx.Interpreter,
    "trace": torch.fx.symbolic_trace,
    "graph set": lambda module: setattr(module, "graph", torch.fx.Graph()),
}


@pytest.mark.parametrize("name", ASKING)
def test_accessing_the_graph_creates_it(name: str) -> None:
    module = materialize(sample())
    module(**make_inputs(sample()))
    ASKING[name](module)
    assert is_made(module)
    assert "__getattr__" not in vars(type(module))
    assert type(module).__base__ is torch.fx.GraphModule


def test_hooks_are_called_on_the_first_call() -> None:
    module, seen = materialize(sample()), []
    module.register_forward_hook(lambda *_: seen.append("after"))
    module.register_forward_pre_hook(lambda *_: seen.append("before"))
    module(**make_inputs(sample()))
    assert seen == ["before", "after"]


@pytest.mark.parametrize("is_inner", [False, True])
def test_dynamo_sees_the_graph_and_not_how_it_is_run(is_inner: bool) -> None:
    module, captured = materialize(sample(), weights="parameters"), []

    class Outer(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner = module

        def forward(self, x: torch.Tensor) -> Any:
            return self.inner(x)

    def backend(graph: torch.fx.GraphModule, _: Any) -> Any:
        captured.append(graph)
        return graph

    inputs = make_inputs(sample(), weights="parameters")
    expected = module(**inputs)
    torch._dynamo.reset()
    compiled = torch.compile(
        Outer() if is_inner else materialize(sample(), weights="parameters"),
        backend=backend,
        fullgraph=True,
    )
    assert same(compiled(*inputs.values()), expected)
    assert len(captured) == 1
    if is_inner:
        assert is_made(module)


def test_a_wrong_call_is_refused_as_python_does() -> None:
    module = materialize(sample())
    with pytest.raises(TypeError, match="missing 1 required positional argument: 'parameter_0'"):
        module(make_inputs(sample())["input_0"])


def test_fake_tensors_and_modes_meet_the_graph() -> None:
    module = materialize(sample())
    with FakeTensorMode() as mode:
        found, _ = module(*(mode.from_tensor(each) for each in make_inputs(sample()).values()))
    assert is_made(module) and tuple(found.shape) == (3,)


def test_weights_that_are_moved_or_replaced_are_those_that_run() -> None:
    module = materialize(sample(), weights="parameters").double()
    inputs = {name: each.double() for name, each in make_inputs(sample()).items()}
    del inputs["parameter_0"]
    first, _ = module(**inputs)
    assert first.dtype == torch.float64 and not is_made(module)
    module.parameter_0 = torch.nn.Parameter(torch.zeros(2, 3, dtype=torch.float64))
    other = materialize(sample(), weights="parameters").double()
    other.parameter_0 = module.parameter_0
    assert same(other(**inputs), module(**inputs))


def test_values_are_let_go_of_after_their_last_use() -> None:
    held: list[weakref.ref[torch.Tensor]] = []
    chain = build(
        ("torch.Tensor.clone", Ref(0)),
        ("torch.relu", Ref(1)),
        ("torch.neg", Ref(2)),
    )
    module = materialize(chain)
    plan = vars(module)["_graphnet_plan"]
    calls = []

    def follow(target: Any) -> Any:
        def call(*args: Any) -> torch.Tensor:
            calls.append(sum(each() is not None for each in held))
            made = target(*args)
            held.append(weakref.ref(made))
            return made

        return call

    plan.steps[:] = [
        step._replace(kind="call_function", target=follow(target))
        for step, target in zip(
            plan.steps, (torch.Tensor.clone, torch.relu, torch.neg), strict=True
        )
    ]
    module(**make_inputs(chain))
    assert calls == [0, 1, 1]


@settings(max_examples=40, deadline=None)
@given(strategies.runnable_samples())
def test_both_ways_to_run_give_the_same(each: Sample) -> None:
    module = materialize(each)
    torch.manual_seed(1)
    first = module(**make_inputs(each))
    settle(module)
    torch.manual_seed(1)
    assert same(first, module(**make_inputs(each)))
