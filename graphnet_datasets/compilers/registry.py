"""Compiler lookup by name: built in, registered, from an entry point, or `module:attribute`.

Other processes receive a compiler as a reference (`module:attribute` or
`/path/to/file.py:attribute`) and its options, so a registered compiler must be importable. Only
names that the user typed or installed are imported, never names from data.
"""

from __future__ import annotations

import dataclasses
import hashlib
import importlib
import importlib.machinery
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
from ..plugins import entry_points
from ..sample.vocabulary import framework_entry_points
from ..suggestions import did_you_mean
from .base import Compiler
from .builtin import BUILTIN
from .passes import is_pass, make_pass
from .replacement import is_replacement, make_replacement
from .sources import directory_of_package

ENTRY_POINT_GROUP = "graphnet_datasets.compilers"

_Factory = TypeVar("_Factory", bound=Callable[..., Any])


@dataclasses.dataclass(frozen=True, slots=True)
class Entry:
    """A compiler's name and the reference from which any process can import it."""

    name: str
    framework: str
    reference: str
    origin: str

    def load(self) -> type[Compiler]:
        """Import the compiler's class.

        Raises:
            CompilerUnavailableError: The framework is not installed.
            CompilerError: The reference does not lead to a compiler.
        """
        if not framework_named(self.framework).is_installed:
            raise CompilerUnavailableError(
                f"`{self.framework}` is not installed "
                f"(pip install 'graphnet-datasets[{self.framework}]')."
            )
        if is_pass(self.reference):
            return make_pass(self.reference)
        if is_replacement(self.reference):
            return make_replacement(self.reference, self.framework)
        return _as_compiler(import_reference(self.reference), self.name, self.framework)


_registered: dict[tuple[str, str], Entry] = {}


