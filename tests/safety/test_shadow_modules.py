"""Commands import nothing from the folder that they are run in, and leave nothing elsewhere."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from graphnet_datasets.compilers.registry import resolve_name
from graphnet_datasets.directory import write_directory
from graphnet_datasets.isolation import ForkServer
from graphnet_datasets.isolation.import_path import import_path, import_variables

from ..benchmark.samples import LINEAR

PACKAGE = Path(__file__).parents[2] / "graphnet_datasets"
SHADOWS = (
    "json", "typing", "numpy", "torch", "paddle", "sitecustomize", "usercustomize", "pyarrow",
    "socket", "datasets", "tvm", "islpy", "matplotlib", "onnx", "torch_geometric", "jax",
    "evil_backend", "graphnet_datasets/__init__", "concurrent/__init__",
)  # fmt: skip
SERVERS = sorted(
    ".".join(path.relative_to(PACKAGE.parent).with_suffix("").parts)
    for path in PACKAGE.rglob("*.py")
    if re.search(r"^def work\(.*reporter", path.read_text(), re.MULTILINE)
    and path.name != "jobs.py"
)
"""Every worker module of a fork server."""
VERBS = {
    "run": "run ./samples --compiler eager --out runs",
    "validate": "validate ./samples --check runnable",
    "import": "import ./samples --out imported.parquet",
    "transform": "transform ./samples --cast float64 --out cast.parquet",
    "kernels": "kernels ./samples --compiler inductor --out kernels.parquet",
    "translate": "translate ./samples --to paddle --out paddle.parquet --check",
    "tasks": "tasks ./samples --out tasks",
    "tc compile": "tc compile add.tc --shape A=8 --shape B=8",
    "bisect": "bisect ./samples/linear --compiler wrong.py:compile --no-sizes",
    "tune": "tune ./samples --out tuned --trials 2 --tuner random",
    "tc tune": "tc tune add.tc --shape A=8 --shape B=8 --cache tuned.parquet --population 2 "
    "--generations 1",
    "check": "check ./samples/linear candidate.py",
    "convert": "convert ./samples --to networkx",
}
PLACES = ("XDG_CACHE_HOME", "TORCHINDUCTOR_CACHE_DIR", "TRITON_CACHE_DIR")
OWN_CACHE = ".cache/graphnet_datasets"
QUICK = ("run", "validate", "import", "tc compile")
FILES = {
    "add.tc": "def add(float(N) A, float(N) B) -> (C) { C(i) = A(i) + B(i) }",
    "candidate.py": "def run(x, weight):\n    return (x @ weight.T).relu()\n",
    "matplotlibrc": "backend: module://evil_backend\n",
    "wrong.py": "def compile(module, example_inputs):\n    raise RuntimeError('wrong')\n",
}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working directory, with samples and with modules that leave a mark when imported."""
    write_directory(LINEAR, tmp_path / "samples" / "linear")
    for name, text in FILES.items():
        (tmp_path / name).write_text(text)
    mark = tmp_path / "imported"
    for name in SHADOWS:
        path = tmp_path / f"{name}.py"
        path.parent.mkdir(exist_ok=True)
        path.write_text(f"open({str(mark)!r}, 'a').write({name!r} + ' ')\n")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.usefixtures("fresh_servers")
@pytest.mark.parametrize(
    "module",
    [
        pytest.param(name, marks=pytest.mark.slow if place % 4 else ())
        for place, name in enumerate(SERVERS)
    ],
)
def test_a_worker_starts_without_the_working_directory(
    module: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "path", ["", *sys.path, str(folder), "."])
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(["", ".", str(folder)]))
    with ForkServer(module, environment={"GRAPHNET_DATASETS_FRAMEWORK": "torch"}) as server:
        server.start()
    assert not (folder / "imported").exists()


@pytest.mark.parametrize(
    "verb", [pytest.param(verb, marks=() if verb in QUICK else pytest.mark.slow) for verb in VERBS]
)
def test_a_command_imports_nothing_from_the_working_directory(verb: str, folder: Path) -> None:
    command = [sys.executable, "-P", "-m", "graphnet_datasets", *VERBS[verb].split()]
    home, temporary = folder / "home", folder / "temporary"
    home.mkdir()
    temporary.mkdir()
    variables = {name: value for name, value in os.environ.items() if name not in PLACES}
    variables |= {"HOME": str(home), "TMPDIR": str(temporary)}
    done = subprocess.run(
        command, cwd=folder, env=variables, capture_output=True, text=True, check=False
    )
    assert not (folder / "imported").exists()
    assert done.returncode == 0, done.stdout + done.stderr
    # Nothing stays but the cache of this library.
    assert list(temporary.iterdir()) == []
    assert {path.relative_to(home).as_posix() for path in home.glob("*/*")} <= {OWN_CACHE}


def test_the_import_path_omits_the_working_directory(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "path", ["", ".", str(folder), "/opt/mine", *sys.path])
    assert "/opt/mine" in import_path()
    assert {"", ".", str(folder)}.isdisjoint(import_path())
    variables = import_variables({"PYTHONPATH": f":.:{folder}:/opt/mine"})
    assert variables["PYTHONPATH"] == "/opt/mine"


def test_a_compiler_beside_the_working_directory_is_named_by_its_file(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "my_compiler.py").write_text("def compile(module, example_inputs): return module\n")
    monkeypatch.setattr(sys, "path", [str(folder), *sys.path])
    assert resolve_name("my_compiler:compile") == f"{folder / 'my_compiler.py'}:compile"
