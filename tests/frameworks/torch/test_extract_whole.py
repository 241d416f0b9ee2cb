"""Captures are whole: calls that compute something outside of the graphs are refused."""

from __future__ import annotations

import contextlib
import copy
import dataclasses
import itertools
import weakref
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

from graphnet_datasets import extract, extract_export
from graphnet_datasets.errors import CaptureError
from graphnet_datasets.frameworks.torch.capture.refusals import refuse_outputs
from graphnet_datasets.frameworks.torch.capture.replay import first_difference, keep_leaves


class Box:
    """An output whose class torch does not know."""

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value


class Net(nn.Module):
    """Doubles `x` and calls a function that torch does not trace with itself, `x` and `2 * x`."""

    def __init__(self, untraced: Callable[..., Any], *, is_returned: bool) -> None:
        super().__init__()
        self.register_buffer("total", torch.zeros(4))
        disable: Any = torch.compiler.disable
        self.untraced = disable(untraced)
        self.is_returned = is_returned

    def forward(self, x: torch.Tensor) -> Any:
        y = x * 2
        result = self.untraced((self, x, y))
        return result if self.is_returned else y


AN_OUTPUT = "an output (float32[2, 4]) was computed or changed outside of the captured graphs"


@pytest.mark.parametrize(
    ("compute", "problem"),
    [
        (lambda call: Box(call[2].exp()), AN_OUTPUT),
        (lambda call: torch.distributions.Normal(call[2].sin(), call[2].exp()), AN_OUTPUT),
        (lambda call: {"sorted": np.sort(call[2].numpy())}, AN_OUTPUT),
        (lambda call: call[2].relu().to_sparse(), AN_OUTPUT),
        (lambda call: float(call[2].exp().sum()), "an output (the number "),
    ],
    ids=["object", "distribution", "array", "sparse", "number"],
)
def test_results_of_untraced_functions_are_refused(
    compute: Callable[..., Any], problem: str
) -> None:
    check_refused(Net(compute, is_returned=True), problem)


@pytest.mark.parametrize(
    ("write", "problem"),
    [
        (lambda call: call[0].total.copy_(call[2][0]), "an argument or a tensor of the module"),
        (lambda call: call[1].zero_(), "an argument or a tensor of the module (float32[2, 4])"),
        (lambda call: call[2].data.mul_(3), AN_OUTPUT),
        (lambda call: np.copyto(call[2].numpy(), 1.0), AN_OUTPUT),
    ],
    ids=["buffer", "argument", "data", "array"],
)
def test_writes_of_untraced_functions_are_refused(write: Callable[..., Any], problem: str) -> None:
    check_refused(Net(write, is_returned=False), problem)


def check_refused(module: nn.Module, problem: str) -> None:
    with pytest.raises(CaptureError) as caught:
        extract(name="test/module")(module)(torch.ones(2, 4))
    assert f"`test/module` cannot be captured whole: {problem}" in str(caught.value)
    assert "wrapped with `torch.compiler.disable`" in str(caught.value)


def test_a_number_after_a_break_is_an_output_of_its_graph() -> None:
    class Summing(nn.Module):
        def forward(self, x: torch.Tensor) -> Any:
            y = x * 2
            torch._dynamo.graph_break()
            return y.sum().item(), y.shape[0]

    wrapped = extract(name="test/module")(Summing())
    assert wrapped(torch.ones(2, 4)) == (16.0, 2)
    assert len(wrapped.samples) == 2


