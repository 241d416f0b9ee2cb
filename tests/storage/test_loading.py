"""Loading the embedded dataset, directories, files and Hub repositories."""

from __future__ import annotations

import hashlib
import os
import random
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import datasets
import pyarrow.dataset
import pyarrow.parquet as pq
import pytest
from huggingface_hub import HfApi, HfFileSystem

import graphnet_datasets
from graphnet_datasets import Sample, load_dataset
from graphnet_datasets.errors import (
    DatasetNotFoundError,
    FormatVersionError,
    GraphNetError,
    SchemaError,
)
from graphnet_datasets.schema import GRAPHS_SCHEMA, config_of
from graphnet_datasets.storage.layout import write_readme
from graphnet_datasets.storage.loading import REPO_VARIABLE, STARTER
from graphnet_datasets.storage.shards import write_shards
from graphnet_datasets.storage.table import read_table, to_arrow, unreadable, write_table
from tests.exact import exact
from tests.hub_server import Hub
from tests.tables import chain, rows, write_dataset


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return write_dataset(tmp_path / "graphnet")


def sizes(dataset: datasets.Dataset | datasets.IterableDataset) -> list[int]:
    return [row["num_ops"] for row in dataset]


def test_a_directory_gives_rows_that_are_samples(root: Path) -> None:
    dataset = load_dataset(root, "cv", split="train")
    assert isinstance(dataset, datasets.Dataset)
    assert sizes(dataset) == list(range(1, 21))
    expected = chain("cv/chain-7", 7, "cv", source="cv-library")
    assert exact(Sample.from_row(dataset[6])) == exact(expected)
    assert dataset.features.arrow_schema.remove_metadata() == GRAPHS_SCHEMA.remove_metadata()


@pytest.mark.parametrize("streaming", [False, True])
def test_older_files_have_other_columns_in_another_order(root: Path, streaming: bool) -> None:
    path = root / "cv" / "train-0000.parquet"
    table = pq.read_table(path)
    older = table.select([*reversed(table.column_names)]).drop_columns(
        ["piece_index", "num_pieces"]
    )
    pq.write_table(older, path)
    write_table([chain("cv/new", 99, "cv")], root / "cv" / "train-0001.parquet")
    dataset: Any = load_dataset(root, "cv", split="train", streaming=streaming)
    found = {row["id"]: row for row in dataset}
    assert len(found) == 21
    assert found["cv/new"]["num_ops"] == 99
    expected = chain("cv/chain-7", 7, "cv", source="cv-library")
    assert exact(Sample.from_row(found["cv/chain-7"])) == exact(expected)
    assert found["cv/chain-7"]["piece_index"] is None


@pytest.mark.parametrize("streaming", [False, True])
def test_without_a_split_all_of_them_come(root: Path, streaming: bool) -> None:
    for name in (root, str(root)):
        found = load_dataset(name, "cv", streaming=streaming)
        kind = datasets.IterableDatasetDict if streaming else datasets.DatasetDict
        assert type(found) is kind
        lengths = {split: sizes(dataset) for split, dataset in found.items()}
        assert lengths == {"train": list(range(1, 21)), "test": list(range(21, 26))}
    file = load_dataset(root / "nlp" / "train-0000.parquet", streaming=streaming)
    assert {split: sizes(dataset) for split, dataset in file.items()} == {"train": [1, 2, 3, 4, 5]}
    few = load_dataset(root, "cv", filters=[("num_ops", ">", 23)], streaming=streaming)
    lengths = {split: sizes(dataset) for split, dataset in few.items()}
    assert lengths == {"train": [], "test": [24, 25]}


def test_the_embedded_dataset_comes_with_all_splits() -> None:
    splits = {"train", "validation", "test"}
    assert set(load_dataset()) == set(load_dataset("graphnet", "cv")) == splits


@pytest.mark.parametrize(
    ("options", "suggestion"),
    [
        ({"config": "CV"}, "Did you mean `cv`?"),
        ({"config": "nlpp"}, "Did you mean `nlp`?"),
        ({"config": "cv", "split": "tests"}, "Did you mean `test`?"),
        ({"columns": ["num_op"]}, "Did you mean `num_ops`"),
        ({"filters": [("tsk", "=", "cv")]}, "Did you mean `task`?"),
    ],
)
def test_a_name_that_is_almost_right_is_suggested(
    root: Path, options: dict[str, Any], suggestion: str
) -> None:
    with pytest.raises(GraphNetError) as caught:
        load_dataset(root, **options)
    assert suggestion in str(caught.value)


