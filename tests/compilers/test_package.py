"""The example of a compiler in a package of its own, installed and used as a user would."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from graphnet_datasets.benchmark import read_runs
from tests.benchmark.samples import LINEAR
from tests.tables import write_table

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Install the package into a folder and return the environment in which Python finds it."""
    pytest.importorskip("setuptools", reason="setuptools is not installed")
    folder = tmp_path_factory.mktemp("package")
    source = shutil.copytree(ROOT / "examples" / "compiler_package", folder / "source")
    subprocess.run(
        [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-build-isolation",
         "--no-index", "--disable-pip-version-check", "--target", folder / "installed", source],
        check=True,
    )  # fmt: skip
    return os.environ | {"PYTHONPATH": os.pathsep.join([str(folder / "installed"), str(ROOT)])}


def graphnet(environment: dict[str, str], *arguments: object) -> str:
    result = subprocess.run(
        [sys.executable, "-m", "graphnet_datasets", *map(str, arguments)],
        env=environment,
        capture_output=True,
        text=True,
    )
    assert result.returncode == 0, result.stderr
    return result.stdout


@pytest.mark.slow
def test_it_is_listed_with_its_version_and_where_it_comes_from(installed: dict[str, str]) -> None:
    rows = json.loads(graphnet(installed, "compilers", "--json"))
    (row,) = [row for row in rows if row["name"] == "inference-mode"]
    assert row["is_available"], row["reason"]
    assert (row["version"], row["origin"]) == ("0.1.0", "graphnet-inference-mode")
    assert row["options"]["channels_last"]["default"] is False


def test_it_runs_by_its_name(installed: dict[str, str], tmp_path: Path) -> None:
    table = write_table([LINEAR], tmp_path / "one.parquet")
    graphnet(
        installed, "--quiet", "run", table, "--compiler", "inference-mode", "--option",
        "channels_last=true", "--out", tmp_path / "runs", "--threads", 1, "--budget", 0.1,
    )  # fmt: skip
    (record,) = read_runs(tmp_path / "runs").to_pylist()
    assert (record["status"], record["compiler"]) == ("ok", "inference-mode")
    assert record["compiler_version"] == "0.1.0"
    assert json.loads(record["compiler_options"]) == {"channels_last": True}
