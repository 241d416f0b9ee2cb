"""Files that are small on the disk and huge in memory: refused by their declared sizes."""

from __future__ import annotations

import contextlib
import io
import json
import re
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

from graphnet_datasets import import_log
from graphnet_datasets.atomic import append_json
from graphnet_datasets.benchmark import read_runs
from graphnet_datasets.cli.app import app
from graphnet_datasets.decoding import (
    DEFAULT_BYTES,
    VARIABLE,
    check_decoded_size,
    check_parquet,
    decoded_limit,
    load_json,
    read_bytes,
    read_journal,
    read_json,
    read_json_lines,
    read_npy,
    read_npz,
    read_text,
)
from graphnet_datasets.errors import DecodedSizeError, GraphNetError, SchemaError
from graphnet_datasets.json_text import parse_json
from graphnet_datasets.parquet_pages import read_chunk_sizes
from graphnet_datasets.storage.layout import parse_card, read_layout
from graphnet_datasets.storage.loading import STARTER
from graphnet_datasets.storage.table import read_table, write_table
from graphnet_datasets.tuning.models.arrays import load_arrays
from tests.tables import chain

LIMIT = 2**20


@pytest.fixture
def small_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, str(LIMIT))


def bombs() -> dict[str, pa.Table]:
    """Return tables that take a few kilobytes as Parquet and more than the limit in memory."""
    text = "x" * 20_000
    lists = pa.array([[text] * 10] * 20)
    return {
        "strings in a dictionary": pa.table({"id": [text] * 200}),
        "lists of strings": pa.table({"id": lists}),
        "structures": pa.table({"id": pa.array([[{"a": text, "b": 1}] * 10] * 20)}),
        "binary": pa.table({"id": pa.array([text.encode()] * 200)}),
        "integers": pa.table({"id": np.zeros(200_000, np.int64)}),
        "nulls": pa.table({"id": pa.nulls(200_000, pa.string())}),
        "empty lists": pa.table({"id": pa.array([[]] * 200_000, pa.list_(pa.int8()))}),
        "fixed size": pa.table({"id": pa.array([b"0" * 400] * 5000, pa.binary(400))}),
    }


@pytest.mark.parametrize("name", bombs())
@pytest.mark.usefixtures("small_limit")
def test_a_table_is_refused_before_it_is_decoded(name: str, tmp_path: Path) -> None:
    path = tmp_path / "bomb.parquet"
    pq.write_table(bombs()[name], path, compression="zstd")
    assert path.stat().st_size < LIMIT / 20
    message = r"bomb\.parquet` takes [\d,]+ bytes after decoding; at most 1,048,576 are"
    for read in (read_table, read_runs, lambda place: check_parquet(place, place)):
        before = pa.total_allocated_bytes()
        with pytest.raises(DecodedSizeError, match=message):
            read(path)
        assert pa.total_allocated_bytes() - before < LIMIT
    for words in (["show", "x", "--dataset", path], ["score", path]):
        result = CliRunner().invoke(app, [str(word) for word in words])
        assert result.exit_code != 0
        assert VARIABLE in " ".join(result.output.split())


def test_values_that_repeat_their_beginning_are_counted(tmp_path: Path, small_limit: None) -> None:
    del small_limit
    path = tmp_path / "bomb.parquet"
    table = pa.table({"id": ["x" * length for length in range(2000)]})
    encoding = {"id": "DELTA_BYTE_ARRAY"}
    pq.write_table(table, path, use_dictionary=False, column_encoding=encoding)
    assert path.stat().st_size < LIMIT / 20
    with pytest.raises(DecodedSizeError):
        check_parquet(path, path)


@pytest.mark.usefixtures("small_limit")
def test_files_within_the_limit_are_read(tmp_path: Path) -> None:
    path = write_table([chain("one", 3)], tmp_path / "a.parquet")
    assert read_table(path).num_rows == 1
    table = pa.table({"id": ["x" * 1000] * 20, "n": range(20)})
    pq.write_table(table, tmp_path / "b.parquet")
    check_parquet(tmp_path / "b.parquet", "b")
    check_parquet(tmp_path / "b.parquet", "b", ["n"])


def varint(number: int) -> bytes:
    """Return a signed integer in the compact protocol of Thrift."""
    number *= 2
    parts = []
    while number > 127:
        parts.append(number & 127 | 128)
        number >>= 7
    return bytes([*parts, number])


