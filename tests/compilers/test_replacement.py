"""Candidates that replace a graph: their names in a file, and how they receive inputs."""

from __future__ import annotations

import dataclasses
import os
import runpy
from pathlib import Path
from typing import Any

import pytest

from graphnet_datasets.compilers.registry import find_entry, resolve_name
from graphnet_datasets.compilers.replacement import (
    MAX_FRAMES,
    MAX_SOURCE_LENGTH,
    bind,
    find_candidate_name,
    note_own_lines,
)
from graphnet_datasets.errors import CandidateError
from graphnet_datasets.isolation import describe_error

INPUTS = {"input_0": None, "parameter_0": 3, "input_1": None}


@pytest.mark.parametrize(
    ("source", "name"),
    [
        ("def scale(x): return x", "scale"),
        ("def _helper(x): return x\ndef scale(x): return _helper(x)", "scale"),
        ("@triton.jit\ndef kernel(x): pass\ndef launch(x): kernel[1](x)", "launch"),
        ("@jit(cache=True)\ndef kernel(x): pass\nclass Model: pass", "Model"),
        ("def helper(x): return x\ndef candidate(x): return helper(x)", "candidate"),
        ("class Part: pass\nclass ModelNew: pass", "ModelNew"),
        ("def broken(x:", "candidate"),  # the worker reports the error
        ("if True:\n    def inner(x): pass\ndef scale(x): return x", "scale"),
        ("text = '''\ndef quoted(): pass\n'''\ndef scale(x): return x", "scale"),
        ("async def wait(): pass\ndef scale(x): return x", "scale"),
        ("@jit\n@other\ndef kernel(x): pass\n@first.second(jit)\ndef f(x): pass", "f"),
        ("@f" + ".a" * 2000 + "\ndef scale(x): return x", "scale"),  # too deep for a syntax tree
        ("x = f'" + "{1}" * 100_000 + "'\ndef scale(x): return x", "scale"),  # minutes to parse
    ],
)
def test_a_file_offers_one_candidate(source: str, name: str, tmp_path: Path) -> None:
    path = tmp_path / "mine.py"
    path.write_text(source)
    assert find_candidate_name(path) == name


@pytest.mark.parametrize(
    ("source", "listed"),
    [("x = 1", ""), ("def", ""), ("def a(x): ...\ndef b(x): ...", " It defines `a`, `b`.")],
)
def test_a_file_without_one_candidate_is_refused(source: str, listed: str, tmp_path: Path) -> None:
    path = tmp_path / "mine.py"
    path.write_text(source)
    with pytest.raises(CandidateError) as raised:
        find_candidate_name(path)
    assert str(raised.value) == (
        f"`{path}` must define exactly one public function or class, or one of them named "
        f"`candidate`.{listed} Select the candidate as `mine.py:NAME`."
    )


@pytest.mark.parametrize(
    ("source", "problem"),
    [("#" * (MAX_SOURCE_LENGTH + 1), "more than 1,048,576 characters"), ("\0", "null bytes")],
)
def test_a_text_that_is_no_source_is_refused(source: str, problem: str, tmp_path: Path) -> None:
    path = tmp_path / "mine.py"
    path.write_text(source)
    with pytest.raises(CandidateError) as raised:
        find_candidate_name(path)
    assert str(raised.value) == (
        f"The candidate `{path}` contains {problem}. Pass a source file of limited length."
    )


@pytest.mark.parametrize("kind", ["device", "directory", "pipe"])
def test_a_path_that_is_no_source_file_is_refused(kind: str, tmp_path: Path) -> None:
    path = Path("/dev/zero") if kind == "device" else tmp_path / "mine.py"
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "directory":
        path.mkdir()
    with pytest.raises(CandidateError):
        find_candidate_name(path)


def test_a_missing_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(CandidateError, match="cannot be read: No such file or directory"):
        find_candidate_name(tmp_path / "mine.py")


