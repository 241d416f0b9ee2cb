"""Costs of paddle samples: known numbers, and those of torch on the same graphs."""

from __future__ import annotations

import pytest

from graphnet_datasets.analysis.costs import measure_costs
from graphnet_datasets.sample import Input, Op, Sample, Symbol, Value
from graphnet_datasets.sample.arguments import ListArg, Ref
from graphnet_datasets.transforms import translate
from tests.transforms.translate.cases import Case, call, f, positive

from .installed import paddle

pytestmark = pytest.mark.paddle

CORE = "paddle._C_ops."
assert paddle is not None
FUNCTIONAL = "torch.nn.functional."
SAME = [
    call(f"{FUNCTIONAL}linear", f(2, 3, 4), f(5, 4)),
    call("torch.matmul", f(2, 3, 4), f(4, 5)),
    call("torch.bmm", f(2, 3, 4), f(2, 4, 5)),
    call("torch.conv2d", f(2, 4, 8, 8), f(6, 2, 3, 3), None, 1, 1, 1, 2),
    call("torch.conv_transpose2d", f(2, 4, 8, 8), f(4, 3, 2, 2), None, 2),
    call(f"{FUNCTIONAL}max_pool2d", f(2, 4, 8, 8), 2),
    call(f"{FUNCTIONAL}batch_norm", f(2, 4, 8, 8), f(4), positive(4), f(4), f(4)),
    call(f"{FUNCTIONAL}layer_norm", f(2, 3, 4), (4,), f(4), f(4)),
    call(f"{FUNCTIONAL}softmax", f(2, 3), -1),
    call("torch.sum", f(2, 3), 1),
    call("torch.tanh", f(2, 3)),
    call("torch.Tensor.transpose", f(2, 3), 0, 1),
    call("torch.fft.rfft", f(2, 8)),
]


@pytest.mark.parametrize("case", SAME, ids=str)
def test_operations_are_counted_as_in_torch(case: Case) -> None:
    sample = case.sample()
    theirs, mine = measure_costs(sample), measure_costs(translate(sample))
    assert theirs is not None
    assert mine is not None
    assert (mine.flops, mine.flops_coverage) == (theirs.flops, 1.0)


def test_traffic_and_memory_follow_the_shapes_at_given_sizes() -> None:
    inputs = (
        Input("input", Value("float32", ("s0", 16))),
        Input("parameter", Value("float32", (16, 4))),
    )
    ops = (
        Op(f"{CORE}matmul", (Ref(0), Ref(1), False, False)),
        Op(f"{CORE}reshape", (Ref(2), ListArg((-1,)))),
        Op(f"{CORE}relu", (Ref(3),)),
    )
    sample = Sample("test/costs", "paddle", "other", inputs, ops, Ref(4), (Symbol("s0", 8),))
    costs = measure_costs(sample)
    assert costs is not None
    assert costs.flops == 2 * 8 * 16 * 4 + 32
    assert costs.bytes_moved == 4 * ((128 + 64 + 32) + (32 + 32))
    assert costs.peak_memory_bytes >= 4 * (128 + 64 + 32 + 32)
    wider = measure_costs(sample, {"s0": 16})
    assert wider is not None
    assert wider.flops == 2 * costs.flops


def test_operators_without_a_formula_lower_the_coverage() -> None:
    ops = (Op(f"{CORE}erfinv", (Ref(0),)), Op(f"{CORE}argsort", (Ref(1), 0, False, True)))
    tensor = Input("input", Value("float32", (4,)))
    costs = measure_costs(Sample("test/half", "paddle", "other", (tensor,), ops, Ref(1)))
    assert costs is not None
    assert costs.flops_coverage == 0.5
