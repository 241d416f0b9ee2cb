"""The registry of tables and configs: a new kind of row needs one entry of each and a schema."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from graphnet_datasets import load_dataset
from graphnet_datasets.errors import RunError, SchemaError
from graphnet_datasets.hub.push import push_rows
from graphnet_datasets.schema import CONFIGS, TABLES, Column, Config, Table
from graphnet_datasets.schema.tables import GRAPHS, RUNS, table_of_file, table_of_schema
from graphnet_datasets.storage.layout import read_layout, write_readme
from graphnet_datasets.storage.selection import select_rows
from graphnet_datasets.storage.table import write_arrow
from tests.hub.pushes import REPO, card, chains, push, shards
from tests.hub_server import Hub
from tests.tables import write_dataset

TUNED = Table(
    "tuned",
    "measurements of tuners",
    (
        Column("schema_version", pa.int32(), "version of the format"),
        Column("record_id", pa.string(), "name of the record"),
        Column("tuner", pa.string(), "name of the tuner"),
        Column("times_ms", pa.list_(pa.float64()), "time of each call"),
    ),
    key="record_id",
    label="record_id",
    scalars=("schema_version", "record_id", "tuner"),
    counted_by=("tuner",),
    order=("record_id",),
)


@pytest.fixture
def tuned(monkeypatch: pytest.MonkeyPatch) -> Iterator[Table]:
    monkeypatch.setitem(TABLES, "tuned", TUNED)
    monkeypatch.setitem(CONFIGS, "tuned", Config("tuned", TUNED, "measurements of tuners"))
    yield TUNED


def records(*names: str) -> list[dict[str, object]]:
    return [
        {"schema_version": 1, "record_id": name, "tuner": "random", "times_ms": [1.0, 2.0]}
        for name in names
    ]


def test_a_new_table_is_written_loaded_and_left_out_of_all(tuned: Table, tmp_path: Path) -> None:
    root = write_dataset(tmp_path / "graphs")
    num_graphs = len(load_dataset(root, split="all"))
    rows = pa.Table.from_pylist(records("a", "b"), schema=tuned.schema)
    path = write_arrow(rows, root / "tuned" / "train-0000.parquet", tuned)
    write_readme(root)
    assert pq.read_schema(path).names == tuned.schema.names
    assert sorted(read_layout(root).configs) == ["all", "cv", "nlp", "tuned"]
    assert load_dataset(root, "tuned", split="train")["record_id"][:] == ["a", "b"]
    assert len(load_dataset(root, split="all")) == num_graphs
    assert table_of_file("tuned/train-0000.parquet") is tuned
    assert table_of_schema(pq.read_schema(path)) is tuned
    with pytest.raises(RunError) as caught:
        select_rows("tuned", dataset=root)
    assert str(caught.value).startswith(
        "The config `tuned` contains measurements of tuners, which cannot be run. Choose a config "
        "of graphs: all, cv, nlp,"
    )


def test_a_new_table_is_pushed_by_its_key_and_counted_on_the_card(tuned: Table, hub: Hub) -> None:
    push(chains("cv", [1, 2]), REPO)
    assert push_rows(records("b", "a", "a"), REPO, "tuned").num_added == 2
    again = push_rows(records("a", "c"), REPO, "tuned")
    assert (again.num_added, [each.reason for each in again.skipped]) == (
        1,
        [f"`{REPO}` has it already."],
    )
    assert [path.partition("/")[0] for path in shards(hub)].count("tuned") == 2
    data, body = card(hub)
    configs = {each["config_name"]: each for each in data["configs"]}  # type: ignore[attr-defined]
    assert set(configs) == {"all", "cv", "tuned"}
    assert "3 measurements of tuners." in body
    assert "| random | 3 |" in body
    assert tuned.features().keys() == {"schema_version", "record_id", "tuner", "times_ms"}


@pytest.mark.parametrize("config", ["cv", "excluded", "nowhere"])
def test_graphs_are_not_pushed_as_plain_rows(config: str) -> None:
    with pytest.raises(SchemaError, match="is not a config of rows other than graphs"):
        push_rows(records("a"), REPO, config)


def test_an_entry_that_names_a_column_its_schema_lacks_is_refused() -> None:
    with pytest.raises(
        ValueError, match="refers to the column `colour`, which is not in its schema"
    ):
        Table("odd", "rows", TUNED.columns, key="colour", label="record_id", scalars=("tuner",))
    with pytest.raises(ValueError, match="must hold its key"):
        Table("odd", "rows", TUNED.columns, key="record_id", label="tuner", scalars=("tuner",))


def test_every_config_has_a_table_of_the_registry() -> None:
    assert {config.table.name for config in CONFIGS.values()} <= set(TABLES)
    in_all = {name for name, config in CONFIGS.items() if config.is_in_all}
    assert in_all == {"cv", "nlp", "audio", "multimodal", "scientific", "other"}
    assert CONFIGS["excluded"].table is GRAPHS
    assert CONFIGS["runs"].table is RUNS