@pytest.mark.parametrize(
    "options",
    [
        {"config": "vision"},
        {"split": "dev"},
        {"columns": ["size"]},
        {"filters": [("size", "<", 3)]},
    ],
)
def test_no_message_says_where_the_library_is_installed(options: dict[str, Any]) -> None:
    with pytest.raises(GraphNetError) as caught:
        load_dataset("graphnet", **options)
    assert str(caught.value).startswith(("`graphnet` has no", "The filter"))
    assert str(Path(graphnet_datasets.__file__).parent) not in str(caught.value)


def test_tables_from_before_a_column_was_added_have_null_there(root: Path) -> None:
    old = read_table(root / "cv" / "train-0000.parquet")
    old = old.drop_columns(["validation", "why_excluded", "custom_operators"])
    pq.write_table(old, root / "cv" / "train-0000.parquet")
    assert Sample.from_row(load_dataset(root, "cv", split="train")[3]) == chain(
        "cv/chain-4", 4, "cv", source="cv-library"
    )
    write_table(
        [{**row, "why_excluded": "why not"} for row in rows("cv", range(50, 52))],
        root / "cv" / "train-0001.parquet",
    )
    (root / "README.md").unlink()
    for streaming in (False, True):
        both = load_dataset(root, "cv", streaming=streaming, split="train")
        assert [row["why_excluded"] for row in both] == [None] * 20 + ["why not"] * 2


def test_excluded_graphs_are_in_a_config_of_their_own(root: Path) -> None:
    failed = [{**row, "why_excluded": "runnable: NaN."} for row in rows("cv", range(90, 92))]
    assert {config_of(row) for row in failed} == {"excluded"}
    write_table(failed, root / "excluded" / "train-0000.parquet")
    write_readme(root)
    assert sizes(load_dataset(root, split="train")) == [*range(1, 21), *range(1, 6)]
    assert sizes(load_dataset(root, "excluded", split="train")) == [90, 91]
    plain = datasets.load_dataset(str(root))
    assert {name: len(split) for name, split in plain.items()} == {"train": 25, "test": 5}
    assert datasets.load_dataset(str(root), "excluded")["train"]["num_ops"][:] == [90, 91]


def test_the_default_config_is_every_task_and_the_default_split_is_train(root: Path) -> None:
    assert sizes(load_dataset(root, split="train")) == [*range(1, 21), *range(1, 6)]


def test_splits_read_as_in_datasets(root: Path) -> None:
    assert sizes(load_dataset(root, "cv", split="test")) == list(range(21, 26))
    assert sizes(load_dataset(root, "cv", split="train[:2]+test[-1:]")) == [1, 2, 25]
    by_name = load_dataset(root, "cv", split=None)
    assert isinstance(by_name, datasets.DatasetDict)
    assert {name: len(split) for name, split in by_name.items()} == {"train": 20, "test": 5}
    assert sizes(load_dataset(root, "cv", split=datasets.Split.TEST)) == sizes(
        load_dataset(root, "cv", split="test")
    )
    instruction = datasets.ReadInstruction("train", to=2, unit="abs")
    assert sizes(load_dataset(root, "cv", split=instruction)) == [1, 2]
    first, last = load_dataset(root, "cv", split=["train[:2]", datasets.Split.TEST])
    assert (sizes(first), last.split) == ([1, 2], datasets.Split.TEST)
    with pytest.raises(DatasetNotFoundError, match=r"There is no split 3\. A split is a string"):
        load_dataset(root, "cv", split=3)  # type: ignore[call-overload]


