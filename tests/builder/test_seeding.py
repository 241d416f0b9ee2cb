"""A build that goes on where the shipped dataset ended, without its build directory."""

from __future__ import annotations

from pathlib import Path

import pytest

from builder.capturing import FAILURE, Capture, Keys, ended
from builder.catalog import parse_line
from builder.full import write_full
from builder.seeding import seed, take_over
from builder.worker import capture_entry
from graphnet_datasets.storage.table import read_table, write_table

LINES = (
    "torch/a | other | torch | mlp | sizes=[4,8,2] | input=normal(2,4) | float32 | eval | |",
    "torch/wave | scientific | torch | siren | width=8 depth=1 | input=uniform(4,2) | float32 "
    "| eval | |",
)
FAILED = "torch/z | cv | torch | mlp | sizes=[4,8] | input=normal(2,5) | float32 | eval | |"
ENTRIES = [parse_line(line) for line in (*LINES, FAILED)]
KEYS = Keys(is_strict=False)


@pytest.fixture(scope="module")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("dataset")
    captures = [Capture(ENTRIES[-1], None, "error in capture: RuntimeError shapes do not fit")]
    for entry in ENTRIES[:-1]:
        path = directory / "rows" / f"{entry.task}.parquet"
        write_table(capture_entry(entry), path)
        captures.append(Capture(entry, path))
    write_full(captures, directory / "out")
    return directory / "out"


def test_a_rebuilt_dataset_is_equal_byte_for_byte(
    dataset: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    build = tmp_path / "build"
    take_over(ENTRIES, dataset, build, KEYS)
    assert "3 entries were captured before" in capsys.readouterr().out
    captures = ended(ENTRIES, build, KEYS)
    assert [each.path is None for each in captures] == [False, False, True]
    assert captures[-1].reason == "error in capture: RuntimeError shapes do not fit"
    write_full(captures, tmp_path / "out")
    files = sorted(path.relative_to(dataset) for path in dataset.rglob("*.*"))
    assert files == sorted(
        path.relative_to(tmp_path / "out") for path in tmp_path.glob("out/**/*.*")
    )
    for file in files:
        assert (tmp_path / "out" / file).read_bytes() == (dataset / file).read_bytes(), file
    take_over(ENTRIES, dataset, build, KEYS)
    assert capsys.readouterr().out == ""  # nothing is left to take


def test_an_entry_whose_line_changed_waits_for_its_capture(dataset: Path, tmp_path: Path) -> None:
    changed = parse_line(LINES[0].replace("[4,8,2]", "[4,9,2]"))
    assert seed([changed, ENTRIES[1]], dataset, tmp_path, KEYS) == 1
    assert not KEYS.path(changed, tmp_path).exists()


def test_a_row_of_another_version_of_the_library_is_not_taken(
    dataset: Path, tmp_path: Path
) -> None:
    (path,) = (dataset / "other").glob("*.parquet")
    (row,) = read_table(path).to_pylist()
    write_table([{**row, "library_version": "0.0"}], tmp_path / "other" / path.name)
    assert seed(ENTRIES[:1], tmp_path, tmp_path / "build", KEYS) == 0


def test_local_captures_are_kept(dataset: Path, tmp_path: Path) -> None:
    path = KEYS.path(ENTRIES[0], tmp_path)
    path.write_bytes(b"a capture")
    KEYS.path(ENTRIES[2], tmp_path).with_suffix(FAILURE).write_text("another reason")
    assert seed(ENTRIES, dataset, tmp_path, KEYS) == 1
    assert path.read_bytes() == b"a capture"
    assert KEYS.path(ENTRIES[2], tmp_path).with_suffix(FAILURE).read_text() == "another reason"


def test_pieces_of_a_model_are_taken_whole_or_not_at_all(dataset: Path, tmp_path: Path) -> None:
    (path,) = (dataset / "other").glob("*.parquet")
    (row,) = read_table(path).to_pylist()
    pieces = [
        {**row, "id": f"torch/a/subgraph_{index}", "piece_index": index, "num_pieces": 2}
        for index in (1, 0)
    ]
    target = tmp_path / "other" / path.name
    write_table(pieces[:1], target)
    assert seed(ENTRIES[:1], tmp_path, tmp_path / "build", KEYS) == 0
    write_table(pieces, target)
    assert seed(ENTRIES[:1], tmp_path, tmp_path / "build", KEYS) == 1
    taken = read_table(KEYS.path(ENTRIES[0], tmp_path / "build"))
    assert taken["piece_index"].to_pylist() == [0, 1]
