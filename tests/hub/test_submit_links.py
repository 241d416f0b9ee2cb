"""Symbolic links in somebody else's repository: no submission follows them."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from graphnet_datasets import paths
from graphnet_datasets.errors import PushError, UnsafePathError
from graphnet_datasets.hub import submit_samples
from graphnet_datasets.hub.git import Clone
from tests.clones import git, make_clone
from tests.tables import chain

UNCHECKED: dict[str, Any] = {"skip_validation": "a test", "split": "train"}
CONTENT = "a file of the user"


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    (tmp_path / "outside").mkdir()
    (tmp_path / "secret").write_text(CONTENT)
    return make_clone(tmp_path / "clone")


def link_readme(clone: Path) -> None:
    (clone / "README.md").symlink_to("../secret")


def link_readme_to_nothing(clone: Path) -> None:
    (clone / "README.md").symlink_to("../outside/nothing.md")


def link_config(clone: Path) -> None:
    (clone / "cv").symlink_to("../outside")


def link_config_to_nothing(clone: Path) -> None:
    (clone / "cv").symlink_to("../outside/nothing")


def link_config_within(clone: Path) -> None:
    (clone / "real").mkdir()
    (clone / "cv").symlink_to("real")


def link_shard(clone: Path) -> None:
    submit_samples(chain("cv/other", 2, "cv"), clone, branch="before", **UNCHECKED)
    (shard,) = (clone / "cv").iterdir()
    shard.rename(clone.parent / "outside" / "other.parquet")
    shard.symlink_to("../../outside/other.parquet")
    git(clone, "commit", "--all", "--quiet", "--message", "Link")


def link_a_deep_folder(clone: Path) -> None:
    submit_samples(chain("cv/other", 2, "cv"), clone, branch="before", **UNCHECKED)
    shutil.move(clone / "cv", clone.parent / "outside" / "cv")
    (clone / "data").mkdir()
    (clone / "data" / "cv").symlink_to("../../outside/cv")
    text = "configs:\n- config_name: cv\n  data_files: data/cv/*.parquet\n"
    (clone / "README.md").write_text(f"---\n{text}---\n")
    git(clone, "add", "--all")
    git(clone, "commit", "--quiet", "--message", "Link")


def make_pipe(clone: Path) -> None:
    os.mkfifo(clone / "README.md")


@pytest.mark.parametrize(
    "attack",
    [
        link_readme, link_readme_to_nothing, link_config, link_config_to_nothing,
        link_config_within, link_shard, link_a_deep_folder, make_pipe,
    ],
)  # fmt: skip
def test_links_are_refused_and_lead_nowhere(clone: Path, attack: Callable[[Path], None]) -> None:
    attack(clone)
    head = git(clone, "rev-parse", "HEAD")
    outside = sorted((clone.parent / "outside").rglob("*"))
    with pytest.raises(UnsafePathError, match=r"is a (symbolic link|pipe)"):
        submit_samples(chain("cv/one", 1, "cv"), clone, **UNCHECKED)
    assert git(clone, "rev-parse", "HEAD") == head
    assert sorted((clone.parent / "outside").rglob("*")) == outside
    assert CONTENT not in git(clone, "log", "--all", "--patch")


def test_a_linked_folder_is_refused(clone: Path) -> None:
    (clone / "data").symlink_to("../outside")
    with pytest.raises(UnsafePathError, match="is a symbolic link"):
        submit_samples(chain("cv/one", 1, "cv"), clone, folder="data/inner", **UNCHECKED)
    assert list((clone.parent / "outside").iterdir()) == []


@pytest.mark.parametrize("kind", ["file", "link", "work tree"])
def test_a_git_directory_elsewhere_is_refused(clone: Path, kind: str) -> None:
    other = make_clone(clone.parent / "other")
    head = git(other, "rev-parse", "HEAD")
    if kind == "work tree":
        git(clone, "config", "core.worktree", str(clone.parent / "outside"))
    else:
        shutil.rmtree(clone / ".git")
        if kind == "link":
            (clone / ".git").symlink_to("../other/.git")
        else:
            (clone / ".git").write_text("gitdir: ../other/.git\n")
    with pytest.raises((UnsafePathError, PushError)):
        submit_samples(chain("cv/one", 1, "cv"), clone, **UNCHECKED)
    assert git(other, "rev-parse", "HEAD") == head
    assert git(other, "branch", "--format=%(refname:short)") == "main"
    assert list((clone.parent / "outside").iterdir()) == []


def test_a_work_tree_of_a_clone_is_a_clone(clone: Path) -> None:
    beside = clone.parent / "beside"
    git(clone, "worktree", "add", "--quiet", "--detach", str(beside))
    done = submit_samples(chain("cv/one", 1, "cv"), beside, **UNCHECKED)
    assert git(beside, "rev-parse", "HEAD") == done.commit


def test_a_link_elsewhere_in_the_repository_does_not_matter(clone: Path) -> None:
    (clone / "NOTES").symlink_to("../secret")
    done = submit_samples(chain("cv/one", 1, "cv"), clone, **UNCHECKED)
    assert git(clone, "rev-parse", "HEAD") == done.commit


@pytest.mark.parametrize(
    "name",
    [
        "core.fsmonitor", "core.sshCommand", "core.editor", "filter.own.clean", "gpg.program",
        "diff.external", "include.path", "merge.own.driver", "core.attributesFile",
        "credential.helper", "alias.commit", "gc.recentObjectsHook", "submodule.a.update",
    ],
)  # fmt: skip
def test_a_repository_that_configures_programs_is_refused(clone: Path, name: str) -> None:
    ran = clone.parent / "ran"
    git(clone, "config", name, f"touch {ran}")
    with pytest.raises(UnsafePathError, match=r"which may make Git run a program"):
        submit_samples(chain("cv/one", 1, "cv"), clone, **UNCHECKED)
    assert not ran.exists()


@pytest.mark.parametrize("is_enabled", ["true", "yes", "1"])
def test_the_configuration_of_a_work_tree_is_checked_too(clone: Path, is_enabled: str) -> None:
    ran = clone.parent / "ran"
    git(clone, "config", "extensions.worktreeConfig", is_enabled)
    git(clone, "config", "--worktree", "filter.own.clean", f"touch {ran}; cat")
    (clone / ".gitattributes").write_text("*.parquet filter=own\n")
    with pytest.raises(UnsafePathError, match=r"which may make Git run a program"):
        submit_samples(chain("cv/one", 1, "cv"), clone, **UNCHECKED)
    assert not ran.exists()


def test_a_partial_clone_contacts_no_remote(clone: Path) -> None:
    ran = clone.parent / "ran"
    git(clone, "config", "remote.origin.url", f"ext::touch {ran}")
    git(clone, "config", "remote.origin.promisor", "true")
    git(clone, "config", "extensions.partialClone", "origin")
    for place in (clone / ".git" / "objects").glob("??/*"):
        if git(clone, "cat-file", "-t", f"{place.parent.name}{place.name}") == "tree":
            place.unlink()
    with (
        pytest.MonkeyPatch.context() as patch,
        pytest.raises(PushError, match=r"not allowed|missing|failed"),
    ):
        patch.setenv("GIT_ALLOW_PROTOCOL", "ext")
        submit_samples(chain("cv/one", 1, "cv"), clone, **UNCHECKED)
    assert not ran.exists()


@pytest.mark.parametrize("name", ["GIT_DIR", "GIT_INDEX_FILE"])
def test_variables_of_git_do_not_redirect_a_submission(
    clone: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = make_clone(clone.parent / "other")
    head = git(other, "rev-parse", "HEAD")
    place = other / ".git" / ("" if name == "GIT_DIR" else "index")
    index = (other / ".git" / "index").read_bytes()
    with monkeypatch.context() as patch:
        patch.setenv(name, str(place))
        done = submit_samples(chain("cv/one", 1, "cv"), clone, **UNCHECKED)
    assert git(clone, "rev-parse", "HEAD") == done.commit
    assert git(other, "rev-parse", "HEAD") == head
    assert (other / ".git" / "index").read_bytes() == index


def test_git_receives_no_tokens(clone: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_TOKEN", "hf_secret")
    monkeypatch.setenv("GIT_AUTHOR_NAME", "Me")
    monkeypatch.setenv("SSH_AUTH_SOCK", "/agent")
    variables = Clone(clone).git("-c", "alias.variables=!env", "variables").splitlines()
    assert not any("hf_secret" in line for line in variables)
    assert {"GIT_AUTHOR_NAME=Me", "SSH_AUTH_SOCK=/agent"} <= {*variables}


@pytest.mark.parametrize("branch", ["-x", "--detach", "a..b", "@{-1}", "HEAD", "a b", "\n"])
def test_a_name_that_is_no_branch_is_refused(clone: Path, branch: str) -> None:
    head = git(clone, "rev-parse", "HEAD")
    with pytest.raises(PushError):
        submit_samples(chain("cv/one", 1, "cv"), clone, branch=branch, **UNCHECKED)
    assert git(clone, "rev-parse", "HEAD") == head
    assert git(clone, "status", "--porcelain") == ""


@pytest.mark.parametrize("hook", ["pre-commit", "commit-msg", "post-checkout", "post-commit"])
def test_hooks_of_a_repository_do_not_run(clone: Path, hook: str) -> None:
    ran = clone.parent / "ran"
    path = clone / ".git" / "hooks" / hook
    path.parent.mkdir(exist_ok=True)
    path.write_text(f"#!/bin/sh\ntouch {ran}\n")
    path.chmod(0o755)
    done = submit_samples(chain("cv/one", 1, "cv"), clone, **UNCHECKED)
    assert git(clone, "rev-parse", "HEAD") == done.commit
    assert not ran.exists()


@pytest.mark.parametrize("name", ["index", "refs/heads", "objects", "logs/HEAD", "packed-refs"])
def test_links_inside_of_a_git_directory_are_refused(clone: Path, name: str) -> None:
    place = clone / ".git" / name
    outside = clone.parent / "outside" / "target"
    if place.exists():
        shutil.move(place, outside)
    else:
        outside.write_text("")
    place.symlink_to(outside)
    with pytest.raises(UnsafePathError, match=r"is a symbolic link"):
        submit_samples(chain("cv/one", 1, "cv"), clone, **UNCHECKED)


def test_a_common_git_directory_elsewhere_is_refused(clone: Path) -> None:
    other = make_clone(clone.parent / "other")
    head = git(other, "rev-parse", "HEAD")
    (clone / ".git" / "commondir").write_text(f"{other}/.git\n")
    with pytest.raises(UnsafePathError, match=r"commondir"):
        submit_samples(chain("cv/one", 1, "cv"), clone, **UNCHECKED)
    assert git(other, "rev-parse", "HEAD") == head


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("remote.origin.url", "https://example.org/a.git"), ("pull.rebase", "true"),
        ("branch.main.merge", "refs/heads/main"), ("filter.lfs.clean", "git-lfs clean -- %f"),
    ],
)  # fmt: skip
def test_ordinary_settings_are_accepted(clone: Path, name: str, value: str) -> None:
    git(clone, "config", name, value)
    assert submit_samples(chain("cv/one", 1, "cv"), clone, **UNCHECKED).commit


def test_a_table_that_becomes_a_link_is_not_read(
    clone: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    submit_samples(chain("cv/other", 2, "cv"), clone, branch="before", **UNCHECKED)
    (shard,) = (clone / "cv").iterdir()
    outside = clone.parent / "outside" / "other.parquet"
    shutil.copy(shard, outside)
    opened: list[str] = []

    def check_and_swap(root: Path, name: str) -> None:
        paths.check_links(root, name)
        if name.endswith(".parquet") and not shard.is_symlink():
            shard.unlink()
            shard.symlink_to(outside)
            opened.append(name)

    monkeypatch.setattr("graphnet_datasets.hub.submit.check_links", check_and_swap)
    with pytest.raises((UnsafePathError, OSError)):
        submit_samples(chain("cv/one", 1, "cv"), clone, **UNCHECKED)
    assert opened
