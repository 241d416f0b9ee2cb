"""A capture of a layer: right values for the caller, and nothing else changed."""

from __future__ import annotations

import copy
import random
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from graphnet_datasets import extract
from graphnet_datasets.errors import CaptureError
from graphnet_datasets.sample import Sample

from .installed import paddle

pytestmark = [
    pytest.mark.paddle,
    pytest.mark.filterwarnings("ignore:When training, we now always track global mean"),
]


class Calls(paddle.nn.Layer):
    def __init__(self, function: Callable[[Any], Any]) -> None:
        super().__init__()
        self.function = function

    def forward(self, x: Any) -> Any:
        return self.function(x)


def numbers() -> Any:
    return paddle.to_tensor([[1.0, 2.0], [3.0, 4.0]])


def arrays(outputs: Any) -> list[Any]:
    return [item.tolist() for item in (outputs if isinstance(outputs, tuple) else (outputs,))]


def captured(layer: Any, *args: Any) -> tuple[Any, Sample]:
    wrapped = extract(name="test/layer")(layer)
    outputs = wrapped(*args)
    return outputs, wrapped.samples[0]


def adds(x: Any) -> Any:
    y = x * 1
    y.add_(paddle.to_tensor([[10.0, 10.0], [10.0, 10.0]]))
    return y


def scales(x: Any) -> Any:
    y = x * 1
    y.scale_(3.0)
    return y


def clips(x: Any) -> Any:
    y = x * 1
    y.clip_(0.0, 2.0)
    return y


def exponentiates(x: Any) -> Any:
    y = x * 1
    y.exp_()
    return y + 1


def assigns(x: Any) -> Any:
    y = x * 1
    y[0, 0] = 9.0
    y.multiply_(y)
    return y


def rectifies(x: Any) -> Any:
    y = x - 2
    paddle.nn.functional.relu_(y)
    return y


def reshapes(x: Any) -> Any:
    y = x * 1
    y.reshape_([4])
    return y


def fills(x: Any) -> Any:
    y, z = x * 1, x * 1
    y.zero_()
    z.fill_(3.0)
    return y, z


def writes_under_two_names(x: Any) -> Any:
    y = x * 1
    z = y
    z.add_(x)
    for _ in range(2):
        y.subtract_(x * 0.5)
    return y, z


def chains(x: Any) -> Any:
    y = x * 1
    y.scale_(2.0).clip_(0.0, 5.0)
    z = y.add_(x).scale_(0.5)
    return y, z, y + z


def returns_a_chain(x: Any) -> Any:
    y = x * 1
    return y.multiply_(x).divide_(x + 1).floor_()


def chains_functions(x: Any) -> Any:
    y = x * 1
    paddle.nn.functional.relu_(y.subtract_(x * 2)).add_(x)
    return y


def chains_on_its_argument(x: Any) -> Any:
    return x.scale_(2.0).clip_(0.0, 5.0).add_(x)


def writes_to_its_argument(x: Any) -> Any:
    x.add_(paddle.ones([2, 2]))
    return x * 2


IN_PLACE = [
    adds, scales, clips, exponentiates, assigns, rectifies, reshapes, fills,
    chains, returns_a_chain, chains_functions, chains_on_its_argument,
    writes_under_two_names, writes_to_its_argument,
]  # fmt: skip


@pytest.mark.parametrize("function", IN_PLACE)
def test_in_place_methods_give_the_values_of_the_layer(function: Callable[[Any], Any]) -> None:
    expected = arrays(function(numbers()))
    argument, reference = numbers(), numbers()
    function(reference)
    outputs, sample = captured(Calls(function), argument)
    assert arrays(outputs) == expected
    assert argument.tolist() == reference.tolist()

    from graphnet_datasets.frameworks.paddle.materialize import materialize

    assert arrays(materialize(sample)(*_inputs(sample, numbers()))) == expected


def _inputs(sample: Sample, argument: Any) -> list[Any]:
    constants = {
        index: paddle.to_tensor(np.frombuffer(each.data, "float32").reshape(each.value.shape))
        for index, each in enumerate(sample.inputs)
        if each.role != "input" and each.data is not None
    }
    return [constants.get(index, argument) for index in range(len(sample.inputs))]


