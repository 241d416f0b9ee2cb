"""Datasets on file systems that `fsspec` reaches: memory, files, and S3 through moto's server."""

from __future__ import annotations

import importlib
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import fsspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from graphnet_datasets import Sample, export_dataset, load_dataset
from graphnet_datasets.errors import (
    DatasetExistsError,
    DatasetNotFoundError,
    DecodedSizeError,
    FormatVersionError,
    MissingExtraError,
    SchemaError,
)
from graphnet_datasets.storage.builders import check_downloads
from graphnet_datasets.storage.table import write_table
from tests.exact import exact
from tests.tables import chain, rows, write_dataset
from tests.test_decoding import with_other_footer


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return write_dataset(tmp_path / "graphnet")


@pytest.fixture
def memory() -> Iterator[Any]:
    """The file system of this process, empty before and after."""
    found = fsspec.filesystem("memory")
    found.store.clear()
    yield found
    found.store.clear()
    found.pseudo_dirs[:] = [""]


def sizes(dataset: Any) -> list[int]:
    return [row["num_ops"] for row in dataset]


def check_dataset(url: str, options: dict[str, Any] | None) -> None:
    """Load a copy of `write_dataset` at a URL in every way."""
    dataset = load_dataset(url, "cv", storage_options=options, split="train")
    assert sizes(dataset) == list(range(1, 21))
    expected = chain("cv/chain-7", 7, "cv", source="cv-library")
    assert exact(Sample.from_row(dataset[6])) == exact(expected)
    assert sizes(load_dataset(url, storage_options=options, split="train")) == [
        *range(1, 21),
        *range(1, 6),
    ]
    few = [("num_ops", ">", 23), ("task", "==", "cv")]
    for streaming in (False, True):
        splits: Any = load_dataset(
            url, split=None, filters=few, streaming=streaming, columns=["id", "num_ops"],
            storage_options=options,
        )  # fmt: skip
        assert {name: sizes(split) for name, split in splits.items()} == {
            "test": [24, 25], "train": [],
        }  # fmt: skip
    with pytest.raises(DatasetNotFoundError) as caught:
        load_dataset(url, "vision", storage_options=options, split="train")
    assert str(caught.value) == f"`{url}` has no config `vision`. Its configs are cv, nlp, all."
    with pytest.raises(DatasetNotFoundError, match=r"has no split `dev`\. Its splits are test, "):
        load_dataset(url, "cv", split="dev", storage_options=options)
    with pytest.raises(SchemaError, match=f"^`{re.escape(url)}` has no column `size`"):
        load_dataset(url, filters=[("size", "<", 3)], storage_options=options, split="train")


def test_s3(root: Path, tmp_path: Path, bucket: dict[str, Any]) -> None:
    url = "s3://graphs/deep/graphnet"
    assert str(export_dataset(url, root, storage_options=bucket)) == url
    check_dataset(url, bucket)
    file = f"{url}/nlp/train-0000.parquet"
    assert sizes(load_dataset(file, storage_options=bucket, split="train")) == list(range(1, 6))
    with pytest.raises(DatasetExistsError, match="exists"):
        export_dataset(url, root, storage_options=bucket)
    copy = export_dataset(tmp_path / "copy", url, storage_options=bucket)
    assert isinstance(copy, Path)
    assert {path.relative_to(copy): path.read_bytes() for path in copy.rglob("*.*")} == {
        path.relative_to(root): path.read_bytes() for path in root.rglob("*.*")
    }


def test_s3_names_the_missing_package(bucket: dict[str, Any]) -> None:
    with pytest.raises(DatasetNotFoundError) as caught:
        load_dataset("s3://graphs/nothing", storage_options=bucket, split="train")
    assert str(caught.value) == (
        "`s3://graphs/nothing` has no Parquet table. Write a dataset there with "
        "`graphnet export s3://graphs/nothing`."
    )
    once = {"retries": {"total_max_attempts": 1}}
    closed = {"endpoint_url": "http://127.0.0.1:9", "config_kwargs": once}
    with pytest.raises(DatasetNotFoundError, match=r"^`s3://graphs/x` cannot be reached"):
        load_dataset("s3://graphs/x", storage_options=closed, split="train")


