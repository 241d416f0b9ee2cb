"""A build from end to end, with real worker processes, on a catalog of three entries."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from builder.__main__ import main
from builder.capturing import Keys
from builder.catalog import read_catalog
from builder.libraries import LIBRARIES
from builder.starter import CATALOGS
from graphnet_datasets.storage.table import read_table

CATALOG = """\
torch/a | other | torch | mlp | sizes=[4,8,2] | input=normal(2,4) | float32 | eval | input.0 | small
torch/b | scientific | torch | siren | width=8 depth=1 | input=uniform(4,2) | bfloat16 | eval | |
"""
BROKEN = "torch/c | cv | torch | mlp | sizes=[4,8,2] | input=normal(2,5) | float32 | eval | |\n"


def build(tmp_path: Path, catalog: str, out: str, *options: str, build: str = "build") -> int:
    path = tmp_path / "catalog.txt"
    path.write_text(catalog)
    arguments = ["starter", "--catalog", path, "--out", tmp_path / out, "--build", tmp_path / build]
    return main([*map(str, arguments), *options])


def files(directory: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(directory)): path.read_bytes()
        for path in sorted(directory.rglob("*"))
        if path.is_file()
    }


@pytest.mark.slow
def test_a_rebuild_gives_equal_bytes_and_a_resumed_build_captures_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert build(tmp_path, CATALOG, "first") == 0
    first = files(tmp_path / "first")
    assert set(first) == {
        "README.md", "eval.yaml", "other/train-0000.parquet", "scientific/train-0000.parquet",
    }  # fmt: skip
    cached = {path: path.stat().st_mtime_ns for path in (tmp_path / "build").glob("*.parquet")}
    assert len(cached) == 2
    assert build(tmp_path, CATALOG, "again") == 0
    assert {path: path.stat().st_mtime_ns for path in cached} == cached
    assert build(tmp_path, CATALOG, "afresh", build="other-build") == 0
    assert files(tmp_path / "again") == files(tmp_path / "afresh") == first
    (row,) = read_table(tmp_path / "first" / "other" / "train-0000.parquet").to_pylist()
    assert (row["id"], row["task"], row["is_dynamic"]) == ("torch/a", "other", True)
    assert "2 graphs in" in capsys.readouterr().out


def test_a_failure_is_recorded_with_its_reason_and_stops_the_writing(tmp_path: Path) -> None:
    assert build(tmp_path, CATALOG + BROKEN, "out") == 1
    assert not (tmp_path / "out").exists()
    failures = json.loads((tmp_path / "build" / "failures.json").read_text())
    assert list(failures) == ["torch/c"]
    assert failures["torch/c"].startswith("error in capture: RuntimeError ")
    assert build(tmp_path, CATALOG + BROKEN, "out", "--allow-failures") == 0
    assert len(files(tmp_path / "out")) == 4  # with the README and eval.yaml


def test_a_key_changes_with_its_inputs(tmp_path: Path) -> None:
    path = tmp_path / "catalog.txt"
    path.write_text(CATALOG + CATALOG.replace("torch/", "more/").replace("float32", "bfloat16"))
    keys = Keys()
    assert len({keys.of(entry) for entry in read_catalog(path)}) == 4
    assert Keys().of(read_catalog(path)[0]) == keys.of(read_catalog(path)[0])


def test_a_library_is_embedded_whole_where_its_catalog_is_the_starters() -> None:
    whole = {name for name, library in LIBRARIES.items() if library.is_embedded_whole}
    assert whole == {Path(catalog).stem for catalog in CATALOGS} & LIBRARIES.keys()
