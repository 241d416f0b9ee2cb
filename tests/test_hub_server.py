"""The tests' own Hub answers the real clients as the real one does."""

from __future__ import annotations

from pathlib import Path

import datasets
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from huggingface_hub import CommitOperationAdd, HfApi
from huggingface_hub.errors import EntryNotFoundError, HfHubHTTPError, RepositoryNotFoundError

from .hub_server import Hub

README = b"""---
configs:
- config_name: cv
  data_files:
  - split: train
    path: cv/train-*.parquet
  default: true
---
"""


@pytest.fixture
def api(hub: Hub) -> HfApi:
    api = HfApi(endpoint=hub.endpoint)
    api.create_repo("org/graphnet", repo_type="dataset")
    return api


def commit(api: HfApi, files: dict[str, bytes], parent: str | None = None) -> str:
    operations = [CommitOperationAdd(path, content) for path, content in files.items()]
    return api.create_commit(
        "org/graphnet",
        operations,
        commit_message="Add files",
        repo_type="dataset",
        parent_commit=parent,
    ).oid


def test_a_stale_parent_is_refused(api: HfApi) -> None:
    head = api.dataset_info("org/graphnet").sha
    commit(api, {"README.md": README}, parent=head)
    with pytest.raises(HfHubHTTPError) as caught:
        commit(api, {"README.md": README + b"later"}, parent=head)
    assert caught.value.response.status_code == 412


def test_parquet_goes_through_lfs_and_is_read_back(hub: Hub, api: HfApi, tmp_path: Path) -> None:
    path = tmp_path / "table.parquet"
    pq.write_table(pa.table({"a": list(range(1000))}), path)
    commit(api, {"README.md": README, "cv/train-0.parquet": path.read_bytes()})
    rows = datasets.load_dataset("org/graphnet", "cv", split="train")
    assert rows["a"][:3] == [0, 1, 2]
    streamed = datasets.load_dataset("org/graphnet", "cv", split="train", streaming=True)
    assert next(iter(streamed)) == {"a": 0}
    assert sum(hub.state.bytes_served.values()) > path.stat().st_size


def test_a_missing_repository_is_not_found(api: HfApi) -> None:
    with pytest.raises(RepositoryNotFoundError):
        api.dataset_info("org/nothing")
    with pytest.raises(EntryNotFoundError):
        api.hf_hub_download("org/graphnet", "nothing.md", repo_type="dataset")


def test_branches_tags_and_pull_requests_are_kept(api: HfApi) -> None:
    api.create_branch("org/graphnet", repo_type="dataset", branch="v1")
    api.create_tag("org/graphnet", repo_type="dataset", tag="1.0")
    pull = api.create_commit(
        "org/graphnet",
        [CommitOperationAdd("README.md", README)],
        commit_message="Propose",
        repo_type="dataset",
        create_pr=True,
    )
    assert pull.pr_url is not None
    refs = api.list_repo_refs("org/graphnet", repo_type="dataset")
    assert [branch.name for branch in refs.branches] == ["main", "v1"]
    assert [tag.name for tag in refs.tags] == ["1.0"]
    assert not api.file_exists("org/graphnet", "README.md", repo_type="dataset")
