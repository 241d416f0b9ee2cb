"""The experiments in `benchmarks/tuning/`, on a pool that is made up: they run, and say so."""

from __future__ import annotations

import dataclasses
import importlib.util
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from benchmarks.tuning.graph_files import save_graphs
from graphnet_datasets.schema import RUNS_SCHEMA, empty_run
from graphnet_datasets.tuning import TaskSource
from graphnet_datasets.tuning.records import write_tuning

from .toy import ToySpace, make_pool, make_task

for package in ("sklearn", "xgboost", "torch"):
    pytest.importorskip(package)

FOLDER = Path(__file__).parents[2] / "benchmarks" / "tuning"
SIZES = [(32, 64, 64), (64, 64, 256), (128, 128, 64), (64, 256, 128)]
TASKS = [
    dataclasses.replace(
        make_task(*size, family=family),
        sources=tuple(TaskSource(f"toy/{name}", "00", count) for name in "ab"),
    )
    for family in ("matmul", "conv2d")
    for count, size in enumerate(SIZES, 1)
]

Figures = list[dict[str, Any]]


@pytest.fixture(scope="module")
def pool(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = make_pool(TASKS, each=40)
    rows = [
        dataclasses.replace(row, record_id=f"{task.task_id}/{index}")
        for task in TASKS
        for index, row in enumerate(made.rows(task))
    ]
    path = tmp_path_factory.mktemp("pool") / "pool"
    write_tuning(path, TASKS, rows)
    space = ToySpace(TASKS)
    save_graphs(
        path.parent / "graphs.npz", {row.candidate.key: space.graph(row.candidate) for row in rows}
    )
    return path


@pytest.fixture
def run(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[..., Figures]:
    def of(name: str, *arguments: object) -> Figures:
        monkeypatch.syspath_prepend(str(FOLDER))
        spec = importlib.util.spec_from_file_location(f"experiment_{name}", FOLDER / f"{name}.py")
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        module.main([str(each) for each in arguments])
        return [json.loads(line) for line in capsys.readouterr().out.splitlines()]

    return of


def test_gptune(pool: Path, run: Callable[..., Figures]) -> None:
    pytest.importorskip("gpytorch")
    figures = run(
        *("gptune", pool, "--seeds", 1, "--groups", 2, 9, "--cap", 12, "--slot", 6),
        *("--max-groups", 1, "--iterations", 4, "--min-candidates", 30),
    )
    by_tuner = {each["tuner"]: each for each in figures if "tuner" in each}
    assert set(by_tuner) == {"random", "single", "shared"}
    assert all(1 <= each["trials_to_95"] <= 13 for each in by_tuner.values())
    ratio = next(each for each in figures if "shared_over_single" in each)
    assert ratio["pairs"] == 1
    expected = by_tuner["shared"]["trials_to_95"] / by_tuner["single"]["trials_to_95"]
    assert ratio["shared_over_single"] == pytest.approx(expected, rel=1e-3)
    assert ratio["by_group"] == [ratio["shared_over_single"]]  # of one group
    assert figures[-1]["skipped"]


def test_alt(pool: Path, run: Callable[..., Figures]) -> None:
    figures = run(
        *("alt", pool, "--seeds", 2, "--cap", 24, "--min-candidates", 30, "--trees", 6),
        *("--family", "conv2d"),
    )
    assert [each["tuner"] for each in figures[:-1]] == [
        *("random", "greedy", "greedy+epsilon", "bound", "alt")
    ]
    assert all(each["tasks"] == 4 for each in figures)
    low, high = figures[-1]["interval"]
    assert 0 < low <= figures[-1]["alt_over_greedy"] <= high
    with pytest.raises(SystemExit, match="No task of the pool has 999"):
        run("alt", pool, "--min-candidates", 999)


def test_dynatune(pool: Path, run: Callable[..., Figures]) -> None:
    figures = run(
        *("dynatune", pool, "--seeds", 3, "--min-tasks", 8, "--max-sets", 1),
        *("--tuner", "random", "--slot", 2, "--trials-per-task", 12, "--min-candidates", 30),
    )
    medians = {
        each["allocator"]: each["median_area_over_gradient"]
        for each in figures
        if "median_area_over_gradient" in each
    }
    assert medians["gradient"] == 1.0
    assert set(medians) == {"round-robin", "gradient", "dynatune", "clairvoyant"}
    assert medians["clairvoyant"] < min(medians["round-robin"], medians["dynatune"])


def test_oneshot(pool: Path, run: Callable[..., Figures]) -> None:
    figures = run("oneshot", pool, "--seeds", 1, "--rows", 20, 160, "--epochs", 12)
    reached = {(each["rows"], each["model"], each["picks"]): each["of_best"] for each in figures}
    assert len(reached) == len(figures) == 2 * 3 * 2
    assert all(0 < each <= 1 for each in reached.values())
    assert reached[160, "trees", 5] >= reached[160, "random", 1]


@pytest.mark.slow
def test_gnn(pool: Path, run: Callable[..., Figures]) -> None:
    pytest.importorskip("torch_geometric")
    figures = run(
        *("gnn", pool, "--graphs", pool.parent / "graphs.npz", "--seeds", 1),
        *("--epochs", 4, "--members", 1, "--folds", 2),
    )
    (halves,) = (each for each in figures if "halves" in each)
    assert 0.9 < halves["halves"] <= 1
    figures = [each for each in figures if "split" in each]
    more = {each["split"]: each.pop("gnn_over_trees") for each in figures if "model" not in each}
    figures = [each for each in figures if "model" in each]
    assert {(each["split"], each["model"]) for each in figures} == {
        (split, model)
        for split in ("random", "tasks", "families")
        for model in ("trees", "log trees", "predictor", "gnn")
    }
    assert all(("over_all" in each) == (each["split"] == "random") for each in figures)
    trees = {each["split"]: each["spearman"] for each in figures if each["model"] == "trees"}
    assert trees["random"] > 0.5
    gnn = {each["split"]: each["spearman"] for each in figures if each["model"] == "gnn"}
    for split, difference in more.items():
        assert difference == pytest.approx(gnn[split] - trees[split], abs=2e-4)


@pytest.mark.slow
def test_the_study_goes_on_and_fills_the_page(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    tasks = TASKS[:2]
    made = make_pool(tasks, each=104)
    rows = [
        dataclasses.replace(row, record_id=f"{task.task_id}/{index}")
        for task in tasks
        for index, row in enumerate(made.rows(task))
    ]
    write_tuning(tmp_path / "pool", tasks, rows)
    monkeypatch.syspath_prepend(str(FOLDER))
    study = importlib.import_module("study")
    page = tmp_path / "page.md"
    page.write_text(f"before\n{study.MARKERS[0]}\nold\n{study.MARKERS[1]}\nafter\n")
    call = [str(tmp_path / "pool"), "--out", str(tmp_path / "out"), "--only", "alt"]
    call += ["--seeds", "1", "--docs", str(page)]
    study.main(call)
    first = page.read_text()
    assert "of greedy's measurements, 2 tasks" in first and "old" not in first
    assert "alt.py POOL --tuners random greedy alt --seeds 1" in first and "| Bolt |" in first
    assert first.startswith("before\n") and first.endswith("after\n")
    assert (tmp_path / "images" / "tuning-trials.svg").is_file()
    assert "# python" in capsys.readouterr().err
    study.main(call)
    assert "# python" not in capsys.readouterr().err  # nothing was run again
    assert page.read_text() == first
    page.write_text("no markers")
    with pytest.raises(SystemExit, match="does not hold"):
        study.main(call)


@pytest.mark.parametrize("case", ["sparsity", "sort"])
def test_input_sensitivity_live(case: str, run: Callable[..., Figures]) -> None:
    pytest.importorskip("threadpoolctl")
    (figures,) = run("input_sensitivity", case, "--inputs", 16)
    assert figures["case"] == case
    assert figures["train"] == figures["test"] == 8
    assert figures["over_best_single"] > 0
    assert figures["best_single"] in figures["landmarks"]


def test_input_sensitivity_of_compilers(tmp_path: Path, run: Callable[..., Figures]) -> None:
    """One compiler wins on small graphs, the other on large ones; one fails on some."""
    rng = np.random.default_rng(0)
    rows = []
    for index in range(60):
        num_ops = int(rng.integers(5, 200))
        for compiler, speedup in (("a", 2.0 if num_ops < 60 else 0.7), ("b", 0.8 + num_ops / 150)):
            rows.append(
                empty_run()
                | {
                    "run_id": f"{index}{compiler}",
                    "sample_id": f"s{index}",
                    "family": f"f{index}",
                    "task": "cv",
                    "framework": "torch",
                    "compiler": compiler,
                    "num_ops": num_ops,
                    "baseline_latency_ms": [num_ops / 100] * 3,
                    "status": "run_failed" if compiler == "b" and num_ops > 190 else "ok",
                    "speedup": speedup,
                    "min_t": -6.0,
                }
            )
    pq.write_table(pa.Table.from_pylist(rows, schema=RUNS_SCHEMA), tmp_path / "runs.parquet")
    (figures,) = run("input_sensitivity", "compilers", "--runs", tmp_path / "runs.parquet")
    assert figures["test"] == figures["families"] == 60
    assert sum(figures["chosen"].values()) == sum(figures["fastest"].values()) == 60
    assert figures["over_best_single"] > 1.1
    assert figures["share_of_oracle"] > 0.7
    assert figures["speedup_of_single"] < figures["speedup_of_chosen"]
    assert figures["speedup_of_chosen"] <= figures["speedup_of_oracle"]
    with pytest.raises(SystemExit, match="60 samples of 1 families"):
        one = [row | {"family": "same"} for row in rows]
        pq.write_table(pa.Table.from_pylist(one, schema=RUNS_SCHEMA), tmp_path / "runs.parquet")
        run("input_sensitivity", "compilers", "--runs", tmp_path / "runs.parquet")


def test_templates_beside_inductor(monkeypatch: pytest.MonkeyPatch) -> None:
    """Both are run against eager, so that their ratio is that of their speedups."""
    monkeypatch.syspath_prepend(str(FOLDER))
    bolt, text = importlib.import_module("bolt_live"), importlib.import_module("study_text")

    def row(name: str, speedup: float | None, status: str = "ok") -> dict[str, Any]:
        return empty_run() | {
            **{"sample_id": f"bolt/{name}", "speedup": speedup, "status": status},
            **{"speedup_low": speedup, "speedup_high": speedup, "min_t": -6.0},
            **{"baseline_latency_ms": [3.0], "candidate_latency_ms": [2.0]},
            "error_message": "too large" if status != "ok" else None,
        }

    ours = [
        *(row("matmul-2x2x2-plain", 1.0), row("matmul-2x2x2-fused", 1.5)),
        *(row("conv1-1x2x2-3-plain", 4.0), row("conv3-1x2x2-3-fused", None, "run_failed")),
    ]
    theirs = [row("matmul-2x2x2-plain", 2.0), row("matmul-2x2x2-fused", 1.0)]
    *shapes, means = bolt.lines_of(ours, theirs)
    assert [line.get("over_inductor") for line in shapes] == [0.5, 1.5, None, None]
    assert shapes[3]["failed"] == "too large"
    assert (means["unfused_over_torch"], means["fused_over_torch"]) == (2.0, 1.5)
    assert (means["unfused_over_inductor"], means["fused_over_inductor"]) == (0.5, 1.5)
    assert means["failed"] == 1
    pool = {"records": 1, "ok": 1, "tasks": 1, "families": {}, "mcpu": "x", "tvm": "1"}
    page = text.page({"bolt": [*shapes, means]}, pool)
    assert "2.00 of torch unfused, 1.50 with epilogue, 1 shapes; 0.50 and 1.50 of inductor" in page
    assert "| matmul-2x2x2 fused | 2.000 | 3.000 | 1.50 (1.50 to 1.50) | 2.000 | 1.00" in page
    assert "| conv1-1x2x2-3 plain | 2.000 | 3.000 | 4.00 (4.00 to 4.00) | not run |" in page
    alone = text.page({"bolt": bolt.lines_of(ours, [])}, pool)
    assert "inductor" not in alone