@pytest.mark.parametrize("streaming", [False, True])
@pytest.mark.parametrize(
    ("filters", "expected"),
    [
        ([("num_ops", "<", 3)], [1, 2, 1, 2]),
        ([("num_ops", "<", 3), ("task", "==", "nlp")], [1, 2]),
        ([("source", "in", ["nlp-library"]), ("family", "==", "odd")], [1, 3, 5]),
        ([[("num_ops", "==", 20)], [("num_ops", "==", 1), ("task", "==", "cv")]], [1, 20]),
        (pyarrow.dataset.field("num_ops") > 19, [20]),
        ([("num_ops", ">", 1000)], []),
        ([("num_ops", "<", 2.5)], [1, 2, 1, 2]),
        ([("num_ops", "<=", 2.0)], [1, 2, 1, 2]),
        ([("num_ops", ">", 19.5), ("num_ops", "<", float("inf"))], [20]),
        ([("num_ops", "in", [20.0, 2.5])], [20]),
        ([("tags", "contains", "small")], [1, 2, 1, 2]),
        ([("tags", "contains", "small"), ("num_ops", "<", 1.5), ("task", "==", "cv")], [1]),
        (
            [[("tags", "contains", "chain"), ("num_ops", ">", 1)], [("num_ops", ">", 19)]],
            [2, 20, 2],
        ),
        ([("tags", "contains", "smal.")], []),
        ([("tags", "contains", "")], []),
    ],
    ids=str,
)
def test_filters(root: Path, filters: object, expected: list[int], streaming: bool) -> None:
    dataset = load_dataset(root, filters=filters, streaming=streaming, split="train")
    assert sizes(dataset) == expected


def test_filters_without_a_match_return_an_empty_dataset(root: Path) -> None:
    nothing = [("num_ops", "<", 0)]
    dataset = load_dataset(root, "cv", filters=nothing, columns=["id", "num_ops"], split="train")
    assert len(dataset) == 0
    assert dataset.column_names == ["id", "num_ops"]
    assert len(dataset.filter(lambda row: row["num_ops"] < 200)) == 0
    by_name = load_dataset(root, "cv", split=None, filters=nothing)
    assert {name: len(split) for name, split in by_name.items()} == {"train": 0, "test": 0}
    assert len(load_dataset(root, "cv", split="train[:0]")) == 0


@pytest.mark.parametrize("filters", [[], [[]], ()], ids=str)
def test_filters_without_a_condition_keep_all(root: Path, filters: Any) -> None:
    assert len(load_dataset(root, "nlp", filters=filters, split="train")) == 5


def test_a_file_that_may_not_be_read_is_not_called_damaged(root: Path) -> None:
    error = PermissionError(13, "Permission denied")
    assert str(unreadable(root / "cv.parquet", error)) == (
        f"No permission to read `{root / 'cv.parquet'}`. Ask its owner for access."
    )


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read any directory")
def test_a_directory_that_may_not_be_read_says_so(root: Path) -> None:
    root.chmod(0)
    try:
        with pytest.raises(DatasetNotFoundError, match=r"^No permission to read the directory"):
            load_dataset(root, split="train")
    finally:
        root.chmod(0o700)


def test_the_filter_of_datasets_works_on_rows(root: Path) -> None:
    dataset = load_dataset(root, "cv", split="train")
    assert sizes(dataset.filter(lambda row: row["num_ops"] < 4)) == [1, 2, 3]


def test_samples_are_made_in_a_map_and_refused_in_another_format(root: Path) -> None:
    dataset = load_dataset(root, "cv", split="train")
    counted = dataset.map(lambda row: {"count": Sample.from_row(row).num_ops})
    assert counted["count"][:] == sizes(dataset)
    with pytest.raises(SchemaError) as caught:
        Sample.from_row(dataset.with_format("numpy")[0])
    assert str(caught.value) == (
        "In row `cv/chain-1`: `ops` is of type `ndarray` where a list is expected; take rows of "
        "`dataset.with_format(None)`."
    )


def test_columns_load_less(root: Path) -> None:
    for streaming in (False, True):
        dataset = load_dataset(
            root, "nlp", columns=["id", "num_ops"], streaming=streaming, split="train"
        )
        assert next(iter(dataset)) == {"id": "nlp/chain-1", "num_ops": 1}


def test_streaming_reads_nothing_until_asked(root: Path) -> None:
    dataset = load_dataset(root, "cv", streaming=True, split="train")
    assert isinstance(dataset, datasets.IterableDataset)
    assert Sample.from_row(next(iter(dataset))).id == "cv/chain-1"


