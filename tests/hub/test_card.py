"""The dataset card: made from the data, around what its owner wrote."""

from __future__ import annotations

import datasets
import pyarrow as pa
import pyarrow.parquet as pq
from huggingface_hub import HfApi

from graphnet_datasets import load_dataset
from graphnet_datasets.storage.table import to_arrow
from tests.hub_server import Hub
from tests.tables import rows

from .pushes import REPO, card, chains, files, push


def test_the_card_names_configs_columns_and_figures(hub: Hub) -> None:
    push(chains("cv", [1, 2, 40]), REPO, split="train")
    push(chains("nlp", [7]), REPO, split="test")
    data, body = card(hub)
    configs = {config["config_name"]: config for config in data["configs"]}
    assert configs["all"]["default"] is True
    assert configs["all"]["data_files"] == [
        {"split": "train", "path": ["cv/train-*.parquet"]},
        {"split": "test", "path": ["nlp/test-*.parquet"]},
    ]
    information = data["dataset_info"]
    assert [each["config_name"] for each in information] == ["cv", "nlp", "all"]
    assert all(set(each) == {"config_name", "features"} for each in information)
    assert "4 graphs of 1 families." in body
    assert "| cv | train | 3 | 1 | torch | 1 to 40 (2) | 0 to 0 (0) |" in body
    assert "| test | not stated | 4 | 1 |" in body
    assert files(hub)["graphs.svg"].startswith(b"<svg")


def test_excluded_graphs_are_named_and_not_counted(hub: Hub) -> None:
    push(chains("cv", [1, 2]), REPO, split="train")
    row = {**rows("cv", range(9, 10))[0], "why_excluded": "runnable: NaN."}
    sink = pa.BufferOutputStream()
    pq.write_table(to_arrow([row]), sink)
    HfApi().upload_file(
        path_or_fileobj=sink.getvalue().to_pybytes(),
        path_in_repo="excluded/train-0000.parquet",
        repo_id=REPO,
        repo_type="dataset",
    )
    # What is excluded may be pushed again, once it is right.
    assert push(chains("cv", [9]), REPO, split="train").num_added == 1
    data, body = card(hub)
    assert "3 graphs of 1 families." in body
    assert "1 more graphs failed a check. They are in the config `excluded` alone" in body
    assert [each["config_name"] for each in data["configs"]] == ["cv", "excluded", "all"]
    assert load_dataset(REPO, "excluded", split="train")["why_excluded"][:] == ["runnable: NaN."]
    assert datasets.load_dataset(REPO)["train"].num_rows == 3


def test_truncated_graphs_are_pushed_apart_and_not_counted(hub: Hub) -> None:
    cut = {**rows("cv", range(9, 10))[0], "is_truncated": True}
    assert push([*chains("cv", [1, 2]), cut], REPO, split="train").num_added == 3
    data, body = card(hub)
    assert "2 graphs of 1 families." in body
    assert "1 more graphs have fewer layers than their models were published with" in body
    assert [each["config_name"] for each in data["configs"]] == ["cv", "truncated", "all"]
    assert datasets.load_dataset(REPO)["train"].num_rows == 2
    assert load_dataset(REPO, "truncated", split="train")["num_ops"][:] == [9]
    assert push([cut], REPO, split="train").num_added == 0  # it is held


def test_text_of_the_owner_is_kept(hub: Hub) -> None:
    push(chains("cv", [1]), REPO, split="train")
    text = files(hub)["README.md"].decode()
    text = text.replace("---\n", "---\nlicense: apache-2.0\n", 1).replace("# graphs", "# Ours")
    HfApi().upload_file(
        path_or_fileobj=(text + "\nCite us.\n").encode(),
        path_in_repo="README.md",
        repo_id=REPO,
        repo_type="dataset",
        revision="main",
    )
    push(chains("cv", [2]), REPO, split="train")
    data, body = card(hub)
    assert data["license"] == "apache-2.0"
    assert body.startswith("# Ours")
    assert body.endswith("Cite us.\n")
    assert body.count("graphs of 1 families.") == 1
    assert "2 graphs of 1 families." in body
