"""Compilers defined in a notebook or script, saved with their source to a separate file."""

from __future__ import annotations

import ast
import hashlib
import inspect
import sys
import textwrap
import types
from collections.abc import Callable
from typing import Any

from ..atomic import write_text
from ..errors import CompilerError
from ..user_cache import private_directory
from .base import Compiler
from .registry import reference_of

_PLAIN = (bool, int, float, complex, str, bytes, type(None))


def compiler_of_object(factory: Any, *, is_replacement: bool = False) -> str:
    """Return a reference, `/path/to/file.py:name`, to a function or class defined anywhere.

    With `is_replacement`, the object is a candidate that takes the inputs of a graph: any function
    or class.

    The source is written to a file in the user's cache, together with the imports, plain constants
    and functions of the same notebook or script that it uses. The worker process runs that file and
    receives nothing else from this process. Equal sources share a file.

    Raises:
        CompilerError: The object is neither a function nor a `Compiler` class, its source cannot be
            read, or it uses a value that has no source.

    >>> def mine(module, example_inputs):
    ...     return module
    >>> compiler_of_object(mine).rpartition(":")[2]
    'mine'
    """
    kind = "candidate" if is_replacement else "compiler"
    is_class = inspect.isclass(factory) and (is_replacement or issubclass(factory, Compiler))
    if not (is_class or inspect.isfunction(factory)):
        accepted = "a name, a function `(module, example_inputs)` or a subclass of `Compiler`"
        if is_replacement:
            accepted = "a path, a function, or a class such as a subclass of `torch.nn.Module`"
        raise CompilerError(
            f"The {kind} is {type(factory).__name__} `{str(factory)[:100]}`, but it must be "
            f"{accepted}."
        )
    name = factory.__name__
    module = sys.modules.get(factory.__module__)
    is_in_file = getattr(module, name, None) is factory and getattr(module, "__file__", None)
    if is_in_file and factory.__module__ != "__main__":
        return reference_of(factory)
    if not name.isidentifier():
        raise CompilerError(
            f"The {kind} is a lambda, whose source cannot be extracted. Define it with `def` and "
            "pass it by its name."
        )
    return store_source(_Writer().write(factory), name)


def store_source(text: str, name: str, file_name: str | None = None) -> str:
    """Write the source of a file that defines `name` to the user's cache; return its reference.

    Equal texts share a file, which is called `file_name`, by default `name` with the suffix `.py`.

    Raises:
        CompilerError: The file cannot be written.
    """
    digest = hashlib.blake2b(text.encode(), digest_size=8).hexdigest()
    try:
        path = private_directory("compilers") / digest / (file_name or f"{name}.py")
        path.parent.mkdir(mode=0o700, exist_ok=True)
        if not (path.is_file() and path.read_text() == text):
            write_text(path, text)
    except OSError as error:
        raise CompilerError(
            f"The source of `{name}` cannot be stored: {error}. Set XDG_CACHE_HOME to a "
            "writable directory."
        ) from error
    return f"{path.resolve()}:{name}"


class _Writer:
    """Collects the source of a function and of everything it uses."""

    def __init__(self) -> None:
        self._imports: dict[str, str] = {}
        self._definitions: dict[str, str] = {}
        self._pending: set[str] = set()

    def write(self, factory: Callable[..., Any]) -> str:
        """Return the source of a file that defines `factory`."""
        self._add(factory.__name__, factory)
        imports = ["from __future__ import annotations", *self._imports.values()]
        return "\n".join([*imports, "", *self._definitions.values()])

    def _add(self, name: str, factory: Any) -> None:
        if name in self._definitions or name in self._pending:
            return
        self._pending.add(name)
        source = _source_of(factory)
        tree = ast.parse(source)
        used = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
        function = getattr(factory, "__wrapped__", factory)
        values = _globals_of(function)
        if inspect.isfunction(function):
            values = {**values, **inspect.getclosurevars(function).nonlocals}
        for used_name in sorted(used - {name}):
            if used_name in values:
                self._bind(used_name, values[used_name], name)
        self._definitions[name] = source
        self._pending.discard(name)

    def _bind(self, name: str, value: Any, user: str) -> None:
        """Add source that binds `name` to `value`."""
        if isinstance(value, types.ModuleType):
            self._imports[name] = f"import {value.__name__} as {name}"
            if value.__name__ == name:
                self._imports[name] = f"import {name}"
        elif _is_importable(value):
            self._imports[name] = f"from {value.__module__} import {value.__qualname__} as {name}"
        elif inspect.isfunction(value) or inspect.isclass(value):
            if value.__name__ != name:
                raise _not_written(user, name, value)
            self._add(name, value)
        elif _is_plain(value):
            self._definitions.setdefault(name, f"{name} = {value!r}\n")
        elif isinstance(getattr(sys.modules.get(type(value).__module__), name, None), type(value)):
            self._imports[name] = f"from {type(value).__module__} import {name}"
        else:
            raise _not_written(user, name, value)


def _source_of(factory: Any) -> str:
    try:
        return textwrap.dedent(inspect.getsource(factory))
    except (OSError, TypeError) as error:
        raise CompilerError(
            f"The source of `{factory.__name__}` cannot be read, so it cannot be sent to the "
            f"worker process. Write it into a file and pass `file.py:{factory.__name__}`."
        ) from error


def _globals_of(factory: Any) -> dict[str, Any]:
    if inspect.isfunction(factory):
        return dict(factory.__globals__)
    return dict(vars(sys.modules[factory.__module__]))


def _is_importable(value: Any) -> bool:
    """Return whether another process can import this function or class from a package."""
    module = sys.modules.get(getattr(value, "__module__", None) or "")
    name = getattr(value, "__qualname__", "")
    if module is None or not name.isidentifier() or getattr(module, name, None) is not value:
        return False
    path = getattr(module, "__file__", None) or ""
    return (
        module.__name__ in sys.builtin_module_names
        or "site-packages" in path
        or (
            module.__name__.partition(".")[0]
            in (*sys.stdlib_module_names, __name__.partition(".")[0])
        )
    )


def _is_plain(value: Any) -> bool:
    if isinstance(value, tuple | list | set | frozenset):
        return all(map(_is_plain, value))
    if isinstance(value, dict):
        return all(_is_plain(key) and _is_plain(item) for key, item in value.items())
    return type(value) in _PLAIN


def _not_written(user: str, name: str, value: Any) -> CompilerError:
    return CompilerError(
        f"`{user}` uses `{name}`, a {type(value).__name__} of this process, which cannot be sent "
        f"to the worker process. Create it inside `{user}`, or write both into a file and pass "
        f"`file.py:{user}`."
    )
