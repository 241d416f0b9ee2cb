"""What a pip user gets: the wheel alone, in an empty environment, with no checkout near."""

from __future__ import annotations

import subprocess
import sys
import venv
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
LOAD_STARTER = """
import graphnet_datasets, sys
from pathlib import Path
assert "torch" not in sys.modules
rows = graphnet_datasets.load_dataset("graphnet", "cv")["train"]
sample = graphnet_datasets.Sample.from_row(rows[0])
module = graphnet_datasets.materialize
print(len(rows), sample.id, Path(graphnet_datasets.metric_path("speedup_score")).is_dir())
"""


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("wheel")
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


def test_the_wheel_loads_the_embedded_dataset_in_an_empty_environment(
    wheel: Path, tmp_path: Path
) -> None:
    venv.create(tmp_path / "env", with_pip=True)
    python = tmp_path / "env" / "bin" / "python"
    subprocess.run(
        [
            *(str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"),
            *("--constraint", str(ROOT / "constraints.txt"), f"{wheel}[torch]"),
        ],
        check=True,
    )
    result = subprocess.run(
        [str(python), "-c", LOAD_STARTER], check=True, capture_output=True, text=True, cwd=tmp_path
    )
    count, sample_id, has_metric = result.stdout.split()
    assert int(count) >= 10
    assert "/" in sample_id
    assert has_metric == "True"
