"""Kernels in the source of TorchInductor's wrappers, parsed with `ast` and never executed."""

from __future__ import annotations

import ast
import dataclasses
from collections.abc import Iterator
from typing import Any

_LANGUAGES = {"cpp_pybinding": "c++", "cpp": "c++", "triton": "triton"}
"""Methods of `async_compile` that take the source of a kernel."""


@dataclasses.dataclass(frozen=True)
class WrittenKernel:
    """A kernel in a wrapper: its name and source, the types of its arguments, and its calls."""

    entry: str
    language: str
    source: str
    types: tuple[str, ...]
    calls: tuple[str, ...]


def read_wrapper(text: str) -> tuple[list[WrittenKernel], list[str]]:
    """Return the kernels of a wrapper in the order of their first calls, and calls into libraries.

    Raises:
        ValueError: the wrapper is not valid Python.

    >>> text = '''
    ... cpp_fused_0 = async_compile.cpp_pybinding(['const float*'], "void kernel(const float*);")
    ... def call(args):
    ...     cpp_fused_0(arg0_1)
    ...     extern_kernels.mm(arg0_1, arg0_1, out=buf1)
    ... '''
    >>> kernels, library = read_wrapper(text)
    >>> kernels[0].entry, kernels[0].types, kernels[0].calls, library
    ('cpp_fused_0', ('const float*',), ('cpp_fused_0(arg0_1)',), ['extern_kernels.mm'])
    """
    try:
        tree = ast.parse(text)
    except (SyntaxError, RecursionError) as error:
        raise ValueError(f"The wrapper is not valid Python: {error}.") from error
    definitions = {kernel.entry: kernel for kernel in _definitions(tree)}
    calls: dict[str, list[str]] = {}
    library: list[str] = []
    for call in _calls(tree):
        name = ast.unparse(call.func)
        entry = name.removesuffix(".run")
        if entry in definitions:
            calls.setdefault(entry, []).append(ast.unparse(call))
        elif name.startswith(("extern_kernels.", "torch.ops.")):
            library.append(name)
    ordered = [*calls, *(entry for entry in definitions if entry not in calls)]
    return [
        dataclasses.replace(definitions[entry], calls=tuple(calls.get(entry, ())))
        for entry in ordered
    ], library


def _definitions(tree: ast.Module) -> Iterator[WrittenKernel]:
    for statement in ast.walk(tree):
        if not isinstance(statement, ast.Assign) or not isinstance(statement.value, ast.Call):
            continue
        target, call = statement.targets[0], statement.value
        if not isinstance(target, ast.Name) or not isinstance(call.func, ast.Attribute):
            continue
        language = _LANGUAGES.get(call.func.attr)
        if language is None or ast.unparse(call.func.value) != "async_compile":
            continue
        texts = [argument.value for argument in call.args if isinstance(argument, ast.Constant)]
        source = max((text for text in texts if isinstance(text, str)), key=len, default="")
        yield WrittenKernel(target.id, language, source, tuple(_types(call)), ())


def _types(call: ast.Call) -> Iterator[str]:
    for argument in call.args:
        if isinstance(argument, ast.List):
            yield from (str(item.value) for item in argument.elts if isinstance(item, ast.Constant))


def _calls(tree: ast.Module) -> list[ast.Call]:
    """Return the calls in source order."""
    calls: list[Any] = [node for node in ast.walk(tree) if isinstance(node, ast.Call)]
    return sorted(calls, key=lambda call: (call.lineno, call.col_offset))
