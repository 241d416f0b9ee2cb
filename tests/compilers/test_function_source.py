"""Functions of notebooks and scripts as compilers: their source travels, nothing else."""

# ruff: noqa: ARG001, ARG002, ARG005 (every compiler has the same arguments, used or not)

from __future__ import annotations

import math
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from graphnet_datasets.compilers import Compiler, compiler_of_object
from graphnet_datasets.compilers.registry import import_reference
from graphnet_datasets.errors import CompilerError
from tests import candidates

FACTOR = 3.0


def helper(x: float) -> float:
    return math.floor(x * FACTOR)


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache"


def test_a_nested_function_is_saved_with_its_dependencies(cache: Path) -> None:
    offset = 2

    def mine(module: Any, example_inputs: Any) -> Any:
        return helper(module) + offset

    reference = compiler_of_object(mine)
    assert reference == compiler_of_object(mine)
    path, _, name = reference.rpartition(":")
    assert name == "mine"
    assert Path(path).is_relative_to(cache)
    assert import_reference(reference)(1.5, None) == 6
    text = Path(path).read_text()
    assert "FACTOR = 3.0" in text
    assert "import math" in text


def test_other_text_is_another_file() -> None:
    def first() -> Any:
        def mine(module: Any, example_inputs: Any) -> Any:
            return module

        return mine

    def second() -> Any:
        def mine(module: Any, example_inputs: Any) -> Any:
            return lambda **inputs: module(**inputs)

        return mine

    assert compiler_of_object(first()) != compiler_of_object(second())


def test_a_compiler_class_travels_too() -> None:
    class Mine(Compiler):
        name = "mine"

        def compile(self, module: Any, example_inputs: Any) -> Any:
            return module

    found = import_reference(compiler_of_object(Mine))
    assert issubclass(found, Compiler)
    assert found.name == "mine"


def test_functions_of_modules_are_saved_by_name() -> None:
    reference = compiler_of_object(candidates.compile_raises)
    assert reference.endswith(":compile_raises")
    assert "cache" not in reference


@pytest.mark.parametrize(
    ("factory", "message"),
    [
        (lambda module, example_inputs: module, "The compiler is a lambda, whose source cannot"),
        (3, "The compiler is int `3`, but it must be a name, a function"),
        (int, "The compiler is type `<class 'int'>`, but it must be a name, a function"),
    ],
)
def test_unnamed_functions_are_refused(factory: Any, message: str) -> None:
    with pytest.raises(CompilerError, match=message):
        compiler_of_object(factory)


def test_a_value_without_source_is_refused() -> None:
    handle = iter([1])

    def mine(module: Any, example_inputs: Any) -> Any:
        return next(handle)

    with pytest.raises(CompilerError, match="`mine` uses `handle`, a list_iterator of this proc"):
        compiler_of_object(mine)


def test_a_function_without_source_is_refused() -> None:
    scope: dict[str, Any] = {"__name__": "__main__"}
    exec("def mine(module, example_inputs): return module", scope)  # noqa: S102 - own text
    with pytest.raises(CompilerError, match=r"The source of `mine` cannot be read, so it ca"):
        compiler_of_object(scope["mine"])


@pytest.mark.torch
def test_run_takes_a_function_of_a_script_without_a_main_guard(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(
        """
import torch
from graphnet_datasets import run
from graphnet_datasets.sample import Input, Op, Sample, Statistics, Value
from graphnet_datasets.sample.arguments import Ref

value = Value("float32", (16, 32))
tanh = Sample("test/tanh", "torch", "other",
    (Input("input", value, "x", statistics=Statistics(0.0, 1.0)),),
    (Op("torch.tanh", (Ref(0),), results=(value,)),), (Ref(1),))
FACTOR = 2


def doubles(module, example_inputs):
    return lambda **inputs: torch.mul(module(**inputs)[0], FACTOR)


def right(module, example_inputs):
    return module


runs = run([tanh], compiler=[right, doubles], num_threads=1, has_oracle=False, has_profile=False)
print("once", [(row["status"], row["min_t"] <= -3) for row in runs])
"""
    )
    done = subprocess.run(
        [sys.executable, script], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == ["once [('ok', True), ('ok', False)]"], done.stderr
