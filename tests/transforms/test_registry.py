"""Transforms by name."""

from __future__ import annotations

import re
from typing import Any

import pytest

from graphnet_datasets.errors import TransformError
from graphnet_datasets.transforms.registry import (
    TRANSFORMS,
    Running,
    Step,
    apply,
    in_order,
)
from tests.tables import chain


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("casts", {}, "There is no transform `casts`. Did you mean `cast`"),
        ("cast", {}, "The transform `cast` needs `dtype`. Its options are dtype, check, "),
        ("cast", {"dtype": "int8"}, "`dtype` of the transform `cast` is 'int8'. Choose one of "),
        ("cast", {"dtype": "float16", "to": 1}, "The transform `cast` has no option `to`."),
        ("cast", {"dtype": "float16", "check": 1}, "`check` of the transform `cast` is 1. Pass a"),
        ("parts", {"config": "cv"}, "`config` of the transform `parts` is 'cv'. Choose one of"),
        (
            "parts",
            {"config": "sole_op", "method": "rules"},
            "Parts for `sole_op` cannot be found with the method `rules`. Choose one of sole_op.",
        ),
    ],
)
def test_a_wrong_step_lists_the_choices(name: str, options: dict[str, Any], message: str) -> None:
    with pytest.raises(TransformError, match=re.escape(message)):
        Step(name, options)


def test_steps_come_in_the_order_of_the_registry_and_once() -> None:
    steps = [Step("parts", {"config": "fusible"}), Step("cast", {"dtype": "float16"})]
    assert [step.name for step in in_order(steps)] == ["cast", "parts"]
    assert [step.config for step in in_order(steps)] == ["", "fusible"]
    for wrong in ([], steps[:1] * 2):
        with pytest.raises(
            TransformError, match="A chain needs at least one transform, each at most once"
        ):
            in_order(wrong)


def test_every_transform_names_its_defaults_among_its_options() -> None:
    for name, transform in TRANSFORMS.items():
        assert transform.name == name
        assert set(transform.defaults) <= set(transform.options)
        assert not transform.config or transform.config in transform.options


@pytest.mark.torch
def test_errors_of_the_library_are_refusals_with_a_reason_without_the_name() -> None:
    sample = chain("a/chain", 2)
    (made,) = apply(sample, [Step("cast", {"dtype": "float16"})], Running(is_allowed=False))
    assert isinstance(made, TransformError)
    assert made.reason == "it is too large to be run"
    paddle = [Step("autocast", {"dtype": "float16"})]
    (made,) = apply(sample, paddle)
    assert not isinstance(made, TransformError)
    assert made.ops[0].target.endswith("_enter_autocast")
