"""Capturing modules are the modules that they were made from, in every respect but their calls."""

from __future__ import annotations

import collections
import copy
import inspect
import pickle
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from graphnet_datasets import extract
from graphnet_datasets.errors import CaptureError, SampleError
from graphnet_datasets.frameworks.capturing import capture_lock
from graphnet_datasets.storage.table import read_table

X = torch.ones(2, 3)


class Scale(nn.Module):
    scale = 2.0

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x * self.scale

    def generate(self, x: torch.Tensor) -> torch.Tensor:
        return self(self(x))

    def call_forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.forward(x)


@extract(name="test/decorated")
class Decorated(nn.Module):
    """A decorated class that names itself in `super`."""

    def __init__(self, size: int = 3) -> None:
        super(Decorated, self).__init__()  # noqa: UP008 - the spelling under test
        self.linear = nn.Linear(3, size)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.linear(x)


jit_trace: Any = torch.jit.trace


def chain() -> nn.Sequential:
    return nn.Sequential(nn.Linear(3, 3), nn.ReLU())


def test_attributes_reach_the_module() -> None:
    module = Scale()
    wrapped = extract(name="test/scale")(module)
    wrapped.scale = 5.0
    assert module.scale == 5.0
    assert torch.equal(wrapped(X), X * 5)
    module.scale = 7.0
    assert torch.equal(wrapped(X), X * 7)
    wrapped.register_buffer("extra", X)
    assert module.extra is X
    del wrapped.extra
    assert not hasattr(module, "extra")


def test_it_is_an_instance_of_the_class_with_the_same_children_and_state() -> None:
    module = chain()
    wrapped = extract(name="test/chain")(module)
    assert isinstance(wrapped, nn.Sequential)
    assert (len(wrapped), wrapped[0], list(wrapped)) == (2, module[0], list(module))
    assert list(wrapped.state_dict()) == list(module.state_dict())
    assert [name for name, _ in wrapped.named_modules()] == ["", "0", "1"]
    assert list(wrapped.parameters()) == list(module.parameters())
    assert repr(wrapped) == repr(module)
    part = wrapped[1:]
    assert type(part) is nn.Sequential
    assert torch.equal(part(X), X)
    table = extract(name="test/table")(nn.ModuleDict({"a": nn.ReLU()}))
    assert "a" in table
    assert list(table) == ["a"]


def test_mode_dtype_and_gradients_are_those_of_the_module() -> None:
    module = chain()
    wrapped = extract(name="test/chain")(module)
    assert wrapped.eval() is wrapped
    assert not module.training and not module[1].training
    assert wrapped.double() is wrapped
    assert module[0].weight.dtype is torch.float64
    wrapped.to(torch.float32)(X).sum().backward()
    assert module[0].weight.grad is not None
    wrapped.zero_grad()
    assert module[0].weight.grad is None


@pytest.mark.parametrize("method", ["generate", "call_forward"])
def test_methods_that_call_forward_capture_one_call(method: str) -> None:
    wrapped = extract(name="test/scale")(Scale())
    outputs = getattr(wrapped, method)(X)
    assert torch.equal(outputs, getattr(Scale(), method)(X))
    (sample,) = wrapped.samples
    assert [op.target for op in sample.ops] == ["operator.mul"]


def test_a_copy_has_attributes_of_its_own_and_a_pickle_holds_the_plain_module() -> None:
    wrapped = extract(name="test/chain")(chain())
    wrapped(X)
    other = copy.deepcopy(wrapped)
    assert [sample.id for sample in other.samples] == ["test/chain"]
    other[0] = nn.Identity()
    other.extra = 1
    assert isinstance(wrapped[0], nn.Linear)
    assert not hasattr(wrapped, "extra")
    assert type(pickle.loads(pickle.dumps(wrapped))) is nn.Sequential  # noqa: S301 - our own


def test_threads_capture_one_after_another() -> None:
    modules = [chain() for _ in range(3)]
    wrapped = [extract(name=f"test/{index}")(module) for index, module in enumerate(modules)]
    calls = wrapped * 2
    with ThreadPoolExecutor(len(calls)) as pool:
        outputs = list(pool.map(lambda module: module(X), calls))
    for module, wrapper, *results in zip(modules, wrapped, outputs, outputs[3:], strict=False):
        assert len(wrapper.samples) == 1
        assert all(torch.equal(result, module(X)) for result in results)


def test_a_trace_in_another_thread_does_not_prevent_a_capture() -> None:
    is_compiling = [True]
    was_asked = threading.Event()

    def ask() -> bool:
        was_asked.set()
        return is_compiling[0]

    wrapped = extract(name="test/chain")(chain())
    with ThreadPoolExecutor(1) as pool, pytest.MonkeyPatch.context() as patch:
        patch.setattr(torch.compiler, "is_compiling", ask)
        with capture_lock:
            output = pool.submit(wrapped, X)
            was_asked.wait()
            is_compiling[0] = False
            patch.undo()
        output.result()
    assert len(wrapped.samples) == 1


