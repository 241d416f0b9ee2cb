"""The rules, formulas, limits, readers and places that entries name: each of them resolves."""

from __future__ import annotations

import inspect
import re
from typing import get_args

import pytest

from graphnet_datasets.analysis import orders
from graphnet_datasets.frameworks.torch.operators.unsafe import why_left_out
from graphnet_datasets.frameworks.torch.walking import flop_formulas
from graphnet_datasets.frameworks.torch.walking.rules import RULES
from graphnet_datasets.inputs.consumers import indexing_of, parse_place
from graphnet_datasets.operators import NAMESPACES, OperatorValues
from graphnet_datasets.sample import Op
from graphnet_datasets.transforms import operator_kinds
from graphnet_datasets.transforms.symbolic.literals import places_of

PLACES = ("torch_boxes", "paddle_boxes", "offsets")
POSITIONS = (
    "inplace_flag", "training_flag", "drop_rate", "condition", "torch_bias", "paddle_bias",
)  # fmt: skip
LIMITS = {"loops", "windows", "split_size", "split_count", "parts", "chain", "grid"}


def test_every_rule_is_a_function_of_the_walk() -> None:
    rules = OperatorValues("rule")
    assert set(rules) <= set(RULES) and len(rules) > 150
    assert all(inspect.isfunction(RULES[name]) for name in rules)


def test_every_formula_counts() -> None:
    for name, flops in OperatorValues("flops").items():
        is_known = flops in {"0", "sort", "pointwise"} or re.fullmatch(r"[1-9]n", flops)
        assert is_known or flops in flop_formulas._FORMULAS, name


@pytest.mark.paddle
def test_every_formula_of_paddle_counts() -> None:
    from graphnet_datasets.frameworks.paddle import costs

    for name, flops in OperatorValues("paddle_flops").items():
        is_known = flops in {"0", "pointwise"} or re.fullmatch(r"[1-9]n|taps\d+", flops)
        assert is_known or flops in costs._FORMULAS, name


def test_every_limit_is_checked() -> None:
    assert set(OperatorValues("limit").values()) == LIMITS


def test_every_kind_is_one_of_the_fusing_compiler() -> None:
    assert set(OperatorValues("kind").values()) <= set(get_args(operator_kinds.Kind))


def test_every_reader_of_orders_exists() -> None:
    assert set(OperatorValues("order").values()) == set(orders._READERS)


def test_every_operator_that_is_left_out_has_a_reason() -> None:
    assert all(why_left_out(name) for name in OperatorValues("left_out"))


@pytest.mark.parametrize("fact", PLACES)
def test_places_of_operands_parse(fact: str) -> None:
    for text in OperatorValues(fact).values():
        position, keyword = parse_place(text)
        assert position >= 0 and keyword.isidentifier()


@pytest.mark.parametrize("fact", POSITIONS)
def test_positions_are_integers(fact: str) -> None:
    assert all(0 <= int(text) < 100 for text in OperatorValues(fact).values())


@pytest.mark.parametrize(
    ("framework", "fact", "namespace"),
    [
        ("torch", "torch_index", "functional"),
        ("torch", "aten_index", "aten"),
        ("paddle", "paddle_index", "paddle"),
    ],
)
def test_index_operands_parse(framework: str, fact: str, namespace: str) -> None:
    for name in OperatorValues(fact):
        indexing = indexing_of(framework, Op(NAMESPACES[namespace] + name, ()))
        assert indexing is not None and indexing.indices
        assert (indexing.table is None) == (indexing.count is not None)


def test_literals_parse() -> None:
    for name in OperatorValues("literals"):
        places = places_of(Op(f"torch.{name}", ()))
        assert places is not None and places.first <= places.last


def test_statistics_flags_have_a_position_a_keyword_and_a_default() -> None:
    for text in OperatorValues("statistics_flag").values():
        position, keyword, default = text.split(".")
        assert int(position) == 5 and keyword.isidentifier() and default in ("true", "false")


def test_text_that_is_no_place_is_refused() -> None:
    with pytest.raises(ValueError, match="invalid literal"):
        parse_place("input")
