"""A walk that remembers calls finds what a walk that makes each of them finds."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings

from graphnet_datasets import Sample
from graphnet_datasets.frameworks.torch.costs import Walked, measure
from graphnet_datasets.frameworks.torch.walking import walk
from graphnet_datasets.sample import Input, Op, Value
from graphnet_datasets.sample.arguments import ListArg, Ref
from tests.strategies import runnable_samples


def measure_anew(sample: Sample) -> Walked:
    """Measure without remembering any call."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(walk, "key_of", lambda *_: None)
        return measure(sample)


def repeated(*targets: Op, times: int = 3) -> Sample:
    """Return blocks of the same operators, each of which takes the value before it."""
    value = Input("input", Value("float32", (4, 8)))
    ops: list[Op] = []
    for _ in range(times):
        for op in targets:
            ops.append(Op(op.target, (Ref(1 + len(ops) - 1), *op.args), op.kwargs))
    return Sample("test/repeated", "torch", "other", (value,), tuple(ops), (Ref(len(ops)),))


@pytest.mark.parametrize(
    "sample",
    [
        repeated(Op("torch.relu"), Op("torch.softmax", (1,))),
        repeated(Op("torch.Tensor.t"), Op("torch.Tensor.contiguous")),
        repeated(Op("torch.Tensor.add_", (1.0,)), Op("torch.exp")),
        repeated(Op("torch.nn.functional.layer_norm", (ListArg((8,)),)), Op("torch.sum", (1, True)),
                 Op("torch.Tensor.expand", (4, 8))),
        repeated(Op("torch.chunk", (2, 1)), Op("operator.getitem", (0,)),
                 Op("torch.Tensor.repeat", (1, 2))),
        repeated(Op("torch.sort", (1,)), Op("operator.getitem", (0,))),
        repeated(Op("torch.nn.functional.dropout", (0.5, False)), Op("torch.cumsum", (0,))),
    ],
    ids=lambda sample: sample.ops[0].target,
)  # fmt: skip
def test_blocks_that_repeat(sample: Sample) -> None:
    assert measure(sample) == measure_anew(sample)


@settings(max_examples=40)
@given(sample=runnable_samples(max_ops=16))
def test_any_graph(sample: Sample) -> None:
    assert measure(sample) == measure_anew(sample)


def test_a_repeated_call_is_made_once(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = []
    apply = walk._apply

    def counting(operator: object, *arguments: object) -> object:
        calls.append(operator)
        return apply(operator, *arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(walk, "_apply", counting)
    measure(repeated(Op("torch.softmax", (1,)), Op("torch.cumsum", (0,)), times=6))
    assert len(calls) == 2


def test_elements_that_a_call_depends_on_are_not_forgotten() -> None:
    number = Input("input", Value("int64", ()), data=torch.tensor(3).numpy().tobytes())
    other = Input("input", Value("int64", ()), data=torch.tensor(5).numpy().tobytes())
    ops = [Op("torch.Tensor.item", (Ref(0),)), Op("torch.Tensor.item", (Ref(1),))]
    ops += [Op("torch.zeros", (Ref(2),)), Op("torch.zeros", (Ref(3),))]
    sample = Sample("test/item", "torch", "other", (number, other), tuple(ops), (Ref(4), Ref(5)))
    walked = measure(sample)
    assert walked == measure_anew(sample)
    shapes_found = [each[0].shape for each in walked.footprint.results[2:] if each]
    assert shapes_found == [(3,), (5,)]
