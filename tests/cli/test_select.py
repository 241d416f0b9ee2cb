"""`graphnet select`, and the lists of ids that it writes."""

from __future__ import annotations

from pathlib import Path

import pytest

from graphnet_datasets.benchmark.records.records import write_runs
from graphnet_datasets.errors import DatasetNotFoundError
from graphnet_datasets.schema import empty_run
from graphnet_datasets.storage.selection import select_rows
from tests.subsets.test_prediction import records
from tests.tables import write_dataset

from .calling import call

DEMO = Path(__file__).parents[2] / "examples" / "demo.txt"


@pytest.fixture
def dataset(tmp_path: Path) -> Path:
    return write_dataset(tmp_path / "dataset")


def test_ids_are_printed_with_their_coverage(dataset: Path) -> None:
    found = call("select", "--dataset", dataset, "--count", "2", "--cover", "operators,tasks")
    ids = found.stdout.split()
    assert len(ids) == 2
    assert "2 of" in found.stderr and "tasks" in found.stderr
    assert (
        call("select", "--dataset", dataset, "--count", "2").stdout
        == call("select", "all", "--dataset", dataset, "--count", "2").stdout
    )


def test_other_verbs_accept_a_list_of_ids(dataset: Path, tmp_path: Path) -> None:
    listed = tmp_path / "lists" / "ids.txt"
    call("select", "--within", "cv", "--dataset", dataset, "--count", "3", "--out", listed)
    ids = listed.read_text().split()
    assert ids and all(each.startswith("cv/") for each in ids)
    assert [row["id"] for row in select_rows(f"@{listed}", dataset=dataset)] == ids
    listed.write_text(f"# chosen by hand\n\n{ids[-1]}\n{ids[-1]}\n")
    assert [row["id"] for row in select_rows([f"@{listed}"], dataset=dataset)] == ids[-1:]


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        (None, "does not exist"),
        (b"", "has no sample ids"),
        (b"# nothing\n", "has no sample ids"),
        (b"cv/chain-2\ncv/chain-2000\n", "`cv/chain-2000` in .* is not the id"),
        (b"\xff\xfe", "cannot be read"),
    ],
)
def test_a_list_that_names_nothing(
    text: bytes | None, sentence: str, dataset: Path, tmp_path: Path
) -> None:
    listed = tmp_path / "ids.txt"
    if text is not None:
        listed.write_bytes(text)
    with pytest.raises(DatasetNotFoundError, match=sentence):
        select_rows(f"@{listed}", dataset=dataset)


def test_samples_are_chosen_by_records(tmp_path: Path) -> None:
    rows = [
        {**empty_run(), **row, "run_id": str(place)} for place, row in enumerate(records(40, 3))
    ]
    write_runs(rows, tmp_path / "runs.parquet")
    found = call("select", "--predict", tmp_path / "runs.parquet", "--count", "4")
    assert len(found.stdout.split()) == 4
    assert "10 samples" in found.stderr and "30 samples" in found.stderr
    words = ("select", "--predict", tmp_path / "runs.parquet", "--count", "4")
    refused = call(*words, "--task", "audio", exit_code=1).stderr
    assert "No run record matches `--task audio`." in refused


def test_the_list_of_the_demo_names_embedded_graphs_of_all_tasks() -> None:
    rows = select_rows(f"@{DEMO}")
    assert len(rows) == 8
    assert len({row["task"] for row in rows}) == 6
    assert {row["framework"] for row in rows} == {"torch"}


def test_invalid_selections_are_refused(dataset: Path, tmp_path: Path) -> None:
    words = ("select", "--dataset", dataset)
    said = call(*words, "--cover", "shape", exit_code=1).stderr
    assert "Unknown kind `shape`" in said and "`shapes`" in said
    said = call(*words, "--min-ops", "9999", exit_code=1).stderr
    assert "the nearest is `--min-ops 25`" in said
    said = call("select", "--predict", tmp_path / "none", exit_code=1).stderr
    assert "none" in said
    assert "Invalid value" in call(*words, "--count", "0", exit_code=2).stderr
