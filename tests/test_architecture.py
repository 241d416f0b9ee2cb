"""The order of the packages: a package imports only packages before it."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[1] / "graphnet_datasets"

ORDER = [
    {
        "version",
        "atomic",
        "collector",
        "credentials",
        "parquet_pages",
        "decoding",
        "arrow_messages",
        "errors",
        "paths",
        "json_text",
        "lazy_names",
        "plugins",
        "suggestions",
        "terminal",
        "user_cache",
        "verbosity",
        "operators",
        "sample",
    },
    {"schema", "inputs", "isolation"},
    {"frameworks"},
    {"analysis", "directory", "transforms"},
    {"storage", "validation", "extraction"},
    {"timing"},
    {"compilers"},
    {"scores"},
    {"benchmark"},
    {"kernels", "conversion"},
    {"report"},
    {"bisection", "subsets"},
    {"diagnosis"},
    {"hub"},
    {"cli", "__main__"},
    # These register their tables and commands as another package would.
    {"tensor_comprehensions", "tuning"},
    {"learning"},
]
RANK = {package: rank for rank, packages in enumerate(ORDER) for package in packages}
CONVENIENCES = {("sample", "schema"), ("sample", "frameworks"), ("sample", "report")}
"""`Sample.from_row`, `to_row`, `to_source` and a notebook's picture import theirs when called."""

MODULES = sorted(PACKAGE.rglob("*.py"))


def imported_modules(path: Path) -> list[str]:
    """Return the dotted names inside this package that a module imports, relative to it."""
    package = [*path.relative_to(PACKAGE).parts[:-1]]
    names = []
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom):
            if node.level:
                base = package[: len(package) - node.level + 1]
                tail = [node.module] if node.module else [alias.name for alias in node.names]
                names += [".".join([*base, name]) for name in tail]
            elif node.module and node.module.split(".")[0] == PACKAGE.name:
                names.append(node.module.partition(".")[2] or node.names[0].name)
        elif isinstance(node, ast.Import):
            names += [
                alias.name.partition(".")[2]
                for alias in node.names
                if alias.name.split(".")[0] == PACKAGE.name
            ]
    return [name for name in names if name]


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_module_imports_only_rooms_before_its_own(path: Path) -> None:
    package = path.relative_to(PACKAGE).parts[0].removesuffix(".py")
    if package == "__init__":
        pytest.skip("the package's front door names every package; it imports them lazily")
    assert package in RANK, f"The package `{package}` has no place in the order; add it to ORDER."
    for name in imported_modules(path):
        target = name.split(".")[0]
        if target == package or (package, target) in CONVENIENCES:
            continue
        assert RANK.get(target, 99) < RANK[package] or (
            target in ORDER[RANK[package]] and package not in ("frameworks",)
        ), f"`{path.relative_to(PACKAGE)}` imports `{name}`, which stands after `{package}`."


FREE_OF_FRAMEWORKS = ("sample", "schema", "operators", "inputs", "timing", "benchmark/judging")
"""Packages that reach a framework only through the modules of its contract."""


@pytest.mark.parametrize("package", FREE_OF_FRAMEWORKS)
def test_no_import_of_a_framework_is_in_a_core_package(package: str) -> None:
    for path in sorted((PACKAGE / package).rglob("*.py")):
        imported = [
            name
            for node in ast.walk(ast.parse(path.read_text()))
            for name in (
                [alias.name for alias in node.names]
                if isinstance(node, ast.Import)
                else [node.module or ""]
                if isinstance(node, ast.ImportFrom) and not node.level
                else []
            )
        ]
        assert not {"torch", "paddle"} & {name.partition(".")[0] for name in imported}, path
        own = [name for name in imported_modules(path) if name.startswith("frameworks.")]
        backends = ("frameworks.torch", "frameworks.paddle")
        assert not [name for name in own if name.startswith(backends)], path


@pytest.mark.parametrize("framework", ["torch", "paddle"])
def test_the_frameworks_never_import_each_other(framework: str) -> None:
    other = {"torch": "paddle", "paddle": "torch"}[framework]
    for path in sorted((PACKAGE / "frameworks" / framework).rglob("*.py")):
        for name in imported_modules(path):
            assert not name.startswith(f"frameworks.{other}"), f"{path.name} imports {name}"


def test_the_language_of_tensor_comprehensions_needs_only_errors() -> None:
    package = PACKAGE / "tensor_comprehensions" / "language"
    for path in sorted(package.rglob("*.py")):
        for name in imported_modules(path):
            is_own = name.startswith("tensor_comprehensions.language")
            assert is_own or name.split(".")[0] == "errors", f"{path.name} imports {name}"


def test_scores_need_only_the_schema() -> None:
    for path in sorted((PACKAGE / "scores").rglob("*.py")):
        packages = {name.split(".")[0] for name in imported_modules(path)}
        assert packages <= {
            "scores",
            "schema",
            "errors",
            "decoding",
            "json_text",
            "lazy_names",
            "plugins",
            "terminal",
            "version",
        }, f"{path.name} imports {packages}"


def test_files_are_put_into_their_place_by_one_module() -> None:
    """`atomic` writes under another name and renames; whole sample directories have their own.

    `cleaning` renames directories to remove them.
    """
    own = {"atomic.py", "directory/writing.py", "directory/tree.py", "isolation/cleaning.py"}
    others = {
        str(path.relative_to(PACKAGE)): path.read_text()
        for path in MODULES
        if str(path.relative_to(PACKAGE)) not in own
    }
    found = {
        name: word
        for name, text in others.items()
        for word in ("mkstemp", "NamedTemporaryFile", ".rename(", "os.replace", "shutil.move")
        if any(word in line for line in text.splitlines() if not line.lstrip().startswith(">>>"))
    }
    assert found == {}


def test_the_page_on_the_architecture_names_every_package() -> None:
    page = (PACKAGE.parent / "docs" / "architecture.md").read_text()
    packages = {path.relative_to(PACKAGE).parts[0] for path in MODULES} - {"__init__.py"}
    missing = [
        package
        for package in sorted(packages)
        if f"`{package}`" not in page and f"`{package}/`" not in page and package != "__main__.py"
    ]
    assert missing == []
