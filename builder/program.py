"""The source files that determine a captured row: the modules that its worker imports.

Nothing is imported to find them: imports are parsed from the source, including imports within
functions, and followed through this package and the library.
"""

from __future__ import annotations

import ast
import functools
from collections.abc import Iterator
from pathlib import Path

import graphnet_datasets

ROOTS = {
    "graphnet_datasets": Path(graphnet_datasets.__file__).parent,
    "builder": Path(__file__).parent,
}


@functools.cache
def files_behind(worker: str, framework: str, without: tuple[str, ...] = ()) -> tuple[Path, ...]:
    """Return the files that a worker imports, directly or not, sorted, itself included.

    All modules of the framework are included, because they are imported by name at run time.
    Modules whose names begin with one of `without` are excluded.
    """
    pending = [worker, *_modules_below(f"graphnet_datasets.frameworks.{framework}")]
    reached: dict[str, Path] = {}
    while pending:
        name = pending.pop()
        path = _path_of(name)
        if name in reached or path is None or name.startswith(without):
            continue
        reached[name] = path
        if name != "graphnet_datasets":  # its `__init__` lists every package for the type checker
            pending += _imports(name, path)
    return tuple(sorted(reached.values()))


def _modules_below(package: str) -> list[str]:
    root = ROOTS["graphnet_datasets"].parent
    folder = root.joinpath(*package.split("."))
    return [
        ".".join(path.relative_to(root).with_suffix("").parts).removesuffix(".__init__")
        for path in sorted(folder.rglob("*.py"))
    ]


def _path_of(name: str) -> Path | None:
    top, *rest = name.split(".")
    if top not in ROOTS:
        return None
    base = ROOTS[top].joinpath(*rest)
    for path in (base / "__init__.py", base.with_suffix(".py")):
        if path.is_file():
            return path
    return None


def _imports(name: str, path: Path) -> Iterator[str]:
    package = name if path.name == "__init__.py" else name.rpartition(".")[0]
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            parts = package.split(".")
            base = ".".join(parts[: len(parts) - node.level + 1]) if node.level else ""
            source = ".".join(filter(None, (base, node.module or "")))
            if source == "graphnet_datasets":  # its names are imported on first use
                homes = graphnet_datasets._HOME_OF
                yield from (
                    f"{source}.{homes[alias.name]}" for alias in node.names if alias.name in homes
                )
            yield source
            yield from (f"{source}.{alias.name}" for alias in node.names)
