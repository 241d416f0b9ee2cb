"""Each documented form of `--compiler`, from a folder that the worker processes do not work in."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from graphnet_datasets.benchmark import read_runs
from graphnet_datasets.compilers import resolve_name
from graphnet_datasets.compilers.registry import ENTRY_POINT_GROUP
from graphnet_datasets.errors import CompilerError
from tests.distributions import write_distribution
from tests.tables import write_dataset

pytest.importorskip("torch", reason="torch is not installed")

GRAPHNET = Path(sys.executable).with_name("graphnet")
ROOT = Path(__file__).parents[2]
SOURCE = """
from {helper} import NAME
from graphnet_datasets.compilers import Compiler

class Mine(Compiler):
    name = NAME

    def compile(self, module, example_inputs):
        return module

def function(module, example_inputs):
    return module
"""
FORMS = {
    "a path": "deep/mine.py:Mine",
    "a path with a dot": "./deep/mine.py:Mine",
    "a path above": "../here/deep/mine.py:function",
    "an absolute path": "{here}/deep/mine.py:function",
    "a path in the home": "~/deep/mine.py:Mine",
    "a module here": "beside:Mine",
    "a module of a package here": "package.module:Mine",
    "a path into a package": "package/module.py:Mine",
    "a module that is installed": "installed_example.module:Mine",
    "an entry point": "from-entry-point",
    "the example": f"{ROOT}/examples/add_a_compiler.py:ChannelsLast",
}


@pytest.fixture(scope="module")
def here(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with compilers in files, in packages and in one that is installed."""
    top = tmp_path_factory.mktemp("top")
    here = top / "here"
    site = top / "site"
    for folder in (here / "deep", here / "package", site / "installed_example"):
        folder.mkdir(parents=True)
    # What a compiler's file imports from beside it has to be found too.
    for path, helper in (
        (here / "deep" / "mine.py", "names_of_deep"),
        (here / "beside.py", "names_of_here"),
        (here / "package" / "module.py", ".names"),
        (site / "installed_example" / "module.py", "installed_example.names"),
    ):
        path.write_text(SOURCE.format(helper=helper))
    (here / "package" / "__init__.py").touch()
    (site / "installed_example" / "__init__.py").touch()
    for path in (
        *(here / "deep" / "names_of_deep.py", here / "names_of_here.py"),
        *(here / "package" / "names.py", site / "installed_example" / "names.py"),
    ):
        path.write_text('NAME = "mine"\n')
    entry_points = {"from-entry-point": "installed_example.module:Mine"}
    write_distribution(site, "installed-example", ENTRY_POINT_GROUP, entry_points)
    write_dataset(here / "dataset")
    return here


@pytest.mark.slow
def test_runs_find_the_compiler(here: Path, tmp_path: Path) -> None:
    environment = os.environ | {"PYTHONPATH": str(here.parent / "site"), "HOME": str(here)}
    named = [form.format(here=here) for form in FORMS.values()]
    command = (
        *("--quiet", "run", "cv/chain-2", "--dataset", "./dataset"),
        *(word for name in named for word in ("--compiler", name)),
        *("--budget", "0.05", "--threads", "1", "--memory-limit", "2", "--no-oracle"),
        *("--no-kernels", "--out", str(tmp_path / "runs")),
    )
    done = subprocess.run(
        [str(GRAPHNET), *command], cwd=here, env=environment, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    runs = read_runs(tmp_path / "runs").to_pylist()
    assert {(run["status"], run["error_message"]) for run in runs} == {("ok", None)}
    # Forms that name the same code are one run.
    assert len({run["compiler_source"] for run in runs}) == 5


def test_every_form_is_the_same_from_any_folder(
    here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(here)
    monkeypatch.setenv("HOME", str(here))
    monkeypatch.syspath_prepend(str(here.parent / "site"))
    resolved = {form: resolve_name(name.format(here=here)) for form, name in FORMS.items()}
    monkeypatch.chdir("/")
    for form, name in resolved.items():
        assert resolve_name(name) == name, form
        path = Path(name.rpartition(":")[0])
        assert path.suffix != ".py" or (path.is_absolute() and path.is_file())
    assert resolved["a path"] == resolved["a path in the home"] == f"{here}/deep/mine.py:Mine"
    assert resolved["a module of a package here"] == f"{here}/package/module.py:Mine"
    assert resolved["a module that is installed"] == "installed_example.module:Mine"
    assert resolved["an entry point"] == "from-entry-point"
    with pytest.raises(CompilerError, match="There is no file"):
        resolve_name("other.py:Mine")
