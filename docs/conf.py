"""The configuration of Sphinx, and the pages of the reference that are generated."""

from __future__ import annotations

import itertools
import os
import re
import shutil
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

os.environ["TERM"] = "dumb"  # Typer prints its help without colours then.

sys.path.insert(0, str(Path(__file__).parent))

import typer
import typer.main
from gallery import make_gallery
from typer.cli import get_docs_for_click

import graphnet_datasets
from graphnet_datasets.cli.app import app
from graphnet_datasets.operators import FACTS, NAMESPACES, entries
from graphnet_datasets.schema import TABLES
from graphnet_datasets.schema.columns import describe_columns

DOCS = Path(__file__).parent
GENERATED = DOCS / "generated"
NOTEBOOKS = sorted((DOCS.parent / "examples").glob("*.ipynb"))
PARTS = (
    "analysis", "benchmark", "bisection", "compilers", "conversion", "directory", "errors",
    "frameworks", "hub", "inputs", "isolation", "kernels", "learning", "operators", "report",
    "sample", "schema", "scores", "storage.export", "storage.filters", "storage.importing",
    "storage.loading", "storage.selection", "storage.table", "storage.transforming", "subsets",
    "tensor_comprehensions", "timing", "transforms", "tuning", "validation",
)  # fmt: skip

project = "GraphNet Datasets"
version = release = graphnet_datasets.__version__
extensions = ["myst_nb", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "sphinx_copybutton"]
default_role = "code"  # Docstrings quote names in single backticks.
myst_heading_anchors = 4
nb_execution_mode = "off"
autodoc_member_order = "bysource"
suppress_warnings = ["ref.python"]  # Names are exported by several packages.
autodoc_default_options = {"members": True}
html_theme = "furo"
html_title = "GraphNet Datasets"
html_copy_source = False
copybutton_prompt_text = r"\$ |>>> |\.\.\. "
copybutton_prompt_is_regexp = True

COPIES = {
    "index": "README.md",
    "generated/contributing": "CONTRIBUTING.md",
    "generated/changelog": "CHANGELOG.md",
    "generated/card": "graphnet_datasets/starter/graphnet/README.md",
    "generated/examples/bisection": "examples/bisection/README.md",
    "generated/examples/compiler_package": "examples/compiler_package/README.md",
}
"""Files outside of this folder, by the page that contains them."""


def setup(application: Any) -> None:
    """Write the generated pages before Sphinx looks for its sources."""
    application.connect("config-inited", write_pages)
    application.connect("source-read", change_links)


def change_links(_application: Any, page: str, source: list[str]) -> None:
    """Insert the copied file of a page, and point links to copied files at their pages."""
    start = DOCS / page
    folder = start.parent
    if page in COPIES:
        path = DOCS.parent / COPIES[page]
        text = path.read_text(encoding="utf-8")
        if page == "generated/card":  # without the metadata for the Hub
            text = text.partition("\n---\n")[2]
        source[0] = text + source[0]
        folder = path.parent
    pages = {DOCS.parent / path: f"{name}.md" for name, path in COPIES.items()}
    pages |= {path: f"generated/examples/{path.name}" for path in NOTEBOOKS}
    pages[DOCS.parent / "examples"] = "generated/examples/index.md"

    def replace(match: re.Match[str]) -> str:
        target = (folder / match[1]).resolve()
        if target in pages:
            target = DOCS / pages[target]
        elif page not in COPIES or not target.exists():
            return match[0]
        return f"]({os.path.relpath(target, start.parent)}{match[2] or ''})"

    source[0] = re.sub(r"\]\((?!https?:|#)([^)#]+)(#[^)]*)?\)", replace, source[0])


def write_pages(_application: Any, _config: Any) -> None:
    """Write the reference and the gallery, and copy the examples beside them."""
    shutil.rmtree(GENERATED, ignore_errors=True)
    gallery = make_gallery(GENERATED / "gallery")
    names = ("graphnet_datasets", *(f"graphnet_datasets.{part}" for part in PARTS))
    pages = {f"api/{name}.md": _module_page(name) for name in names}
    pages["api/index.md"] = _index("Python", [f"{n.partition('.')[2] or n} <{n}>" for n in names])
    command = typer.main.get_command(app)
    pages["command_line.md"] = get_docs_for_click(
        obj=command, ctx=typer.Context(command), name="graphnet", title="Command line"
    )
    pages["columns.md"] = describe_tables()
    pages["operators.md"] = describe_operators()
    pages["gallery.md"] = gallery
    examples = [*(path.stem for path in NOTEBOOKS), "bisection", "compiler_package"]
    pages["examples/index.md"] = _index("Examples", examples)
    pages |= {f"{name.removeprefix('generated/')}.md": "" for name in COPIES if "/" in name}
    for path, text in pages.items():
        (GENERATED / path).parent.mkdir(parents=True, exist_ok=True)
        (GENERATED / path).write_text(text, encoding="utf-8")
    for path in NOTEBOOKS:
        shutil.copy(path, GENERATED / "examples")


def _module_page(name: str) -> str:
    # Sphinx refuses to describe a class twice, and the package `sample` describes this one.
    elsewhere = "\n   :exclude-members: Sample" if name == "graphnet_datasets" else ""
    return f"# `{name}`\n\n```{{eval-rst}}\n.. automodule:: {name}{elsewhere}\n```\n"


def _index(title: str, pages: Iterable[str]) -> str:
    return "\n".join([f"# {title}", "", "```{toctree}", *pages, "```", ""])


def describe_tables() -> str:
    """Return a page with the columns of each table.

    >>> "| `num_ops` | int32 | number of operators |" in describe_tables()
    True
    """
    lines = ["# Columns of all tables", ""]
    for table in TABLES.values():
        columns = ((f"`{name}`", *rest) for name, *rest in describe_columns(table.columns))
        lines += [f"## `{table.name}`", "", *_table(("Column", "Type", "Meaning"), columns)]
    return "\n".join(lines)


def describe_operators() -> str:
    """Return a page with a table of operators for each family, and the meaning of their facts.

    >>> "| `gelu` |" in describe_operators()
    True
    """
    lines = ["# Operators", "", "The entries of `graphnet_datasets.operators`.", ""]
    by_family = sorted(entries().values(), key=lambda entry: (entry.family, entry.name))
    for family, members in itertools.groupby(by_family, key=lambda entry: entry.family):
        rows = (
            (
                f"`{entry.name}`",
                "checked" if "checked" in entry.facts else "",
                " ".join(f for f in entry.facts if f.rstrip("*_") in NAMESPACES),
                " ".join(
                    f"`{fact}={value}`" if value else f"`{fact}`"
                    for fact, value in entry.facts.items()
                    if fact.rstrip("*_") not in {*NAMESPACES, "checked"}
                ),
            )
            for entry in members
        )
        lines += [f"## {family.replace('_', ' ').capitalize()}", ""]
        lines += _table(("Operator", "Checked", "Namespaces", "Facts"), rows)
    lines += ["## Facts", "", *_table(("Fact", "Meaning"), FACTS.items())]
    return "\n".join(lines)


def _table(header: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> Iterator[str]:
    for row in (header, ("---",) * len(header), *rows):
        yield "| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |"
    yield ""