def register_compiler(
    name: str, factory: Any = None, *, framework: str = "torch", replace: bool = False
) -> Any:
    """Register a compiler under `name`; also a decorator, `@register_compiler("mine")`.

    `factory` is a subclass of `Compiler`, a function `(module, example_inputs, **options)` that
    returns the compiled callable, or a reference to either as a string. It must be at the top level
    of a module or script, because worker processes import it from there.

    Raises:
        CompilerError: The name is taken, or the factory has no reference.
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
    """Return every named compiler: built in, from entry points, and registered."""
    entries = _builtin_entries()
    for entry in _entry_points():
        entries.setdefault((entry.framework, entry.name), entry)
    return tuple({**entries, **_registered}.values())


def find_entry(name: str, framework: str = "torch") -> Entry:
    """Return the compiler with this name or this `module:attribute` reference.

    Raises:
        UnknownCompilerError: No such compiler exists; the message lists the known names.
    """
    if ":" in name:
        return Entry(name.rpartition(":")[2], framework, name, "reference")
    key = (framework, name)
    entry = _registered.get(key) or _builtin_entries().get(key)
    if entry is None:
        matches = [item for item in _entry_points() if (item.framework, item.name) == key]
        entry = matches[0] if matches else None
    if entry is None:
        if name.endswith(".py"):
            raise UnknownCompilerError(
                f"`{name}` is a file. Append the name of the compiler, as in `{name}:MyCompiler`."
            )
        names = sorted({item.name for item in list_entries() if item.framework == framework})
        raise UnknownCompilerError(
            f"There is no compiler `{name}` for {framework}.{did_you_mean(name, names)} There are: "
            f"{', '.join(names)}. "
            "Register one with `register_compiler`, or name it as `module:attribute`."
        )
    return entry


def is_installed(name: str) -> bool:
    """Return whether `name` is a known name; always False for `module:attribute` and files.

    Unlike `find_entry`, this imports nothing. Names from records must pass this check.

    >>> is_installed("inductor"), is_installed("evil.py:compile"), is_installed("os:system")
    (True, False, False)
    """
    return ":" not in name and not name.endswith(".py")


def resolve_name(name: str) -> str:
    """Return a name that also works in a process with another working directory.

    A path to a file becomes absolute. So does a module that Python would only find in the working
    directory (`my_compiler:Mine` for `./my_compiler.py`). Other names do not change.

    Raises:
        CompilerError: The file does not exist.

    >>> resolve_name("inductor"), resolve_name("graphnet_datasets.compilers.eager:Eager")
    ('inductor', 'graphnet_datasets.compilers.eager:Eager')
    """
    module, colon, attribute = name.rpartition(":")
    if not colon:
        return name
    if Path(module).expanduser().is_dir() and not module.isidentifier():
        raise CompilerError(
            f"`{module}` in `{name}` is a directory. Name a file in it: "
            f"`{Path(module) / 'file.py'}:{attribute}`."
        )
    if module.endswith(".py"):
        path = Path(module).expanduser()
        if not path.is_file():
            raise CompilerError(
                f"There is no file `{path}` of the compiler `{name}`. Use a path relative to the "
                "working directory or an absolute path."
            )
        return f"{path.resolve()}:{attribute}"
    beside = Path(*module.split(".")).with_suffix(".py")
    if beside.is_file() and not _is_found(module.partition(".")[0]):
        return f"{beside.resolve()}:{attribute}"
    return name


def _is_found(package: str) -> bool:
    """Return whether worker processes, which ignore the working directory, can find a package."""
    if package in sys.builtin_module_names:
        return True
    try:
        return importlib.machinery.PathFinder.find_spec(package, import_path()) is not None
    except (ImportError, ValueError):
        return False


def make_compiler(
    name: str, framework: str = "torch", options: Mapping[str, Any] | None = None
) -> Compiler:
    """Return a new compiler instance for one run.

    Raises:
        UnknownCompilerError: The framework has no compiler with this name.
        CompilerUnavailableError: The compiler cannot run on this machine; the message says why.
        CompilerError: An option is unknown or has a value that it does not accept.
    """
    compiler = find_entry(name, framework).load()
    is_available, reason = compiler.is_available()
    if not is_available:
        raise CompilerUnavailableError(f"The compiler `{name}` cannot run here: {reason}.")
    return compiler(options)


def is_reusable(compiler: type[Compiler]) -> bool:
    """Return whether a compiler's description depends only on its source and the installation.

    A class outside this library that overrides `__init__`, `version` or `is_available` may read
    anything, so it must be inspected each time.

    >>> from graphnet_datasets.compilers.eager import Eager
    >>> is_reusable(Eager), is_reusable(type("Mine", (Eager,), {"version": lambda: "1"}))
    (True, False)
    """
    library = __name__.partition(".")[0]
    return all(
        next(
            owner.__module__.partition(".")[0] == library
            for owner in compiler.__mro__
            if name in vars(owner)
        )
        for name in ("__init__", "version", "is_available")
    )


def _builtin_entries() -> dict[tuple[str, str], Entry]:
    # Every framework has the eager baseline, including frameworks that a package adds.
    added = [(framework, "eager", "eager:Eager") for framework in framework_entry_points()]
    return {
        (framework, name): Entry(name, framework, f"{__package__}.{reference}", "built in")
        for framework, name, reference in (*BUILTIN, *added)
    }


def _entry_points() -> list[Entry]:
    """Return the compilers of entry points; a prefix names the framework, as in `paddle.mine`."""
    entries = []
    for point in entry_points(ENTRY_POINT_GROUP):
        framework, dot, name = point.name.rpartition(".")
        origin = point.dist.name if point.dist else "entry point"
        entries.append(Entry(name, framework if dot else "torch", point.value, origin))
    return entries


def reference_of(factory: Any) -> str:
    """Return the reference to a function or class at the top of a module or script.

    Raises:
        CompilerError: It is defined elsewhere or interactively.

    >>> from graphnet_datasets.compilers.eager import Eager
    >>> reference_of(Eager)
    'graphnet_datasets.compilers.eager:Eager'
    """
    module = sys.modules.get(getattr(factory, "__module__", ""))
    name = getattr(factory, "__qualname__", "")
    # While a decorator runs, the name of the decorated object is not bound yet.
    is_top_level = name.isidentifier() and getattr(module, name, factory) is factory
    if module is None or not is_top_level:
        raise CompilerError(
            f"The compiler {factory!r} is not defined at the top level of a module, so other "
            "processes cannot import it. Move it there and register it again."
        )
    path = getattr(module, "__file__", None)
    if module.__name__ != "__main__" and (
        path is None or _is_found(module.__name__.partition(".")[0])
    ):
        return f"{module.__name__}:{name}"
    if path is None:
        raise CompilerError(
            f"The compiler `{name}` was defined interactively, so worker processes cannot import "
            "it. Write it into a file and import it from there."
        )
    return f"{Path(path).resolve()}:{name}"


def import_reference(
    reference: str, *, kind: str = "compiler", error_type: type[GraphNetError] = CompilerError
) -> Any:
    """Import the object behind `module:attribute` or `/path/to/file.py:attribute`.

    Use this only for references that the user typed or installed. Messages call the object a
    `kind`.

    Raises:
        CompilerError: The import fails; `error_type` replaces this class.
    """
    module_name, _, attribute = reference.rpartition(":")
    try:
        module = import_module_of(reference)
    except (ImportError, AttributeError, OSError, ValueError) as error:
        fix = (
            "Correct the file, or install the packages that it imports."
            if Path(module_name).is_file()
            else "Write it as `module:attribute` with a module that Python finds, or as "
            "`/path/to/file.py:attribute`."
        )
        reason = f"{type(error).__name__}: {error}".rstrip(".")
        raise error_type(f"The {kind} `{reference}` cannot be imported: {reason}. {fix}") from error
    try:
        return getattr(module, attribute)
    except AttributeError as error:
        names = [name for name in vars(module) if not name.startswith("_")]
        raise error_type(
            f"The {kind} `{reference}` cannot be imported: `{module_name}` has no `{attribute}`."
            f"{did_you_mean(attribute, names)} Check the name after the colon."
        ) from error


def import_module_of(reference: str) -> Any:
    """Import the module or file of `module:attribute` or `/path/to/file.py:attribute`."""
    module_name = reference.rpartition(":")[0]
    if module_name.endswith(".py"):
        return _import_file(Path(module_name))
    return importlib.import_module(module_name)


def _import_file(path: Path) -> Any:
    """Import a file and let it import from its own directory, as if Python ran it as a script.

    A file in a package is imported as a module of that package.
    """
    path = path.resolve()
    base = directory_of_package(path)
    if str(base) not in sys.path:
        sys.path.append(str(base))  # last, so that installed packages take precedence
    if base != path.parent:
        name = ".".join(path.with_suffix("").relative_to(base).parts)
        module_spec = importlib.util.find_spec(name)
        if (
            module_spec is not None
            and module_spec.origin
            and Path(module_spec.origin).resolve() == path
        ):
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


def _as_compiler(target: Any, name: str, framework: str) -> type[Compiler]:
    if inspect.isclass(target) and issubclass(target, Compiler):
        return target
    if inspect.isfunction(target):
        return _compiler_of_function(target, name, framework)
    raise CompilerError(
        f"The compiler `{name}` is {target!r}, which is neither a subclass of "
        "`graphnet_datasets.compilers.Compiler` nor a function."
    )


def _compiler_of_function(
    function: Callable[..., Any], compiler_name: str, compiler_framework: str
) -> type[Compiler]:
    class FunctionCompiler(Compiler):
        """A compiler that calls a function of the module, the example inputs and options."""

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
