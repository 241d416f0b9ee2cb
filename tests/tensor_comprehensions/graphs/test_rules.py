"""Every rule against eager: the definition is interpreted, so that no compiler is needed."""

from __future__ import annotations

import operator
import warnings

import pytest
import torch
from torch.fx.experimental.proxy_tensor import make_fx

from graphnet_datasets.tensor_comprehensions.graphs.grouping import (
    group_nodes,
    is_counted,
    reason_against,
)
from graphnet_datasets.tensor_comprehensions.graphs.kernels import specialise
from graphnet_datasets.tensor_comprehensions.graphs.lowering import lower_group
from graphnet_datasets.tensor_comprehensions.language.interpreter import interpret

aten = torch.ops.aten
R = torch.randn
NORM = aten._native_batch_norm_legit_no_training
MASK = torch.tensor([[True, False, True], [False, False, True]])
LONG = torch.tensor([[5, -3, 2], [0, 7, -8]])

CASES = {
    "add": lambda: (lambda x, y: aten.add.Tensor(x, y, alpha=2), R(2, 3), R(3)),
    "add_mixed": lambda: (lambda x, y: x + y * 2, R(2, 3), LONG),
    "rsub": lambda: (lambda x: aten.rsub.Scalar(x, 1.5), R(2, 3)),
    "bool_add": lambda: (lambda x, y: x + (y & ~x), MASK, ~MASK),
    "comparison": lambda: (lambda x: (x > 0.3) | (x <= -1), R(2, 3)),
    "integer_comparison": lambda: (lambda x: (x > 2.5) & (x != 7), LONG),
    "relu_nan": lambda: (torch.relu, torch.tensor([1.0, -1.0, float("nan")])),
    "maximum_nan": lambda: (
        torch.maximum,
        torch.tensor([1.0, float("nan"), 3.0]),
        torch.tensor([float("nan"), 2.0, 4.0]),
    ),
    "clamp": lambda: (lambda x: x.clamp(-0.5, 0.7), R(2, 9)),
    "clamp_integers": lambda: (lambda x: x.clamp(-2, 4), LONG),
    "round": lambda: (torch.round, torch.tensor([0.5, 1.5, 2.5, -0.5, -1.5, 2.4])),
    "gelu": lambda: (torch.nn.functional.gelu, R(4, 5)),
    "gelu_tanh": lambda: (lambda x: torch.nn.functional.gelu(x, approximate="tanh"), R(4, 5)),
    "activations": lambda: (
        lambda x: torch.sigmoid(x) * aten.silu(x) + aten.hardtanh(x) * aten.elu(x),
        R(4, 5),
    ),
    "softplus": lambda: (lambda x: aten.softplus(x, 2.0, 3.0), R(20) * 5),
    "leaky": lambda: (lambda x: aten.leaky_relu(x, 0.2), R(7)),
    "pow": lambda: (lambda x: x**2 + x**3 + x.abs() ** 0.3, R(7)),
    "where": lambda: (torch.where, MASK, R(2, 3), R(3)),
    "masked_fill": lambda: (lambda x, m: x.masked_fill(m, float("-inf")), R(2, 3), MASK),
    "cast": lambda: (lambda x: (x * 3).to(torch.int64) + 1, R(2, 3)),
    "floor_division": lambda: (lambda x: aten.div.Tensor_mode(x, 3, rounding_mode="floor"), LONG),
    "remainder": lambda: (
        lambda x: aten.remainder.Scalar(x, 3) + aten.remainder.Scalar(x, -3),
        LONG,
    ),
    "sum": lambda: (lambda x: x.sum((0, 2)), R(3, 4, 5)),
    "sum_of_integers": lambda: (lambda x: x.sum(), LONG),
    "mean_keep": lambda: (lambda x: x - x.mean(1, keepdim=True), R(3, 4, 5)),
    "amax": lambda: (lambda x: x.amax((1,)) - x.amin((1,)), R(3, 4)),
    "amax_nan": lambda: (lambda x: x.amax(1), torch.tensor([[1.0, float("nan")], [2.0, 3.0]])),
    "any_all": lambda: (lambda x: (x > 0).any(1) & (x > -3).all(1), R(3, 4)),
    "softmax": lambda: (lambda x: torch.softmax(x, 1), R(3, 4, 2)),
    "log_softmax": lambda: (lambda x: torch.log_softmax(x, -1), R(3, 4)),
    "logsumexp": lambda: (lambda x: torch.logsumexp(x, 0), R(3, 4)),
    "var": lambda: (lambda x: torch.var(x, 1) + torch.std(x, 1, correction=0), R(3, 6)),
    "layer_norm": lambda: (
        lambda x, w, b: torch.nn.functional.layer_norm(x, (4, 5), w, b),
        R(3, 4, 5),
        R(4, 5),
        R(4, 5),
    ),
    "group_norm": lambda: (
        lambda x, w, b: torch.nn.functional.group_norm(x, 2, w, b),
        R(3, 4, 5),
        R(4),
        R(4),
    ),
    "instance_norm": lambda: (
        lambda x, w: aten._native_batch_norm_legit.no_stats(x, w, None, True, 0.1, 1e-5),
        R(2, 3, 5, 7),
        R(3),
    ),
    "batch_norm_in_training": lambda: (
        lambda x, m, v, w: aten._native_batch_norm_legit_functional(
            x, w, None, m, v, True, 0.3, 1e-5
        ),
        R(4, 3, 5),
        R(3),
        R(3).abs(),
        R(3),
    ),
    "batch_norm": lambda: (
        lambda x, m, v, w: NORM(x, w, None, m, v, 0.1, 1e-5)[0],
        R(2, 3, 4, 4),
        R(3),
        torch.rand(3) + 0.5,
        R(3),
    ),
    "mm": lambda: (torch.mm, R(3, 4), R(4, 5)),
    "mm_transposed": lambda: (lambda a, b: torch.relu(a @ b.t()), R(3, 4), R(5, 4)),
    "addmm": lambda: (
        lambda c, a, b: torch.addmm(c, a, b, alpha=2, beta=0.5),
        R(5),
        R(3, 4),
        R(4, 5),
    ),
    "bmm": lambda: (torch.bmm, R(2, 3, 4), R(2, 4, 5)),
    "mv_dot": lambda: (lambda a, b: torch.mv(a, b).dot(a[:, 0]), R(3, 4), R(4)),
    "conv": lambda: (
        lambda x, w, b: torch.nn.functional.conv2d(x, w, b, 2, 1, 2),
        R(2, 3, 9, 8),
        R(5, 3, 3, 2),
        R(5),
    ),
    "conv_groups": lambda: (
        lambda x, w: torch.nn.functional.conv2d(x, w, None, 1, 1, groups=2),
        R(2, 4, 6, 6),
        R(6, 2, 3, 3),
    ),
    "conv_depthwise": lambda: (
        lambda x, w: torch.nn.functional.conv1d(x, w, groups=4),
        R(2, 4, 9),
        R(4, 1, 3),
    ),
    "max_pool": lambda: (
        lambda x: aten.max_pool2d_with_indices(x, [3, 3], [2, 2], [1, 1], [1, 1], True)[0],
        R(2, 3, 8, 9),
    ),
    "avg_pool": lambda: (lambda x: torch.nn.functional.avg_pool2d(x, 2, 2, 1), R(2, 3, 8, 8)),
    "adaptive": lambda: (lambda x: aten._adaptive_avg_pool2d(x, [2, 4]), R(2, 3, 8, 8)),
    "upsample": lambda: (lambda x: aten.upsample_nearest2d(x * 2, [6, 8]), R(1, 2, 3, 4)),
    "pixel_shuffle": lambda: (lambda x: aten.pixel_shuffle(x + 1, 2), R(1, 8, 3, 2)),
    "views": lambda: (
        lambda x: (x * 2).reshape(4, 6).t().unsqueeze(1).expand(6, 3, 4).reshape(18, 4) + 1,
        R(2, 12),
    ),
    "reshape_across": lambda: (lambda x: (x + 1).reshape(6, 4).reshape(2, 12) * 2, R(3, 8)),
    "slices": lambda: (lambda x: (x * 2)[:, 1:-1:2] + (x + 1).select(1, 3).unsqueeze(1), R(3, 8)),
    "split": lambda: (lambda x: (lambda a, b: a * b)(*(x + 1).split(4, 1)), R(3, 8)),
    "cat": lambda: (lambda x, y: torch.cat([x * 2, y, x], 1) + 1, R(3, 2), R(3, 4)),
    "stack": lambda: (lambda x, y: torch.stack([x * 2, y], 1) + 1, R(3, 2), R(3, 2)),
    "repeat": lambda: (lambda x: (x * 2).repeat(2, 1, 3) + 1, R(3, 2)),
    "norm": lambda: (lambda x: x / torch.linalg.vector_norm(x, 2, (1,), True), R(3, 5)),
    "pad": lambda: (lambda x: aten.constant_pad_nd(x, [1, 2, 0, 3], 1.5), R(3, 4)),
    "flip": lambda: (lambda x: (x * 2).flip(0, 1) + 1, R(3, 4)),
    "arange": lambda: (lambda x: x + aten.arange.start_step(1, 9, 2), R(3, 4)),
    "full": lambda: (lambda x: x + torch.full((3, 4), 2.5), R(3, 4)),
    "embedding": lambda: (
        lambda w, i: aten.embedding(w, i) * 2,
        R(9, 4),
        torch.tensor([[1, 8], [0, 3]]),
    ),
    "index_select": lambda: (lambda x, i: x.index_select(1, i), R(3, 5), torch.tensor([4, 0])),
    "gather": lambda: (lambda x, i: x.gather(1, i), R(2, 5), torch.tensor([[4, 0], [1, 1]])),
    "index": lambda: (lambda x, i: x[:, i] + 1, R(3, 5), torch.tensor([4, -1, 0])),
    "index_two": lambda: (lambda x, i: x[i, torch.arange(3)], R(4, 3), torch.tensor([3, 0, -2])),
    "triangle": lambda: (lambda x: torch.ops.aten.tril(x) + 1, R(4, 4)),
}


