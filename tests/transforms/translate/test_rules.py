"""Each rule: torch eager and paddle eager give the same numbers for a tiny call."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from graphnet_datasets import make_inputs, materialize
from graphnet_datasets.benchmark.judging.correctness import (
    Output,
    compare_outputs,
    find_mismatch,
    overall_min_t,
)
from graphnet_datasets.errors import TranslationError
from graphnet_datasets.frameworks.outputs import leaves
from graphnet_datasets.frameworks.torch.operators import lookup
from graphnet_datasets.schema import Reason
from graphnet_datasets.transforms.translate import RULES, translate
from graphnet_datasets.transforms.translate.registry import find_rule
from tests.frameworks.paddle.installed import paddle

from .cases import CASES, Case, call, f, ints

pytestmark = pytest.mark.paddle

WITHOUT_NUMBERS = {
    "torch._C._log_api_usage_once", "torch.sym_int", "torch.amp.autocast_mode._enter_autocast",
    "torch.amp.autocast_mode._exit_autocast", "torch.Tensor.size", "torch.Tensor.dim",
    "torch.Tensor.numel",
}  # fmt: skip
"""Rules that give no tensor; `test_translating` has them in graphs."""


def outputs_of(given: Any) -> list[Output]:
    found = []
    # What torch names the fields of (`torch.return_types.max`) is a tuple of its own kind.
    for leaf in leaves(tuple(given) if isinstance(given, tuple) else given):
        tensor = leaf.resolve_conj() if isinstance(leaf, torch.Tensor) else leaf
        found.append(Output(str(leaf.dtype).rpartition(".")[2], tensor.numpy()))
    return found


@pytest.mark.parametrize("case", CASES, ids=[f"{i}-{case}" for i, case in enumerate(CASES)])
def test_outputs_of_paddle_equal_those_of_torch(case: Case) -> None:
    sample = case.sample()
    translated = translate(sample)
    with torch.no_grad():
        expected = outputs_of(
            materialize(sample, allow_unchecked_operators=True)(**make_inputs(sample))
        )
    with paddle.no_grad():
        actual = outputs_of(materialize(translated)(**make_inputs(translated)))
    assert find_mismatch(expected, actual) == (Reason.NONE, "")
    min_t = overall_min_t(compare_outputs(expected, actual))
    assert min_t is not None
    assert min_t <= -5


def test_every_rule_has_a_case() -> None:
    covered = set()
    for case in CASES:
        found = find_rule(lookup(case.target).name)
        assert found is not None
        covered.add(found[0])
    covered |= {RULES[name] for name in WITHOUT_NUMBERS}
    missing = {name for name, rule in RULES.items() if rule not in covered}
    assert missing == set()


@pytest.mark.parametrize(
    ("case", "reason"),
    [
        (call("torch.randn_like", f(2)), "The operator has no rule."),
        (call("torch.nn.functional.dropout", f(2), 0.5), "It draws random numbers."),
        (
            call("torch.nn.functional.batch_norm", f(2, 3), f(3), f(3), None, None, True),
            "It normalizes with batch statistics and updates its running statistics.",
        ),
        (call("torch.nn.functional.one_hot", ints(3, 2)),
         "Its number of classes depends on values."),
    ],
    ids=str,
)  # fmt: skip
def test_calls_beyond_a_rule_are_refused_by_name(case: Case, reason: str) -> None:
    with pytest.raises(TranslationError) as caught:
        translate(case.sample())
    assert str(caught.value) == (
        f"Op 0 (`{case.target}`) of `test/rule` cannot be translated to paddle. {reason}"
    )