@pytest.mark.parametrize("is_training", [False, True])
def test_recompute_is_captured_as_the_calls_that_it_repeats(is_training: bool) -> None:
    from paddle.distributed.fleet.utils import recompute

    class Recomputes(paddle.nn.Layer):
        def __init__(self) -> None:
            super().__init__()
            self.first = paddle.nn.Linear(2, 2)
            self.block = paddle.nn.Sequential(paddle.nn.Linear(2, 2), paddle.nn.ReLU())

        def forward(self, x: Any) -> Any:
            return recompute(self.block, self.first(x))

    layer = Recomputes()
    layer.train() if is_training else layer.eval()
    expected = layer(numbers())
    outputs, sample = captured(layer, numbers())
    assert outputs.tolist() == expected.tolist()
    assert [op.target.rpartition(".")[2] for op in sample.ops] == [
        "matmul", "add", "matmul", "add", "relu",
    ]  # fmt: skip


class Counts(paddle.nn.Layer):
    def __init__(self) -> None:
        super().__init__()
        self.calls = 0
        self.register_buffer("total", paddle.zeros([1]))
        self.norm = paddle.nn.BatchNorm1D(2)
        self.dropout = paddle.nn.Dropout(0.5)

    def forward(self, x: Any) -> Any:
        self.calls += 1
        self.total = self.total + 1
        factor = random.random() * np.random.rand()  # noqa: S311 - no secret
        return self.dropout(self.norm(x)) * self.total * factor


def seed() -> None:
    paddle.seed(7)
    random.seed(7)
    np.random.seed(7)


def after(layer: Any) -> list[Any]:
    """Return the state of a layer and the next random numbers."""
    state = {name: value.tolist() for name, value in layer.state_dict().items()}
    numbers = paddle.rand([1]).item(), random.random(), np.random.rand()  # noqa: S311 - no secret
    return [state, layer.calls, *numbers]


def test_everything_is_as_after_one_call() -> None:
    layer = Counts()
    layer.train()
    reference = copy.deepcopy(layer)
    seed()
    expected = reference(numbers())
    state = after(reference)
    seed()
    outputs, sample = captured(layer, numbers())
    assert outputs.tolist() == expected.tolist()
    assert after(layer) == state
    assert sample.provenance.mode == "train"


def test_a_layer_that_cannot_be_copied_keeps_its_state_too() -> None:
    class Locked(Counts):
        def __init__(self) -> None:
            super().__init__()
            self.lock = threading.Lock()

    layer = Locked()
    captured(layer, numbers())
    assert layer.calls == 1
    assert layer.total.tolist() == [1.0]


def test_outputs_have_gradients() -> None:
    layer = paddle.nn.Linear(2, 2)
    outputs, _ = captured(layer, numbers())
    outputs.sum().backward()
    assert layer.weight.grad.tolist() == [[4.0, 4.0], [6.0, 6.0]]


class Toggles(paddle.nn.Layer):
    """Computes something else in every call."""

    factor = 1.0

    def __init__(self) -> None:
        super().__init__()
        self.box = _Box()

    def forward(self, x: Any) -> Any:
        self.box.number += 1.0
        return x * self.box.number


class _Box:
    number = 0.0

    def __deepcopy__(self, _memo: Any) -> _Box:
        return self


def test_a_program_that_computes_something_else_is_refused() -> None:
    with pytest.raises(CaptureError) as caught:
        captured(Toggles(), numbers())
    assert str(caught.value).startswith(
        "The graph captured for `test/layer` does not compute the results of the layer: output 0 "
        "differs by up to 4 (at most 0.00012 is accepted). Paddle's tracer drops writes to buffers"
    )


def test_a_write_to_a_parameter_is_refused() -> None:
    class Moves(paddle.nn.Layer):
        def __init__(self) -> None:
            super().__init__()
            self.linear = paddle.nn.Linear(2, 2)

        def forward(self, x: Any) -> Any:
            with paddle.no_grad():
                self.linear.weight.add_(paddle.ones([2, 2]))
            return self.linear(x)

    with pytest.raises(CaptureError, match="writes to a parameter during its call"):
        captured(Moves(), numbers())


def test_a_write_through_a_view_is_refused() -> None:
    def writes(x: Any) -> Any:
        y = x * 1
        y[0].add_(paddle.ones([2]))
        return y

    with pytest.raises(CaptureError, match="cannot be traced into one program"):
        captured(Calls(writes), numbers())
