"""Branches and loops: source text, walks, runs and captures."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn
from torch._higher_order_ops.scan import scan
from torch._higher_order_ops.while_loop import while_loop
from torch.utils.checkpoint import checkpoint

from graphnet_datasets import extract_export, make_inputs, materialize
from graphnet_datasets.analysis.costs import measure_costs
from graphnet_datasets.errors import (
    SourceError,
    TransformError,
    TranslationError,
    UnknownOperatorError,
)
from graphnet_datasets.frameworks.tensor_metadata import TensorMeta
from graphnet_datasets.frameworks.torch.printer import print_source
from graphnet_datasets.frameworks.torch.shapes import propagate
from graphnet_datasets.frameworks.torch.source import parse_source
from graphnet_datasets.sample import Input, Op, Sample, Value
from graphnet_datasets.sample.arguments import Graph, ListArg, Ref
from graphnet_datasets.transforms.backward import backward
from graphnet_datasets.transforms.cast import autocast, cast
from graphnet_datasets.transforms.symbolic import symbolise
from graphnet_datasets.transforms.translate import translate

from .capturing import capture_one

PREFIX = "torch.ops.higher_order."
MATRIX = Value("float32", (3, 4))


def sample_of(*ops: Op, inputs: tuple[Value, ...] = (MATRIX,), outputs: Any = None) -> Sample:
    last = Ref(len(inputs) + len(ops) - 1)
    return Sample(
        "example/bodies",
        "torch",
        "other",
        tuple(Input("input", value) for value in inputs),
        ops,
        (last,) if outputs is None else outputs,
    )


def scanning(trips: int) -> Sample:
    """Return a running sum over the products of the rows with a matrix."""
    step = (Op("torch.matmul", (Ref(1), Ref(2))), Op("torch.add", (Ref(0), Ref(3))))
    body = Graph(3, (*step, Op("torch.mul", (Ref(4), 2))), (Ref(4), Ref(5)))
    return sample_of(
        Op(f"{PREFIX}scan", (body, ListArg((Ref(0),)), ListArg((Ref(1),)), (Ref(2),))),
        Op("operator.getitem", (Ref(3), 1)),
        inputs=(Value("float32", (4,)), Value("float32", (trips, 4)), Value("float32", (4, 4))),
    )


def branching(*branches: Graph) -> Sample:
    return sample_of(
        Op("torch.Tensor.sum", (Ref(0),)),
        Op("operator.gt", (Ref(1), 0)),
        Op(f"{PREFIX}cond", (Ref(2), *branches, (Ref(0),))),
        Op("operator.getitem", (Ref(3), 0)),
    )


def unary(name: str, *args: Any) -> Graph:
    return Graph(1, (Op(name, (Ref(0), *args)),), (Ref(1),))


def test_source_text_defines_bodies_and_is_read_back() -> None:
    inner = Graph(1, (Op(f"{PREFIX}cond", (True, unary("torch.sin"), unary("torch.cos"),
                                           (Ref(0),))),), Ref(1))  # fmt: skip
    sample = branching(inner, unary("torch.nn.functional.relu"))
    text = print_source(sample)
    assert (
        """
        def body_2_1(input_0):
            relu_0 = torch.nn.functional.relu(input_0)
            return (relu_0,)
        cond_2 = torch.ops.higher_order.cond(gt_1, body_2_0, body_2_1, (input_0,))
"""
        in text
    )
    metadata = {"input_0": TensorMeta("input_0", "float32", (3, 4))}
    assert parse_source(text, metadata, sample_id="example/bodies").ops == sample.ops


@pytest.mark.parametrize(
    "body",
    [
        "@torch.relu\n        def f(x):\n            return (x,)",
        "def f(x=1):\n            return (x,)",
        "def f(*x):\n            return (x,)",
        "def f():\n            return (input_0,)",
        "def f(x):\n            return f(x)",
        "async def f(x):\n            return (x,)",
        "def torch(x):\n            return (x,)",
    ],
)
def test_source_text_with_other_functions_is_refused(body: str) -> None:
    with pytest.raises((SourceError, UnknownOperatorError)):
        parse_branch(body)


def test_annotations_of_bodies_are_ignored() -> None:
    body = "def f(x: torch.save('file')):\n            return (x,)"
    assert parse_branch(body).num_ops == 1


def parse_branch(body: str) -> Sample:
    """Return the sample of source text whose two branches are the function `f`."""
    text = f"""
import torch
class GraphModule(torch.nn.Module):
    def forward(self, input_0: torch.Tensor):
        {body}
        a = torch.ops.higher_order.cond(True, f, f, (input_0,))
        return (a,)
