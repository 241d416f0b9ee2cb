"""Objects of other packages, and the library without the two packages that it registers itself."""

from __future__ import annotations

import configparser
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest

from graphnet_datasets import plugins
from graphnet_datasets.schema import CONFIGS, TABLES
from graphnet_datasets.schema.tables import CONFIG_GROUP

from .distributions import write_distribution
from .tables import write_dataset

ROOT = Path(__file__).resolve().parents[1]
REMOVED = ("tensor_comprehensions", "tuning")


def test_an_entry_point_that_cannot_be_imported_is_ignored_with_a_warning(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_distribution(tmp_path, "broken-package", "some.group", {"broken": "no_such_module:x"})
    monkeypatch.syspath_prepend(tmp_path)

    with pytest.warns(UserWarning, match=r"`broken` .* Update or uninstall .* `broken-package`"):
        assert list(plugins.load_all("some.group")) == []


def test_a_registry_finds_its_own_names_without_plugins() -> None:
    def find_more() -> dict[str, int]:
        calls.append(1)
        return {"own": 9, "added": 3}

    calls: list[int] = []
    registry = plugins.Registry({"own": 1}, find_more)

    assert registry["own"] == 1 and "own" in registry and not calls
    assert registry.get("missing") is None and calls == [1]
    assert dict(registry) == {"own": 1, "added": 3} and len(registry) == 2 and calls == [1]
    registry["own"] = 5
    del registry["added"]
    assert dict(registry) == {"own": 5}


def test_a_package_adds_a_table_and_a_command(tmp_path: Path) -> None:
    (tmp_path / "my_tables.py").write_text(
        "import pyarrow as pa, typer\n"
        "from graphnet_datasets.schema import Column, Config, Table\n"
        "columns = (Column('schema_version', pa.int32(), 'version of the format'),\n"
        "           Column('note_id', pa.string(), 'name of the note'))\n"
        "scalars = ('schema_version', 'note_id')\n"
        "NOTES = Table('notes', 'notes', columns, 'note_id', 'note_id', scalars)\n"
        "CONFIGS = [Config('notes', NOTES, 'my notes'), Config('runs', NOTES, 'not used')]\n"
        "app = typer.Typer()\n"
        "@app.command('note')\n"
        "def note() -> None:\n"
        "    from graphnet_datasets.schema import CONFIGS\n"
        "    print(CONFIGS['notes'].description, CONFIGS['runs'].table.name)\n"
        "@app.command('list')\n"
        "def replaced() -> None: ...\n"
        "APPS = [app]\n"
    )
    groups = {CONFIG_GROUP: "my_tables:CONFIGS", "graphnet_datasets.commands": "my_tables:APPS"}
    for number, (group, value) in enumerate(groups.items()):
        write_distribution(tmp_path, f"my-notes-{number}", group, {"notes": value})

    assert _graphnet(tmp_path, "note") == "my notes runs\n"
    assert "List the graphs" in _graphnet(tmp_path, "list", "--help")


@pytest.fixture(scope="module")
def bare_library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a copy of the library without `REMOVED` and their entry points."""
    place = tmp_path_factory.mktemp("bare")
    package = place / "graphnet_datasets"
    left_out = shutil.ignore_patterns(*REMOVED, "starter", "__pycache__")
    shutil.copytree(ROOT / "graphnet_datasets", package, ignore=left_out)
    (package / "starter").symlink_to(ROOT / "graphnet_datasets" / "starter")
    setup = configparser.ConfigParser()
    setup.read(ROOT / "setup.cfg")
    lines = []
    for group, text in setup["options.entry_points"].items():
        own = [line for line in text.splitlines() if not any(name in line for name in REMOVED)]
        lines += [f"[{group}]", *own]
    info = place / "graphnet_datasets-0.1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(
        "Metadata-Version: 2.1\nName: graphnet-datasets\nVersion: 0.1.0\n"
    )
    (info / "entry_points.txt").write_text("\n".join(lines))
    return place


def test_the_library_works_without_tensor_comprehensions_and_tuners(
    bare_library: Path, tmp_path: Path
) -> None:
    dataset = write_dataset(tmp_path / "dataset")

    verbs = _graphnet(bare_library, "--help")

    assert " doctor " in verbs and " tune " not in verbs and " tc " not in verbs
    assert "matmul" not in _graphnet(bare_library, "list", "cv", "--max-ops", "3")
    assert "onnxruntime" in _graphnet(bare_library, "compilers")
    assert "chain-2" in _graphnet(bare_library, "show", "cv/chain-2", "--dataset", str(dataset))


@pytest.mark.torch
def test_runs_need_neither_tensor_comprehensions_nor_tuners(
    bare_library: Path, tmp_path: Path
) -> None:
    dataset = write_dataset(tmp_path / "dataset")
    quick = ["--budget", "0.05", "--threads", "1", "--no-oracle", "--no-kernels"]

    output = _graphnet(
        bare_library,
        *("run", "cv/chain-2", "--dataset", str(dataset), "--compiler", "torchscript"),
        *("--out", str(tmp_path / "runs"), *quick),
    )

    assert "Speedups over eager" in output and "cv/chain-2" in output
    assert "torchscript" in _graphnet(bare_library, "score", str(tmp_path / "runs"))


def test_the_packages_of_the_library_are_registered_like_others() -> None:
    assert TABLES["tc_cache"].schema.field("median_ms").type == pa.float64()
    assert CONFIGS["tuning_tasks"].table is TABLES["tuning_tasks"]
    assert {"tc_cache", "tuning_tasks", "tuning_records"} <= set(CONFIGS)


def _graphnet(path: Path, *arguments: str) -> str:
    """Run the command line with `path` before all others, and return its output."""
    done = subprocess.run(
        [sys.executable, "-P", "-m", "graphnet_datasets", *arguments],
        env=os.environ | {"PYTHONPATH": str(path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout
