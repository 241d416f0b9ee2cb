"""Pushing samples to a Hub that speaks the real protocol."""

from __future__ import annotations

import datasets
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from graphnet_datasets import Sample, load_dataset
from graphnet_datasets.analysis.splits import split_of
from graphnet_datasets.errors import (
    SchemaError,
)
from graphnet_datasets.hub import Pushed, Skipped
from tests.exact import exact
from tests.hub_server import Hub
from tests.tables import chain, rows

from .pushes import REPO, chains, files, push, shards


def test_pushed_rows_are_read_back_exactly(hub: Hub) -> None:
    samples = [*chains("cv", range(3, 0, -1)), *chains("nlp", [5])]
    pushed = push(samples, REPO, split="train")
    assert (pushed.num_added, pushed.skipped, pushed.pull_request_url) == (4, (), None)
    head = hub.state.repositories[REPO].branches["main"]
    assert pushed.commit_url == f"{hub.endpoint}/datasets/{REPO}/commit/{head}"
    loaded = [Sample.from_row(row) for row in load_dataset(REPO, "cv", split="train")]
    assert [exact(each) for each in loaded] == [exact(each) for each in reversed(samples[:3])]
    streamed = load_dataset(REPO, filters=[("num_ops", ">", 2)], streaming=True, split="train")
    assert [row["id"] for row in streamed] == ["cv/chain-3", "nlp/chain-5"]
    # What anybody sees who opens the repository, or loads it with nothing but `datasets`.
    plain = datasets.load_dataset(REPO, "nlp", split="train")
    assert plain["num_ops"][:] == [5]
    assert datasets.load_dataset(REPO)["train"].num_rows == 4
    assert datasets.get_dataset_config_names(REPO) == ["cv", "nlp", "all"]


def test_config_and_split_follow_from_task_and_family(hub: Hub) -> None:
    samples = [*chains("audio", [1]), *chains("cv", [1])]
    push(samples, REPO)
    # Chains of any length are one family; a graph is known by what it computes, not by its task.
    [path] = shards(hub)
    row = pq.read_table(pa.BufferReader(files(hub)[path])).to_pylist()[0]
    assert path.startswith(f"audio/{split_of(row['family'])}-")
    push(chains("cv", [2]), REPO, "mine", "held_out")
    assert any(path.startswith("mine/held_out-") for path in shards(hub))


def test_a_push_adds_one_shard_per_config_and_split_in_one_commit(hub: Hub) -> None:
    push(chains("cv", range(1, 4)), REPO, split="train")
    before, history = files(hub), len(hub.state.repositories[REPO].history)
    push([*chains("cv", range(3, 9)), *chains("nlp", [9])], REPO, split="train")
    after = files(hub)
    assert len(hub.state.repositories[REPO].history) == history + 1
    assert sorted(path.partition("-")[0] for path in after.keys() - before) == [
        "cv/train",
        "nlp/train",
    ]
    changed = {path for path in before if before[path] != after[path]}
    assert changed == {"README.md", "graphs.svg"}
    assert sorted(load_dataset(REPO, split="train")["num_ops"]) == list(range(1, 10))


def test_existing_rows_are_skipped_with_the_reason(hub: Hub) -> None:
    push(chains("cv", [1, 2]), REPO, split="train")
    again = [chain("other/name", 1), chain("cv/chain-2", 2, "cv"), *chains("cv", [3, 3])]
    pushed = push(again, REPO, split="test")
    assert pushed.num_added == 1
    assert set(pushed.skipped) == {
        Skipped("cv/chain-3", "It occurs twice in this push."),
        Skipped("other/name", f"`{REPO}` has it already as `cv/chain-1`."),
        Skipped("cv/chain-2", f"`{REPO}` has it already."),
    }
    before = files(hub)
    assert push(chains("cv", [1, 2]), REPO) == Pushed(
        0,
        (
            Skipped("cv/chain-1", f"`{REPO}` has it already."),
            Skipped("cv/chain-2", f"`{REPO}` has it already."),
        ),
    )
    assert files(hub) == before


@pytest.mark.usefixtures("hub")
def test_rows_are_checked_and_their_hashes_computed_again() -> None:
    good, forged, broken = rows("cv", range(1, 4))
    forged["signature_hash"] = forged["family"] = "0" * 32
    broken["ops"][0]["operands"] = [99]
    pushed = push([good, forged, broken], REPO, split="train")
    assert pushed.num_added == 2
    [skipped] = pushed.skipped
    assert skipped.id == "cv/chain-3"
    assert "99" in skipped.reason
    assert "0" * 32 not in load_dataset(REPO, split="train")["signature_hash"]
    with pytest.raises(SchemaError) as caught:
        push([3], REPO)  # type: ignore[list-item]
    assert str(caught.value) == (
        "A push needs samples or their rows, got `int`. Pass an iterable of them."
    )
