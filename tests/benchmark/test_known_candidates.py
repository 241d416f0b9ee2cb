"""Descriptions of compilers in the user's cache: when they are reused, and when they are not."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from graphnet_datasets.benchmark.executors.jobs import CandidateCompiler
from graphnet_datasets.benchmark.executors.known_candidates import (
    candidate_key,
    load_candidate,
    store_candidate,
)
from graphnet_datasets.compilers import Compiler
from graphnet_datasets.compilers.registry import is_reusable
from graphnet_datasets.user_cache import cache_directory, file_identity

EAGER = CandidateCompiler("eager", "torch", {}, "")


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


def test_a_stored_description_is_loaded() -> None:
    key = candidate_key(EAGER, "cpu", "{}")
    assert load_candidate(key, EAGER) is None
    described = CandidateCompiler("eager", "torch", {"mode": "default"}, "2.0", "abc")
    store_candidate(key, described)
    assert load_candidate(key, EAGER) == described
    (path,) = cache_directory("candidates").iterdir()
    for damaged in ("", "[]", '{"options": 1}'):
        path.write_text(damaged)
        assert load_candidate(key, EAGER) is None


def test_a_key_depends_on_the_request_the_environment_and_the_source(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = tmp_path / "mine.py"
    source.write_text("def compile(module, inputs): return module")
    mine = CandidateCompiler(f"{source}:compile", "torch", {}, "")
    keys = [
        candidate_key(EAGER, "cpu", "{}"),
        candidate_key(EAGER, "cuda", "{}"),
        candidate_key(EAGER, "cpu", '{"python": "4"}'),
        candidate_key(CandidateCompiler("eager", "torch", {"a": 1}, ""), "cpu", "{}"),
        candidate_key(mine, "cpu", "{}"),
    ]
    source.write_text("def compile(module, inputs): return module.eval()")
    keys.append(candidate_key(mine, "cpu", "{}"))
    (tmp_path / "site" / "torch-99.dist-info").mkdir(parents=True)
    monkeypatch.syspath_prepend(tmp_path / "site")
    keys.append(candidate_key(EAGER, "cpu", "{}"))
    monkeypatch.setenv("CXX", str(source))
    keys.append(candidate_key(EAGER, "cpu", "{}"))
    source.chmod(0o755)
    keys.append(candidate_key(EAGER, "cpu", "{}"))
    assert len({*keys}) == len(keys)
    assert candidate_key(EAGER, "cpu", "{}") == keys[-1]


def test_a_class_that_finds_its_version_itself_is_inspected_each_time() -> None:
    class Plain(Compiler):
        name = "plain"

        def compile(self, module: Any, example_inputs: Any) -> Any:
            return module(**example_inputs)

    class Versioned(Plain):
        @classmethod
        def version(cls) -> str:
            return "1"

    class Changing(Plain):
        @classmethod
        def is_available(cls) -> tuple[bool, str]:
            return True, ""

    assert [is_reusable(kind) for kind in (Plain, Versioned, Changing)] == [True, False, False]


def test_a_file_is_identified_by_its_path_size_and_time(tmp_path: Path) -> None:
    path = tmp_path / "compiler"
    path.write_text("a")
    first = file_identity(path)
    (tmp_path / "link").symlink_to(path)
    assert file_identity(tmp_path / "link") == first
    path.write_text("ab")
    assert file_identity(path) != first
