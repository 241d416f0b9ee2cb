"""Carried caches are linked into a run's own, and both sides have the same environment."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from graphnet_datasets.compilers.carrying import PTXAS_VARIABLE, link_files, set_environment


@pytest.fixture
def carried(tmp_path: Path) -> Path:
    place = tmp_path / "carried"
    for name in ("fxgraph/aa/key/entry", "aotautograd/key/entry"):
        (place / name).parent.mkdir(parents=True)
        (place / name).write_text("carried")
    return place


def test_files_are_linked_and_writes_do_not_reach_them(carried: Path, tmp_path: Path) -> None:
    private = tmp_path / "private"
    assert link_files(carried, private) == 2
    entry = private / "fxgraph/aa/key/entry"
    assert entry.read_text() == "carried"
    (private / "new").write_text("written")
    (private / "new").replace(entry)  # as caches write
    (private / "fxgraph/aa/key/other").write_text("written")
    assert (carried / "fxgraph/aa/key/entry").read_text() == "carried"
    assert sorted(path.name for path in (carried / "fxgraph/aa/key").iterdir()) == ["entry"]


def test_a_compiler_without_a_cache_takes_none(carried: Path, tmp_path: Path) -> None:
    pytest.importorskip("torch")
    from graphnet_datasets.compilers.eager import Eager
    from graphnet_datasets.compilers.inductor import Inductor

    assert not Eager().carry_caches(carried, tmp_path / "eager")
    assert Inductor().carry_caches(carried, tmp_path / "inductor")
    assert (tmp_path / "inductor/inductor/aotautograd/key/entry").is_file()


def test_the_variable_of_the_caller_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(PTXAS_VARIABLE, "/opt/ptxas")
    environment: dict[str, str] = {}
    set_environment(environment)
    assert environment["TORCHINDUCTOR_COMPILE_THREADS"] == "1"
    assert environment.get(PTXAS_VARIABLE) in (None, "/opt/ptxas")


def test_the_assembler_of_torch_is_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = tmp_path / "torch"
    (package / "bin").mkdir(parents=True)
    (package / "__init__.py").touch()
    ptxas = package / "bin" / "ptxas"
    ptxas.touch(0o755)
    spec = type("Spec", (), {"origin": str(package / "__init__.py")})
    monkeypatch.delenv(PTXAS_VARIABLE, raising=False)
    monkeypatch.setattr("importlib.util.find_spec", lambda _: spec)
    environment: dict[str, str] = {}
    set_environment(environment)
    assert environment[PTXAS_VARIABLE] == str(ptxas)
    assert os.access(ptxas, os.X_OK)