class Affine:
    """A module with a packed weight; `eval` is counted."""

    def __init__(self, parameter_0: int, offset: int = 0) -> None:
        self.factor, self.offset = parameter_0, offset
        self.num_evals = 0

    def eval(self) -> None:
        self.num_evals += 1

    def forward(self, x: int, y: int) -> list[int]:
        return [x, self.factor, y, self.num_evals]

    def __call__(self, *inputs: int) -> list[int]:
        return self.forward(*inputs)


@dataclasses.dataclass
class Unfitting:
    """A class whose constructor takes a weight that the graph lacks."""

    parameter_1: int


@pytest.mark.parametrize(
    ("target", "expected"),
    [
        (lambda x, w, y: [x, w, y], [1, 3, 2]),
        (lambda *values: list(values), [1, 3, 2]),
        (lambda x, w, y, scale=7: [x, w, y, scale], [1, 3, 2, 7]),
        (lambda input_1, input_0: [input_1, input_0], [2, 1]),
        (lambda parameter_0, scale=7: [parameter_0, scale], [3, 7]),
        (lambda **values: sorted(values), ["input_0", "input_1", "parameter_0"]),
        (Affine, [1, 3, 2, 1]),
        (Affine(5), [1, 5, 2, 0]),
        (max, 3),  # no signature
    ],
)  # fmt: skip
def test_inputs_are_passed_in_order_or_by_name(target: Any, expected: Any) -> None:
    inputs = {"input_0": None, "input_1": None} if isinstance(target, Affine) else INPUTS
    assert bind(target, "mine", inputs)(input_0=1, input_1=2) == expected


@pytest.mark.parametrize(
    ("target", "message"),
    [
        (
            lambda x, w: x + w,
            "`mine(x, w)` cannot be called with the 3 inputs of the graph: too many positional "
            "arguments. Take them in this order, or name some of them: `input_0`, `parameter_0`, "
            "`input_1`.",
        ),
        (
            lambda input_0, weight: input_0 + weight,
            "`mine(input_0, weight)` cannot be called with the 3 inputs of the graph: too many "
            "positional arguments. Take them in this order, or name some of them: `input_0`, "
            "`parameter_0`, `input_1`.",
        ),
        (
            Unfitting,
            "The constructor of `mine` requires `parameter_1`, which is not a weight of the graph. "
            "Did you mean `parameter_0`? The weights are `parameter_0`.",
        ),
        (
            7,
            "The candidate `mine` has the type `int`, but it must be a function or a "
            "`torch.nn.Module`.",
        ),
    ],
)
def test_other_parameters_are_refused(target: Any, message: str) -> None:
    with pytest.raises(CandidateError) as raised:
        bind(target, "mine", INPUTS)
    assert str(raised.value) == message


def test_the_reference_of_a_candidate_is_that_of_a_compiler_with_parentheses(
    tmp_path: Path,
) -> None:
    path = tmp_path / "mine.py"
    path.write_text("raise ValueError('imported in this process')")
    reference = resolve_name(f"{path}:scale()")
    assert reference == f"{path}:scale()"
    entry = find_entry(reference)
    assert (entry.name, entry.reference) == ("scale()", reference)


def test_an_error_notes_the_last_lines_of_the_candidate(tmp_path: Path) -> None:
    path = tmp_path / "mine.py"
    path.write_text("def f(n):\n    return 1 // n if n == 0 else f(n - 1)\n")
    names = runpy.run_path(str(path))
    with pytest.raises(ZeroDivisionError) as raised:
        names["f"](20)
    note_own_lines(raised.value, f"{path}:f()")
    message, *lines = describe_error(raised.value)["message"].splitlines()
    assert message.startswith("integer division")
    assert lines == ["  mine.py:2 in f: return 1 // n if n == 0 else f(n - 1)"] * MAX_FRAMES


def test_a_syntax_error_notes_its_line(tmp_path: Path) -> None:
    with pytest.raises(SyntaxError) as raised:
        compile("x = (1\n", str(tmp_path / "mine.py"), "exec")
    note_own_lines(raised.value, f"{tmp_path / 'mine.py'}:f()")
    assert describe_error(raised.value)["message"].splitlines()[1:] == ["  mine.py:1: x = (1"]