def with_other_footer(content: bytes, old: int, new: int) -> bytes:
    """Return a Parquet file whose footer has another number wherever it has `old`."""
    size = int.from_bytes(content[-8:-4], "little")
    pages, footer = content[: -8 - size], content[-8 - size : -8]
    assert varint(old) in footer
    footer = footer.replace(b"\x16" + varint(old), b"\x16" + varint(new))
    return pages + footer + len(footer).to_bytes(4, "little") + b"PAR1"


@pytest.mark.parametrize("declared", [1000, 10**12])
@pytest.mark.parametrize("kind", ["integers", "strings", "lists"])
def test_a_footer_with_other_counts_is_refused(tmp_path: Path, kind: str, declared: int) -> None:
    values = {
        "integers": pa.array(np.zeros(200_000, np.int64)),
        "strings": pa.array(["x"] * 200_000),
        "lists": pa.array([[1]] * 200_000),
    }[kind]
    path = tmp_path / "lie.parquet"
    pq.write_table(pa.table({"id": values}), path)
    path.write_bytes(with_other_footer(path.read_bytes(), 200_000, declared))
    assert pq.read_metadata(path).num_rows == declared
    message = r"declares [\d,]+ values in [\d,]+ rows for the column `id|takes [\d,]+ bytes"
    for read in (read_table, read_runs):
        with pytest.raises(DecodedSizeError, match=message):
            read(path)


def test_pages_that_are_larger_than_the_footer_says_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "lie.parquet"
    table = pa.table({"id": ["x" * 20_000 + str(number) for number in range(2)]})
    pq.write_table(table, path, use_dictionary=False, write_statistics=False)
    content = path.read_bytes()
    column = pq.read_metadata(path).row_group(0).column(0)
    start, num_bytes = column.data_page_offset, column.total_compressed_size
    sizes = read_chunk_sizes(io.BytesIO(content), start, num_bytes)
    assert sizes.num_values == 2
    page = varint(sizes.num_bytes)
    larger = varint(2**20 - 1)
    assert len(page) == len(larger)
    assert content.count(b"\x15" + page) == 1
    path.write_bytes(content.replace(b"\x15" + page, b"\x15" + larger))
    monkeypatch.setenv(VARIABLE, "200000")
    with pytest.raises(DecodedSizeError, match=r"takes 1,0\d\d,\d{3} bytes"):
        read_table(path)


@pytest.mark.parametrize("place", [4, 5, 6, 9, 30])
def test_damaged_pages_are_our_error(tmp_path: Path, place: int) -> None:
    path = tmp_path / "damaged.parquet"
    pq.write_table(pa.table({"id": ["a", "b"]}), path)
    content = bytearray(path.read_bytes())
    for value in (0, 127, 255):
        content[place] = value
        path.write_bytes(content)
        with contextlib.suppress(SchemaError):
            read_table(path)


@pytest.mark.parametrize("num_rows", [0, 1, 5000])
@pytest.mark.parametrize(
    "options",
    [
        {"compression": "none"},
        {"compression": "zstd", "data_page_version": "2.0"},
        {"compression": "gzip", "use_dictionary": False, "write_statistics": False},
        {"use_dictionary": ["text"], "data_page_size": 64, "row_group_size": 700},
        {"use_dictionary": False, "column_encoding": {"number": "BYTE_STREAM_SPLIT"}},
        {"use_dictionary": False, "column_encoding": {"text": "DELTA_LENGTH_BYTE_ARRAY"}},
        {"write_page_index": True, "write_page_checksum": True, "version": "1.0"},
    ],
    ids=str,
)
def test_honest_files_pass(tmp_path: Path, num_rows: int, options: dict[str, Any]) -> None:
    table = pa.table(
        {
            "number": pa.array(np.arange(num_rows, dtype=np.float64)),
            "text": pa.array([f"text {index % 7}" for index in range(num_rows)], pa.string()),
            "lists": pa.array([[]] * num_rows, pa.list_(pa.struct({"a": pa.int32()}))),
            "nothing": pa.nulls(num_rows, pa.string()),
        }
    )
    path = tmp_path / "table.parquet"
    pq.write_table(table, path, **options)
    check_parquet(path, path)
    with pq.ParquetWriter(tmp_path / "empty.parquet", table.schema) as writer:
        writer.write_table(table)
        writer.write_table(table.slice(0, 0))
    check_parquet(tmp_path / "empty.parquet", "empty.parquet")