"""
    return parse_source(text, {"input_0": TensorMeta("input_0", "float32", (3, 4))}, sample_id="a")


def test_shapes_of_branches_and_loops() -> None:
    branch = branching(unary("torch.Tensor.sum", 1), unary("torch.Tensor.mean", 1))
    assert propagate(branch)[2:] == ((Value("float32", (3,)),),) * 2
    assert propagate(scanning(5))[-1] == (Value("float32", (5, 4)),)


def test_costs_are_those_of_the_larger_branch_and_of_all_steps_of_a_scan() -> None:
    small, large = unary("torch.relu"), unary("torch.nn.functional.softmax", -1)
    costs = [measure_costs(branching(*pair)) for pair in ((small, small), (small, large))]
    swapped = measure_costs(branching(large, small))
    assert costs[0] is not None and costs[1] is not None
    assert costs[1].flops > costs[0].flops
    assert swapped == costs[1]
    short, long = measure_costs(scanning(10)), measure_costs(scanning(30))
    assert short is not None and long is not None
    assert short.flops_coverage == 1.0
    assert long.flops == 3 * short.flops > 30 * 2 * 4 * 4


def test_the_memory_of_a_body_counts() -> None:
    wide = Graph(1, (Op("torch.Tensor.repeat", (Ref(0), 100, 1)),
                     Op("torch.Tensor.sum", (Ref(1),))), (Ref(2),))  # fmt: skip
    costs = measure_costs(branching(wide, unary("torch.Tensor.sum")))
    assert costs is not None and costs.peak_memory_bytes > 100 * 3 * 4 * 4


def test_a_scan_runs_as_in_torch() -> None:
    sample = scanning(5)
    inputs = make_inputs(sample)
    module = materialize(sample)
    start, rows, weight = inputs.values()
    expected = 2 * (start + torch.cumsum(rows @ weight, 0))
    for _ in range(2):  # the plan, then the graph
        torch.testing.assert_close(module(**inputs)[0], expected)
    compiled = torch.compile(materialize(sample), backend="eager", fullgraph=True)
    torch.testing.assert_close(compiled(**inputs)[0], expected)


class Branching(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(4, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        offset = torch.tensor([1.0, 2.0, 3.0, 4.0])
        true = lambda x: self.layer(x) + torch.tensor([1.0, 2, 3, 4])  # noqa: E731
        return torch.cond(x.sum() > 0, true, lambda x: x.cos() - offset, (x,))


class Nested(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        def positive(x: torch.Tensor) -> torch.Tensor:
            return torch.cond(x.max() > 1, lambda x: x * torch.tensor([2.0]), torch.sin, (x,))

        return torch.cond(x.sum() > 0, positive, torch.cos, (x,))


class Looping(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        start = (torch.zeros((), dtype=torch.int64), x)
        return while_loop(lambda i, _: i < 3, lambda i, y: (i + 1, y * 2), start)[1]


class Scanning(nn.Module):
    def forward(self, x: torch.Tensor) -> Any:
        return scan(lambda carry, y: (carry + y, carry * y), torch.ones(4), x)


class Recomputing(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        def branch(x: torch.Tensor) -> torch.Tensor:
            return checkpoint(torch.sin, x, use_reentrant=False)  # type: ignore[return-value]

        return torch.cond(x.sum() > 0, branch, torch.cos, (x,))


class NoGradient(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        def branch(x: torch.Tensor) -> torch.Tensor:
            with torch.no_grad():
                return x.sin()

        return torch.cond(x.sum() > 0, branch, torch.cos, (x,))


class Square(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx: Any, *gradients: torch.Tensor) -> torch.Tensor:
        return 2 * ctx.saved_tensors[0] * gradients[0]


class Wrapping(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.cond(x.sum() > 0, lambda x: Square.apply(x), torch.cos, (x,))


MODULES = (Branching, Nested, Looping, Scanning, Recomputing, NoGradient, Wrapping)


def exported(module: nn.Module, x: torch.Tensor) -> Sample:
    return extract_export(module, (x,), name="test/module")


@pytest.mark.filterwarnings("ignore:.*should not be instantiated:DeprecationWarning")
@pytest.mark.parametrize("capture", [capture_one, exported])
@pytest.mark.parametrize("make", MODULES)
def test_captures_with_bodies_compute_what_the_module_computes(
    make: type[nn.Module], capture: Callable[..., Sample]
) -> None:
    if make is Recomputing and capture is exported:
        pytest.skip("torch cannot export a checkpoint inside of a branch")
    module, x = make().eval(), torch.rand(3, 4) + 0.5
    with torch.no_grad():
        sample = capture(module, x)
    assert sample.bodies
    assert Sample.from_row(sample.to_row()) == sample
    roles = {name: item.role for name, item in zip(sample.input_names, sample.inputs, strict=True)}
    stored, weights = make_inputs(sample), iter(module.parameters())
    materialized = materialize(sample)
    arguments: dict[str, Any] = {
        name: stored[name] if role == "constant" else next(weights)
        for name, role in roles.items()
        if role != "input"
    }
    names = [name for name, role in roles.items() if role == "input"]
    for argument in (x, -x):
        with torch.no_grad():
            expected = module(argument)
            actual = materialized(**arguments, **dict.fromkeys(names, argument))
        expected = expected if isinstance(expected, tuple) else (expected,)
        for result, reference in zip(actual, expected, strict=True):
            torch.testing.assert_close(result, reference)


def test_transforms_that_rewrite_operators_refuse_bodies() -> None:
    sample = branching(unary("torch.sin"), unary("torch.cos"))
    for transform in (
        lambda: cast(sample, "float16"),
        lambda: autocast(sample, "bfloat16"),
        lambda: backward(sample),
        lambda: symbolise(sample),
    ):
        with pytest.raises(TransformError, match="has bodies, which this transform does not"):
            transform()
    with pytest.raises(TranslationError):
        translate(sample)
