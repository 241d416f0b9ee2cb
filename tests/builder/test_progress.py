"""How a build says how it goes on, in logs."""

from __future__ import annotations

import io
from pathlib import Path

import pytest

from builder import progress
from builder.__main__ import INTERRUPTED, main
from builder.capturing import Capture, Keys
from builder.catalog import parse_line, read_catalog

LINE = "torch/{} | other | torch | mlp | sizes=[4,8,2] | input=normal(2,4) | float32 | eval | |"


def capture(name: str, reason: str = "") -> Capture:
    path = None if reason else Path(f"{name}.parquet")
    return Capture(parse_line(LINE.format(name)), path, reason)


def test_a_log_has_failures_and_the_state_at_the_end() -> None:
    out = io.StringIO()
    captures = [capture("a"), capture("b", "error in capture: it broke"), capture("c")]
    assert progress.follow(iter(captures), 3, out=out) == captures
    first, last = out.getvalue().splitlines()
    assert first == "torch/b error in capture: it broke"
    assert last.startswith("capture: 3 of 3, 1 failed, ")


def test_a_log_has_a_line_now_and_then(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "QUIET_S", 0.0)
    out = io.StringIO()
    progress.follow(iter([capture("a"), capture("b")]), 4, out=out)
    lines = out.getvalue().splitlines()
    assert [line.partition(",")[0] for line in lines][:2] == ["capture: 1 of 4", "capture: 2 of 4"]


def test_the_rate_counts_only_captures_of_this_build() -> None:
    times = iter([120.0, 120.0])
    course = progress.Course(100, now=lambda: next(times))
    assert course.per_minute is None
    for _ in range(40):
        course.add(capture("known"), is_new=False)
    course.began = 0.0
    for _ in range(6):
        course.add(capture("new"), is_new=True)
    assert str(course) == "46 of 100, 0 failed, 3.0 entries a minute, 18 minutes left"
    assert course.per_minute == 3.0


def test_ctrl_c_says_where_the_work_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupt(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("builder.__main__.capture_all", interrupt)
    catalog = tmp_path / "catalog.txt"
    catalog.write_text(LINE.format("a") + "\n")
    arguments = ["starter", "--catalog", str(catalog), "--build", "build/there"]
    assert main(arguments) == INTERRUPTED
    error = capsys.readouterr().err
    assert error == (
        "Stopped. Finished captures are in `build/there`; the same command continues from there.\n"
    )


def test_only_failures_are_retried(tmp_path: Path) -> None:
    catalog, build, out = tmp_path / "catalog.txt", tmp_path / "build", tmp_path / "out"
    catalog.write_text(LINE.format("whole") + "\n" + LINE.format("broken") + "\n")
    whole, broken = read_catalog(catalog)
    build.mkdir()
    Keys().path(broken, build).with_suffix(".failure").write_text("error in build: no memory")
    arguments = ["starter", "--catalog", catalog, "--build", build, "--out", out, "--only-failed"]
    assert main([str(each) for each in arguments]) == 0
    assert Keys().path(broken, build).is_file()
    assert not Keys().path(whole, build).exists()
    assert not out.exists()
