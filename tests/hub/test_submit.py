"""Submissions to a dataset in a repository of Git, a real one."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from graphnet_datasets import load_dataset, write_directory, write_table
from graphnet_datasets.atomic import file_sha256
from graphnet_datasets.cli.app import app
from graphnet_datasets.errors import PushError, SchemaError
from graphnet_datasets.hub import submit_rows, submit_samples
from graphnet_datasets.hub.summaries import quoted
from tests.clones import git, make_clone
from tests.scores.run_rows import FOUR
from tests.tables import chain, rows

UNCHECKED: dict[str, Any] = {"skip_validation": "a test", "split": "train"}


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    return make_clone(tmp_path / "clone")


def chains(*sizes: int) -> list[Any]:
    return [chain(f"cv/chain-{size}", size, "cv") for size in sizes]


def test_graphs_are_a_commit_on_a_branch_of_their_own(clone: Path) -> None:
    done = submit_samples(chains(1, 2, 3), clone, **UNCHECKED)
    assert (done.num_added, done.skipped, done.title) == (3, (), "Add 3 graphs")
    assert git(clone, "rev-parse", "HEAD") == done.commit
    assert git(clone, "rev-parse", "--abbrev-ref", "HEAD") == done.branch
    assert git(clone, "status", "--porcelain") == ""
    assert git(clone, "rev-list", "--count", "main..HEAD") == "1"
    changed = git(clone, "diff", "--name-only", "main", "HEAD").splitlines()
    shard = next(name for name in changed if name != "README.md")
    assert set(changed) == {"README.md", shard}
    assert shard == f"cv/train-{file_sha256(clone / shard)[:16]}.parquet"
    assert load_dataset(clone, "cv", split="train")["num_ops"][:] == [1, 2, 3]
    body = git(clone, "log", "-1", "--format=%B")
    assert body.startswith("Add 3 graphs\n\n# Add 3 graphs\n")
    assert done.summary.strip() in body
    assert "| `cv` | `train` | 3 | 1 | 1 to 3 | `test` (3) |" in done.summary
    assert "Not checked before it was pushed: a test" in done.summary


def test_graphs_are_checked_and_those_that_fail_are_left_out(clone: Path) -> None:
    good, bad = rows("cv", [1, 2])
    bad["ops"][0]["target"] = "torch.no_such_operator"
    done = submit_samples([good, bad], clone, split="train")
    assert done.num_added == 1
    ((name, reason),) = done.skipped
    assert name == "cv/chain-2" and "no_such_operator" in reason
    assert "## Left out" in done.summary and "`cv/chain-2`" in done.summary
    assert re.search(r"\| `runnable` \| 1 \| 0 \|", done.summary)


def test_existing_rows_are_skipped_and_parallel_submissions_merge(clone: Path) -> None:
    submit_samples(chains(1), clone, branch="first", **UNCHECKED)
    git(clone, "switch", "--quiet", "main")
    git(clone, "merge", "--quiet", "first")
    sides = []
    for size in (2, 3):
        git(clone, "switch", "--quiet", "main")
        done = submit_samples(chains(1, size), clone, branch=f"side-{size}", **UNCHECKED)
        assert done.num_added == 1
        assert [each.id for each in done.skipped] == ["cv/chain-1"]
        assert [path.name for path in done.files] != ["README.md"]
        assert len(done.files) == 1  # the README names files by patterns, and stays
        sides.append(done)
    git(clone, "switch", "--quiet", "main")
    for done in sides:
        git(clone, "merge", "--quiet", "--no-edit", str(done.branch))
    assert sorted(load_dataset(clone, "cv", split="train")["num_ops"][:]) == [1, 2, 3]


def test_nothing_new_is_no_commit(clone: Path) -> None:
    submit_samples(chains(1), clone, **UNCHECKED)
    head = git(clone, "rev-parse", "HEAD")
    again = submit_samples(chains(1), clone, **UNCHECKED)
    assert (again.num_added, again.files, again.branch, again.commit) == (0, (), None, None)
    assert git(clone, "rev-parse", "HEAD") == head


def test_equal_graphs_give_equal_files(clone: Path, tmp_path: Path) -> None:
    other = make_clone(tmp_path / "other")
    first, second = (submit_samples(chains(1, 2), each, **UNCHECKED) for each in (clone, other))
    assert first.branch == second.branch
    assert first.summary == second.summary
    assert [path.read_bytes() for path in first.files] == [
        path.read_bytes() for path in second.files
    ]


def test_records_go_to_their_config_in_a_folder(clone: Path) -> None:
    records = [{**row, "run_id": str(number)} for number, row in enumerate(FOUR)]
    done = submit_rows(records, clone, "runs", folder="data/graphnet")
    assert done.num_added == 4
    assert {path.parent.name for path in done.files} == {"runs", "graphnet"}
    assert "| compiler | device | status | rows |" in done.summary
    assert load_dataset(clone / "data" / "graphnet", "runs", split="train").num_rows == 4
    again = submit_rows([*records, records[0] | {"run_id": "new"}], clone, "runs",
                        folder="data/graphnet")  # fmt: skip
    assert (again.num_added, len(again.skipped)) == (1, 4)


def test_without_a_commit_the_files_are_there_and_nothing_is_staged(clone: Path) -> None:
    done = submit_samples(chains(1), clone, is_committed=False, **UNCHECKED)
    assert (done.branch, done.commit) == (None, None)
    assert git(clone, "rev-parse", "--abbrev-ref", "HEAD") == "main"
    assert git(clone, "diff", "--cached", "--name-only") == ""
    assert git(clone, "status", "--porcelain").split() == ["??", "README.md", "??", "cv/"]


def refused(clone: Path, **options: Any) -> str:
    before = {path: path.read_bytes() for path in clone.rglob("*") if ".git" not in path.parts}
    heads = git(clone, "for-each-ref"), git(clone, "rev-parse", "--abbrev-ref", "HEAD")
    with pytest.raises(PushError) as caught:
        submit_samples(chains(1), clone, **UNCHECKED | options)
    after = {path for path in clone.rglob("*") if ".git" not in path.parts and path.is_file()}
    assert after == {path for path in before if path.is_file()}
    assert (git(clone, "for-each-ref"), git(clone, "rev-parse", "--abbrev-ref", "HEAD")) == heads
    return str(caught.value)


def test_a_refused_submission_leaves_the_clone_as_it_was(clone: Path) -> None:
    lock = clone / ".git" / "index.lock"
    lock.touch()
    assert "failed in" in refused(clone)
    lock.unlink()
    assert "already exists" in refused(clone, branch="main")
    assert "is outside the clone" in refused(clone, folder="../elsewhere")
    (clone / "more").write_text("x")
    git(clone, "add", "more")
    assert "`more` is staged in" in refused(clone)


def test_an_empty_repository_gets_its_first_commit(tmp_path: Path) -> None:
    empty = tmp_path / "empty"
    empty.mkdir()
    git(empty, "init", "--quiet", "--initial-branch", "main")
    for name, value in (("user.name", "Somebody"), ("user.email", "somebody@example.org")):
        git(empty, "config", name, value)
    with pytest.raises(PushError, match="`git switch` failed"):
        submit_samples(chains(2), empty, "cv", "train", branch="a..b", skip_validation="test")
    assert git(empty, "symbolic-ref", "HEAD") == "refs/heads/main"
    assert [path.name for path in empty.iterdir()] == [".git"]
    done = submit_samples(chains(2), empty, "cv", "train", skip_validation="a test")
    assert git(empty, "rev-parse", "HEAD") == done.commit
    assert git(empty, "symbolic-ref", "--short", "HEAD") == done.branch
    assert git(empty, "status", "--porcelain") == ""


def test_a_directory_that_is_no_clone_is_refused(tmp_path: Path) -> None:
    with pytest.raises(PushError, match="is not a clone of a Git repository"):
        submit_samples(chains(1), tmp_path, **UNCHECKED)
    with pytest.raises(PushError, match="There is no directory"):
        submit_samples(chains(1), tmp_path / "nothing", **UNCHECKED)


@pytest.mark.parametrize(
    "options", [{"config": "all"}, {"split": "a-b"}, {"skip_validation": " "}], ids=str
)
def test_names_that_cannot_be_are_refused(clone: Path, options: dict[str, Any]) -> None:
    with pytest.raises(SchemaError):
        submit_samples(chains(1), clone, **options)


def test_text_of_rows_is_no_markup() -> None:
    assert quoted("a|b\n# `c`\u202e") == "`a/b\\n# 'c'\\u202e`"


def test_the_command_adds_tables_and_directories_and_writes_the_summary(
    clone: Path, tmp_path: Path
) -> None:
    def call(*arguments: str | Path, exit_code: int = 0) -> str:
        words = ["submit", *map(str, arguments), "--split", "train", "--skip-validation", "test"]
        result = CliRunner().invoke(app, words)
        assert result.exit_code == exit_code, result.output
        return result.stdout

    path = write_table(rows("cv", range(1, 4)), tmp_path / "mine.parquet")
    printed = call(path, clone, "--branch", "mine", "--summary", tmp_path / "pr.md")
    assert printed.startswith(f"3 added to {clone}, 0 left out\n")
    assert "On the branch mine, commit " in printed
    assert (tmp_path / "pr.md").read_text().startswith("# Add 3 graphs\n")
    write_directory(chain("one/relu", 5, "nlp"), tmp_path / "samples" / "relu")
    assert call(tmp_path / "samples", clone, "--no-commit").startswith("1 added")
    assert "branch" not in call(path, clone)
