"""Records of timed runs are pushed beside the graphs."""

from __future__ import annotations

import datasets
import pyarrow as pa
import pytest

from graphnet_datasets import load_dataset, push_runs
from graphnet_datasets.errors import (
    FormatVersionError,
    SchemaError,
)
from graphnet_datasets.hub import Skipped
from graphnet_datasets.schema import RUNS_SCHEMA
from tests.hub_server import Hub

from .pushes import REPO, card, chains, push, run_record, shards


def test_runs_are_pushed_by_their_id_beside_the_graphs(hub: Hub) -> None:
    push(chains("cv", [1]), REPO, split="train")
    records = [run_record("a"), run_record("b", status="compile_failed"), run_record("a")]
    table = pa.Table.from_pylist(records, RUNS_SCHEMA)
    pushed = push_runs(table, REPO)
    assert pushed.num_added == 2
    assert pushed.skipped == (Skipped("a", "It occurs twice in this push."),)
    pushed = push_runs(datasets.Dataset(table), REPO)
    assert (pushed.num_added, pushed.commit_url) == (0, None)
    assert push_runs([run_record("c")], REPO).num_added == 1
    assert sorted(load_dataset(REPO, "runs", split="train")["run_id"]) == ["a", "b", "c"]
    assert load_dataset(REPO, split="train")["num_ops"][:] == [1]
    data, body = card(hub)
    assert [each["config_name"] for each in data["configs"]] == ["cv", "runs", "all"]
    assert "3 records of timed runs." in body
    assert "| inductor | not stated | ok | 2 |" in body


def test_runs_alone_can_begin_a_repository(hub: Hub) -> None:
    push_runs([run_record("a")], REPO)
    assert load_dataset(REPO, split="train")["run_id"][:] == ["a"]
    push(chains("cv", [1]), REPO, split="train")
    assert load_dataset(REPO, split="train")["num_ops"][:] == [1]
    assert len(shards(hub)) == 2


def test_run_records_of_another_kind_are_refused() -> None:
    with pytest.raises(
        SchemaError, match=r"^The columns of the rows differ from those of the table `runs`"
    ):
        push_runs([{"run_id": "a"}], REPO)
    with pytest.raises(FormatVersionError) as caught:
        push_runs([run_record("a", schema_version=2)], REPO)
    assert str(caught.value) == (
        "The records of timed runs have format version 2; this library writes 1. Push them "
        "with the release of `graphnet-datasets` that created them."
    )
