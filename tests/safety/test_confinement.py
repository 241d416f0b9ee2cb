"""Jobs reach neither the network, nor tokens, nor the files and processes of their user."""

from __future__ import annotations

import os
import platform
from pathlib import Path

import pytest

from graphnet_datasets.isolation import ForkServer
from graphnet_datasets.isolation.confinement import LAYERS, available_layers, without_secrets

MODULE = "tests.safety.confined_jobs"
ALLOWED = {
    "write into its own directory", "write a temporary file", "use the loopback",
    "list interfaces", "run Python", "run the C++ compiler",
}  # fmt: skip
needs_all_layers = pytest.mark.skipif(
    not all(available_layers().values()) or platform.machine() != "x86_64",
    reason="the kernel lacks a layer of confinement, or the test's system calls are not its own",
)


def payload_of(outside: Path) -> dict[str, object]:
    return {"outside": str(outside), "caller": os.getpid(), "home": str(Path.home())}


@needs_all_layers
def test_a_job_reaches_nothing_of_its_user(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_TOKEN", "hf_not_a_real_one")
    (tmp_path / "secret").write_text("secret")
    payload = payload_of(tmp_path)
    with ForkServer(MODULE) as server, server.directory() as directory:
        outcome = server.run(payload, directory, phases=("load",))
    assert outcome.error is None
    report = outcome.merged()
    reached = {name for name, error in report["results"].items() if not error}
    assert reached == ALLOWED
    assert not report["has_token"]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["secret"]


@needs_all_layers
def test_a_compiler_may_be_a_script(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "bin").mkdir()
    wrapper = tmp_path / "bin" / "g++"
    wrapper.write_text('#!/usr/bin/env bash\nexec g++ "$@"\n')
    wrapper.chmod(0o755)
    monkeypatch.setenv("CXX", str(wrapper))
    with ForkServer(MODULE) as server, server.directory() as directory:
        outcome = server.run(payload_of(tmp_path), directory, phases=("load",))
    assert not outcome.merged()["results"]["run the C++ compiler"]


@needs_all_layers
def test_a_job_may_use_the_paths_that_its_caller_names(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("secret")
    payload = payload_of(tmp_path)
    with ForkServer(MODULE, has_unix_sockets=True) as server, server.directory() as directory:
        outcome = server.run(payload, directory, phases=("load",), reads=[str(tmp_path)])
        results = outcome.merged()["results"]
        assert not results["read a file"]
        assert not results["make a Unix socket"]
        assert results["write a file"] == "PermissionError"
        outcome = server.run(payload, directory, phases=("load",), writes=[str(tmp_path)])
        assert not outcome.merged()["results"]["write a file"]
    assert (tmp_path / "new").exists()


def test_an_unconfined_job_has_no_token_either(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_TOKEN", "hf_not_a_real_one")
    (tmp_path / "secret").write_text("secret")
    payload = payload_of(tmp_path)
    with ForkServer(MODULE, is_confined=False) as server, server.directory() as directory:
        report = server.run(payload, directory, phases=("load",)).merged()
    assert not report["has_token"]
    assert not report["results"]["write a file"]


def test_the_layers_are_named() -> None:
    assert [*available_layers(has_namespace=False)] == [*LAYERS]
    assert not available_layers(has_namespace=False)["network namespace"]


@pytest.mark.parametrize(
    "name",
    ["HF_TOKEN", "HUGGING_FACE_HUB_TOKEN", "AWS_SECRET_ACCESS_KEY", "AWS_ACCESS_KEY_ID",
     "GITHUB_TOKEN", "WANDB_API_KEY", "OPENAI_APIKEY", "PGPASSWORD", "SSH_AUTH_SOCK",
     "https_proxy"],
)  # fmt: skip
def test_secrets_are_recognized_by_their_names(name: str) -> None:
    assert without_secrets({name: "x", "PATH": "/bin", "LD_LIBRARY_PATH": "/lib"}) == {
        "PATH": "/bin", "LD_LIBRARY_PATH": "/lib"
    }  # fmt: skip
