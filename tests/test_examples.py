"""What the documentation shows works when it is pasted."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest

from builder.notebooks import code_hash

ROOT = Path(__file__).parents[1]
SCRIPTS = sorted((ROOT / "examples").glob("*.py"))
SLOW = ("add_a_compiler", "compare_two_compilers")


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


@pytest.mark.parametrize(
    "script",
    [
        pytest.param(path, id=path.stem, marks=[pytest.mark.slow] if path.stem in SLOW else [])
        for path in SCRIPTS
    ],
)
def test_an_example_runs(script: Path, tmp_path: Path) -> None:
    assert run_python([str(script)], tmp_path)


@pytest.mark.slow
def test_the_python_of_the_readme_runs_when_pasted(tmp_path: Path) -> None:
    text = (ROOT / "README.md").read_text()
    blocks = re.findall(r"```python\n(.*?)```", text, flags=re.DOTALL)
    assert len(blocks) == 3
    script = tmp_path / "pasted.py"
    script.write_text("\n".join(blocks))
    printed = run_python([str(script)], tmp_path)
    assert "operators," in printed
    assert (tmp_path / "two_layers.parquet").is_file()


BISECTED = {
    "torchscript_batch_norm": ("torch", "Tensor-likes are not close!"),
    "onnxruntime_encoder_layer": ("onnxruntime", "No ONNX function found for"),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", BISECTED)
def test_a_bisected_failure_is_shown_by_its_test(name: str, tmp_path: Path) -> None:
    package, said = BISECTED[name]
    pytest.importorskip(package, reason=f"{package} is not installed")
    script = ROOT / "examples" / "bisection" / name / "test_minimal.py"
    assert "graphnet_datasets" not in script.read_text()
    ended = subprocess.run([sys.executable, script], cwd=tmp_path, capture_output=True, text=True)
    assert ended.returncode == 1
    assert said in ended.stderr


def test_every_bisected_failure_is_tested() -> None:
    folders = {path.name for path in (ROOT / "examples" / "bisection").iterdir() if path.is_dir()}
    assert folders == set(BISECTED)


NOTEBOOKS = sorted((ROOT / "examples").glob("*.ipynb"))
MIN_PICTURES = {"quickstart": 3, "tensor_comprehensions": 1, "transforms": 1, "tuning": 1}


def check_outputs(notebook: nbformat.NotebookNode, name: str) -> None:
    """Check that every cell was run, in order, without a warning, and that pictures come last."""
    cells = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert [cell.execution_count for cell in cells] == list(range(1, len(cells) + 1))
    for cell in cells:
        for output in cell.outputs:
            assert output.output_type != "error", cell.source
            assert output.get("name") != "stderr", output.text
    kinds = [set(output.get("data", {})) for output in cells[-1].outputs]
    assert sum("image/png" in kind for kind in kinds) >= MIN_PICTURES[name]
    assert any("<svg" in output.get("data", {}).get("text/html", "") for output in every(cells))


def every(cells: list[nbformat.NotebookNode]) -> list[nbformat.NotebookNode]:
    return [output for cell in cells for output in cell.outputs]


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_is_stored_with_its_outputs(path: Path) -> None:
    text = path.read_text()
    check_outputs(nbformat.reads(text, as_version=4), path.stem)
    assert str(Path.home()) not in text, "nothing tells whose machine it ran on"
    assert "/tmp/" not in text  # noqa: S108 - nor where


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_the_outputs_of_a_notebook_are_of_its_code(path: Path) -> None:
    notebook = nbformat.read(path, as_version=4)
    assert notebook.metadata.get("code_sha256") == code_hash(notebook), (
        f"The code of {path.name} changed after it was executed. Run "
        f"`python -m builder notebooks examples/{path.name}`."
    )


def test_every_page_that_the_documentation_links_to_exists() -> None:
    pages = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
    for page in pages:
        for target in re.findall(r"\]\(([^)#]+)\)", page.read_text()):
            if not target.startswith(("http://", "https://")):
                assert (page.parent / target).exists(), f"{page.name} links to {target}"
