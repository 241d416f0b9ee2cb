"""`graphnet score`, `graphnet plot`, `graphnet import-log`."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from graphnet_datasets.benchmark.records.records import write_runs
from graphnet_datasets.cli.app import app
from graphnet_datasets.scores import error_aware_speedup_score, speedup_score

from ..benchmark.test_upstream_log import log_of
from ..scores.run_rows import BROKEN_EAGER, FOUR, make_run
from ..tables import write_dataset


def invoke(*arguments: object) -> Result:
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


def write(path: Path, rows: list[dict[str, Any]]) -> Path:
    rows = [{**row, "run_id": row["run_id"] or f"{index}"} for index, row in enumerate(rows)]
    write_runs(rows, path)
    return path


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    return write(tmp_path / "runs.parquet", [*FOUR, BROKEN_EAGER])


@pytest.fixture
def two_arms(tmp_path: Path) -> Path:
    other = [make_run("fast", 3.0, compiler="torchscript", task="cv")]
    return write(tmp_path / "two.parquet", [*FOUR, *other])


def test_score_prints_a_row_per_arm_then_conclusions(runs: Path) -> None:
    result = invoke("score", runs)
    assert result.exit_code == 0
    lines = result.stdout.splitlines()
    assert lines[1].split()[:9] == ["inductor", "5", "1", "1", "2", "0", "1", "0.21", "0.31"]
    assert lines[3] == (
        "unknown machine: no headline, since no compiler ran on 100 families (the most is 3)."
    )
    assert lines[4] == (
        "inductor: no interval: 1 model family is too few (5 are needed). Add graphs, or read them "
        "one by one."
    )
    assert len(lines) < 11
    assert "`--full`" in lines[-1]


def scored_ids(*arguments: object) -> set[str]:
    result = invoke("score", *arguments, "--by-sample", "--json")
    assert result.exit_code == 0, result.output
    return {row["sample_id"] for row in json.loads(result.stdout)["by_sample"]}


def test_score_filters_by_columns_of_the_records(runs: Path) -> None:
    assert scored_ids(runs, "--task", "nlp") == {"crashed", "refused"}
    assert scored_ids(runs, "--name", "SLOW", "--name", "crash") == {"slow", "crashed"}
    assert scored_ids(runs, "--family", "g") == {"crashed"}
    result = invoke("score", runs, "--task", "audio")
    assert result.exit_code == 1
    message = (
        "Error: No run record matches `--task audio`. Without `--task audio`, 5 samples remain"
    )
    assert result.stderr.startswith(message)


def test_score_filters_by_columns_of_the_dataset(tmp_path: Path) -> None:
    rows = [make_run(f"cv/chain-{size}", 2.0, num_ops=size) for size in (1, 2, 20)]
    rows.append(make_run("elsewhere", 2.0, num_ops=1))
    runs = write(tmp_path / "runs.parquet", rows)
    words = (runs, "--dataset", write_dataset(tmp_path / "source"))
    assert scored_ids(*words, "--tag", "small") == {"cv/chain-1", "cv/chain-2"}
    assert scored_ids(*words, "--min-flops", "7") == {"cv/chain-2", "cv/chain-20"}
    assert scored_ids(*words, "--dtype", "float32", "--limit", "1") == {"cv/chain-1"}
    result = invoke("score", *words, "--dtype", "int8")
    assert "with `float32` (3)" in result.stderr
    assert "lacks 1 sample of the records" in result.stderr


def test_the_full_table_folds_equal_rows(runs: Path) -> None:
    lines = invoke("score", runs, "--full").stdout.splitlines()
    first = lines.index(
        "S(t) and ES(t) of inductor: 4 samples of 3 families; p = 0.1, b = 0.1, variant report"
    )
    assert "Not in N: 1, since eager or the harness failed: broken (baseline_failed)" in lines
    spans = [line[:9].strip() for line in lines[first + 3 : first + 6]]
    assert spans == ["-10 to -6", "-5 to -3", "-2 to 0"]


def test_score_prints_one_json_object(runs: Path) -> None:
    result = invoke("score", runs, "--json", "--p", 0, "--b", 0.5, "--variant", "upstream")
    found = json.loads(result.stdout)
    assert list(found["S"]) == list(found["ES"]) == [str(t) for t in range(-10, 6)]
    assert [found[name] for name in ("p", "b", "variant", "samples")] == [0, 0.5, "upstream", 5]
    assert found["summary"]["graphs"] == 5
    expected = error_aware_speedup_score([*FOUR, BROKEN_EAGER], 0, 0.5, "upstream")
    assert list(found["ES"].values()) == expected["ES"]


def test_s_is_null_above_zero_in_json(runs: Path) -> None:
    found = json.loads(invoke("score", runs, "--json").stdout)
    assert [found["S"][str(t)] for t in (1, 2, 3, 4)] == [None] * 4
    assert found["S"]["0"] == speedup_score(FOUR).at(0)["S"]


def test_score_by_sample_begins_with_the_largest_head_room(tmp_path: Path) -> None:
    timed = {"candidate_latency_ms": [2.0, 4.0, 3.0], "compile_time_s": 0.25}
    rows = [
        make_run("unknown", 2.0, **timed),
        make_run("near", 2.0, **timed, floor_ms=1.5, break_even_calls=84, min_t=-math.inf),
        make_run(
            "far",
            0.9,
            **timed,
            floor_ms=0.03,
            baseline_num_kernels=9,
            candidate_num_kernels=4,
            speedup_low=0.8,
            speedup_high=1.1,
            is_noisy=True,
        ),
        make_run("refused", status="compile_failed"),
    ]
    path = write(tmp_path / "timed.parquet", rows)
    table = invoke("score", path, "--by-sample").stdout.split("\n\n")[-1].splitlines()
    assert table[0].split()[:6] == ["sample", "ms", "speedup", "95", "%", "min_t"]
    assert [line.split() for line in table[1:]] == [
        [*("far", "3", "0.900", "0.800", "…", "1.100", "noisy", "-5.0"),
         *("1", "%", "0.25", "never", "9", ">", "4")],
        ["near", "3", "2.000", "-inf", "50", "%", "0.25", "84", "-", ">", "-"],
        ["unknown", "3", "2.000", "-5.0", "-", "0.25", "never", "-", ">", "-"],
        ["refused", "-", "compile_failed", "-", "-", "-", "-", "-", ">", "-"],
    ]  # fmt: skip
    found = json.loads(invoke("score", path, "--by-sample", "--json").stdout)["by_sample"]
    assert [row["roofline_share"] for row in found] == [0.01, 0.5, None, None]
    assert found[1]["min_t"] == "-inf"


def test_score_by_task(runs: Path) -> None:
    text = invoke("score", runs, "--by-task").stdout
    assert [part.split()[0:2] for part in text.split("\n\n") if part.startswith("Task")] == [
        ["Task", "cv"],
        ["Task", "nlp"],
        ["Task", "unknown"],
    ]
    full = invoke("score", runs, "--by-task", "--full").stdout
    assert "S(t) and ES(t) of inductor: 2 samples of 1 family" in full
    assert "inductor: There is nothing to score: each of the 1 runs ended `baseline" in full
    found = json.loads(invoke("score", runs, "--by-task", "--json").stdout)
    assert list(found["by_task"]) == ["cv", "nlp"]
    assert found["by_task"]["cv"]["samples"] == 2


def test_two_compilers_give_two_rows_and_two_objects(two_arms: Path) -> None:
    text = invoke("score", two_arms).stdout
    assert [line.split()[:2] for line in text.splitlines()[1:3]] == [
        ["torchscript", "1"],
        ["inductor", "4"],
    ]
    result = invoke("score", two_arms, "--json", "--by-size")
    assert result.exit_code == 0
    objects = {arm["arm"]: arm for arm in map(json.loads, result.stdout.splitlines())}
    assert {name: arm["samples"] for name, arm in objects.items()} == {
        "inductor": 4,
        "torchscript": 1,
    }
    assert objects["inductor"]["summary"]["right"] == 1
    chosen = json.loads(invoke("score", two_arms, "--json", "--compiler", "torchscript").stdout)
    assert chosen["samples"] == 1


def test_an_arm_without_a_run_that_counts_does_not_hide_the_others(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib", reason="matplotlib is not installed")
    broken = {**BROKEN_EAGER, "compiler": "torchscript"}
    path = write(tmp_path / "runs.parquet", [*FOUR, broken])
    lines = invoke("score", path, "--json").stdout.splitlines()
    assert [json.loads(line)["summary"]["graphs"] for line in lines] == [4, 1]
    result = invoke("report", path, "--out", tmp_path / "page.html")
    assert result.exit_code == 0
    assert result.stderr == "`torchscript` is left out, because none of its runs counts.\n"


def test_score_compares_several_run_sets(runs: Path, two_arms: Path) -> None:
    text = invoke("score", runs, two_arms).stdout
    assert text.count("torchscript") and text.count("inductor") >= 2
    assert json.loads(invoke("score", runs, "--json").stdout)["samples"] > 1


def test_an_unknown_compiler_is_an_error(runs: Path) -> None:
    result = invoke("score", runs, "--compiler", "tvm")
    assert result.exit_code == 1
    assert result.stderr == f"Error: `{runs}` contains no runs of `tvm`, only of `inductor`.\n"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--p", "-1"), "The penalty of slow samples p is -1.0, but it must be"),
        (("--b", "0"), "The value of a failed sample b is 0.0, but it must be"),
        (("--variant", "paper"), "There is no variant `paper` of the scores."),
        (("--duplicates", "mean"), "`--duplicates` is `mean`, but it must be `refuse` or `newest`"),
    ],
)
def test_wrong_options_are_errors(runs: Path, options: tuple[str, ...], message: str) -> None:
    result = invoke("score", runs, *options)
    assert result.exit_code == 1
    assert result.stderr.startswith(f"Error: {message}")
    assert "Traceback" not in result.stderr


def test_no_runs_at_all_is_an_error(tmp_path: Path) -> None:
    assert invoke("score", tmp_path / "none").exit_code == 1
    result = invoke("score", write(tmp_path / "empty.parquet", []))
    assert result.stderr == (
        f"Error: `{tmp_path / 'empty.parquet'}` contains no run records. Create some with "
        "`graphnet run`.\n"
    )


def test_duplicates_can_be_resolved(tmp_path: Path) -> None:
    path = write(tmp_path / "runs.parquet", [make_run("a", 2.0), make_run("a", 4.0)])
    assert invoke("score", path).exit_code == 1
    found = json.loads(invoke("score", path, "--json", "--duplicates", "newest").stdout)
    assert found["S"]["0"] == pytest.approx(4.0)


def test_import_log_then_score(tmp_path: Path) -> None:
    log = tmp_path / "upstream.log"
    log.write_text("\n".join([*log_of("a"), *log_of("b", stop=9)]))
    result = invoke("import-log", log, "--out", tmp_path / "runs")
    assert result.exit_code == 0
    assert result.stdout == f"2 runs written to {tmp_path / 'runs'}: 1 ok, 1 compile_failed\n"
    found = json.loads(invoke("score", tmp_path / "runs", "--json").stdout)
    assert found["S"]["0"] == pytest.approx((2 * 0.1) ** 0.5)


def test_plot_names_the_files_that_it_wrote(two_arms: Path, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib", reason="matplotlib is not installed")
    result = invoke("plot", two_arms, "--out", tmp_path / "plots")
    assert result.exit_code == 0
    written = result.stdout.split()
    assert f"{tmp_path / 'plots' / 'error_aware_speedup_score.svg'}" in written
    assert all(Path(path).stat().st_size > 1000 for path in written)


@pytest.mark.parametrize("command", ["score", "plot", "report", "import-log"])
def test_help_shows_an_example(command: str) -> None:
    result = invoke(command, "--help")
    assert result.exit_code == 0
    assert f"Example: graphnet {command}" in result.stdout