@pytest.mark.parametrize(
    "trace",
    [
        lambda module: torch.compile(module, backend="eager")(X),
        lambda module: torch.export.export(module, (X,)).module()(X),
        lambda module: torch.fx.symbolic_trace(module)(X),
        lambda module: jit_trace(module, X, check_trace=False)(X),
        lambda module: torch.func.vmap(module)(X),
    ],
    ids=["compile", "export", "symbolic_trace", "jit", "vmap"],
)
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_trace_of_a_capturing_module_is_that_of_the_module(trace: Callable[[Any], Any]) -> None:
    module = chain()
    wrapped = extract(name="test/chain")(module)
    assert torch.equal(trace(wrapped), trace(module))
    assert wrapped.samples == []
    wrapped(X)
    assert len(wrapped.samples) == 1


def test_two_decorators_of_one_module_do_not_meet() -> None:
    first = extract(name="test/first")(chain())
    second = extract(name="test/second")(first)
    second(X)
    assert first.samples == []
    first(X)
    assert [first.samples[0].id, second.samples[0].id] == ["test/first", "test/second"]


def test_a_decorated_class_stays_the_same_class() -> None:
    assert list(inspect.signature(Decorated).parameters) == ["size"]
    module = Decorated(4)
    assert isinstance(module, Decorated)
    assert list(inspect.signature(module.forward).parameters) == ["x"]
    assert module(X).shape == (2, 4)
    again = pickle.loads(pickle.dumps(module))  # noqa: S301 - our own
    assert torch.equal(again(X), module(X))
    assert module.samples[0].provenance.model_name == "Decorated"


def test_a_subclass_of_a_decorated_class_captures_its_own_forward() -> None:
    @extract(name="test/base")
    class Base(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x + 1

    class Derived(Base):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return super().forward(x).relu()

    module = Derived()
    module(X)
    assert [op.target for op in module.samples[0].ops] == ["operator.add", "torch.Tensor.relu"]


def test_a_capturing_module_within_another_is_part_of_its_graph() -> None:
    inner = extract(name="test/inner")(chain())
    outer = nn.Sequential(inner, nn.Tanh())
    wrapped = extract(name="test/outer")(outer)
    wrapped(X)
    assert len(wrapped.samples) == 1
    assert wrapped.samples[0].num_ops == 3
    assert inner.samples == []
    assert outer[0] is inner


def test_a_function_captures_its_first_call() -> None:
    @extract(name="test/product")
    def product(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return x @ y

    assert product.samples == []
    assert torch.equal(product(X, X.T), X @ X.T)
    (sample,) = product.samples
    assert sample.provenance.model_name == "product"
    assert [op.target for op in sample.ops] == ["operator.matmul"]


class Makers(collections.OrderedDict[str, type[nn.Module]]):
    """Returns a new instance of a stored class, as registries of model libraries do."""

    def __getitem__(self, name: str) -> Any:
        return super().__getitem__(name)()


MAKERS = Makers(relu=nn.ReLU)


def test_a_registry_that_the_model_uses_keeps_its_items() -> None:
    class Uses(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return MAKERS["relu"](x)

    extract(name="test/uses")(Uses())(X)
    assert dict.__getitem__(MAKERS, "relu") is nn.ReLU
    assert isinstance(MAKERS["relu"], nn.ReLU)


def test_every_instance_of_a_class_is_in_the_file(tmp_path: Path) -> None:
    path = tmp_path / "b.parquet"

    @extract(name="test/net", out=path)
    class Net(nn.Module):
        def __init__(self, factor: float) -> None:
            super().__init__()
            self.factor = factor

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x * self.factor

    modules = [Net(factor) for factor in (2.0, 3.0, 4.0)]
    for module in modules:
        module(X)
    ids = ["test/net", "test/net-2", "test/net-3"]
    assert [module.samples[0].id for module in modules] == ids
    assert read_table(path)["id"].to_pylist() == ids


def test_samples_of_other_names_stay_in_the_file(tmp_path: Path) -> None:
    path = tmp_path / "b.parquet"
    for name, module in (("test/a", nn.ReLU()), ("test/b", nn.Tanh()), ("test/a", nn.GELU())):
        extract(name=name, out=path)(module)(X)
    rows = read_table(path).to_pylist()
    assert [(row["id"], row["model_name"]) for row in rows] == [
        ("test/b", "Tanh"),
        ("test/a", "GELU"),
    ]


def test_a_file_of_another_kind_is_refused_before_the_model_runs(tmp_path: Path) -> None:
    calls: list[Any] = []

    class Noting(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            calls.append(x)
            return x

    path = tmp_path / "b.parquet"
    path.write_text("mine")
    with pytest.raises(CaptureError, match=r"^No sample can be added to `.*b\.parquet`\. "):
        extract(name="test/noting", out=path)(Noting())(X)
    assert path.read_text() == "mine"
    assert calls == []


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"name": "my model"}, "The sample id 'my model' is not a path of letters"),
        ({"name": "test/a", "task": "vision"}, "has task 'vision' (accepted: cv, nlp, "),
    ],
)
def test_a_wrong_name_or_task_is_refused_at_once(options: Any, message: str) -> None:
    with pytest.raises(SampleError) as caught:
        extract(**options)
    assert message in str(caught.value)
