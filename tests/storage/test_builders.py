"""Loading a table imports no needless package, keeps Arrow's memory, and opens no other files."""

from __future__ import annotations

import json
import subprocess
import sys
import types
from pathlib import Path

import datasets
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from graphnet_datasets import load_dataset
from graphnet_datasets.errors import SchemaError
from graphnet_datasets.schema import graphs_features
from graphnet_datasets.storage.builders import check_features, short_lived_memory
from graphnet_datasets.storage.table import read_table, write_table
from tests.tables import rows

LOAD = """
import sys
from graphnet_datasets import load_dataset
rows = load_dataset("graphnet", "cv", "train", filters=[("num_ops", "<", 40)])
assert len(rows)
from datasets import streaming
from datasets.utils.patching import patch_submodule
assert streaming.patch_submodule is patch_submodule
print(sorted({"scipy", "torch", "paddle", "matplotlib"} & set(sys.modules)))
"""


def printed_by(program: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=300
    )
    return done.stdout.strip()


def test_loading_imports_neither_a_framework_nor_scipy() -> None:
    assert printed_by(LOAD) == "[]"


def test_the_usual_memory_is_back_after_a_failure() -> None:
    before = pa.default_memory_pool().backend_name
    with pytest.raises(KeyError), short_lived_memory():
        raise KeyError
    assert pa.default_memory_pool().backend_name == before


def test_a_pool_that_somebody_chose_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ARROW_DEFAULT_MEMORY_POOL", "mimalloc")
    before = pa.default_memory_pool().backend_name
    with short_lived_memory():
        assert pa.default_memory_pool().backend_name == before


def test_nothing_changes_for_who_is_in_it_already() -> None:
    before = pa.default_memory_pool().backend_name
    with short_lived_memory():
        within = pa.default_memory_pool().backend_name
        with short_lived_memory():
            assert pa.default_memory_pool().backend_name == within
        assert pa.default_memory_pool().backend_name == within
    assert pa.default_memory_pool().backend_name == before


def write_declaring(path: Path, kind: str, target: str) -> Path:
    """Write a table whose metadata declares its column `source` as a kind of media."""
    table = read_table(write_table(rows("cv", range(2)), path))
    place = table.schema.get_field_index("source")
    storage = pa.struct([("bytes", pa.binary()), ("path", pa.string())])
    values = pa.array([{"bytes": None, "path": target}] * len(table), storage)
    metadata = json.loads(table.schema.metadata[b"huggingface"])
    metadata["info"]["features"]["source"] = {"_type": kind}
    table = table.set_column(place, "source", values).replace_schema_metadata(
        {**table.schema.metadata, b"huggingface": json.dumps(metadata)}
    )
    pq.write_table(table, path)
    return path


@pytest.mark.parametrize("kind", ["Image", "Audio", "Video", "Pdf"])
@pytest.mark.parametrize("streaming", [False, True])
def test_no_column_refers_to_files_or_addresses(kind: str, streaming: bool, tmp_path: Path) -> None:
    path = write_declaring(tmp_path / "a.parquet", kind, str(tmp_path / "secret.png"))
    for split in (None, "train"):
        with pytest.raises(SchemaError, match=f"`source` of .* is declared as `{kind}`"):
            load_dataset(path, split=split, streaming=streaming)


def test_nested_columns_refer_to_no_files_either() -> None:
    features = datasets.Features({"a": datasets.List({"b": datasets.Image()})})
    builder = types.SimpleNamespace(
        info=datasets.DatasetInfo(features=features), dataset_name="strange"
    )
    with pytest.raises(SchemaError, match="`a` of `strange` is declared as `Image`"):
        check_features(builder)
    builder.info.features = graphs_features()
    check_features(builder)
