"""Options of compilers."""

from __future__ import annotations

from typing import Any

import pytest

from graphnet_datasets.compilers.options import Option, check_options, parse_options
from graphnet_datasets.errors import CompilerError

TABLE = {
    "mode": Option("default", "A preset.", ("default", "fast")),
    "level": Option(1, "How hard to try."),
    "slack": Option(0.5, "How exact."),
    "target": Option(None, "What to compile for."),
    "fold": Option(False, "Fold weights."),
    "config": Option({}, "More."),
}


def test_missing_options_have_defaults() -> None:
    assert check_options("mine", TABLE, {"level": 3, "slack": 1}) == {
        "mode": "default",
        "level": 3,
        "slack": 1,
        "target": None,
        "fold": False,
        "config": {},
    }


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"levle": 1},
            "The compiler `mine` has no option `levle` (accepted: `mode`, `level`, `slack`, "
            "`target`, `fold`, `config`).",
        ),
        (
            {"mode": "slow"},
            "The option `mode` of the compiler `mine` cannot be 'slow': it has to be one of "
            '"default", "fast".',
        ),
        (
            {"level": True},
            "The option `level` of the compiler `mine` cannot be True: it has to be of type int.",
        ),
        (
            {"fold": "yes"},
            "The option `fold` of the compiler `mine` cannot be 'yes': it has to be of type bool.",
        ),
        (
            {"target": 1},
            "The option `target` of the compiler `mine` cannot be 1: it has to be of type str.",
        ),
    ],
)
def test_invalid_options_are_named(options: dict[str, Any], message: str) -> None:
    with pytest.raises(CompilerError) as error:
        check_options("mine", TABLE, options)
    assert str(error.value) == message


def test_a_compiler_without_options_says_so() -> None:
    with pytest.raises(CompilerError) as error:
        check_options("plain", {}, {"x": 1})
    assert str(error.value) == "The compiler `plain` has no option `x` (accepted: none)."


def test_settings_are_read_as_json_or_text() -> None:
    assert parse_options(["a=1", "b=true", "c=x=y", 'd={"k": [1]}', "e="]) == {
        "a": 1,
        "b": True,
        "c": "x=y",
        "d": {"k": [1]},
        "e": "",
    }


@pytest.mark.parametrize("setting", ["freezing", "=1"])
def test_a_setting_without_a_name_or_value_is_refused(setting: str) -> None:
    with pytest.raises(CompilerError) as error:
        parse_options([setting])
    assert str(error.value) == (
        f"`{setting}` is not a compiler option. Write it as `name=value`, for example "
        "`freezing=true`."
    )
