"""A model that breaks gives linked graphs, which stand or fall together."""

from __future__ import annotations

import dataclasses
import re
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
import torch

from builder.architectures import ARCHITECTURES
from builder.capturing import Capture
from builder.catalog import parse_line
from builder.full import write_full
from builder.pieces import check_pieces, fault_of
from builder.placing import captured, place
from builder.worker import MAX_PIECES, capture_entry
from graphnet_datasets import load_dataset
from graphnet_datasets.analysis.splits import split_of
from graphnet_datasets.errors import CaptureError, GraphNetError
from graphnet_datasets.sample import Sample
from graphnet_datasets.storage.table import read_table, write_table

LINE = "torch/breaks | other | torch | breaks | breaks={} | x=normal(2,4) | float32 | eval | |"


class Breaks(torch.nn.Module):
    """Stages one inside the other, with a break between each and the next."""

    def __init__(self, breaks: int, stage: int = 0) -> None:
        super().__init__()
        self.stage = stage
        self.layer = torch.nn.Linear(4, 4)
        self.rest = Breaks(breaks - 1, stage + 1) if breaks else None

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.layer(x).sin() if self.stage else self.layer(x)
        if self.rest is None:
            return x.relu()
        torch._dynamo.graph_break(msg=f"stage {self.stage}")
        return self.rest(x)


@pytest.fixture(autouse=True)
def _breaks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(ARCHITECTURES, "breaks", Breaks)


def capture(tmp_path: Path, breaks: int = 2) -> Capture:
    entry = parse_line(LINE.format(breaks))
    return Capture(entry, write_table(capture_entry(entry), tmp_path / "breaks.parquet"))


def test_pieces_are_rows_that_say_how_they_belong_together(tmp_path: Path) -> None:
    graphs = write_full([capture(tmp_path)], tmp_path / "out")
    assert {graph.entry for graph in graphs} == {"torch/breaks"}
    rows: list[Any] = sorted(
        load_dataset(tmp_path / "out", "all", "all"), key=lambda row: row["piece_index"]
    )
    assert [row["id"] for row in rows] == [f"torch/breaks/subgraph_{index}" for index in range(3)]
    assert [row["piece_index"] for row in rows] == [0, 1, 2]
    assert {row["num_pieces"] for row in rows} == {3}
    assert {row["parent_id"] for row in rows} == {"torch/breaks"}
    assert {row["catalog_line"] for row in rows} == {parse_line(LINE.format(2)).line}
    assert len({row["split_group"] for row in rows}) == 1
    assert "stage 0" in rows[0]["break_reason"] and "stage 1" in rows[1]["break_reason"]
    assert rows[2]["break_reason"] is None
    last = Sample.from_row(rows[2]).provenance
    assert (last.graph_index, last.graph_count, last.parent_id) == (2, 3, "torch/breaks")
    assert check_pieces(tmp_path / "out") == 1


def test_a_whole_graph_is_no_piece(tmp_path: Path) -> None:
    rows = read_table(capture(tmp_path, breaks=0).path or "").to_pylist()
    assert [(row["id"], row["piece_index"], row["num_pieces"]) for row in rows] == [
        ("torch/breaks", None, None)
    ]


def test_a_piece_that_is_another_graph_is_a_duplicate_and_not_missing(tmp_path: Path) -> None:
    write_full([capture(tmp_path, breaks=3)], tmp_path / "out")  # those in the middle are alike
    duplicates = pq.read_table(tmp_path / "out" / "duplicates" / "train-0000.parquet").to_pylist()
    assert [each["id"] for each in duplicates] == ["torch/breaks/subgraph_2"]
    with pytest.raises(GraphNetError, match=r"^Of the 4 pieces of `torch/breaks` number 2 is miss"):
        check_pieces(tmp_path / "out")


@pytest.mark.parametrize(
    ("changes", "fault"),
    [
        ({"num_pieces": 3}, "The pieces of `m` say that there are [2, 3]."),
        ({"piece_index": 0}, "A piece of `m` occurs twice."),
        ({"split": "test"}, "The pieces of `m` are in the splits test, train."),
        ({}, None),
    ],
)
def test_faults_of_pieces_are_named(changes: dict[str, Any], fault: str | None) -> None:
    rows = [{"piece_index": index, "num_pieces": 2, "split": "train"} for index in range(2)]
    assert fault_of("m", [rows[0], rows[1] | changes]) == fault


def test_pieces_that_would_be_torn_apart_are_left_out_together(tmp_path: Path) -> None:
    pending = list(captured([capture(tmp_path)], is_analysed=False))
    train = next(name for name in map(str, range(100)) if split_of(name) == "train")
    test = next(name for name in map(str, range(100)) if split_of(name) == "test")
    known = {pending[0].id: train, pending[1].id: test}
    placed = place([*pending, dataclasses.replace(pending[0], id="other", model="")], known)
    assert {row.id for row, _ in placed.rows} <= {"other"}
    assert {each.id for each in pending} <= set(placed.left_out)


@pytest.mark.slow
def test_a_loop_of_breaks_is_a_failure() -> None:
    message = f"`torch/breaks` breaks into {MAX_PIECES + 1} graphs, more than {MAX_PIECES}: "
    with pytest.raises(CaptureError, match=f"^{re.escape(message)}"):
        capture_entry(parse_line(LINE.format(MAX_PIECES)))
