"""What others may call says what it does."""

from __future__ import annotations

import ast
import importlib
import inspect
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "graphnet_datasets"
PACKAGES = sorted(
    ".".join(path.parent.relative_to(ROOT).parts)
    for path in PACKAGE.rglob("__init__.py")
    if "__all__" in path.read_text()
)
INHERITED = {"compile", "compile_graph", "is_available", "num_compilations", "phase_of"}
"""Methods of `Compiler`, whose text is that of every compiler's own."""


@pytest.mark.parametrize("name", PACKAGES)
def test_every_name_that_a_package_offers_has_a_docstring(name: str) -> None:
    if ".paddle" in name or ".torch" in name:
        pytest.importorskip(name.split(".")[2])
    package = importlib.import_module(name)
    for each in package.__all__:
        offered = getattr(package, each)
        if inspect.isclass(offered) or inspect.isroutine(offered):
            text = inspect.getdoc(offered) or ""
            assert text, f"`{name}.{each}` has no docstring."
            made = text.startswith(f"{each}(")  # by `dataclasses`, out of the fields
            assert not made, f"`{name}.{each}` has no docstring but that of its fields."


def undocumented(body: list[ast.stmt], path: str) -> Iterator[str]:
    for node in body:
        if not isinstance(node, ast.FunctionDef | ast.ClassDef) or node.name.startswith("_"):
            continue
        marks = {ast.unparse(each).partition("(")[0] for each in node.decorator_list}
        # A rule of a translation is called by nobody; a command's text is its help.
        is_registered = marks & {"rule", "app.command", "app.callback", "overload"}
        if not is_registered and node.name not in INHERITED and not ast.get_docstring(node):
            yield f"{path}:{node.lineno} {node.name}"
        if isinstance(node, ast.ClassDef):
            yield from undocumented(node.body, path)


def test_every_public_function_class_and_method_has_a_docstring() -> None:
    found = [
        each
        for path in sorted(PACKAGE.rglob("*.py"))
        for each in undocumented(ast.parse(path.read_text()).body, str(path.relative_to(ROOT)))
    ]
    assert found == []