@pytest.mark.parametrize("name", CASES)
def test_rules_agree_with_eager(name: str) -> None:
    torch.manual_seed(0)
    function, *inputs = CASES[name]()
    decompositions = torch._decomp.core_aten_decompositions()
    module = make_fx(function, decomposition_table=decompositions, tracing_mode="fake")(*inputs)
    refused = {
        node: reason
        for node in module.graph.nodes
        if node.op == "call_function" and (reason := reason_against(node))
    }
    assert refused == {}
    values = _values(module, inputs)
    groups = group_nodes(module.graph, refused)
    covered = {node for group in groups for node in group}
    assert all(node in covered for node in module.graph.nodes if is_counted(node))
    for number, nodes in enumerate(groups):
        group = lower_group(nodes, f"group_{number}")
        examples = [values[node] for node in group.inputs]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            instance = specialise(group, examples)
        found = interpret(instance, [each.detach().numpy() for each in examples])
        names = [each.name for each in instance.outputs]
        for output in group.outputs:
            mine = torch.from_numpy(found[names.index(output.tensor)]).reshape(output.shape)
            torch.testing.assert_close(
                mine, values[output.node], rtol=1e-5, atol=1e-5, equal_nan=True
            )


def _values(module: torch.fx.GraphModule, inputs: list[torch.Tensor]) -> dict:
    interpreter = torch.fx.Interpreter(module, garbage_collect_values=False)
    interpreter.run(*inputs)
    return interpreter.env


@pytest.mark.parametrize(
    ("function", "inputs", "reason"),
    [
        (lambda x: x.sort(0)[0], (R(4),), "The operator has no rule."),
        (lambda x: x.to(torch.complex64) + 1, (R(4),), "torch.complex64 has no rules."),
        (lambda x: torch.cat([x] * 9), (R(4),), "It joins more than 8 tensors."),
        (
            lambda x: aten.avg_pool2d(x, [3, 3], [2, 2], [1, 1], False, False),
            (R(1, 1, 8, 8),),
            "Its windows have different sizes.",
        ),
        (lambda x: x * (1 << 40), (LONG,), "A literal does not fit into int32."),
    ],
)
def test_uncovered_operators_have_reasons(function, inputs, reason: str) -> None:
    module = make_fx(function, tracing_mode="fake")(*inputs)
    calls = [node for node in module.graph.nodes if node.op == "call_function"]
    reasons = [reason_against(node) for node in calls if node.target is not operator.getitem]
    assert reason in reasons
