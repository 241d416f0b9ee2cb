"""What captures took, by source."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from builder.__main__ import main
from builder.catalog import parse_line
from builder.effort import RECORDS, add_up, effort_table, read_efforts, record, with_earlier
from builder.executors import capture_all
from builder.report import BEGIN, END, write_report
from graphnet_datasets.isolation import Ending, Finished, Outcome, PoolJob

LINE = "{}/x | {} | {} | mlp | sizes=[4,8] | input=normal(2,4) | float32 | eval | |"
BROKEN = "torch/b | cv | torch | mlp | sizes=[4,8] | input=normal(2,5) | float32 | eval | |"


def finish(build: Path, library: str, task: str, cpu_s: float | None, result: bytes | None) -> None:
    messages = [] if cpu_s is None else [{"cpu_s": cpu_s}]
    outcome = Outcome(Ending.FINISHED, "write", messages, None, 0, "", 0, 7200.0, {}, 2**30, 0,
                      ["write"] * len(messages))  # fmt: skip
    entry = parse_line(LINE.format(library, task, library))
    record(build, entry, Finished(PoolJob(entry.name, {}), outcome, result))


def test_captures_add_up_by_source_and_task(tmp_path: Path) -> None:
    finish(tmp_path, "timm", "cv", 3600.0, b"row")
    finish(tmp_path, "timm", "cv", 1800.0, None)
    finish(tmp_path, "torch", "other", None, None)
    lines = list(effort_table(add_up(read_efforts(tmp_path))))
    assert lines[2:5] == [
        "| this project | other | 1 | 1 | 0.00 | 2.00 |  | 1.0 GiB |",
        "| timm | cv | 2 | 1 | 1.50 | 4.00 | 2,700.0 | 1.0 GiB |",
        "| all |  | 3 | 2 | 1.50 | 6.00 | 2,700.0 | 1.0 GiB |",
    ]
    assert lines[6:] == ["1 captures were stopped before their CPU time was recorded."]


def test_sums_of_other_builds_stay_and_those_of_this_one_are_not_added_twice(
    tmp_path: Path,
) -> None:
    sums = tmp_path / "efforts.json"
    first, second = tmp_path / "first", tmp_path / "second"
    for build in (first, second):
        build.mkdir()
        finish(build, "timm", "cv", 3600.0, b"row")
        with_earlier(build, sums)
    assert with_earlier(second, sums)["timm cv"].num_captures == 2
    finish(second, "timm", "cv", 1800.0, b"row")
    told = with_earlier(second, sums)
    assert list(told) == ["timm cv"]
    assert (told["timm cv"].num_captures, told["timm cv"].cpu_s) == (3, 9000.0)
    # A build that captured nothing of its own adds nothing.
    assert with_earlier(tmp_path / "third", sums) == told
    assert len(json.loads(sums.read_text())) == 2


def test_the_sums_that_are_kept_can_be_read() -> None:
    told = with_earlier(Path("no such build"))
    assert sum(each.num_captures for each in told.values()) > 1000


def test_a_line_that_was_cut_off_is_no_record(tmp_path: Path) -> None:
    finish(tmp_path, "timm", "cv", 1.0, b"row")
    with (tmp_path / RECORDS).open("a") as file:
        file.write('{"name": "timm/y", "lib')
    assert [each.name for each in read_efforts(tmp_path)] == ["timm/x"]


@pytest.mark.slow
def test_real_captures_report_their_effort(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    entries = [parse_line(LINE.format("torch", "other", "torch")), parse_line(BROKEN)]
    captures = list(capture_all(entries, tmp_path))
    efforts = {each.name: each for each in read_efforts(tmp_path)}
    assert {name: each.is_captured for name, each in efforts.items()} == {
        "torch/x": True, "torch/b": False,
    }  # fmt: skip
    for each in efforts.values():  # one that fails tells it too
        assert each.cpu_s is not None and 0 < each.cpu_s < 100
    text = tmp_path / "page.md"
    text.write_text(f"{BEGIN}\n{END}\n")
    write_report(text, captures, [], 0, add_up(efforts.values()))
    assert "| all |  | 2 | 1 |" in text.read_text()
    assert main(["hours", "--build", str(tmp_path)]) == 0
    assert "| all |  | 2 | 1 |" in capsys.readouterr().out
    assert main(["hours", "--build", str(tmp_path / "nothing")]) == 1
    assert "has no `effort.jsonl`" in capsys.readouterr().err
    assert json.loads((tmp_path / RECORDS).read_text().splitlines()[0])["library"] == "torch"