def test_memory(root: Path, memory: Any) -> None:
    export_dataset("memory://there/graphnet", root)
    assert memory.isfile("/there/graphnet/README.md")
    check_dataset("memory://there/graphnet", None)
    memory.rm("/there/graphnet/README.md")
    check_dataset("memory://there/graphnet", None)


def test_changed_files_are_read_again(root: Path, memory: Any, tmp_path: Path) -> None:
    export_dataset("memory://there/graphnet", root)
    assert len(load_dataset("memory://there/graphnet", "nlp", split="train")) == 5
    write_table(rows("nlp", range(1, 3)), tmp_path / "new.parquet")
    memory.put_file(str(tmp_path / "new.parquet"), "/there/graphnet/nlp/train-0000.parquet")
    assert len(load_dataset("memory://there/graphnet", "nlp", split="train")) == 2


def test_files(root: Path, tmp_path: Path) -> None:
    check = load_dataset(f"file://{root}", "cv", split="train")
    assert sizes(check) == list(range(1, 21))
    odd = tmp_path / "with space"
    export_dataset(f"file://{tmp_path}/with%20space", f"file://{root}")
    assert sizes(load_dataset(odd, "nlp", split="train")) == list(range(1, 6))
    with pytest.raises(DatasetNotFoundError, match=r"^The directory `/no/where` does not exist"):
        load_dataset("file:///no/where", split="train")


def test_another_format_version_or_a_torn_file_is_refused(memory: Any, tmp_path: Path) -> None:
    old = [{**row, "schema_version": 2} for row in rows("cv", range(2))]
    memory.put_file(str(write_table(old, tmp_path / "a.parquet")), "/old/cv/train-0000.parquet")
    with pytest.raises(FormatVersionError, match=r"^`memory://old` has format version 2"):
        load_dataset("memory://old", split="train")
    memory.pipe_file("/torn/cv/train-0000.parquet", b"PAR1")
    with pytest.raises(SchemaError, match=r"^`memory://torn/cv/train-0000.parquet` is not a compl"):
        load_dataset("memory://torn", split="train")


def test_a_table_that_lies_about_its_size_is_refused(memory: Any, tmp_path: Path) -> None:
    path = tmp_path / "lie.parquet"
    pq.write_table(pa.table({"id": ["x"] * 200_000}), path)
    path.write_bytes(with_other_footer(path.read_bytes(), 200_000, 1000))
    memory.pipe_file("/lies/cv/train-0.parquet", path.read_bytes())
    with pytest.raises(DecodedSizeError, match=r"declares 1,000 values"):
        load_dataset("memory://lies", "cv", split="train")


def test_a_repository_of_other_files_is_refused(tmp_path: Path) -> None:
    import datasets

    (tmp_path / "a.json").write_text('{"a": 1}')
    builder = datasets.load_dataset_builder("json", data_files=str(tmp_path / "a.json"))
    with pytest.raises(SchemaError, match=r"has no Parquet tables"):
        check_downloads(builder)


def test_a_protocol_that_nobody_knows_says_so() -> None:
    with pytest.raises(DatasetNotFoundError) as caught:
        load_dataset("carrier-pigeon://graphs", split="train")
    assert str(caught.value) == (
        "`carrier-pigeon://graphs` cannot be reached: Protocol not known: carrier-pigeon. Use "
        "`s3://…`, `gs://…`, `memory://…` or another protocol of `fsspec`."
    )


def test_without_s3fs_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "s3fs", None)
    loaded = importlib.import_module("fsspec.registry")._registry  # what it has imported so far
    monkeypatch.delitem(loaded, "s3", raising=False)
    with pytest.raises(MissingExtraError) as caught:
        load_dataset("s3://graphs/nothing", split="train")
    assert str(caught.value) == (
        "Reading `s3://` needs the package `s3fs`, which is not installed. Install it with "
        "`pip install 'graphnet-datasets[s3]'`."
    )