def test_a_file_is_a_dataset(tmp_path: Path) -> None:
    # Brackets and stars in a path are not a pattern.
    path = write_table(rows("cv", range(3)), tmp_path / "a[1]*" / "mine.parquet")
    assert sizes(load_dataset(path, split="train")) == [0, 1, 2]
    assert sizes(load_dataset(str(path), split="train[1:]")) == [1, 2]


def test_a_changed_file_is_read_again(tmp_path: Path) -> None:
    path = write_table(rows("cv", range(3)), tmp_path / "mine.parquet")
    assert sizes(load_dataset(path, split="train")) == [0, 1, 2]
    write_table(rows("cv", range(4, 6)), path)
    assert sizes(load_dataset(path, split="train")) == [4, 5]


def test_a_shard_that_is_added_is_read_although_the_readme_is_the_same(root: Path) -> None:
    assert len(load_dataset(root, "nlp", split="train")) == 5
    write_table(rows("nlp", range(6, 8)), root / "nlp" / "train-0001.parquet")
    assert len(load_dataset(root, "nlp", split="train")) == 7


def test_a_missing_directory_is_never_an_older_one_of_the_same_name(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert len(load_dataset("./graphnet", "nlp", split="train")) == 5
    root.rename(tmp_path / "elsewhere")
    with pytest.raises(DatasetNotFoundError, match=r"^The directory `graphnet` does not exist"):
        load_dataset("./graphnet", "nlp", split="train")


def test_the_configured_default_replaces_the_embedded_one(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(REPO_VARIABLE, str(root))
    assert len(load_dataset("graphnet", "nlp", split="train")) == 5
    monkeypatch.setenv(REPO_VARIABLE, "graphnet")
    with pytest.raises(DatasetNotFoundError, match=r"^There is no dataset `graphnet`"):
        load_dataset("graphnet", split="train")


@pytest.mark.parametrize("name", ["graphnets", "a/b/c", "a b/c", ""])
def test_an_unknown_name_lists_the_accepted_forms(name: str) -> None:
    message = (
        f"There is no dataset `{name}`. Use `graphnet` for the embedded dataset, `./{name}` for "
        "a path, `s3://…` or another URL, or `org/name` for a Hub repository."
    )
    with pytest.raises(DatasetNotFoundError, match=f"^{re.escape(message)}$"):
        load_dataset(name, split="train")


def test_unknown_configs_splits_and_columns_list_those_that_exist(root: Path) -> None:
    def message_of(error: type[Exception], **options: object) -> str:
        with pytest.raises(error) as caught:
            load_dataset(root, **{"config": "cv", **options})  # type: ignore[arg-type]
        return str(caught.value)

    columns = ", ".join(GRAPHS_SCHEMA.names)
    assert message_of(DatasetNotFoundError, config="vision") == (
        f"`{root}` has no config `vision`. Its configs are cv, nlp, all."
    )
    assert message_of(DatasetNotFoundError, split="dev") == (
        f"`{root}` has no split `dev`. Its splits are test, train."
    )
    assert message_of(DatasetNotFoundError, split="train[:3]+dev[:10%]").endswith(
        "has no split `dev`. Its splits are test, train."
    )
    assert message_of(SchemaError, columns=["id", "ops_count"]) == (
        f"`{root}` has no column `ops_count`. Its columns are {columns}."
    )
    assert message_of(SchemaError, filters=[[("size", "<", 3)]]) == (
        f"`{root}` has no column `size`. Its columns are {columns}."
    )
    assert message_of(SchemaError, filters=pyarrow.dataset.field("size") < 3).startswith(
        "The filter <pyarrow.compute.Expression (size < 3)> does not match the columns of "
    )


@pytest.mark.parametrize(
    "filters",
    [
        [("num_ops", "<", "three")],
        [("num_ops", "~", 3)],
        [("tags", "==", "vision")],
        [("tags", "contains", 3)],
        [("id", "contains", "chain")],
        [("num_ops", "contains", "3")],
        [("num_ops",)],
        "num_ops < 3",
    ],
    ids=str,
)
def test_a_filter_that_cannot_work_is_refused_before_anything_is_read(
    root: Path, filters: object
) -> None:
    with pytest.raises(SchemaError) as caught:
        load_dataset(root, "cv", filters=filters, split="train")
    assert str(caught.value).startswith(f"The filter {filters!r} does not match the columns of")
    assert "For other filters use `dataset.filter`." in str(caught.value)


def test_a_truncated_shard_is_named(root: Path) -> None:
    path = root / "cv" / "train-0000.parquet"
    path.write_bytes(path.read_bytes()[:-100])
    with pytest.raises(SchemaError, match=f"^`{re.escape(str(path))}` is not a complete Parquet"):
        load_dataset(root, "cv", split="train")


def test_a_damaged_page_is_an_error_of_ours(root: Path) -> None:
    path = root / "cv" / "train-0000.parquet"
    content = bytearray(path.read_bytes())
    content[4:2000] = bytes(1996)
    path.write_bytes(content)
    with pytest.raises(SchemaError, match=f"^`{re.escape(str(path))}` is not a complete Parquet"):
        load_dataset(root, "cv", split="train")


def test_another_format_version_is_refused_by_its_rows_too(tmp_path: Path) -> None:
    old = [{**row, "schema_version": 2} for row in rows("cv", range(2))]
    write_table(old, tmp_path / "cv" / "train-0000.parquet")
    with pytest.raises(FormatVersionError, match=r"has format version 2; this library reads 1\."):
        load_dataset(tmp_path, "cv", split="train")


def test_the_embedded_dataset_loads_by_its_bare_name() -> None:
    dataset = load_dataset("graphnet", "cv", split="train")
    assert set(dataset["task"]) == {"cv"}
    assert Sample.from_row(dataset[0]).task == "cv"
    assert (STARTER / "README.md").is_file()


# On the Hub


@pytest.fixture
def repository(hub: object, root: Path) -> str:  # noqa: ARG001 - a fixture cannot use `usefixtures`
    api = HfApi()
    api.create_repo("org/graphs", repo_type="dataset")
    api.create_branch("org/graphs", branch="v1", repo_type="dataset")
    api.upload_folder(repo_id="org/graphs", folder_path=root, repo_type="dataset", revision="v1")
    return "org/graphs"


def test_a_repository_is_read_at_the_branch_of_this_format(repository: str) -> None:
    dataset = load_dataset(repository, "cv", split="test")
    assert [Sample.from_row(row).num_ops for row in dataset] == list(range(21, 26))
    assert sizes(
        load_dataset(repository, filters=[("num_ops", ">", 19)], streaming=True, split="train")
    ) == [20]
    assert len(load_dataset(repository, "cv", filters=[("num_ops", ">", 999)], split="train")) == 0


@pytest.mark.usefixtures("hub")
def test_a_repository_without_that_branch_is_read_at_its_head(root: Path) -> None:
    api = HfApi()
    api.create_repo("org/plain", repo_type="dataset")
    api.upload_folder(repo_id="org/plain", folder_path=root, repo_type="dataset")
    assert len(load_dataset("org/plain", "nlp", split="train")) == 5
    with pytest.raises(DatasetNotFoundError) as caught:
        load_dataset("org/plain", "nlp", revision="v7", split="train")
    assert str(caught.value) == (
        "There is no dataset `org/plain` at the revision `v7` on the Hub, or it is private. "
        "Check the name, or log in with `hf auth login`."
    )


def test_missing_configs_of_a_repository_are_listed(repository: str) -> None:
    with pytest.raises(DatasetNotFoundError) as caught:
        load_dataset(repository, "vision", split="train")
    assert str(caught.value) == (
        "`org/graphs` has no config `vision`. Its configs are cv, nlp, all."
    )
    with pytest.raises(DatasetNotFoundError, match=r"^`org/graphs` has no split `dev`\. Its"):
        load_dataset(repository, "cv", split="dev")
    with pytest.raises(SchemaError, match=r"^`org/graphs` has no column `size`"):
        load_dataset(repository, "cv", filters=[("size", "<", 3)], split="train")


@pytest.mark.usefixtures("hub")
def test_a_repository_that_does_not_exist_says_so() -> None:
    with pytest.raises(DatasetNotFoundError) as caught:
        load_dataset("org/nothing", split="train")
    assert str(caught.value) == (
        "There is no dataset `org/nothing` on the Hub, or it is private. Check the name, or "
        "log in with `hf auth login`."
    )


@pytest.mark.slow
def test_cached_datasets_load_offline(repository: str) -> None:
    assert len(load_dataset(repository, "nlp", split="train")) == 5
    script = (
        "import graphnet_datasets as g; print(len(g.load_dataset('org/graphs', 'nlp')['train']))"
    )
    result = subprocess.run(
        [sys.executable, "-c", script],
        env={**os.environ, "HF_HUB_OFFLINE": "1"},
        check=True,
        capture_output=True,
        text=True,
    )
    assert result.stdout.strip() == "5"


def test_a_readme_is_written_again_for_plain_datasets(root: Path) -> None:
    # What `datasets` caches by the text of the README it reads anew after `write_readme`.
    assert len(datasets.load_dataset(str(root), "nlp", split="train")) == 5
    write_table(rows("nlp", range(6, 8)), root / "nlp" / "train-0001.parquet")
    write_readme(root)
    assert len(datasets.load_dataset(str(root), "nlp", split="train")) == 7


@pytest.mark.slow
def test_a_filter_fetches_only_the_row_groups_that_it_needs(hub: Hub, tmp_path: Path) -> None:
    rng = random.Random(0)  # noqa: S311 - noise, not a secret
    noisy = [
        # Rows of ten thousand bytes each, which do not compress; that they say how long they are is
        # all that the filter looks at.
        {
            **row,
            "id": f"{task}/chain-{size}",
            "num_ops": size,
            "provenance": {**row["provenance"], "metadata": rng.randbytes(10_000).hex()},
        }
        for task in ("cv", "nlp")
        for row in rows(task, range(1, 2))
        for size in range(1, 601)
    ]
    for task in ("cv", "nlp"):
        tables = (to_arrow([row]) for row in noisy if row["task"] == task)
        write_shards(tables, tmp_path / task, "train", shard_rows=300)
    write_readme(tmp_path)
    api = HfApi()
    api.create_repo("org/large", repo_type="dataset")
    api.upload_folder(repo_id="org/large", folder_path=tmp_path, repo_type="dataset")
    sizes_of = {
        hashlib.sha256(path.read_bytes()).hexdigest(): (path.parent.name, path.stat().st_size)
        for path in tmp_path.rglob("*.parquet")
    }
    total = sum(size for _, size in sizes_of.values())

    def served(config: str | None, **question: Any) -> tuple[list[int], dict[str, int]]:
        hub.state.bytes_served.clear()
        HfFileSystem.clear_instance_cache()
        dataset = load_dataset("org/large", config, "train", streaming=True, **question)
        found = sizes(dataset)
        counts = {"cv": 0, "nlp": 0}
        for blob, count in hub.state.bytes_served.items():
            if blob in sizes_of:
                counts[sizes_of[blob][0]] += count
        return found, counts

    found, counts = served("nlp", filters=[("num_ops", "<=", 50)])
    assert found == list(range(1, 51))
    assert counts["cv"] == 0
    assert counts["nlp"] < 0.15 * total  # one row group of twelve, and the ends of two files
    found, counts = served(None, filters=[("task", "==", "nlp"), ("num_ops", ">", 550)])
    assert found == list(range(551, 601))
    assert counts["cv"] < 0.05 * total  # the ends of its files
    assert counts["nlp"] < 0.15 * total
    found, counts = served(None, columns=["num_ops"])
    assert len(found) == 1200
    assert sum(counts.values()) < 0.12 * total  # mostly the ends of the files
    found, counts = served(None)
    assert sum(counts.values()) > 0.9 * total


def test_a_script_beside_the_tables_does_not_run(tmp_path: Path) -> None:
    root = write_dataset(tmp_path / "graphnet")
    mark = tmp_path / "ran"
    for name in ("graphnet.py", "dataset.py", "cv.py", "__init__.py", "conftest.py", "setup.py"):
        (root / name).write_text(f"open({str(mark)!r}, 'w')\n")
    (root / "dataset_infos.json").write_text('{"default": {"builder_name": "graphnet"}}')
    assert load_dataset(root, "cv", split="train").num_rows
    assert not mark.exists()
