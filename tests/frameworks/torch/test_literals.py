"""What reaches `torch.fx` as an argument."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from hypothesis import given

from graphnet_datasets.errors import MaterializeError
from graphnet_datasets.frameworks.torch.building.literals import autocast_arguments, to_fx
from graphnet_datasets.sample.arguments import DictArg, ListArg, Named, Ref, SliceArg

from ... import strategies

CPU = torch.device("cpu")


def convert(arg: Any, **options: Any) -> Any:
    return to_fx(arg, lambda index: f"value {index}", CPU, **options)


def test_structures_become_pythons_own() -> None:
    arg = (Ref(3), ListArg((1, SliceArg(None, Ref(0), 2))), DictArg((("a", (None, ...)),)))
    assert convert(arg) == (
        "value 3",
        [1, slice(None, "value 0", 2)],
        {"a": (None, ...)},
    )


@given(strategies.args(4))
def test_every_argument_of_a_sample_is_converted_or_refused(arg: Any) -> None:
    try:
        convert(arg)
    except MaterializeError as error:
        assert str(error).startswith(("Expected strings of", "Expected finite complex numbers"))


@pytest.mark.parametrize("text", ["cpu", "cuda", "cuda:1", "xpu:0", "meta", "mps"])
def test_text_that_names_a_device_follows_where_a_device_stands(text: str) -> None:
    assert convert(text, is_device=True) == CPU
    assert convert(text) == text


@pytest.mark.parametrize(
    "text", ["sum", "b i j -> b j", "cuda:x", "cpu; import os", "torch.float16"]
)
def test_other_text_stays_text_there(text: str) -> None:
    assert convert(text, is_device=True) == text


class Loud(str):
    """Text whose repr is code; nothing of a sample has such a type, and it must not get in."""

    def __repr__(self) -> str:
        return "__import__('os').abort()"


@pytest.mark.parametrize("arg", [Loud("a"), object(), [1], {"a": 1}, b"x", Named("module", "os")])
def test_anything_else_is_refused(arg: Any) -> None:
    with pytest.raises(MaterializeError):
        convert(arg)


@pytest.mark.parametrize(
    ("given_arguments", "device", "expected"),
    [
        (("cuda", None, True, None), "cpu", ("cpu", torch.float16, True, None)),
        (("cpu", None), "cuda", ("cuda", torch.bfloat16)),
        (("cuda", torch.bfloat16, False), "cpu", ("cpu", torch.bfloat16, False)),
    ],
)
def test_autocast_keeps_the_dtype_of_the_capture(
    given_arguments: tuple[Any, ...], device: str, expected: tuple[Any, ...]
) -> None:
    assert autocast_arguments(given_arguments, torch.device(device)) == expected
