"""Modules, attributes, files, links and terms that the pages name exist."""

from __future__ import annotations

import importlib
import json
import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "graphnet_datasets"
PAGES = [
    ROOT / "README.md",
    ROOT / "CONTRIBUTING.md",
    ROOT / "CHANGELOG.md",
    *sorted(p for p in (ROOT / "docs").rglob("*.md") if "generated" not in p.parts),
]
FOLDERS = (
    ROOT, PACKAGE, PACKAGE / "frameworks", PACKAGE / "frameworks" / "torch",
    PACKAGE / "frameworks" / "paddle", PACKAGE / "tensor_comprehensions",
)  # fmt: skip
"""Folders that paths on a page may be relative to."""
EXAMPLES = {"path/to/file.py", "doctor/ids.txt"}

NAME = re.compile(r"\bgraphnet_datasets(?:\.[A-Za-z_]\w*)+")
FILE = re.compile(r"(?<![\w./:-])\w+(?:/[\w.-]+)+\.(?:py|md|txt|json|cfg)\b")


def find(name: str) -> Any:
    """Return the object with a dotted name, or None."""
    parts = name.split(".")
    for number in range(len(parts), 0, -1):
        try:
            target: Any = importlib.import_module(".".join(parts[:number]))
        except ModuleNotFoundError:
            continue
        for part in parts[number:]:
            target = getattr(target, part, None)
        return target
    return None


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_names_on_a_page_exist(page: Path) -> None:
    text = page.read_text()
    kinds = ("frameworks", "compilers", "tuners", "allocators", "configs", "commands", "kernels")
    groups = {f"graphnet_datasets.{kind}" for kind in (*kinds, "tuning_languages")}  # entry points
    lacking = [name for name in {*NAME.findall(text)} - groups if find(name) is None]
    paths = {*FILE.findall(text)} - EXAMPLES
    lacking += [
        path
        for path in paths
        if not any((folder / path).exists() for folder in (*FOLDERS, page.parent))
    ]
    assert sorted(lacking) == []


def anchors(page: Path) -> set[str]:
    """Return the anchors of a page's headings, as GitHub forms them."""
    headings = re.findall(r"^#+ (.+)$", page.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_of_a_page_have_targets(page: Path) -> None:
    text = re.sub(r"```.*?```", "", page.read_text(), flags=re.DOTALL)
    broken = []
    for link in re.findall(r"\]\((?!https?:)([^)\s]+)\)", text):
        path, _, anchor = link.partition("#")
        target = page.parent / path if path else page
        if not target.exists() or (anchor and anchor not in anchors(target)):
            broken.append(link)
    assert broken == []


def test_the_glossary_lists_the_columns_of_verdicts() -> None:
    from graphnet_datasets.schema import CONFIGS

    page = (ROOT / "docs" / "glossary.md").read_text()
    terms = re.findall(r"^\| ([^|]+) \|", page, re.MULTILINE)
    names = {name for term in terms for name in re.findall(r"`(\w+)`", term)}
    assert {"sole_op", "fusible", "typical"} <= names & set(CONFIGS)
    assert {"min_t", "null_t", "stale_t", "eager_t", "determinism_t"} <= names


@pytest.fixture
def gallery(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(ROOT / "docs")
    return importlib.import_module("gallery")


def test_the_gallery_draws_pictures_by_their_commands(gallery: ModuleType, tmp_path: Path) -> None:
    titles = {"A graph", "A failing part of a graph"}
    pictures = [picture for picture in gallery.PICTURES if picture.title in titles]
    page = gallery.make_gallery(tmp_path / "gallery", pictures)
    assert [path.name for path in sorted((tmp_path / "gallery").iterdir())] == [
        "distilbert.svg", "minimal.svg",
    ]  # fmt: skip
    assert "$ graphnet show transformers/distilbert-base --svg distilbert.svg" in page
    assert "![A graph](gallery/distilbert.svg)" in page


def test_a_picture_that_is_not_written_is_an_error(gallery: ModuleType, tmp_path: Path) -> None:
    picture = gallery.Picture("None", "", lambda: None, ("missing.svg",))
    with pytest.raises(RuntimeError, match=r"does not write `missing\.svg`"):
        gallery.make_gallery(tmp_path / "gallery", [picture])


def test_measurements_name_figures_and_commands() -> None:
    for path in (ROOT / "docs" / "measurements").glob("*.json"):
        data = json.loads(path.read_text())
        assert path.stem == data["date"]
        assert all(figure["values"] and figure["command"] for figure in data["figures"])
        scripts = [
            word for figure in data["figures"] for word in figure["command"].split()
            if word.startswith("benchmarks/")
        ]  # fmt: skip
        assert [script for script in scripts if not (ROOT / script).exists()] == []


def test_the_long_description_has_absolute_links() -> None:
    process = subprocess.run(
        [sys.executable, "setup.py", "--quiet", "--long-description"],
        cwd=ROOT,
        check=True,
        capture_output=True,
        text=True,
    )
    readme = (ROOT / "README.md").read_text()
    links = re.findall(r"\]\(([^)]+)\)", process.stdout)
    assert [link for link in links if not link.startswith(("https://", "#"))] == []
    assert len(process.stdout) > len(readme) / 2
    inside = re.findall(r"\]\((?!https?:)([^)]+)\)", readme)
    assert [path for path in inside if not (ROOT / path).exists()] == []


@pytest.mark.slow
def test_the_site_is_built_without_a_warning(tmp_path: Path) -> None:
    pytest.importorskip("sphinx")
    command = [sys.executable, "-m", "sphinx", "--quiet", "--fail-on-warning", "docs", tmp_path]
    subprocess.run(command, cwd=ROOT, check=True)
    pages = {
        "api/graphnet_datasets": (
            "graphnet_datasets.load_dataset",
            "graphnet_datasets.materialize",
        ),
        "columns": ("<h2>", "num_varied_recompilations"),
        "operators": ("gelu",),
        "command_line": ("graphnet run",),
    }
    for name, texts in pages.items():
        html = (tmp_path / "generated" / f"{name}.html").read_text()
        assert [text for text in texts if text not in html] == []
