"""The full dataset out of captures: duplicates, failures, splits, the table of models."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from builder.capturing import Capture
from builder.catalog import parse_line
from builder.choosing import choose
from builder.full import write_full
from builder.keeping import check, kept_columns, path_of, read_checks
from builder.placing import standing
from builder.report import BEGIN, END, reason_class, write_report
from builder.worker import capture_entry
from graphnet_datasets import load_dataset
from graphnet_datasets.analysis.splits import split_of
from graphnet_datasets.errors import GraphNetError
from graphnet_datasets.schema import SCHEMA_VERSION
from graphnet_datasets.storage.selection import select_rows
from graphnet_datasets.storage.table import read_table, write_table
from graphnet_datasets.validation import CheckResult, Validation

LINES = (
    "torch/a | other | torch | mlp | sizes=[4,8,2] | input=normal(2,4) | float32 | eval | |",
    "torch/again | other | torch | mlp | sizes=[4,8,2] | input=normal(2,4) | float32 | eval | |",
    "torch/wide | other | torch | mlp | sizes=[4,16,2] | input=normal(2,4) | float32 | eval | |",
    "torch/wave | scientific | torch | siren | width=8 depth=1 | input=uniform(4,2) | float32 "
    "| eval | |",
)
FAILED = "torch/z | cv | torch | mlp | sizes=[4,8] | input=normal(2,5) | float32 | eval | |"


@pytest.fixture(scope="module")
def captures(tmp_path_factory: pytest.TempPathFactory) -> list[Capture]:
    directory = tmp_path_factory.mktemp("rows")
    found = []
    for number, line in enumerate(LINES):
        entry = parse_line(line)
        found.append(Capture(entry, directory / f"{number}.parquet"))
        write_table(capture_entry(entry), directory / f"{number}.parquet")
    reason = "error in capture: RuntimeError shapes do not fit"
    return [*found, Capture(parse_line(FAILED), None, reason)]


def test_duplicates_are_dropped_and_recorded_and_so_are_failures(
    captures: list[Capture], tmp_path: Path
) -> None:
    graphs = write_full(captures, tmp_path)
    assert [graph.id for graph in graphs] == ["torch/a", "torch/wide", "torch/wave"]
    (duplicate,) = load_dataset(tmp_path, "duplicates", "all")
    assert (duplicate["id"], duplicate["is_same_as"]) == ("torch/again", "torch/a")
    assert parse_line(duplicate["catalog_line"]).name == "torch/again"
    (failure,) = load_dataset(tmp_path, "failures", "all")
    assert failure == {
        "schema_version": SCHEMA_VERSION,
        "id": "torch/z",
        "task": "cv",
        "library": "torch",
        "stage": "capture",
        "kind": "RuntimeError",
        "reason": captures[-1].reason,
        "catalog_line": captures[-1].entry.line,
    }
    assert set(load_dataset(tmp_path, "all", "all")["task"][:]) == {"other", "scientific"}
    write_full(captures[:1], tmp_path)  # a build without any leaves no table of the last one
    assert not list(tmp_path.glob("failures/*")) and not list(tmp_path.glob("duplicates/*"))


def test_a_graph_that_would_link_two_splits_is_a_failure_of_the_split(
    captures: list[Capture], tmp_path: Path
) -> None:
    write_full(captures[:1], tmp_path)
    (path,) = tmp_path.glob("other/*.parquet")
    (row,) = read_table(path).to_pylist()
    held_out = next(name for name in map(str, range(99)) if split_of(name) != row["split"])
    # The same model stands in another split under another name: a third one is linked to both.
    write_table([{**row, "id": "torch/b", "split_group": held_out}, row], path)
    third = Capture(parse_line(LINES[2]), captures[2].path)
    assert [graph.id for graph in write_full([third], tmp_path, standing(tmp_path, {}))] == []
    (failure,) = load_dataset(tmp_path, "failures", "all")
    assert (failure["id"], failure["stage"]) == ("torch/wide", "split")
    assert failure["catalog_line"] == third.entry.line


def test_rows_that_fail_a_check_are_in_excluded(captures: list[Capture], tmp_path: Path) -> None:
    path = tmp_path / "row.parquet"
    path.write_bytes((captures[0].path or tmp_path).read_bytes())
    failed = Validation("torch/a", (CheckResult("runnable", "failed", "It gives NaN."),))
    path_of(path).write_text(json.dumps({"torch/a": failed.to_columns()}))
    write_full([Capture(captures[0].entry, path), captures[2]], tmp_path / "out")
    assert load_dataset(tmp_path / "out", "all", "all")["id"][:] == ["torch/wide"]
    (row,) = load_dataset(tmp_path / "out", "excluded", "all")
    assert row["validation"][0]["outcome"] == "failed"
    assert "It gives NaN." in row["why_excluded"]
    (known,) = kept_columns(tmp_path / "out").values()
    assert known["why_excluded"] == row["why_excluded"]


def test_checks_run_no_graph_that_is_too_large(captures: list[Capture], tmp_path: Path) -> None:
    path = tmp_path / "row.parquet"
    path.write_bytes((captures[0].path or tmp_path).read_bytes())
    ((_, (outcome,)),) = check([(captures[0].entry, path)], max_flops=0.0, memory_limit=1.0)
    assert [each.outcome for each in outcome.results] == ["passed"] * 3 + ["skipped"] * 3
    assert "at most 0 billion were to be run" in outcome["runnable"].reason
    assert read_checks(path)["torch/a"]["why_excluded"] is None


@pytest.mark.slow
def test_several_graphs_are_checked_at_a_time(captures: list[Capture], tmp_path: Path) -> None:
    pairs = []
    for capture in captures[:4]:
        path = tmp_path / f"{capture.entry.builder}-{len(pairs)}.parquet"
        path.write_bytes((capture.path or tmp_path).read_bytes())
        pairs.append((capture.entry, path))
    found = check(pairs, max_flops=1e9, memory_limit=1.0, jobs=2)
    checked = {entry.name: outcomes for entry, outcomes in found}
    assert checked.keys() == {entry.name for entry, _ in pairs}
    for entry, path in pairs:
        assert [each.outcome for each in checked[entry.name][0].results] == ["passed"] * 6
        assert read_checks(path)[entry.name]["why_excluded"] is None


def test_standing_rows_stay_unless_they_were_captured_again(
    captures: list[Capture], tmp_path: Path
) -> None:
    write_full(captures[:1], tmp_path)
    write_full(captures[3:4], tmp_path, list(standing(tmp_path, {})))
    assert sorted(load_dataset(tmp_path, "all", "all")["id"][:]) == ["torch/a", "torch/wave"]


def test_existing_rows_keep_their_ids_and_equal_rows_are_duplicates(
    captures: list[Capture], tmp_path: Path
) -> None:
    write_full([captures[1]], tmp_path)
    write_full(captures[:2], tmp_path)  # the one that stands comes second
    assert load_dataset(tmp_path, "all", "all")["id"][:] == ["torch/again"]
    write_full(captures[:1], tmp_path, standing(tmp_path, {}))  # it was not tried again
    assert load_dataset(tmp_path, "all", "all")["id"][:] == ["torch/again"]
    (duplicate,) = load_dataset(tmp_path, "duplicates", "all")
    assert (duplicate["id"], duplicate["is_same_as"]) == ("torch/a", "torch/again")


def test_of_equal_graphs_in_the_dataset_one_stays(captures: list[Capture], tmp_path: Path) -> None:
    write_full(captures[:1], tmp_path)
    (path,) = tmp_path.glob("other/*.parquet")
    (row,) = read_table(path).to_pylist()
    write_table([row, {**row, "id": "torch/again"}], path)
    write_full(captures[:2], tmp_path)
    assert load_dataset(tmp_path, "all", "all")["id"][:] == ["torch/a"]
    (duplicate,) = load_dataset(tmp_path, "duplicates", "all")
    assert (duplicate["id"], duplicate["is_same_as"]) == ("torch/again", "torch/a")


def test_a_family_is_in_its_split_and_nowhere_else(captures: list[Capture], tmp_path: Path) -> None:
    write_full(captures, tmp_path)
    splits: Any = load_dataset(tmp_path, "all", None)
    rows = [(split, row) for split, dataset in dict(splits).items() for row in dataset]
    assert len(rows) == 3
    assert all(split_of(row["family"]) == split for split, row in rows)
    a, wide = (row for _, row in rows if row["task"] == "other")
    assert a["family"] == wide["family"]  # a family is free of sizes


def test_truncated_graphs_stand_apart_and_are_in_no_default_config(
    captures: list[Capture], tmp_path: Path
) -> None:
    cut = Capture(parse_line(LINES[2] + " truncated"), captures[2].path)
    write_full([captures[0], cut], tmp_path)
    assert load_dataset(tmp_path, "all", "all")["id"][:] == ["torch/a"]
    (row,) = load_dataset(tmp_path, "truncated", "all")
    assert (row["id"], row["task"], row["is_truncated"]) == ("torch/wide", "other", True)
    assert row["tags"] == ["truncated"]
    assert select_rows("truncated", dataset=tmp_path)[0]["id"] == "torch/wide"
    first = {path: path.read_bytes() for path in tmp_path.rglob("*.*")}
    write_full([captures[0], cut], tmp_path)
    assert {path: path.read_bytes() for path in tmp_path.rglob("*.*")} == first
    write_full(captures[:3], tmp_path)  # once it is no longer cut it is counted
    assert "torch/wide" in load_dataset(tmp_path, "all", "all")["id"][:]
    assert not list(tmp_path.glob("truncated/*.parquet"))


def test_a_second_build_leaves_no_shard_of_the_first(
    captures: list[Capture], tmp_path: Path
) -> None:
    write_full(captures, tmp_path)
    write_full(captures[:1], tmp_path)
    assert len(list(tmp_path.glob("*/*.parquet"))) == 1


def test_the_table_of_models_stands_between_its_markers(
    captures: list[Capture], tmp_path: Path
) -> None:
    graphs = write_full(captures, tmp_path / "out")
    text = tmp_path / "dataset.md"
    text.write_text(f"before\n{BEGIN}\nold\n{END}\nafter\n")
    write_report(text, captures, graphs, 2)
    written = text.read_text()
    assert written.startswith(f"before\n{BEGIN}\n") and written.endswith(f"{END}\nafter\n")
    assert "old" not in written
    assert "5 entries tried, 4 captured (80.0%), 1 graph equal to another one or " in written
    assert "**3 graphs of 2 families**" in written
    assert "2 entries of the catalogs have not been tried yet." in written
    assert "| this project | Apache-2.0 | other | 3 | 3 | 2 | 1 | 0 |" in written
    assert "| capture: RuntimeError | 1 | torch 1 |" in written
    write_report(text, captures, graphs, 2)
    assert text.read_text() == written


def test_a_text_without_markers_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "x.md"
    path.write_text("nothing")
    with pytest.raises(GraphNetError, match="has no lines"):
        write_report(path, [], [], 0)


@pytest.mark.parametrize(
    ("reason", "expected"),
    [
        ("error in build: KeyError 2", "build: KeyError"),
        ("out_of_memory in build: SIGKILL ended", "build: out of memory"),
        (
            "error in capture: graphnet_datasets.errors.CaptureError `x` breaks into 4 graphs: y",
            "capture: the graph breaks",
        ),
    ],
)
def test_failures_are_counted_by_class(reason: str, expected: str) -> None:
    assert reason_class(reason) == expected


def test_the_choice_takes_no_duplicate_and_prefers_a_new_family(captures: list[Capture]) -> None:
    first, second = choose(captures, 2)
    assert {parse_line(line).task for line in (first, second)} == {"other", "scientific"}
    chosen = choose(captures, 10)
    assert [line.partition(" ")[0] for line in chosen] == ["torch/a", "torch/wave", "torch/wide"]
    assert choose(list(reversed(captures)), 10) == chosen
