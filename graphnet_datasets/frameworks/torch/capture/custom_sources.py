"""Source code of custom operators, read when a model is captured.

The captured source is self-contained: the operator's function and fake function, the functions of
the same program that they call, and imports of standard libraries, torch, NumPy and Triton.
Comments and annotations are removed, so that equal programs have equal hashes.
"""

from __future__ import annotations

import ast
import inspect
import sys
import textwrap
import types
from typing import Any

import torch
from torch._library.custom_ops import OPDEFS, CustomOpDef

from ....errors import CaptureError
from ....sample import CustomOperator, hash_source
from ..building.custom_operators import FAKE_SUFFIX, find_registered

LIBRARIES = frozenset({"torch", "numpy", "triton"}) | sys.stdlib_module_names
"""Modules that a source may import: they are available wherever torch samples run."""

_CONSTANTS = (bool, int, float, complex, str, bytes, type(None), torch.dtype)
_MAX_FUNCTIONS = 100


def find_custom_operator(target: Any) -> CustomOperator | None:
    """Return the custom operator of a target with its source, or None for other callables.

    Raises:
        CaptureError: If the source of the custom operator is not self-contained.
    """
    if not isinstance(target, torch._ops.OpOverload):
        return None
    registered = find_registered(target)
    if registered is not None:
        return registered
    definition = OPDEFS.get(target._schema.name)
    if definition is None or definition._opoverload is not target:
        return None
    return _describe(definition)


def _describe(definition: CustomOpDef) -> CustomOperator:
    name = definition._qualname
    try:
        if None not in definition._backend_fns:
            devices = ", ".join(map(str, definition._backend_fns))
            raise _NotAloneError(f"It is implemented for {devices} only.")
        source = _Source()
        source.add(definition._init_fn, definition._name)
        if definition._abstract_fn is not None:
            source.add(definition._abstract_fn, definition._name + FAKE_SUFFIX)
        text = source.print()
    except _NotAloneError as error:
        raise CaptureError(
            f"The custom operator `{name}` cannot be captured with its source: {error} Write it "
            "as a plain function that uses torch, numpy, the standard library and functions of the "
            "same file, or exclude the call from the capture with `torch.compiler.disable`."
        ) from error
    return CustomOperator(name, definition._schema, text, hash_source(text))


class _NotAloneError(Exception):
    """The source depends on something that cannot be captured."""


class _Source:
    """Collects functions and their dependencies, each name once."""

    def __init__(self) -> None:
        self.imports: dict[str, str] = {}
        self.constants: dict[str, str] = {}
        self.functions: dict[str, str] = {}
        self.objects: dict[str, Any] = {}

    def add(self, function: Any, name: str) -> None:
        """Add a function under a new name, without its decorators."""
        tree = _parse(function)
        tree.name, tree.decorator_list = name, []
        self._add(function, tree)

    def print(self) -> str:
        """Return the source: imports, constants, then functions in order of use."""
        lines = [*sorted(self.imports.values()), *sorted(self.constants.values())]
        return "\n\n\n".join(["\n".join(lines), *self.functions.values()]).strip() + "\n"

    def _add(self, function: types.FunctionType, tree: ast.FunctionDef) -> None:
        if function.__closure__:
            raise _NotAloneError(
                f"`{function.__qualname__}` uses variables of the enclosing function."
            )
        if len(self.functions) >= _MAX_FUNCTIONS:
            raise _NotAloneError(f"It calls more than {_MAX_FUNCTIONS} functions.")
        for node in ast.walk(tree):
            if isinstance(node, ast.arg):
                node.annotation = None
            elif isinstance(node, ast.FunctionDef):
                node.returns = None
        # Registered before its callees are visited, because functions may be recursive.
        self.functions[tree.name] = ""
        module = inspect.getmodule(function)
        around = {} if module is None else vars(module)
        for name in _free_names(tree):
            if name in around:
                self._add_object(name, around[name])
        self.functions[tree.name] = ast.unparse(tree)

    def _add_object(self, name: str, value: Any) -> None:
        if name in self.objects or name in self.functions:
            if self.objects.get(name, self) is not value:
                raise _NotAloneError(f"`{name}` has two meanings in its files.")
            return
        self.objects[name] = value
        if isinstance(value, types.ModuleType):
            self._import(name, value.__name__, None)
        elif isinstance(value, _CONSTANTS):
            if isinstance(value, torch.dtype):
                self._import("torch", "torch", None)
            self.constants[name] = f"{name} = {value!r}"
        elif _library_of(value) in LIBRARIES:
            self._import(name, value.__module__, value.__qualname__)
        elif isinstance(value, types.FunctionType):
            tree = _parse(value)
            if tree.decorator_list:
                raise _NotAloneError(f"`{name}` has decorators.")
            if tree.name != name:
                raise _NotAloneError(f"`{name}` is an alias of `{tree.name}`.")
            self._add(value, tree)
        else:
            raise _NotAloneError(f"It uses `{name}`, a `{type(value).__name__}`.")

    def _import(self, name: str, module: str, attribute: str | None) -> None:
        if module.partition(".")[0] not in LIBRARIES:
            raise _NotAloneError(f"It imports `{module}`.")
        if attribute is None:
            alias = "" if name == module else f" as {name}"
            self.imports[name] = f"import {module}{alias}"
            return
        imported: Any = sys.modules.get(module)
        for part in attribute.split("."):
            imported = getattr(imported, part, None)
        if imported is not self.objects[name] or "." in attribute:
            raise _NotAloneError(f"`{name}` cannot be imported from `{module}`.")
        alias = "" if name == attribute else f" as {name}"
        self.imports[name] = f"from {module} import {attribute}{alias}"


def _library_of(value: Any) -> str:
    module = getattr(value, "__module__", None)
    has_name = isinstance(getattr(value, "__qualname__", None), str)
    return module.partition(".")[0] if isinstance(module, str) and has_name else ""


def _parse(function: Any) -> ast.FunctionDef:
    if not isinstance(function, types.FunctionType):
        raise _NotAloneError(f"`{type(function).__name__}` is not a plain function.")
    try:
        (tree,) = ast.parse(textwrap.dedent(inspect.getsource(function))).body
    except (OSError, SyntaxError, ValueError) as error:
        raise _NotAloneError(f"The source of `{function.__qualname__}` is missing.") from error
    if not isinstance(tree, ast.FunctionDef):
        raise _NotAloneError(f"`{function.__qualname__}` is not a `def`.")
    return tree


def _free_names(tree: ast.FunctionDef) -> list[str]:
    """Return the names that a function reads but does not bind, in order."""
    nodes = list(ast.walk(tree))
    names = [node for node in nodes if isinstance(node, ast.Name)]
    bound = {node.arg for node in nodes if isinstance(node, ast.arg)}
    bound |= {node.id for node in names if isinstance(node.ctx, ast.Store)}
    return list(dict.fromkeys(node.id for node in names if node.id not in bound))
