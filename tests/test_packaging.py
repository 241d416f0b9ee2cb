"""What a pip user gets: the wheel alone, in an empty environment, with no checkout near."""

from __future__ import annotations

import ast
import configparser
import email.message
import re
import subprocess
import sys
import venv
import zipfile
from pathlib import Path

import filelock
import pytest

ROOT = Path(__file__).parents[1]
LOAD_STARTER = """
import graphnet_datasets, graphnet_datasets.errors, sys
from pathlib import Path
assert "torch" not in sys.modules
of_torch = [("framework", "=", "torch")]
rows = graphnet_datasets.load_dataset("graphnet", "cv", split="train", filters=of_torch)
sample = graphnet_datasets.Sample.from_row(rows[0])
try:
    graphnet_datasets.materialize(sample)
except graphnet_datasets.errors.MissingExtraError as error:
    missing = error.extra
print(len(rows), sample.id, Path(graphnet_datasets.metric_path("speedup_score")).is_dir(), missing)
"""


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("wheel")
    # Building writes beside the sources, and workers of one run share those.
    with filelock.FileLock(tmp_path_factory.getbasetemp().parent / "wheel.lock"):
        subprocess.run(
            [sys.executable, "-m", "build", "--wheel", "--outdir", str(out), str(ROOT)],
            check=True,
            capture_output=True,
        )
    (path,) = out.glob("*.whl")
    return path


def test_the_wheel_holds_the_library_and_its_data_only(wheel: Path) -> None:
    names = zipfile.ZipFile(wheel).namelist()
    tops = {name.split("/")[0] for name in names}
    assert {top for top in tops if not top.endswith(".dist-info")} == {"graphnet_datasets"}
    for expected in (
        "graphnet_datasets/py.typed",
        "graphnet_datasets/starter/graphnet/README.md",
        "graphnet_datasets/metrics/speedup_score/speedup_score.py",
        "graphnet_datasets/metrics/error_aware_speedup_score/error_aware_speedup_score.py",
    ):
        assert expected in names
    assert any(name.startswith("graphnet_datasets/starter/graphnet/cv/") for name in names)


@pytest.mark.slow
def test_the_wheel_loads_the_embedded_dataset_in_an_empty_environment(
    wheel: Path, tmp_path: Path
) -> None:
    venv.create(tmp_path / "env", with_pip=True)
    python = tmp_path / "env" / "bin" / "python"
    subprocess.run(
        [
            *(str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"),
            *("--constraint", str(ROOT / "constraints.txt"), str(wheel)),
        ],
        check=True,
    )
    result = subprocess.run(
        [str(python), "-c", LOAD_STARTER], check=True, capture_output=True, text=True, cwd=tmp_path
    )
    count, sample_id, has_metric, missing = result.stdout.split()
    assert int(count) >= 10
    assert "/" in sample_id
    assert has_metric == "True"
    assert missing == "torch"  # the one extra that what was loaded needs to run


def metadata_of(wheel: Path) -> email.message.Message:
    with zipfile.ZipFile(wheel) as archive:
        (name,) = [each for each in archive.namelist() if each.endswith(".dist-info/METADATA")]
        return email.message_from_bytes(archive.read(name))


def test_the_readme_renders_on_the_package_index(wheel: Path) -> None:
    """PyPI resolves no relative links, and leaves out elements that it calls unsafe."""
    markdown = pytest.importorskip(
        "readme_renderer.markdown", reason="readme_renderer is not installed: it is in [dev]"
    )
    text = metadata_of(wheel).get_payload(decode=True)
    assert isinstance(text, bytes)
    page = markdown.render(text.decode())
    assert page is not None, "the renderer for Markdown is missing"
    targets = re.findall(r'(?:href|src)="([^"]*)"', page)
    relative = [each for each in targets if not each.startswith(("https://", "http://", "#"))]
    assert relative == []
    assert "<img" not in page, "a picture beside README is not on the package index"
    assert "@software{graphnet_datasets" in re.sub(r"<[^>]*>", "", page)
    assert page.count("<pre") >= 8


def test_the_metadata_of_the_wheel_lists_its_requirements(wheel: Path) -> None:
    metadata = metadata_of(wheel)
    assert metadata["Description-Content-Type"].startswith("text/markdown")
    needed = metadata.get_all("Requires-Dist", [])
    assert any(each.startswith("fsspec") for each in needed)
    assert "paddle-gpu" in metadata.get_all("Provides-Extra", [])
    assert any(each.startswith("paddlepaddle-gpu") for each in needed)


def test_every_package_that_is_imported_is_declared() -> None:
    """Third-party packages that importing or loading takes, without any extra."""
    declared = {"datasets", "fsspec", "huggingface_hub", "numpy", "psutil", "pyarrow", "rich"}
    declared |= {"tqdm", "typer", "pyyaml"}
    config = configparser.ConfigParser()
    config.read(ROOT / "setup.cfg")
    lines = config["options"]["install_requires"].split()
    written = {re.split(r"[<>=]", line)[0] for line in lines}
    assert declared <= written
    imported = set()
    for path in (ROOT / "graphnet_datasets" / "storage").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Import):
                imported |= {alias.name.split(".")[0] for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and not node.level and node.module:
                imported.add(node.module.split(".")[0])
    foreign = imported - set(sys.stdlib_module_names) - {"graphnet_datasets", "torch"}
    assert foreign <= declared | {"click", "yaml"}  # of typer and of pyyaml
