"""Branches, format versions and pull requests."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from huggingface_hub import CommitOperationAdd, HfApi

from graphnet_datasets import load_dataset
from graphnet_datasets.errors import (
    DatasetNotFoundError,
    FormatVersionError,
    SchemaError,
)
from tests.hub_server import Hub
from tests.tables import rows

from .pushes import REPO, chains, files, push, shards


def test_pushed_rows_are_on_the_main_branch(hub: Hub) -> None:
    push(chains("cv", [1]), REPO)
    assert set(hub.state.repositories[REPO].branches) == {"main"}
    assert {"README.md", "graphs.svg", *shards(hub)} <= set(files(hub))
    assert len(shards(hub)) == 1


def test_a_repository_that_moved_on_keeps_a_branch_for_this_version(hub: Hub) -> None:
    push(chains("cv", [1]), REPO, split="train")
    api = HfApi()
    api.create_branch(REPO, branch="v1", repo_type="dataset")
    newer = [{**row, "schema_version": 2} for row in rows("cv", range(2))]
    sink = pa.BufferOutputStream()
    pq.write_table(pa.Table.from_pylist(newer), sink)
    [path] = shards(hub)
    operation = CommitOperationAdd(path, sink.getvalue().to_pybytes())
    api.create_commit(REPO, [operation], commit_message="Version 2", repo_type="dataset")
    before = files(hub)
    push(chains("cv", [2]), REPO, split="train")
    assert files(hub) == before
    assert sorted(load_dataset(REPO, split="train")["num_ops"]) == [1, 2]


@pytest.mark.parametrize(
    ("version", "advice"),
    [
        (
            2,
            "Install the release that writes version 2 (`pip install --upgrade "
            "graphnet-datasets`), or push to another repository.",
        ),
        (
            0,
            f"To convert it, run `graphnet export samples --dataset {REPO} --format graphnet` with "
            "the release that reads version 0, then `graphnet push samples org/new-name` with this "
            "one.",
        ),
    ],
)
@pytest.mark.parametrize("known_by", ["branch", "table"])
def test_another_format_version_is_refused_with_the_way_out(
    hub: Hub, version: int, advice: str, known_by: str
) -> None:
    api = HfApi()
    api.create_repo(REPO, repo_type="dataset")
    if known_by == "branch":
        api.create_branch(REPO, branch=f"v{version}", repo_type="dataset")
    else:
        other = [{**row, "schema_version": version} for row in rows("cv", range(2))]
        sink = pa.BufferOutputStream()
        pq.write_table(pa.Table.from_pylist(other), sink)
        api.create_commit(
            REPO,
            [CommitOperationAdd("cv/train-0000.parquet", sink.getvalue().to_pybytes())],
            commit_message="Add",
            repo_type="dataset",
        )
    with pytest.raises(FormatVersionError) as caught:
        push(chains("cv", [1]), REPO)
    assert str(caught.value) == (
        f"`{REPO}` has format version {version}; this library writes 1. {advice}"
    )
    assert "v1" not in hub.state.repositories[REPO].branches


def test_tables_of_something_else_are_not_mixed_with_ours(hub: Hub) -> None:
    api = HfApi()
    api.create_repo(REPO, repo_type="dataset")
    sink = pa.BufferOutputStream()
    pq.write_table(pa.table({"text": ["a"]}), sink)
    operation = CommitOperationAdd("data/train-0.parquet", sink.getvalue().to_pybytes())
    api.create_commit(REPO, [operation], commit_message="Add", repo_type="dataset")
    with pytest.raises(SchemaError, match=r"^`data/train-0.parquet` in `org/graphs` has no column"):
        push(chains("cv", [1]), REPO)
    assert set(files(hub, "main")) == {"data/train-0.parquet"}


def test_a_revision_that_is_not_there_is_not_made(hub: Hub) -> None:
    push(chains("cv", [1]), REPO)
    with pytest.raises(DatasetNotFoundError, match=r"at the revision `more` on the Hub"):
        push(chains("cv", [2]), REPO, revision="more")
    HfApi().create_branch(REPO, branch="more", repo_type="dataset")
    push(chains("cv", [2]), REPO, revision="more")
    assert (len(shards(hub)), len(shards(hub, "more"))) == (1, 2)


def test_a_contribution_is_a_pull_request(hub: Hub) -> None:
    push(chains("cv", [1]), REPO, split="train")
    before = files(hub)
    pushed = push(chains("cv", [1, 2]), REPO, split="train", create_pr=True)
    assert (pushed.num_added, len(pushed.skipped)) == (1, 1)
    assert pushed.pull_request_url == f"{hub.endpoint}/datasets/{REPO}/discussions/1"
    assert files(hub) == before
    proposed = files(hub, "refs/pr/1")
    # The card takes the shard in already; two proposals that change it could not both be merged.
    assert {path for path in proposed if proposed[path] != before.get(path)} == (
        proposed.keys() - before
    )
    push(chains("nlp", [3]), REPO, split="train", create_pr=True)
    assert files(hub, "refs/pr/2")["README.md"] != before["README.md"]


def test_a_contribution_needs_a_repository(hub: Hub) -> None:
    with pytest.raises(DatasetNotFoundError, match=r"^There is no dataset `org/graphs` on the Hub"):
        push(chains("cv", [1]), REPO, create_pr=True)
    assert REPO not in hub.state.repositories
    HfApi().create_repo(REPO, repo_type="dataset")
    assert push(chains("cv", [1]), REPO, create_pr=True).pull_request_url
    assert shards(hub) == []
