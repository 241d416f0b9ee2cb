"""The shipped dataset against its goals, and how goals are counted."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from builder.__main__ import main
from builder.full import write_log
from builder.goals import BEGIN, END, GOALS, Finding, compare, read_goals, write_holds
from builder.measures import MEASURES, UPSTREAM_CALLS, Counted, counted_rows
from builder.published import read_published
from graphnet_datasets.errors import DatasetNotFoundError, GraphNetError
from graphnet_datasets.schema import sample_to_row
from graphnet_datasets.schema.tables import DUPLICATES, FAILURES
from graphnet_datasets.storage.loading import STARTER
from graphnet_datasets.storage.table import write_table
from tests.tables import chain


@pytest.fixture(scope="module")
def shipped() -> list[Finding]:
    return compare(read_goals(), counted_rows(STARTER))


@pytest.mark.parametrize("index", range(len(read_goals())), ids=lambda n: read_goals()[n].name)
def test_the_shipped_table_reaches_its_recorded_goals(shipped: list[Finding], index: int) -> None:
    finding = shipped[index]
    assert finding.is_met == finding.goal.holds, (
        f"{finding.goal.name}: {finding.goal.text(finding.value)}, wanted {finding.goal.wanted}. "
        f"Write `holds = {str(finding.is_met).lower()}` in `{GOALS.name}` if that is right."
    )


def row(name: str, num_ops: int, **columns: Any) -> dict[str, Any]:
    made = {"library": "timm", "catalog_line": name, "overrides": "{}", "seed": 0}
    given = {"input_specification": "x=normal(1,3)", "split_group": name, **made}
    found = sample_to_row(chain(name, num_ops, "cv"), given)
    return {**found, "license": "MIT", **columns}


def dataset(tmp_path: Path, rows: list[dict[str, Any]]) -> Path:
    write_table(rows, tmp_path / "cv" / "train-0000.parquet")
    return tmp_path


def measured(counted: Counted, name: str, task: str | None = None) -> float | None:
    return MEASURES[name](counted, task)


def test_small_and_truncated_graphs_and_later_pieces_count_nowhere(tmp_path: Path) -> None:
    rows = [
        row("a", 600),
        row("b", 100, dtype="bfloat16", mode="train", is_dynamic=True, split_group="a"),
        row("c", 600, tags=["small"]),
        row("d", 600, is_truncated=True),
        row("e/subgraph_0", 4, piece_index=0, num_pieces=2),
        row("e/subgraph_1", 600, piece_index=1, num_pieces=2),
    ]
    counted = counted_rows(dataset(tmp_path, rows))
    assert sorted(counted.rows["id"].to_pylist()) == ["a", "b", "e/subgraph_0"]
    expected = {
        "num_graphs": 3, "num_groups": 2, "median_ops": 100, "share_large": 1 / 3,
        "share_dynamic": 1 / 3, "share_half": 1 / 3, "share_train": 1 / 3, "share_batch_1": 1.0,
        "min_of_tasks": 0, "num_paddle": 0, "share_own": 0.0, "share_captured": None,
        "share_said": 1.0, "share_checked": 0.0, "share_paddle_calls": 0.0, "share_leaking": None,
        "min_groups": None, "share_of_largest_group": None, "num_published": 0,
        "share_published": None, "num_equal": 0, "num_folders": 0, "num_misnamed": 0,
    }  # fmt: skip
    found = {name: measured(counted, name) for name in MEASURES if name != "share_torch_calls"}
    assert found == pytest.approx(expected)
    assert measured(counted, "num_graphs", "nlp") == 0


def test_a_near_copy_among_the_training_graphs_is_a_leak(tmp_path: Path) -> None:
    linear = [{"target": "torch.nn.functional.linear", "count": 3}]
    matmul = [{"target": "paddle._C_ops.matmul", "count": 3}]
    rows = [
        row("a", 1, split="train", num_params=1000, op_histogram=linear),
        row("b", 1, split="test", num_params=1005, op_histogram=matmul),
        row("c", 1, split="test", num_params=1020, op_histogram=matmul),
        row("d", 1, split="validation", num_params=1000, op_histogram=matmul[:0]),
    ]
    counted = counted_rows(dataset(tmp_path, rows))
    assert measured(counted, "share_leaking") == pytest.approx(1 / 3)
    assert measured(counted, "min_groups") == 1
    assert measured(counted, "share_of_largest_group") == 1.0


def test_equal_graphs_and_folders_in_messages_are_counted(tmp_path: Path) -> None:
    reason = 'File "/srv/env/lib/python3.11/site-packages/torch/nn/init.py", line 3'
    rows = [
        row("a", 1, signature_hash="1", break_reason="Data-dependent branching"),
        row("b", 1, signature_hash="1", break_reason=reason),
        row("c", 1, signature_hash="1", is_dynamic=True),
        row("d", 1, signature_hash="2", tags=["small"], break_reason=reason),
    ]
    counted = counted_rows(dataset(tmp_path, rows))
    assert (measured(counted, "num_equal"), measured(counted, "num_folders")) == (1, 2)


def test_whole_graphs_named_dynamic_need_a_symbol(tmp_path: Path) -> None:
    rows = [
        row("a-dynamic", 1, is_dynamic=True),
        row("b-dynamic", 1, is_dynamic=False, tags=["small"]),
        row("c-dynamic/subgraph_0", 1, is_dynamic=False, piece_index=0, num_pieces=1),
        row("d", 1, is_dynamic=False),
    ]
    assert measured(counted_rows(dataset(tmp_path, rows)), "num_misnamed") == 1


def test_rows_agree_with_published_counts_up_to_the_tolerance(tmp_path: Path) -> None:
    published = {
        name: count for name, count in read_published().items() if count.source == "pytorchcv"
    }
    (first, exact), (second, other), *_ = published.items()
    rows = [
        row(first, 1, num_params=int(exact.count * 1.004)),
        row(second, 1, num_params=int(other.count * 1.006)),
        row("a", 1, num_params=7),
    ]
    counted = counted_rows(dataset(tmp_path, rows))
    assert measured(counted, "num_published") == 1
    assert measured(counted, "share_published") == 0.5
    assert measured(counted, "share_published", "nlp") is None


def test_captured_entries_are_those_that_did_not_fail(tmp_path: Path) -> None:
    out = dataset(tmp_path, [row("a", 1), row("b", 2)])
    told = {"task": "cv", "library": "timm"}
    failed = {**told, "kind": "no", "reason": "no"}
    write_log(
        [
            {**failed, "id": "c", "stage": "capture", "catalog_line": "c"},
            {**failed, "id": "b", "stage": "split", "catalog_line": "b"},
        ],
        out,
        FAILURES,
    )
    assert measured(counted_rows(out), "share_captured") == pytest.approx(2 / 3)
    same = {**told, "id": "d", "is_same_as": "a", "signature_hash": "", "catalog_line": "d"}
    write_log([same], out, DUPLICATES)
    assert measured(counted_rows(out), "share_captured") == 0.75


def test_autocast_counts_as_half_precision(tmp_path: Path) -> None:
    calls = [{"target": "torch.amp.autocast_mode._enter_autocast", "count": 1}]
    out = dataset(tmp_path, [row("a", 1, op_histogram=calls), row("b", 1)])
    assert measured(counted_rows(out), "share_half") == 0.5


def test_the_command_prints_and_writes_the_table_and_its_exit_status_tells_success(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = dataset(tmp_path / "data", [row("a", 600)])
    text = tmp_path / "page.md"
    text.write_text(f"before\n{BEGIN}\nold\n{END}\nafter\n")
    arguments = ["goals", str(out), "--beside", str(out / "cv" / "train-0000.parquet")]
    assert main([*arguments, "--docs", str(text)]) == 1
    printed = capsys.readouterr().out
    assert "| graphs | ≥ 3,500 | 1 | no | 1 |" in printed
    assert "| median number of operators, cv | ≥ 450 | 600 | yes | 600 |" in printed
    assert text.read_text() == f"before\n{BEGIN}\n{printed}{END}\nafter\n"
    text.write_text("nothing")
    assert main([*arguments, "--docs", str(text)]) == 1
    assert "has no lines" in capsys.readouterr().err
    assert main(["goals", str(tmp_path)]) == 1
    assert "has no table of graphs" in capsys.readouterr().err


def test_the_picture_shows_both_datasets(tmp_path: Path) -> None:
    mine = dataset(tmp_path / "mine", [row(f"timm/{n}", n, flops=n * 10**6) for n in range(1, 9)])
    theirs = dataset(tmp_path / "theirs", [row("timm/b", 3), row("timm/c", 4, tags=["small"])])
    picture = tmp_path / "sizes.svg"
    arguments = ["goals", str(mine), "--beside", str(theirs), "--picture", str(picture)]
    main(arguments)
    first = picture.read_bytes()
    assert first.startswith(b"<?xml") and b"GraphNet's samples" in first
    main(arguments)
    assert picture.read_bytes() == first


def test_noting_changes_only_whether_goals_hold(tmp_path: Path) -> None:
    path = tmp_path / "goals.toml"
    path.write_text(GOALS.read_text())
    findings = compare(read_goals(path), Counted(counted_rows(STARTER).rows.slice(0, 0)))
    write_holds(findings, path)
    again = read_goals(path)
    assert [goal.holds for goal in again] == [finding.is_met for finding in findings]
    flags = re.compile("holds = .*")
    assert flags.sub("", path.read_text()) == flags.sub("", GOALS.read_text())
    with pytest.raises(GraphNetError, match="does not have the 1 goals"):
        write_holds(findings[:1], path)


def test_operators_of_all_graphs_count_by_how_often_upstream_calls_them(tmp_path: Path) -> None:
    calls = json.loads(UPSTREAM_CALLS.read_text())["torch"]
    (name, count), *_ = sorted(calls.items(), key=lambda call: -call[1])
    histogram = [{"target": name, "count": 1}]
    out = dataset(tmp_path, [row("a", 1, op_histogram=histogram, tags=["small"])])
    counted = counted_rows(out)
    assert measured(counted, "share_torch_calls") == pytest.approx(count / sum(calls.values()))
    assert measured(counted, "share_paddle_calls") == 0


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "is not a list of goals"),
        ('[[goal]]\nname = "x"\nmeasure = "y"\nholds = true', "has the unknown measure `y`"),
        (
            '[[goal]]\nname = "x"\nmeasure = "num_graphs"\nholds = true',
            "The goal `x` in .* needs `at_least` or `at_most`",
        ),
    ],
)
def test_a_file_that_is_no_list_of_goals_is_refused(
    tmp_path: Path, text: str, message: str
) -> None:
    path = tmp_path / "goals.toml"
    path.write_text(text)
    with pytest.raises(GraphNetError, match=message):
        read_goals(path)


def test_a_directory_without_graphs_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DatasetNotFoundError):
        counted_rows(tmp_path)
