"""What the pages name is there: modules, attributes and files."""

from __future__ import annotations

import importlib
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "graphnet_datasets"
PAGES = [
    ROOT / "README.md",
    ROOT / "CONTRIBUTING.md",
    ROOT / "CHANGELOG.md",
    *sorted((ROOT / "docs").glob("*.md")),
]
FOLDERS = (
    ROOT, PACKAGE, PACKAGE / "frameworks", PACKAGE / "frameworks" / "torch",
    PACKAGE / "frameworks" / "paddle", PACKAGE / "tensor_comprehensions",
)  # fmt: skip
"""Where a path on a page may begin."""
EXAMPLES = {"path/to/file.py"}

NAME = re.compile(r"\bgraphnet_datasets(?:\.[A-Za-z_]\w*)+")
FILE = re.compile(r"(?<![\w./:-])\w+(?:/[\w.-]+)+\.(?:py|md|txt|json|cfg)\b")


def find(name: str) -> Any:
    """Return what a dotted name stands for, None if nothing."""
    parts = name.split(".")
    for number in range(len(parts), 0, -1):
        try:
            found: Any = importlib.import_module(".".join(parts[:number]))
        except ModuleNotFoundError:
            continue
        for part in parts[number:]:
            found = getattr(found, part, None)
        return found
    return None


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_a_page_names_what_there_is(page: Path) -> None:
    text = page.read_text()
    kinds = ("frameworks", "compilers", "tuners", "allocators")
    groups = {f"graphnet_datasets.{kind}" for kind in kinds}  # of entry points
    lacking = [name for name in {*NAME.findall(text)} - groups if find(name) is None]
    paths = {*FILE.findall(text)} - EXAMPLES
    lacking += [
        path
        for path in paths
        if not any((each / path).exists() for each in (*FOLDERS, page.parent))
    ]
    assert sorted(lacking) == []


def test_the_page_of_the_package_has_no_link_beside_itself() -> None:
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
