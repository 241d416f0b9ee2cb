"""The last lines of `run`, `score`, `doctor` and `check` about good and bad compilers."""

from __future__ import annotations

import json
import os
import pty
import re
import subprocess
import sys
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from graphnet_datasets.sample import Input, Op, Sample, Statistics, Value
from graphnet_datasets.sample.arguments import Ref
from graphnet_datasets.storage.table import write_table

from .calling import call

pytestmark = pytest.mark.torch

GRAPHNET = Path(sys.executable).with_name("graphnet")
CANDIDATES = """
import ctypes
import time


def right(module, example_inputs):
    return module


def doubles(module, example_inputs):
    def call(**inputs):
        outputs = module(**inputs)
        return tuple(2 * x for x in outputs) if isinstance(outputs, tuple) else 2 * outputs

    return call


def slow(module, example_inputs):
    def call(**inputs):
        time.sleep(0.005)
        return module(**inputs)

    return call


def crashes(module, example_inputs):
    ctypes.string_at(0)
"""

KERNELS = """
import ctypes
import time


def right(x):
    return (x.tanh(),)


def doubles(x):
    return (2 * x.tanh(),)


def slow(x):
    time.sleep(0.005)
    return (x.tanh(),)


def crashes(x):
    ctypes.string_at(0)
"""


def tanh(sample_id: str) -> Sample:
    """Return a sample whose outputs are far from zeros."""
    value = Value("float32", (16, 32))
    inputs = (Input("input", value, "x", statistics=Statistics(0.0, 1.0)),)
    ops = (Op("torch.tanh", (Ref(0),), results=(value,)),)
    return Sample(sample_id, "torch", "other", inputs, ops, (Ref(1),))


@pytest.fixture(scope="module")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> Path:
    samples = [tanh("test/one"), tanh("test/two")]
    return write_table(samples, tmp_path_factory.mktemp("dataset") / "samples.parquet")


