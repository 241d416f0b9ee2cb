"""The compilers that can be named: built in, registered, from entry points, or `module:attribute`.

A compiler is handed to other processes by its reference, `module:attribute` or
`/path/to/file.py:attribute`, and its options; so what is registered has to be found by a name.
Only names that the user typed or installed are imported, never one out of data.
"""

from __future__ import annotations

import dataclasses
import hashlib
import importlib
import importlib.machinery
import importlib.metadata
import importlib.util
import inspect
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar

from ..errors import (
    CompilerError,
    CompilerUnavailableError,
    GraphNetError,
    UnknownCompilerError,
)
from ..frameworks import framework_named
from ..isolation.import_path import import_path
from ..sample.vocabulary import framework_entry_points
from ..suggestions import did_you_mean
from .base import Compiler
from .builtin import BUILTIN
from .sources import directory_of_package

ENTRY_POINT_GROUP = "graphnet_datasets.compilers"

_Factory = TypeVar("_Factory", bound=Callable[..., Any])


@dataclasses.dataclass(frozen=True, slots=True)
class Entry:
    """A compiler that can be named, and the reference under which any process finds it."""

    name: str
    framework: str
    reference: str
    origin: str

    def load(self) -> type[Compiler]:
        """Import the compiler's class.

        Raises:
            CompilerUnavailableError: the framework is not installed.
            CompilerError: the reference leads to nothing that is a compiler.
        """
        if not framework_named(self.framework).is_installed:
            raise CompilerUnavailableError(
                f"`{self.framework}` is not installed "
                f"(pip install 'graphnet-datasets[{self.framework}]')."
            )
        return _as_compiler(import_reference(self.reference), self.name, self.framework)


_registered: dict[tuple[str, str], Entry] = {}


def register_compiler(
    name: str, factory: Any = None, *, framework: str = "torch", replace: bool = False
) -> Any:
    """Make a compiler known by `name`; also a decorator, `@register_compiler("mine")`.

    `factory` is a subclass of `Compiler`, a function `(module, example_inputs, **options)` that
    returns the compiled callable, or a reference to either as text. It has to stand at the top of
    a module or of a script, since the processes that run it import it from there.

    Raises:
        CompilerError: the name is taken, or the factory cannot be found by a reference.
    """
    if factory is None:

        def decorate(decorated: _Factory) -> _Factory:
            register_compiler(name, decorated, framework=framework, replace=replace)
            return decorated

        return decorate
    key = (framework, name)
    if not replace and (key in _registered or key in _builtin_entries()):
        raise CompilerError(
            f"A compiler `{name}` for {framework} exists already. Choose another name or pass "
            "`replace=True`."
        )
    reference = factory if isinstance(factory, str) else reference_of(factory)
    _registered[key] = Entry(name, framework, reference, "registered")
    return factory


def list_entries() -> tuple[Entry, ...]:
    """Return every compiler that can be named: built in, from entry points, registered."""
    entries = _builtin_entries()
    for entry in _entry_points():
        entries.setdefault((entry.framework, entry.name), entry)
    return tuple({**entries, **_registered}.values())


def find_entry(name: str, framework: str = "torch") -> Entry:
    """Return the compiler of that name, or the one that `module:attribute` refers to.

    Raises:
        UnknownCompilerError: there is none; the message lists those that there are.
    """
    if ":" in name:
        return Entry(name.rpartition(":")[2], framework, name, "reference")
    key = (framework, name)
    entry = _registered.get(key) or _builtin_entries().get(key)
    if entry is None:
        found = [each for each in _entry_points() if (each.framework, each.name) == key]
        entry = found[0] if found else None
    if entry is None:
        if name.endswith(".py"):
            raise UnknownCompilerError(
                f"`{name}` is a file. Name the compiler in it too, as in `{name}:MyCompiler`."
            )
        known = sorted({each.name for each in list_entries() if each.framework == framework})
        raise UnknownCompilerError(
            f"There is no compiler `{name}` for {framework}.{did_you_mean(name, known)} There are: "
            f"{', '.join(known)}. "
            "Register one with `register_compiler`, or name it as `module:attribute`."
        )
    return entry


