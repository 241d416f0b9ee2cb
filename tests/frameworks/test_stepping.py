"""Stepping through a graph: inputs are drawn when they are read, and freed with all else."""

from __future__ import annotations

import dataclasses
import gc
import weakref
from collections.abc import Iterator

import pytest

from graphnet_datasets import Sample, calibrate
from graphnet_datasets.errors import MemoryLimitError
from graphnet_datasets.frameworks.contract import module
from graphnet_datasets.frameworks.stepping import Stepper, observe, steps
from graphnet_datasets.sample import Input, Op, Statistics, Value
from graphnet_datasets.sample.arguments import ListArg, Ref

LAYERS, SIZE = 12, 128
WEIGHT_BYTES = 4 * SIZE * SIZE
OPERATORS = {
    "torch": ("torch.matmul", "torch.Tensor.t", "operator.mul"),
    "paddle": ("paddle._C_ops.matmul", "paddle._C_ops.transpose", "paddle._C_ops.multiply"),
}


def floats(role: str, *shape: int, std: float = 0.05) -> Input:
    return Input(role, Value("float32", shape), statistics=Statistics(0.0, std))


def chain(framework: str, std: float = 0.05) -> Sample:
    """Return layers with a weight of their own each, the output of one the input of the next."""
    product = OPERATORS[framework][0]
    tail = (False, False) if framework == "paddle" else ()
    inputs = [floats("input", 4, SIZE), *[floats("parameter", SIZE, SIZE, std=std)] * LAYERS]
    ops, last = [], 0
    for layer in range(LAYERS):
        ops.append(Op(product, (Ref(last), Ref(1 + layer), *tail)))
        last = len(inputs) + layer
    return Sample("stepping/chain", framework, "other", tuple(inputs), tuple(ops), Ref(last))


@pytest.fixture(params=sorted(OPERATORS))
def framework(request: pytest.FixtureRequest) -> Iterator[str]:
    pytest.importorskip(request.param, reason=f"{request.param} is not installed")
    yield request.param


def held(stepper: Stepper) -> list[int]:
    return [index for index in range(len(stepper.sample.inputs)) if stepper.holds(index)]


def test_of_the_weights_only_those_are_there_that_an_operator_needs(framework: str) -> None:
    sample = chain(framework)
    with module(framework, "observing").stepping(sample) as stepper:
        assert held(stepper) == []
        seen = [held(stepper) for _ in steps(stepper)]
        assert seen == [[0, 1], *([layer + 1] for layer in range(1, LAYERS))]
        assert held(stepper) == []


def test_lazy_draws_equal_eager_draws(framework: str) -> None:
    sample = chain(framework)
    with module(framework, "observing").stepping(sample, seed=3) as stepper:
        for position in range(sample.num_ops):
            stepper.run(position)
        stepped = stepper.tensor(len(sample.inputs) + LAYERS - 1)
        tensors = module(framework, "tensors").make_inputs(sample, 3)
        for index, tensor in enumerate(tensors.values()):
            assert bool((stepper.tensor(index) == tensor).all())
        whole = module(framework, "materialize").materialize(sample)(**tensors)
    assert bool((stepped == whole).all())


def test_a_value_of_weights_alone_is_made_again_for_a_reader_after_its_end(framework: str) -> None:
    product, transpose, times = OPERATORS[framework]
    is_paddle = framework == "paddle"
    inputs = (floats("input", 4, SIZE), floats("parameter", SIZE, SIZE), floats("parameter", SIZE))
    turned = Op(transpose, (Ref(1), ListArg((1, 0))) if is_paddle else (Ref(1),))
    ops = (
        turned,
        Op(times, (Ref(3), Ref(2))),
        Op(product, (Ref(0), Ref(4), *((False, False) if is_paddle else ()))),
    )
    sample = Sample("stepping/again", framework, "other", inputs, ops, Ref(5))
    with module(framework, "observing").stepping(sample) as stepper:
        *_, last = (stepper.tensor(value) for value in steps(stepper))
        assert held(stepper) == []
        assert not stepper.holds(4)
        stepper.run(1)
        stepper.run(2)
        assert bool((stepper.tensor(5) == last).all())
        assert held(stepper) == [], "what was drawn again for an operator goes with it"


def test_a_stepper_and_all_that_it_holds_end_with_it() -> None:
    with module("torch", "observing").stepping(chain("torch")) as stepper:
        stepper.run(0)
        ends = [weakref.ref(stepper), weakref.ref(stepper.tensor(1).untyped_storage())]
    del stepper
    gc.collect()
    assert [end() for end in ends] == [None, None]


def test_weights_that_something_writes_to_stay() -> None:
    inputs = (floats("input", 4, SIZE), floats("buffer", SIZE), floats("parameter", SIZE))
    ops = (
        Op("torch.Tensor.add_", (Ref(1), 1.0)),
        Op("operator.mul", (Ref(0), Ref(3))),
        Op("operator.mul", (Ref(4), Ref(2))),
    )
    sample = Sample("stepping/written", "torch", "other", inputs, ops, Ref(5))
    with module("torch", "observing").stepping(sample) as stepper:
        for _ in steps(stepper):
            pass
        assert held(stepper) == [1]
        assert stepper.holds(3)


def test_all_inputs_together_may_take_more_than_the_limit() -> None:
    sample = chain("torch", std=4.0)
    limit = 4 * WEIGHT_BYTES
    assert sample.input_bytes > 2 * limit
    assert calibrate(sample, memory_limit_bytes=limit) == calibrate(sample)
    assert observe(sample, memory_limit_bytes=limit) == observe(sample)


def test_an_input_larger_than_the_limit_is_refused_before_it_is_drawn() -> None:
    with pytest.raises(MemoryLimitError, match="memory_limit_bytes"):
        calibrate(chain("torch"), memory_limit_bytes=WEIGHT_BYTES // 2)


def test_a_view_that_outlives_an_input_holds_its_memory() -> None:
    # The rows that are put together in the end are views: all of the inputs are there until then.
    sample = chain("torch")
    num_inputs = len(sample.inputs)
    rows = [Op("operator.getitem", (Ref(index), 0)) for index in range(1, num_inputs)]
    last = Op("torch.cat", (tuple(Ref(num_inputs + place) for place in range(len(rows))),))
    views = dataclasses.replace(sample, ops=(*rows, last), outputs=Ref(num_inputs + len(rows)))
    with pytest.raises(MemoryLimitError, match=r"parameter_\d+` of `stepping/chain`"):
        observe(views, memory_limit_bytes=4 * WEIGHT_BYTES)
    assert len(observe(views, memory_limit_bytes=(LAYERS + 4) * WEIGHT_BYTES)) == len(rows) + 1