def test_json_is_refused_by_its_size(tmp_path: Path, small_limit: None) -> None:
    del small_limit
    bomb = tmp_path / "bomb.jsonl"
    bomb.write_text("[" + ",".join(["{}"] * (LIMIT // 30)) + "]\n")
    for read in (read_json, read_json_lines):
        with pytest.raises(GraphNetError, match=VARIABLE):
            read(bomb)
    with pytest.raises(DecodedSizeError, match=VARIABLE):
        load_json(bomb.read_text(), "options")
    assert parse_json(bomb.read_text(), "refused") == "refused"
    with pytest.raises(ValueError, match="nested too deep"):
        load_json("[" * 40_000, "options")
    bomb.write_text("\n" * (LIMIT + 1))
    for read in (read_text, read_npy, import_log, define_file):
        with pytest.raises(GraphNetError, match=VARIABLE):
            read(bomb)
    (tmp_path / "a.jsonl").write_text('{"a": 1}\n\n[2]\n')
    assert read_json_lines(tmp_path / "a.jsonl") == [{"a": 1}, [2]]


def test_journal_survives_killed_writers(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    assert read_journal(path) == []
    for number in range(3):
        append_json(path, number)
        with path.open("a") as file:
            file.write('{"cut')
    assert read_journal(path, is_strict=True) == [0, 1, 2]
    path.write_text('{"cut\n')  # left by earlier versions
    append_json(path, "next")
    assert read_journal(path) == ["next"]
    with pytest.raises(ValueError, match="Unterminated"):
        read_journal(path, is_strict=True)


def define_file(path: Path) -> None:
    result = CliRunner().invoke(app, ["tc", "check", str(path)])
    raise SchemaError(" ".join(result.output.split()))


READERS = {
    "atomic.py": "doctests",
    "benchmark/problems.py": "source code of a candidate",
    "benchmark/records/environment.py": "files of the kernel",
    "timing/caches.py": "files of the kernel",
    "tensor_comprehensions/codegen/machine.py": "files of the kernel",
    "tensor_comprehensions/codegen/toolchain.py": "files of the kernel and own objects",
    "tensor_comprehensions/kernel.py": "files of the kernel",
    "isolation/linux.py": "files of the kernel",
    "isolation/task_limit.py": "files of the kernel",
    "isolation/pausing.py": "files of the kernel",
    "isolation/client.py": "the log of a worker, whose size is limited",
    "benchmark/executors/ray_worker.py": "the log of a worker, whose size is limited",
    "compilers/sources.py": "source code of a compiler",
    "compilers/function_source.py": "files that it has written",
    "frameworks/builds.py": "files of an installed framework",
    "conversion/dataflow.py": "files that it has written",
    "conversion/programs.py": "files that it has written",
    "hub/submit.py": "files that it has written",
    "report/page.py": "own templates and pictures",
    "report/site/pages.py": "own templates",
    "report/graph_picture.py": "doctests",
    "bisection/reproducer.py": "text of a program",
    "tuning/worker.py": "the job of the parent process",
    "storage/plans.py": "the job of the parent process",
    "tensor_comprehensions/tasks/worker.py": "the job of the parent process",
    "tensor_comprehensions/tuner/measure_worker.py": "the job of the parent process",
    "tensor_comprehensions/tuner/triton_worker.py": "the job of the parent process",
}


def test_files_of_others_are_read_with_a_limit() -> None:
    package = STARTER.parents[1]
    unlimited = {
        path.relative_to(package).as_posix()
        for path in package.rglob("*.py")
        if re.search(r"\.read_text\(|\.read_bytes\(|np\.load\(", path.read_text())
    }
    assert unlimited == set(READERS)


def test_everything_that_is_shipped_fits() -> None:
    for path in STARTER.rglob("*.parquet"):
        check_parquet(path, path)


def npz(path: Path, shape: tuple[int, ...], content: bytes) -> Path:
    """Write an archive with one array whose header may lie."""
    header = io.BytesIO()
    np.lib.format.write_array_header_1_0(
        header, {"descr": "<f4", "fortran_order": False, "shape": shape}
    )
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("a.npy", header.getvalue() + content)
    return path


@pytest.mark.usefixtures("small_limit")
def test_an_archive_is_refused_before_it_is_decoded(tmp_path: Path) -> None:
    np.savez_compressed(tmp_path / "bomb.npz", a=np.zeros(LIMIT, np.int8))
    assert (tmp_path / "bomb.npz").stat().st_size < LIMIT / 100
    with pytest.raises(DecodedSizeError, match=VARIABLE):
        read_npz(tmp_path / "bomb.npz")
    with pytest.raises(DecodedSizeError):
        load_arrays(tmp_path / "bomb.npz", "predictor")
    with pytest.raises(ValueError, match="shorter than its header says"):
        read_npz(npz(tmp_path / "lie.npz", (10**10,), b"\0" * 16))
    with pytest.raises(ValueError, match=r"differs from its declared size|shorter"):
        read_npz(npz(tmp_path / "lie.npz", (3,), b"\0" * 11))


def test_an_archive_comes_back(tmp_path: Path) -> None:
    arrays = {"a": np.arange(6.0).reshape(2, 3), "b": np.asfortranarray(np.eye(3))}
    np.savez(tmp_path / "a.npz", **arrays)
    for name, array in read_npz(tmp_path / "a.npz").items():
        np.testing.assert_array_equal(array, arrays[name])
    np.savez(tmp_path / "b.npz", a=np.array([{}], object))
    with pytest.raises(ValueError, match="contains Python objects"):
        read_npz(tmp_path / "b.npz")


@pytest.mark.torch
def test_a_predictor_is_as_large_as_its_file(tmp_path: Path) -> None:
    pytest.importorskip("torch", reason="torch is not installed")
    from graphnet_datasets.errors import TuningError
    from graphnet_datasets.tuning.models.arrays import save_arrays
    from graphnet_datasets.tuning.models.predictor import _KIND, Predictor
    from graphnet_datasets.tuning.replay import PoolSpace
    from tests.tuning.toy import make_pool

    space = PoolSpace(make_pool())
    header = {"kind": _KIND, "width": 100_000, "feature_set": space.feature_set, "version": 1}
    arrays = {name: np.zeros(8, np.float32) for name in ("centre", "scale")}
    save_arrays(tmp_path / "bomb.npz", arrays, header)
    assert (tmp_path / "bomb.npz").stat().st_size < 2000
    with pytest.raises(TuningError, match="is not a valid predictor"):
        Predictor.load(tmp_path / "bomb.npz", space)


@pytest.mark.parametrize("header", [b"\x19" * 100_000, b"\x1c" * 100_000])
def test_a_deeply_nested_page_header_is_refused(header: bytes) -> None:
    with pytest.raises(ValueError, match="nested too deeply"):
        read_chunk_sizes(io.BytesIO(header), 0, len(header))


def test_a_card_of_aliases_is_refused() -> None:
    lines = ["---", "a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 12)]
    with pytest.raises(DecodedSizeError, match="README"):
        parse_card("\n".join([*lines, "---", ""]).encode(), "README.md")
    with pytest.raises(SchemaError, match="contains itself"):
        parse_card(b"---\na: &a [*a]\n---\n", "README.md")
    for nested in (b"[" * 100_000, b"a: " + b"{a: " * 50_000, b"- " * 1000 + b"a"):
        with pytest.raises(SchemaError, match="is nested deeper than 100 levels"):
            parse_card(b"---\n" + nested + b"\n---\n", "README.md")
    assert parse_card(b"---\na: &a [1]\nb: *a\n---\n", "README.md") == {"a": [1], "b": [1]}


@pytest.mark.usefixtures("small_limit")
def test_a_large_card_is_refused(tmp_path: Path) -> None:
    (tmp_path / "README.md").write_bytes(b"---\na: 1\n---\n" + b"x" * LIMIT)
    with pytest.raises(DecodedSizeError):
        read_layout(tmp_path)
    with pytest.raises(DecodedSizeError):
        read_bytes(tmp_path / "README.md")


def test_the_limit_is_a_number_of_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    assert decoded_limit() == DEFAULT_BYTES
    monkeypatch.setenv(VARIABLE, "17")
    check_decoded_size(17, "a")
    with pytest.raises(DecodedSizeError, match="`a` takes 18 bytes"):
        check_decoded_size(18, "a")
    for text in ("0", "-1", "1e9", "many"):
        monkeypatch.setenv(VARIABLE, text)
        with pytest.raises(DecodedSizeError, match="must be a number of bytes"):
            decoded_limit()
    assert json.dumps(DEFAULT_BYTES) == "1073741824"