def is_installed(name: str) -> bool:
    """Return False for `module:attribute` and files, which `find_entry` would import.

    Names that come from records must pass this test.

    >>> is_installed("inductor"), is_installed("evil.py:compile"), is_installed("os:system")
    (True, False, False)
    """
    return ":" not in name and not name.endswith(".py")


def resolve_name(name: str) -> str:
    """Return the name under which a process with another working directory finds a compiler.

    A path to a file becomes absolute, and so does a module beside the working directory that
    Python would find only there (`my_compiler:Mine` for `./my_compiler.py`). Other names stay.

    Raises:
        CompilerError: there is no such file.

    >>> resolve_name("inductor"), resolve_name("graphnet_datasets.compilers.eager:Eager")
    ('inductor', 'graphnet_datasets.compilers.eager:Eager')
    """
    module, colon, attribute = name.rpartition(":")
    if not colon:
        return name
    if module.endswith(".py"):
        path = Path(module).expanduser()
        if not path.is_file():
            raise CompilerError(
                f"There is no file `{path}`, which the compiler `{name}` names. Give the path from "
                "the working directory, or an absolute one."
            )
        return f"{path.resolve()}:{attribute}"
    beside = Path(*module.split(".")).with_suffix(".py")
    if beside.is_file() and not _is_found(module.partition(".")[0]):
        return f"{beside.resolve()}:{attribute}"
    return name


def _is_found(package: str) -> bool:
    """Return whether worker processes, which ignore the working directory, find a package."""
    if package in sys.builtin_module_names:
        return True
    try:
        return importlib.machinery.PathFinder.find_spec(package, import_path()) is not None
    except (ImportError, ValueError):
        return False


def make_compiler(
    name: str, framework: str = "torch", options: Mapping[str, Any] | None = None
) -> Compiler:
    """Return a compiler that is ready for one run.

    Raises:
        UnknownCompilerError: there is no compiler of that name for the framework.
        CompilerUnavailableError: it cannot run on this machine; the message says why.
        CompilerError: an option is unknown or has a value that it does not accept.
    """
    compiler = find_entry(name, framework).load()
    is_available, reason = compiler.is_available()
    if not is_available:
        raise CompilerUnavailableError(f"The compiler `{name}` cannot run here: {reason}.")
    return compiler(options)


def _builtin_entries() -> dict[tuple[str, str], Entry]:
    # A framework that a package adds has the control that every framework has.
    added = [(framework, "eager", "eager:Eager") for framework in framework_entry_points()]
    return {
        (framework, name): Entry(name, framework, f"{__package__}.{reference}", "built in")
        for framework, name, reference in (*BUILTIN, *added)
    }


def _entry_points() -> list[Entry]:
    """Return the entry points' compilers; the framework stands before a dot, `paddle.mine`."""
    entries = []
    for point in importlib.metadata.entry_points(group=ENTRY_POINT_GROUP):
        framework, dot, name = point.name.rpartition(".")
        origin = point.dist.name if point.dist else "entry point"
        entries.append(Entry(name, framework if dot else "torch", point.value, origin))
    return entries