@pytest.fixture(scope="module")
def candidates(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("candidates") / "mine.py"
    path.write_text(CANDIDATES)
    return path


def run_words(name: str, candidates: Path, dataset: Path, out: Path) -> list[str]:
    return [
        "--quiet", "run", str(dataset), "--compiler", f"{candidates}:{name}", "--budget", "0.1",
        "--threads", "1", "--memory-limit", "2", "--no-oracle", "--no-kernels", "--out", str(out),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("name", "exit_code", "verdict", "counts"),
    [
        ("right", 0, "right: 2 of 2 right. S(-3) = ", ["2", "2", "0", "0", "0"]),
        ("doubles", 3, "doubles: 0 of 2 right, 2 wrong. S(-3) = 0.1", ["2", "0", "2", "0", "0"]),
        pytest.param(
            *("slow", 0, "slow: 2 of 2 right. S(-3) = 0.0", ["2", "2", "0", "0", "0"]),
            marks=pytest.mark.slow,
        ),
        pytest.param(
            *("crashes", 3, "crashes: 0 of 2 right, 2 failed. S(-3) = 0.1"),
            ["2", "0", "0", "2", "0"],
            marks=pytest.mark.slow,
        ),
    ],
)
def test_the_last_ten_lines_say_how_it_went(
    name: str,
    exit_code: int,
    verdict: str,
    counts: list[str],
    candidates: Path,
    dataset: Path,
    tmp_path: Path,
) -> None:
    words = run_words(name, candidates, dataset, tmp_path / "runs")
    last = "\n".join(call(*words, "--strict", exit_code=exit_code).stdout.splitlines()[-10:])
    assert verdict in last
    verdicts = {
        "doubles": r"  WRONG   at t = -3 \(largest error ",
        "crashes": "  failed  while compiling: ",
    }
    assert len(re.findall(verdicts.get(name, r"  right   \d"), last)) == 2, last
    if name in verdicts:
        command = rf"\(graphnet bisect test/one --compiler \S+:{name} --dataset \S+\)\.$"
        assert re.search(command, last, re.MULTILINE), last
    if name == "slow":
        assert re.search(r"^Slowest: test/(one|two), 0\.0", last, re.MULTILINE), last
    # Everything is stored now; without `--strict` the same verdict exits 0.
    assert call(*words).stdout.splitlines()[-4:] == last.splitlines()[-4:]
    text = call("score", tmp_path / "runs").stdout
    table, conclusion, legend = text.split("\n\n")
    assert table.splitlines()[1].split()[1:6] == counts, table
    assert ": no interval: " in conclusion
    assert 'docs/scores.md, "How to read a score"' in legend


QUICK = (
    *("--budget", "0.1", "--threads", "1", "--memory-limit", "2", "--no-oracle", "--no-kernels"),
)


def doctor(compiler: str, dataset: Path, out: Path, exit_code: int) -> dict[str, str]:
    """Return the last ten lines of `graphnet doctor` on one graph by their label."""
    words = ("--quiet", "doctor", compiler, "--dataset", dataset, "--count", "1", "--out", out)
    text = call(*words, *QUICK, exit_code=exit_code).stdout
    last = text.partition("\n\n")[2].partition("\n\n")[2].splitlines()
    assert 0 < len(last) <= 10
    assert (out / "report.html").is_file()
    return {line[:12].strip(): line[12:] for line in last}


@pytest.mark.parametrize(
    ("name", "exit_code", "verdict", "score", "worst"),
    [
        ("right", 0, "1 of 1 right", r"S\(-3\) = \d.*; right ones \d", None),
        (
            "doubles",
            3,
            "0 of 1 right, 1 wrong (test/one)",
            r"S\(-3\) = 0\.10, no interval",
            "wrong",
        ),
        pytest.param(
            *("slow", 0, "1 of 1 right", r"S\(-3\) = 0\.0.*, no interval", "slow"),
            marks=pytest.mark.slow,
        ),
        pytest.param(
            *("crashes", 3, "0 of 1 right, 1 failed (test/one)", r"S\(-3\) = 0\.10", "failed"),
            marks=pytest.mark.slow,
        ),
    ],
)
def test_the_doctor_says_how_it_went(
    name: str,
    exit_code: int,
    verdict: str,
    score: str,
    worst: str | None,
    candidates: Path,
    dataset: Path,
    tmp_path: Path,
) -> None:
    out = tmp_path / "doctor"
    lines = doctor(f"{candidates}:{name}", dataset, out, exit_code)
    assert lines["Verdict"] == f"mine.py:{name}: {verdict}"
    assert re.match(score, lines["Score"]), lines
    assert lines["Subset"].startswith("1 whole graph of 1 task, chosen from 2 graphs; ")
    assert "Landlock" in lines["Machine"] and "torch" in lines["Machine"]
    assert lines["Report"].startswith(f"{out}/report.html")
    if worst is None:
        return
    assert lines["Worst"].startswith(f"test/one: {worst}; 1 operator of 1, torch.tanh -> {out}/")
    test = Path(lines["Worst"].partition(" -> ")[2])
    assert "graphnet_datasets" not in test.read_text()


@pytest.mark.slow
def test_the_doctor_continues_where_it_was_stopped(
    candidates: Path, dataset: Path, tmp_path: Path
) -> None:
    out = tmp_path / "doctor"
    doctor(f"{candidates}:doubles", dataset, out, 3)
    records, trials = out / "runs" / "runs.parquet", next(out.glob("*/trials.jsonl"))
    before = pq.read_table(records), trials.read_bytes()
    words = ("--quiet", "doctor", f"{candidates}:doubles", "--dataset", dataset, "--count", "1")
    answer = json.loads(call(*words, "--out", out, *QUICK, "--json", exit_code=3).stdout)
    assert [finding["kind"] for finding in answer["worst"]] == ["wrong"]
    assert pq.read_table(records).equals(before[0])  # nothing ran again
    assert trials.read_bytes() == before[1]


@pytest.mark.parametrize(
    ("name", "exit_code", "verdict"),
    [
        pytest.param("right", 0, r"right   \d", marks=pytest.mark.slow),
        ("doubles", 3, r"WRONG   at t = -3 \(largest error "),
        pytest.param("slow", 0, r"right   0\.0\d*x", marks=pytest.mark.slow),
        ("crashes", 3, r"failed  while \w+: SIGSEGV"),
    ],
)
def test_a_check_says_how_it_went(
    name: str, exit_code: int, verdict: str, dataset: Path, tmp_path: Path
) -> None:
    kernels = tmp_path / "kernels.py"
    kernels.write_text(KERNELS)
    words = ("--quiet", "check", "test/one", f"{kernels}:{name}", "--dataset", dataset)
    lines = call(*words, *QUICK, exit_code=exit_code).stdout.splitlines()
    assert len(lines) <= 10
    assert re.match(rf"test/one  kernels\.py:{name}  {verdict}", lines[0]), lines


@pytest.mark.slow
def test_a_wrong_compiler_is_red_on_a_terminal(
    candidates: Path, dataset: Path, tmp_path: Path
) -> None:
    words = run_words("doubles", candidates, dataset, tmp_path / "runs")
    shown = _on_a_terminal([str(GRAPHNET), *words], {})
    assert re.search(r"\x1b\[31m  test/one .*WRONG", shown), shown
    plain = _on_a_terminal([str(GRAPHNET), *words], {"NO_COLOR": "1"})
    assert "WRONG" in plain
    assert "\x1b[31m" not in plain


def _on_a_terminal(command: list[str], environment: dict[str, str]) -> str:
    """Run a command on a terminal and return its standard output."""
    mine, theirs = pty.openpty()
    with subprocess.Popen(
        command, stdout=theirs, stderr=subprocess.DEVNULL, env=os.environ | environment
    ) as process:
        os.close(theirs)
        shown = bytearray()
        while True:
            try:
                part = os.read(mine, 4096)
            except OSError:  # the other end is closed
                break
            if not part:
                break
            shown.extend(part)
    os.close(mine)
    assert process.returncode == 0
    return shown.decode()
