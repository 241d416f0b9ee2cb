"""Whole graphs: what stays as it was, numbers, symbols, and operators that write in place."""

from __future__ import annotations

import re
from typing import Any

import pytest
import torch

from graphnet_datasets import Sample, make_inputs, materialize
from graphnet_datasets.benchmark.judging.equivalence import Comparer
from graphnet_datasets.errors import SampleError, TranslationError
from graphnet_datasets.sample import Input, Op, Statistics, Symbol, Value
from graphnet_datasets.sample.arguments import Named, Ref
from graphnet_datasets.transforms import translate
from tests.frameworks.paddle.installed import paddle

pytestmark = pytest.mark.paddle

X = Input("input", Value("float32", (4, 6)), "x", statistics=Statistics(0.5, 1.0, -2.0, 3.0))


def graph(*ops: Op, outputs: Any = None, inputs: tuple[Input, ...] = (X,), **more: Any) -> Sample:
    outputs = Ref(len(inputs) + len(ops) - 1) if outputs is None else outputs
    return Sample("test/whole", "torch", "other", inputs, ops, outputs, **more)


def agree(sample: Sample, sizes: dict[str, int] | None = None) -> bool:
    """Tell whether the translated sample gives the same elements, exactly."""
    translated = translate(sample)
    with torch.no_grad(), paddle.no_grad():
        mine = materialize(sample)(**make_inputs(sample, sizes=sizes))
        theirs = materialize(translated)(**make_inputs(translated, sizes=sizes))
    return torch.equal(mine, torch.from_numpy(theirs.numpy()))


def test_inputs_keep_their_names_roles_and_statistics_and_the_sample_its_id() -> None:
    weight = Input("parameter", Value("float32", (6, 2), (1, 6)), "layer.weight", "cuda:0")
    sample = graph(Op("torch.matmul", (Ref(0), Ref(1))), inputs=(X, weight))
    translated = translate(sample)
    assert (translated.framework, translated.id, translated.task) == ("paddle", sample.id, "other")
    assert translated.inputs[0] == X
    assert translated.inputs[1] == Input("parameter", Value("float32", (6, 2)), "layer.weight")
    assert translated.provenance.parent_id == sample.id
    assert [op.results for op in translated.ops] == [(Value("float32", (4, 2)),)]


def test_numbers_of_a_static_graph_are_computed_at_once() -> None:
    sample = graph(
        Op("torch.Tensor.size", (Ref(0),)),
        Op("operator.getitem", (Ref(1), 1)),
        Op("operator.floordiv", (Ref(2), 2)),
        Op("torch.Tensor.reshape", (Ref(0), -1, Ref(3))),
    )
    assert [op.target for op in translate(sample).ops] == ["paddle._C_ops.reshape"]
    assert agree(sample)


def test_a_symbol_stays_an_input_and_numbers_made_of_it_are_computed_as_it_runs() -> None:
    inputs = (
        Input("symbol", Value("int64", ()), "s0"),
        Input("input", Value("float32", ("s0", 6)), "x"),
    )
    sample = graph(
        Op("operator.mul", (Ref(0), 2)),
        Op("torch.Tensor.reshape", (Ref(1), Ref(2), 3), (), (Value("float32", ("2*s0", 3)),)),
        Op("torch.ones", (Ref(0), 1), (), (Value("float32", ("s0", 1)),)),
        Op("operator.add", (Ref(1), Ref(4)), (), (Value("float32", ("s0", 6)),)),
        Op("torch.Tensor.expand", (Ref(5), 2, Ref(0), 6), (), (Value("float32", (2, "s0", 6)),)),
        inputs=inputs,
        symbols=(Symbol("s0", 4),),
    )
    assert agree(sample)
    assert agree(sample, {"s0": 7})


def test_later_operators_see_in_place_writes() -> None:
    sample = graph(
        Op("torch.relu", (Ref(0),)),
        Op("torch.Tensor.add_", (Ref(1), 1)),
        Op("operator.imul", (Ref(2), Ref(0))),
        Op("torch.nn.functional.relu", (Ref(1),), (("inplace", True),)),
        Op("operator.add", (Ref(1), Ref(2))),
    )
    assert agree(sample)


@pytest.mark.parametrize(
    ("ops", "message"),
    [
        (
            (
                Op("torch.relu", (Ref(0),)),
                Op("torch.Tensor.view", (Ref(1), 24)),
                Op("torch.Tensor.add_", (Ref(2), 1)),
                Op("torch.exp", (Ref(1),)),
            ),
            "Op 3 (`torch.exp`) of `test/whole` cannot be translated to paddle. It reads memory "
            "that an operator has overwritten through another tensor.",
        ),
        (
            (Op("torch.add", (Ref(0), 1), (("out", Ref(0)),)),),
            "Op 0 (`torch.add`) of `test/whole` cannot be translated to paddle. The argument "
            "`out` is not supported.",
        ),
        (
            (
                Op("torch.amp.autocast_mode._enter_autocast",
                   ("cpu", Named("dtype", "bfloat16"), True, None)),
                Op("torch.exp", (Ref(0),)),
                Op("torch.amp.autocast_mode._exit_autocast", (Ref(1),)),
            ),
            "Op 0 (`torch.amp.autocast_mode._enter_autocast`) of `test/whole` cannot be "
            "translated to paddle. Autocast chooses dtypes at run time.",
        ),
    ],
)  # fmt: skip
def test_effects_that_would_be_lost_are_refused(ops: tuple[Op, ...], message: str) -> None:
    with pytest.raises(TranslationError, match=f"^{re.escape(message)}$"):
        translate(graph(*ops))


def test_a_sample_of_paddle_is_refused() -> None:
    translated = translate(graph(Op("torch.relu", (Ref(0),))))
    message = "`test/whole` is a paddle sample; only torch samples can be translated."
    with pytest.raises(SampleError, match=f"^{re.escape(message)}$"):
        translate(translated)


@pytest.mark.slow
def test_both_are_run_in_processes_of_their_own_and_compared() -> None:
    sample = graph(Op("torch.nn.functional.gelu", (Ref(0),)))
    other = graph(Op("torch.nn.functional.gelu", (Ref(0),), (("approximate", "tanh"),)))
    with Comparer() as comparer:
        same = comparer.compare(sample, translate(sample))
        different = comparer.compare(sample, translate(other))
        longer = comparer.compare(sample, graph(Op("torch.Tensor.flatten", (Ref(0),))))
        failing = comparer.compare(sample, graph(Op("torch.Tensor.view", (Ref(0), 5))))
    assert same.min_t is not None and same.min_t <= -5
    assert different.min_t is not None and different.min_t > -5
    assert longer.min_t is None
    assert longer.reason == "Output 0 has shape (24,), but eager's has (4, 6)."
    assert failing.min_t is None
    assert failing.reason.startswith("The sample of torch ended by error in ")
