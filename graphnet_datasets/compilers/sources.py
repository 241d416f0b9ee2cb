"""Hashes of a compiler's source: its file and the neighbouring files that it imports.

During development a compiler changes without a new name or version, so its source tells results of
the old code from results of the new code. Import statements are read, not executed, so that the
hash depends only on the files. Other packages are identified by their versions.
"""

from __future__ import annotations

import ast
import hashlib
import importlib.machinery
import importlib.util
import sys
from collections.abc import Iterator
from pathlib import Path

_MOST_FILES = 10_000


def source_hash(reference: str) -> str:
    """Return a hash of the source behind `module:attribute` or `/path/to/file.py:attribute`.

    For a module, the hash covers the module, its parent packages and everything that they import
    from the same top-level package, at any depth and also within functions. For a file, it covers
    imports from the file's directory. A file in a package is hashed as a module of that package,
    because the reference to it depends on how the program was started. Compiled extension modules
    contribute their bytes. Returns "" if there are no files, as for a module in an archive.

    >>> source_hash("graphnet_datasets.compilers.sources:source_hash") == source_hash(
    ...     "graphnet_datasets.compilers.sources:_find"
    ... )
    True
    """
    module, _, _ = reference.rpartition(":")
    files: dict[str, bytes] = {}
    if module.endswith(".py"):
        path = Path(module).absolute()
        root, base = path.parent, directory_of_package(path)
        name = ".".join(path.with_suffix("").relative_to(base).parts)
        top = name.partition(".")[0] if base != root else None
        pending = [(name, path)] if top is None else list(_with_parents(name, base))
    else:
        top = module.partition(".")[0]
        root = base = None
        pending = list(_with_parents(module))
    while pending and len(files) < _MOST_FILES:
        name, path = pending.pop()
        if name in files:
            continue
        try:
            files[name] = path.read_bytes()
        except OSError:
            continue
        if path.suffix != ".py":
            continue
        package = name if path.name == "__init__.py" else name.rpartition(".")[0]
        for imported in _imports(files[name], package):
            if top is not None and imported.partition(".")[0] == top:
                pending.extend(_with_parents(imported, base))
            elif root is not None and (imported_path := _beside(root, imported)) is not None:
                pending.append((imported, imported_path))
    if not files:
        return ""
    digest = hashlib.blake2b(digest_size=8)
    for name in sorted(files):
        digest.update(f"{name}\0{len(files[name])}\0".encode() + files[name])
    return digest.hexdigest()


def directory_of_package(path: Path) -> Path:
    """Return the directory that contains the outermost package around a file, or the file's own."""
    base = path.parent
    while base != base.parent and (base / "__init__.py").is_file():
        base = base.parent
    return base


def _with_parents(module: str, base: Path | None = None) -> Iterator[tuple[str, Path]]:
    """Yield a module and its parent packages, each with its file, found below `base`."""
    parts = module.split(".")
    for length in range(1, len(parts) + 1):
        name = ".".join(parts[:length])
        path = _find(name) if base is None else _beside(base, name)
        if path is not None:
            yield name, path


def _find(module: str) -> Path | None:
    """Return the file of a module without importing the module or its parent packages."""
    places = None
    spec = None
    parts = module.split(".")
    for length in range(1, len(parts) + 1):
        name = ".".join(parts[:length])
        loaded = sys.modules.get(name)
        spec = getattr(loaded, "__spec__", None)
        if length > 1 and places is None:
            return None  # an attribute; `places=None` would search all of sys.path
        if spec is None:
            try:
                spec = importlib.machinery.PathFinder.find_spec(name, places)
                if spec is None and length == 1:
                    spec = importlib.util.find_spec(name)  # handles editable installs
            except (ImportError, KeyError, ValueError):
                return None  # KeyError: a namespace package whose parent is not imported
        if spec is None:
            return None
        places = spec.submodule_search_locations
    origin = None if spec is None else spec.origin
    return Path(origin) if origin is not None and Path(origin).is_file() else None


def _beside(root: Path, module: str) -> Path | None:
    """Return the file of a module in the directory `root`."""
    place = root.joinpath(*module.split("."))
    for path in (place.with_suffix(".py"), place / "__init__.py"):
        if path.is_file():
            return path
    return None


def _imports(source: bytes, package: str) -> Iterator[str]:
    """Yield the absolute names that a module imports, including names that may be submodules."""
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError):
        return
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield alias.name
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                parts = package.split(".") if package else []
                parts = parts[: len(parts) - node.level + 1]
                base = ".".join([*parts, *([base] if base else [])])
            if base:
                yield base
            for alias in node.names:
                if alias.name != "*":
                    yield f"{base}.{alias.name}" if base else alias.name