@pytest.mark.parametrize(
    "seed",
    [
        lambda: torch.manual_seed(3),
        lambda: torch.set_rng_state(torch.Generator().manual_seed(4).get_state()),
    ],
)
def test_random_numbers_after_a_seed_of_the_module_are_refused(seed: Callable[[], Any]) -> None:
    class Seeding(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            seed()
            return x + torch.randn(4)

    with pytest.raises(CaptureError, match=r"draws random numbers after the module has seeded"):
        extract(name="test/module")(Seeding())(torch.ones(2, 4))


@pytest.mark.parametrize("make", [iter, lambda tensors: (x for x in tensors), enumerate])
def test_an_iterator_as_an_argument_is_refused_before_it_is_read(make: Callable[..., Any]) -> None:
    class Adding(nn.Module):
        def forward(self, batch: Any) -> Any:
            return sum(batch["xs"])

    tensors = [torch.ones(2), torch.ones(2)]
    batch = {"xs": make(tensors)}
    with pytest.raises(CaptureError, match=r"\(`args\[0\]\['xs'\]`\), which can be read only once"):
        extract(name="test/module")(Adding())(batch)
    with pytest.raises(CaptureError, match="which can be read only once"):
        extract_export(Adding(), (batch,), name="test/module")
    assert len(list(batch["xs"])) == 2


@pytest.mark.parametrize("convert", [iter, set, lambda outputs: (x for x in outputs)])
def test_outputs_that_cannot_be_compared_are_refused(convert: Callable[..., Any]) -> None:
    class Returning(nn.Module):
        def forward(self, x: torch.Tensor) -> Any:
            return {"results": convert([x.sin(), x.cos()])}

    with pytest.raises(CaptureError, match=r"\(`outputs\['results'\]`\), whose elements cannot"):
        extract(name="test/module")(Returning())(torch.ones(2, 4))


def test_a_capture_leaves_the_memory_of_outputs_resizable() -> None:
    x = torch.ones(2, 4)
    wrapped = extract(name="test/module")(nn.Sequential(nn.ReLU(inplace=True)))
    assert wrapped(x).data_ptr() == x.data_ptr()
    assert x.resize_(100).shape == (100,)


def test_attributes_of_objects_in_outputs_may_be_counters_and_sets() -> None:
    box = Box([itertools.count(), {"names"}, iter("ab")])
    refuse_outputs("test/module", {"box": box})
    with pytest.raises(CaptureError, match="returns a `list_iterator`"):
        refuse_outputs("test/module", {"box": iter([1])})


class Calling(nn.Linear):
    def __call__(self, x: torch.Tensor) -> torch.Tensor:
        outputs: Any = super().__call__(x * 2)
        return outputs + 1


@dataclasses.dataclass
class Batch:
    x: torch.Tensor
    count: int = 0
    parts: Any = None


class Counting(nn.Module):
    def forward(self, batch: Batch) -> Batch:
        batch.count += 1
        batch.x = batch.x * batch.count
        return Batch(batch.x, batch.count, {"box": Box([batch.x.sin()])})


class Growing(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer: Any = None
        self.scale = 1.0
        self.cache: Any = weakref.WeakKeyDictionary()

    @contextlib.contextmanager
    def scaled(self) -> Iterator[None]:
        before, self.scale = self.scale, 3.0
        try:
            yield
        finally:
            self.scale = before

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if self.layer is None:
            self.layer = nn.Linear(4, 4)
            self.cache[self.layer] = 2.0
        with self.scaled():
            y = self.layer(x) * self.scale
        return y * self.cache[self.layer]


class Differentiating(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(4, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        doubled = torch.func.functional_call(self.layer, {"weight": self.layer.weight * 2}, (x,))
        return doubled + checkpoint(self.layer, x, use_reentrant=False)


def hooked() -> nn.Module:
    module: Any = nn.Sequential(nn.Linear(4, 4), nn.ReLU())
    seen: list[torch.Tensor] = []
    module.seen = seen
    module[0].register_forward_hook(lambda _module, _args, output: seen.append(output.detach()))
    module.register_forward_hook(lambda _module, _args, output: output + 1)
    return module


@pytest.mark.parametrize(
    ("make", "argument"),
    [
        (lambda: Calling(4, 4), torch.ones(2, 4)),
        (Counting, Batch(torch.ones(2, 4))),
        (Growing, torch.ones(2, 4)),
        (Differentiating, torch.ones(2, 4)),
        (hooked, torch.ones(2, 4)),
        (lambda: torch.optim.swa_utils.AveragedModel(nn.Linear(4, 4)), torch.ones(2, 4)),
    ],
    ids=["calling", "counting", "growing", "differentiating", "hooked", "averaged"],
)
def test_unusual_modules_are_captured_whole(make: Callable[[], nn.Module], argument: Any) -> None:
    torch.manual_seed(0)
    module, own = make(), copy.deepcopy(argument)
    expected = keep_leaves(module(own))
    torch.manual_seed(0)
    again, other = make(), copy.deepcopy(argument)
    wrapped = extract(name="test/module")(again)
    assert not first_difference(wrapped(other), expected)
    assert len(wrapped.samples) == 1
    assert not first_difference(other, keep_leaves(own))
    weights, own_weights = (list(net.state_dict().values()) for net in (again, module))
    assert not first_difference(weights, keep_leaves(own_weights))
    for name in ("seen", "scale"):
        if hasattr(module, name):
            before = keep_leaves(getattr(module, name))
            assert not first_difference(getattr(again, name), before)
