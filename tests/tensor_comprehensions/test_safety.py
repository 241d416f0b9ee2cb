"""Definitions are data: nothing of their text becomes code, and none takes unbounded resources."""

from __future__ import annotations

import re

import pytest
import torch

from graphnet_datasets.errors import KernelInputError, TensorComprehensionError
from graphnet_datasets.tensor_comprehensions import define
from graphnet_datasets.tensor_comprehensions.graphs.block import Block

pytest.importorskip("islpy", reason="needs islpy (extra tc)")


def without_comments(source: str) -> str:
    return re.sub(r"//[^\n]*", "", source)


@pytest.mark.parametrize(
    "names",
    [
        ("main", "struct", "asm", "for"),
        ("system", "printf", "exit", "errno"),
        ("tc_kernel", "t0", "a", "nt"),
        ("__attribute__", "__asm__", "_Pragma", "restrict"),
        ("vf_exp", "y0_", "p0", "INFINITY"),
        ("NULL", "define", "include", "__COUNTER__"),
    ],
)
def test_words_of_c_are_names_like_any_other(names: tuple[str, ...]) -> None:
    function, tensor, output, index = names
    statement = f"{output}({index}) = {tensor}({index}) + 1"
    text = f"def {function}(float(N) {tensor}) -> ({output}) {{ {statement} }}"
    definition = define(text)
    x = torch.randn(37)
    kernel = definition.compile(function, x)
    torch.testing.assert_close(kernel(x), x + 1)


def test_no_name_or_comment_reaches_the_compiler() -> None:
    marks = {name: f"{name}_stranger" for name in ("def", "size", "input", "output", "index")}
    text = f"""# "); system("id"); /* \\
    def {marks["def"]}(float({marks["size"]}) {marks["input"]}) -> ({marks["output"]}) {{
        # */ #include "/etc/passwd"
        {marks["output"]}({marks["index"]}) = {marks["input"]}({marks["index"]}) * 2 # \\
    }}"""
    kernel = define(text).compile(marks["def"], torch.randn(5))
    code = without_comments(kernel.source)
    assert "stranger" not in code
    for word in ("system", "passwd"):
        assert word not in kernel.source
    comments = re.findall(r"//[^\n]*", kernel.source)
    assert not any(each.endswith("\\") or "*/" in each or '"' in each for each in comments)


@pytest.mark.parametrize(
    "text",
    [
        'def f(float(N) A) -> (O) { O(i) = A(i) "; system("id"); }',
        "def f(float(N) A) -> (O) { O(i) = A(i); }",
        "def f(float(N) A) -> (O) { O(i) = A[i] }",
        "def f(float(N) A) -> (O) { O(i) = `id` }",
        "def f(float(N) A) -> (O) { O(i) = A(i) \\\n#define x }",
        "def f(float(N) A) -> (O) { O(\u0456) = A(\u0456) }",
        "def f(float(N) A) -> (O) { O(i) = A(i)\x00 }",
        "def f(float(N) A) -> (O) { O(i) = system(A(i)) }",
        "def f(float(N) A) -> (O) { O(i) = __builtin_trap(A(i)) }",
    ],
)
def test_characters_and_calls_outside_of_the_language_are_refused(text: str) -> None:
    with pytest.raises(TensorComprehensionError, match=r"\^"):
        define(text)


@pytest.mark.slow
def test_endless_computations_are_refused() -> None:
    bombs = [
        "def f(float(N) A) -> (O) { O(i) = " + "(" * 100_000 + " }",
        "def f(float(N) A) -> (O) { O(i) = " + "A(" * 50_000 + " }",
        "def f(float(N) A) -> (O) { O(i) = " + "!" * 100_000 + " }",
        "def f(float(N) A) -> (O) { O(i) = A(i) ? " * 5_000,
        "def f(" + ", ".join(f"float(N) A{n}" for n in range(5_000)) + ") -> (O) { O = 1 }",
    ]
    for text in bombs:
        with pytest.raises(TensorComprehensionError):
            define(text)
    definition = define("def f(float(N) A) -> (O) { O(i,j,k) = A(i) * A(j) * A(k) }")
    with pytest.raises(TensorComprehensionError, match="elements; at most"):
        definition.infer("f", (2_000_000,))


def test_names_of_a_graph_are_made_harmless() -> None:
    block = Block("b")
    names = [
        block.parameter(each, (2,), "float32").buffer
        for each in ("x; system()", "exp", "where", "i0", "float32", "", "9x", "x" * 500, "exp")
    ]
    assert len(set(names)) == len(names)
    parameters = ", ".join(f"float(2) {each}" for each in names)
    total = " + ".join(f"{each}(i)" for each in names)
    assert define(f"def f({parameters}) -> (O) {{ O(i) = {total} }}").names == ("f",)


class NoArray:
    """An object whose array has another size than its memory."""

    __array_struct__ = 5


class TooLarge:
    """An object that declares more elements than memory exists."""

    def __array__(self, *_: object, **__: object) -> object:
        raise MemoryError


@pytest.mark.parametrize("argument", [NoArray(), TooLarge()])
def test_objects_that_are_no_arrays_raise_our_error(argument: object) -> None:
    layer = define("def copy(float(N) A) -> (B) { B(i) = A(i) }")
    with pytest.raises(KernelInputError, match="is not an array"):
        layer.copy(argument)


def test_sparse_tensors_raise_our_error() -> None:
    layer = define("def copy(float(N) A) -> (B) { B(i) = A(i) }")
    with pytest.raises(KernelInputError, match="dense tensors"):
        layer.copy(torch.zeros(4).to_sparse())
