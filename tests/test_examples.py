"""What the documentation shows works when it is pasted."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

ROOT = Path(__file__).parents[1]
SCRIPTS = sorted((ROOT / "examples").glob("*.py"))


def run_python(arguments: list[str], directory: Path) -> str:
    result = subprocess.run(
        [sys.executable, *arguments],
        cwd=directory,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
    )
    assert result.returncode == 0, result.stderr
    return result.stdout


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.stem)
def test_an_example_runs(script: Path, tmp_path: Path) -> None:
    assert run_python([str(script)], tmp_path)


def test_the_python_of_the_readme_runs_when_pasted(tmp_path: Path) -> None:
    text = (ROOT / "README.md").read_text()
    blocks = re.findall(r"```python\n(.*?)```", text, flags=re.DOTALL)
    assert len(blocks) == 3
    script = tmp_path / "pasted.py"
    script.write_text("\n".join(blocks))
    printed = run_python([str(script)], tmp_path)
    assert "operators," in printed
    assert (tmp_path / "two_layers.parquet").is_file()


def test_the_notebook_runs(tmp_path: Path) -> None:
    notebook = nbformat.read(ROOT / "examples" / "quickstart.ipynb", as_version=4)
    NotebookClient(notebook, timeout=300, resources={"metadata": {"path": str(tmp_path)}}).execute()
    assert list((tmp_path / "plots").glob("*.png"))


def test_every_page_that_the_documentation_links_to_exists() -> None:
    pages = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
    for page in pages:
        for target in re.findall(r"\]\(([^)#]+)\)", page.read_text()):
            if not target.startswith(("http://", "https://")):
                assert (page.parent / target).exists(), f"{page.name} links to {target}"
