"""Reading tensor metadata by its line grammar."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphnet_datasets.errors import SourceError
from graphnet_datasets.frameworks.tensor_metadata import (
    MAX_META_BYTES,
    TensorMeta,
    pack_elements,
    parse_tensor_metadata,
)
from graphnet_datasets.sample import Statistics

GRAMMAR = (
    ". A metadata file contains one class of literals per tensor. Correct the file or skip the "
    "sample."
)
HEAD = 'class Program_weight_tensor_meta_x:\n    name = "x"\n    dtype = "torch.float32"\n'


def test_a_class_is_read_whole() -> None:
    text = """
# a comment
class Program_weight_tensor_meta_x:
    name = (
        "x"
    )
    original_name = "conv.weight"
    shape = [2, 1]
    dtype = "torch.float32"
    device = "cuda:0"
    mean = -0.500
    std = float("nan")
    min_val = float("-1e-05")
    max_val = 3
    data = [
        1.5,
        float("-inf"),
    ]


class Program_weight_tensor_parameter_0:
    name = 'parameter_0'
    shape = []
    dtype = "bool"
    data = [True]
"""
    assert parse_tensor_metadata(text) == {
        "x": TensorMeta(
            "x",
            "float32",
            (2, 1),
            "cuda:0",
            Statistics(-0.5, None, -1e-05, 3.0),
            np.array([1.5, -math.inf], "<f4").tobytes(),
            "conv.weight",
            3,
        ),
        "parameter_0": TensorMeta("parameter_0", "bool", (), data=b"\x01", line=21),
    }


def test_an_empty_file_declares_nothing() -> None:
    assert parse_tensor_metadata("") == {}


def test_upstream_metadata_is_read(upstream_samples: Path) -> None:
    paths = sorted(upstream_samples.rglob("weight_meta.py"))
    assert len(paths) == 207
    for path in paths:
        text = path.read_text()
        assert len(parse_tensor_metadata(text, str(path))) == text.count("class "), path


@given(st.lists(st.floats(width=32, allow_nan=False)))
def test_float_elements_are_exact(elements: list[float]) -> None:
    data = ", ".join(
        repr(element) if math.isfinite(element) else f'float("{element}")' for element in elements
    )
    found = parse_tensor_metadata(f"{HEAD}    shape = [{len(elements)}]\n    data = [{data}]\n")[
        "x"
    ]
    assert found.data == np.array(elements, "<f4").tobytes()


@pytest.mark.parametrize(
    ("lines", "line", "problem"),
    [
        ("    shape = [2]\n    data = [1.0]\n", 5, "`data` has 1 elements where the shape [2] has "
         "2"),
        ("    shape = [2]\n    data = [[1.0, 2.0]]\n", 5, "`    data = [[1.0, 2.0]]` is neither "
         "a class statement nor an attribute with a literal"),
        ("    shape = [1]\n    data = ['1']\n", 5, "`data` is not a flat list of numbers"),
        ("    shape = [1]\n    data = [0]*10**10\n", 5, "`    data = [0]*10**10` is neither a "
         "class statement nor an attribute with a literal"),
        ("    shape = [1]\n    data = 9**9**9**9\n", 5, "`data` is not a flat list of numbers"),
        ("    shape = [1]\n    data = [" + "9" * 100_000 + "]\n", 5, "`data` is not a flat list of "
         "numbers"),
        ("    shape = [9**9]\n", 4, "`shape` is `[9**9]`, not a list of integers"),
        ("    shape = [-1]\n", 4, "`shape` is `[-1]`, not a list of integers"),
        (
            "    shape = [1]\n    mean = open('x')\n", 5,
            "`mean` is `open('x')`, but a number is expected",
        ),
        ("    shape = [1]\n    device = cpu\n", 5, "`device` is `cpu`, but plain text is expected"),
        ("    shape = [1]\n    grad = 1\n", 5, "the attribute `grad` is unknown or repeated"),
        ("    shape = [1]\n    shape = [1]\n", 5, "the attribute `shape` is unknown or repeated"),
        ("    mean = 0.0\n", 1, "the class `Program_weight_tensor_meta_x` has no `shape`"),
        ("    shape = [1]\n" + HEAD + "    shape = [1]\n", 5, "the tensor `x` is declared twice"),
        ("    def f(self):\n        pass\n", 4, "`    def f(self):` is neither a class statement "
         "nor an attribute with a literal"),
    ],
)  # fmt: skip
def test_anything_else_is_refused_with_its_line(lines: str, line: int, problem: str) -> None:
    with pytest.raises(SourceError) as caught:
        parse_tensor_metadata(HEAD + lines, "a/weight_meta.py")
    assert str(caught.value) == f"`a/weight_meta.py`, line {line}: {problem}{GRAMMAR}"


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("import os\n", "line 1: `import os` is neither a class statement nor an attribute with "
         "a literal"),
        ('    name = "x"\n', "line 1: the attribute `name` is outside a class"),
        (HEAD.replace("float32", "float7") + "    shape = [1]\n", "line 3: `float7` is not a known "
         "dtype"),
        (HEAD.replace("float32", "int32") + "    shape = [1]\n    data = [0.5]\n",
         "line 5: `data` contains elements that are not int32"),
        (HEAD.replace("float32", "uint8") + "    shape = [1]\n    data = [256]\n",
         "line 5: `data` contains elements that are not uint8"),
        (HEAD.replace("float32", "complex64") + "    shape = [1]\n    data = [1]\n", "line 5: "
         "`data` contains elements that are not complex64"),
    ],
)  # fmt: skip
def test_other_text_is_refused_with_its_line(text: str, problem: str) -> None:
    with pytest.raises(SourceError) as caught:
        parse_tensor_metadata(text)
    assert str(caught.value) == f"`weight_meta.py`, {problem}{GRAMMAR}"


def test_a_file_that_is_too_large_is_refused() -> None:
    with pytest.raises(SourceError) as caught:
        parse_tensor_metadata(" " * (MAX_META_BYTES + 1))
    assert str(caught.value) == (
        f"`weight_meta.py` has {MAX_META_BYTES + 1} characters; at most {MAX_META_BYTES} are "
        "accepted."
    )


def test_a_long_run_of_digits_or_brackets_costs_nothing() -> None:
    for shape in ("[" + "1" * 1_000_000, "[" * 1_000_000, "[" + "1," * 1_000_000 + "x]"):
        with pytest.raises(SourceError):
            parse_tensor_metadata(f"{HEAD}    shape = {shape}\n")


def test_elements_are_rounded_like_a_framework_does() -> None:
    assert pack_elements([1.0, 1.00390625], "bfloat16").hex() == "803f803f"
    assert pack_elements([0.1], "float16") == np.array([0.1], "<f2").tobytes()
