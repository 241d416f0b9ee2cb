"""What a run shows while it goes on: the phase and time of the sample at work, how long more."""

from __future__ import annotations

import io
import itertools
import os
import pty
import re
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from graphnet_datasets.benchmark.progress import Course, live_bar, show_progress
from tests.tables import write_dataset

GRAPHNET = Path(sys.executable).with_name("graphnet")
ESCAPES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


def record(sample_id: str, compiler: str = "inductor") -> dict[str, Any]:
    return {
        "sample_id": sample_id, "compiler": compiler, "status": "ok", "speedup": 2.0, "min_t": -6.0,
    }  # fmt: skip


@pytest.mark.parametrize("columns", [50, 60, 80, 120])
def test_the_lines_fit_the_terminal(columns: int) -> None:
    seconds = itertools.count(0, 7)
    course = Course(total=1272, done=0, clock_s=lambda: float(next(seconds)))
    output = io.StringIO()
    console = Console(file=output, force_terminal=True, width=columns, height=20)
    with live_bar(course, console) as progress:
        for number in range(3):
            sample_id = f"torchvision/a-model-with-a-long-name-{number}"
            for phase in ("baseline", "compile", "reference run"):
                progress.enter(sample_id, "inductor", phase)
                progress._bar.refresh()  # type: ignore[attr-defined] (drawn twice a second)
            progress.add(record(sample_id))
    lines = ESCAPES.sub("", output.getvalue()).replace("\r", "\n").splitlines()
    assert max(map(len, lines)) <= columns
    assert any(line.startswith("2/1272") or " 2/1272" in line for line in lines)
    started = [line for line in lines if line.startswith("compiling torchvision/a-model-with")]
    assert started
    assert re.search(r"\d+:\d\d, about \d+:\d\d(:\d\d)? left", str(lines))
    assert "inductor S(-5) 2.000, S(0) 2.000" in lines
    if columns >= 60:
        assert re.search(r"compiling torchvision/a-model-with-a-long-name-1, \d+:\d\d", str(lines))


def test_without_a_terminal_each_run_is_a_line(capsys: pytest.CaptureFixture[str]) -> None:
    with show_progress(3, [record("a")]) as progress:
        progress.enter("b", "inductor", "compile")
        progress.add(record("b"))
        progress.add(record("c"))
    lines = capsys.readouterr().err.splitlines()
    assert re.fullmatch(r"2/3 b inductor right   2\.00x \(0:00, about 0:00 left\)", lines[0])
    assert re.fullmatch(r"3/3 c inductor right   2\.00x \(0:00\)", lines[1])


def test_each_record_is_passed_on_in_place_of_a_line(capsys: pytest.CaptureFixture[str]) -> None:
    shown: list[str] = []
    with show_progress(3, [record("a")], lambda row: shown.append(row["sample_id"])) as progress:
        progress.add(record("b"))
        progress.add(record("c"))
    assert shown == ["a", "b", "c"]
    assert capsys.readouterr().err == ""


@pytest.mark.slow
def test_a_run_on_a_terminal_shows_life(tmp_path: Path) -> None:
    pytest.importorskip("torch", reason="torch is not installed")
    root = write_dataset(tmp_path / "dataset")
    mine, theirs = pty.openpty()
    shown = bytearray()

    def read() -> None:
        while True:
            try:
                part = os.read(mine, 4096)
            except OSError:  # the other end is closed
                return
            if not part:
                return
            shown.extend(part)

    reader = threading.Thread(target=read)
    reader.start()
    command = "run cv/chain-2 --compiler eager --budget 0.1 --threads 1 --no-oracle"
    subprocess.run(
        [str(GRAPHNET), *command.split(), "--dataset", str(root), "--out", str(tmp_path / "runs")],
        check=True, stdout=subprocess.DEVNULL, stderr=theirs, env=os.environ | {"TERM": "xterm"},
    )  # fmt: skip
    os.close(theirs)
    reader.join(10)
    os.close(mine)
    text = ESCAPES.sub("", shown.decode())
    assert "0/1" in text
    assert "1/1" in text
    assert re.search(r"(running|timing|running eager on|loading) cv/chain-2.*, 0:0\d", text)