def reference_of(factory: Any) -> str:
    """Return the reference to a function or class at the top of a module or script.

    Raises:
        CompilerError: it is defined elsewhere, or interactively.

    >>> from graphnet_datasets.compilers.eager import Eager
    >>> reference_of(Eager)
    'graphnet_datasets.compilers.eager:Eager'
    """
    module = sys.modules.get(getattr(factory, "__module__", ""))
    name = getattr(factory, "__qualname__", "")
    # A decorator runs before the name of what it decorates is bound.
    is_top_level = name.isidentifier() and getattr(module, name, factory) is factory
    if module is None or not is_top_level:
        raise CompilerError(
            f"The compiler {factory!r} does not stand at the top of a module, so that the "
            "processes that run it cannot find it. Move it there and register it again."
        )
    path = getattr(module, "__file__", None)
    if module.__name__ != "__main__" and (
        path is None or _is_found(module.__name__.partition(".")[0])
    ):
        return f"{module.__name__}:{name}"
    if path is None:
        raise CompilerError(
            f"The compiler `{name}` was defined interactively, so that the processes that run it "
            "cannot find it. Write it into a file and import it from there."
        )
    return f"{Path(path).resolve()}:{name}"


def import_reference(
    reference: str, *, kind: str = "compiler", error_type: type[GraphNetError] = CompilerError
) -> Any:
    """Return what `module:attribute` or `/path/to/file.py:attribute` refers to.

    Only for references that the user typed or installed. `kind` is what messages call it.

    Raises:
        CompilerError: it cannot be imported; with `error_type` that instead.
    """
    module_name, _, attribute = reference.rpartition(":")
    try:
        if module_name.endswith(".py"):
            module = _import_file(Path(module_name))
        else:
            module = importlib.import_module(module_name)
    except (ImportError, AttributeError, OSError, ValueError) as error:
        raise error_type(
            f"The {kind} `{reference}` cannot be imported: {type(error).__name__}: {error}. "
            "Write it as `module:attribute` with a module that Python finds, or as "
            "`/path/to/file.py:attribute`."
        ) from error
    try:
        return getattr(module, attribute)
    except AttributeError as error:
        names = [name for name in vars(module) if not name.startswith("_")]
        raise error_type(
            f"The {kind} `{reference}` cannot be imported: `{module_name}` has no `{attribute}`."
            f"{did_you_mean(attribute, names)} Check the name after the colon."
        ) from error


def _import_file(path: Path) -> Any:
    """Import a file with what it takes from beside it: as Python runs it as a script.

    One that lies in a package is imported as the module that it is there.
    """
    path = path.resolve()
    base = directory_of_package(path)
    if str(base) not in sys.path:
        sys.path.append(str(base))  # last: a name of an installed package stays that package
    if base != path.parent:
        name = ".".join(path.with_suffix("").relative_to(base).parts)
        found = importlib.util.find_spec(name)
        if found is not None and found.origin and Path(found.origin).resolve() == path:
            return importlib.import_module(name)
    digest = hashlib.blake2b(str(path).encode(), digest_size=8).hexdigest()
    name = f"graphnet_datasets_compiler_{digest}"
    if name in sys.modules:
        return sys.modules[name]
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise ImportError(f"`{path}` is not a Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
    return module


def _as_compiler(found: Any, name: str, framework: str) -> type[Compiler]:
    if inspect.isclass(found) and issubclass(found, Compiler):
        return found
    if inspect.isfunction(found):
        return _compiler_of_function(found, name, framework)
    raise CompilerError(
        f"The compiler `{name}` is {found!r}, which is neither a subclass of "
        "`graphnet_datasets.compilers.Compiler` nor a function."
    )


def _compiler_of_function(
    function: Callable[..., Any], compiler_name: str, compiler_framework: str
) -> type[Compiler]:
    class FunctionCompiler(Compiler):
        """A compiler that is a function of the module, the example inputs and options."""

        name = compiler_name
        framework = compiler_framework
        package = function.__module__.partition(".")[0]

        def __init__(self, options: Mapping[str, Any] | None = None) -> None:
            super().__init__()
            self.options = dict(options or {})

        @classmethod
        def is_available(cls) -> tuple[bool, str]:
            return True, ""

        def compile(
            self, module: Callable[..., Any], example_inputs: Mapping[str, Any]
        ) -> Callable[..., Any]:
            return function(module, example_inputs, **self.options)

    return FunctionCompiler
