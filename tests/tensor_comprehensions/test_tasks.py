"""Definitions as tasks of tuners: candidates, measurements, runs and replays."""

from __future__ import annotations

import dataclasses
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

pytest.importorskip("islpy", reason="needs islpy (extra tc)")

from graphnet_datasets.cli.app import app
from graphnet_datasets.errors import TuningError
from graphnet_datasets.isolation import Limits
from graphnet_datasets.tensor_comprehensions.options import Options
from graphnet_datasets.tensor_comprehensions.tasks.making import (
    draw_inputs,
    instance_of,
    make_task,
    options_of,
    trace_of,
)
from graphnet_datasets.tensor_comprehensions.tasks.space import OptionsSpace
from graphnet_datasets.tuning import (
    Budget,
    Candidate,
    Measurement,
    Origin,
    Pool,
    PoolSpace,
    Progress,
    ReplayMeasurer,
    Task,
    TrialStatus,
    make_allocator,
    make_tuner,
    tune,
)
from graphnet_datasets.tuning.languages import TVM, language_of
from graphnet_datasets.tuning.measure import LiveMeasurer, TimingPlan
from graphnet_datasets.tuning.models.predictor import Predictor
from graphnet_datasets.tuning.rechecking import recheck_records
from graphnet_datasets.tuning.records import read_records, read_tasks, write_tuning
from graphnet_datasets.tuning.running import tune_samples

SOURCE = "def mv(float(M,K) A, float(K) x) -> (y) { y(m) +=! A(m,k) * x(k) }"
PLAN = TimingPlan(repeat=2, min_repeat_ms=0)
LIMITS = Limits(default_timeout_s=3600.0)
"""A busy machine gives the same verdict."""
INVALID = ('{"unroll":0}', "[]", "{", '{"threads":8}', '{"unknown":1}')
NEEDS = {"ansor": "xgboost", "gptune": "gpytorch", "alt": "sklearn", "oneshot": "torch"}
QUICK: dict[str, dict[str, Any]] = {
    "random": {},
    "ansor": {"population": 6, "generations": 1, "rounds": 4},
    "gptune": {"pool_size": 8, "iterations": 2, "initial_trials": 2},
    "alt": {"pool_size": 8, "trees": 4},
    "bolt": {},
    "oneshot": {"pool_size": 8},
}


@pytest.fixture(scope="module")
def task() -> Task:
    return make_task(SOURCE, "mv", [(8, 16), (16,)])


@pytest.fixture(scope="module")
def space(task: Task) -> OptionsSpace:
    space = OptionsSpace()
    space.add(task)
    return space


@pytest.fixture(scope="module")
def measurer(task: Task) -> Iterator[LiveMeasurer]:
    with LiveMeasurer([task], plan=PLAN, limits=LIMITS) as measurer:
        yield measurer


@pytest.fixture(scope="module")
def rows(task: Task, space: OptionsSpace, measurer: LiveMeasurer) -> list[Measurement]:
    """Three random candidates and one of each kind of invalid trace, measured."""
    traces = [*INVALID, '{"extra_flags":["-fplugin=x"]}']
    broken = [Candidate(task.task_id, trace, Origin.RANDOM) for trace in traces]
    return list(measurer.measure([*space.sample(task, 3, seed=0), *broken]))


def test_a_task_is_a_definition_with_sizes(task: Task) -> None:
    assert (task.family, task.pipeline, task.flops) == ("matmul", "tc", 2 * 8 * 16)
    assert Task.from_row(task.to_row()) == task
    assert instance_of(task).canonical_text == instance_of(task).canonical_text
    with pytest.raises(TuningError, match="is not a tensor comprehension"):
        instance_of(dataclasses.replace(task, workload_json='{"source": "def"}'))


def test_the_target_names_the_language(task: Task) -> None:
    tvm_task = Task("a", "{}", '{"kind": "llvm"}', "matmul", "matmul", (), ())
    assert language_of([task]).kind == "tc" and language_of([]) is TVM
    with pytest.raises(TuningError, match="targets of several languages: llvm, tc"):
        language_of([task, tvm_task])


def test_traces_are_options(task: Task) -> None:
    options = Options(unroll=4, tile=(8, 0), extra_flags=("-O3",), threads=1)
    assert options_of(task, trace_of(options)) == options
    for trace in INVALID:
        with pytest.raises(TuningError, match="not an object of options"):
            options_of(task, trace)


def test_candidates_have_neighbours_features_and_graphs(task: Task, space: OptionsSpace) -> None:
    candidates = space.sample(task, 6, seed=3)
    assert candidates == space.sample(task, 6, seed=3) != space.sample(task, 6, seed=4)
    matrices = space.features_of(candidates)
    assert all(matrix is not None and np.isfinite(matrix).all() for matrix in matrices)
    mutants = [space.mutate(candidate, 1) for candidate in candidates]
    assert mutants == [space.mutate(candidate, 1) for candidate in candidates] and any(mutants)
    child = space.crossover(*candidates[:2], seed=0)
    assert child is None or json.loads(child.trace_json) is not None
    graph = space.graph(candidates[0])
    assert np.isfinite(graph.log_runs).sum() == 1 and graph.edges.max() < len(graph.nodes)
    assert len(graph.edge_features) == len(graph.edge_kinds) == graph.edges.shape[1]
    assert space.enumerate(task) is None
    templates = OptionsSpace(kind="templates").enumerate(task)
    assert templates and len(templates) <= 100 and templates[0].origin is Origin.TEMPLATE
    with pytest.raises(TuningError, match="unknown to the space"):
        space.features(Candidate("0" * 32, "{}", Origin.RANDOM))


def test_subscripts_are_drawn_within_the_axis_that_they_index() -> None:
    source = """def f(float(V,D) T, int32(N) I, int32(N) W) -> (O) {
        O(n,d) = T(I(n), d) * W(n) where n in 0:N, d in 0:D
    }"""
    instance = instance_of(make_task(source, "f", [(50, 2), (400,), (400,)]))
    (_, subscripts, weights), _ = draw_inputs(instance, 0)
    assert 30 < subscripts.max() < 50 and subscripts.min() >= 0 and weights.max() > 50


def test_candidates_are_built_checked_and_timed(rows: list[Measurement]) -> None:
    assert [row.status for row in rows[:3]] == ["ok"] * 3, [row.error for row in rows]
    for row in rows[:3]:
        assert len(row.times_ms) == 2 and len(row.anchor_ms) == 2 and row.build_s
        assert row.min_t is not None and row.min_t <= -3 and row.feature_set.startswith("tc-nests/")
        assert row.tool_versions["gcc"] and row.features is not None
    assert {row.status for row in rows[3:-1]} == {TrialStatus.SCHEDULE_FAILED}
    assert "must be from 1 to 256" in rows[3].error
    assert rows[-1].status is TrialStatus.BUILD_FAILED and "not allowed" in rows[-1].error


def test_a_task_whose_check_cannot_fail_is_refused() -> None:
    task = make_task("def f(float(N) A) -> (O) { O(n) = A(n) > 2 ? 1.0 : 0.0 }", "f", [(8,)])
    with LiveMeasurer([task], plan=PLAN, limits=LIMITS) as measurer:
        (row,) = measurer.measure([Candidate(task.task_id, "{}", Origin.RANDOM)])
    assert row.status is TrialStatus.UNCHECKABLE
    assert row.error == "A check could not fail: all elements of every reference output are equal."


@pytest.fixture(scope="module")
def predictor(
    task: Task, rows: list[Measurement], space: OptionsSpace, tmp_path_factory: Any
) -> Path:
    pytest.importorskip("torch")
    model = Predictor(space, [task], epochs=2, width=8)
    model.fit(rows)
    path = tmp_path_factory.mktemp("predictor") / "predictor.npz"
    model.save(path)
    return path


@pytest.mark.parametrize("name", list(QUICK))
def test_every_tuner_tunes_a_definition(
    name: str,
    task: Task,
    space: OptionsSpace,
    measurer: LiveMeasurer,
    request: pytest.FixtureRequest,
) -> None:
    if name in NEEDS:
        pytest.importorskip(NEEDS[name])
    options = dict(QUICK[name])
    if name == "oneshot":
        options["predictor"] = str(request.getfixturevalue("predictor"))
    own = OptionsSpace(kind="templates") if name == "bolt" else space
    result = tune(
        [task],
        make_tuner(name, own, seed=1, options=options),
        measurer,
        make_allocator("round-robin", [task], options={"slot_trials": 2}),
        Budget(3),
        tuner_name=name,
    )
    assert [row.status for row in result.rows] == ["ok"] * (1 if name == "oneshot" else 3)
    assert len({row.trace_hash for row in result.rows}) == len(result.rows)
    assert {row.tuner for row in result.rows} == {name}


@pytest.mark.slow
def test_a_stopped_run_goes_on_and_its_records_replay(task: Task, tmp_path: Path) -> None:
    write_tuning(tmp_path / "tasks", [task])
    settings: dict[str, Any] = {"tuner": "random", "trials": 3, "plan": PLAN, "limits": LIMITS}
    seen: list[str] = []

    def stop(progress: Progress) -> None:
        seen.append(progress.row.trace_hash)
        if len(seen) == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        tune_samples(tmp_path / "tasks", tmp_path / "tuned", on_trial=stop, **settings)
    tune_samples(
        tmp_path / "tasks",
        tmp_path / "tuned",
        on_trial=lambda progress: seen.append(progress.row.trace_hash),
        **settings,
    )
    records = read_records(tmp_path / "tuned")
    assert [row.trace_hash for row in records.measurements] == seen and len(set(seen)) == 3
    pool = Pool(records.tasks.values(), records.measurements)
    tasks = list(pool.tasks.values())
    result = tune(
        tasks,
        make_tuner("random", PoolSpace(pool), seed=0),
        ReplayMeasurer(pool),
        make_allocator("round-robin", tasks, options={"slot_trials": 2}),
        Budget(3),
    )
    assert {row.trace_hash for row in result.rows} == set(seen)


def test_records_are_checked_again_without_timing(
    task: Task, rows: list[Measurement], tmp_path: Path
) -> None:
    chosen = [dataclasses.replace(row, record_id=str(i)) for i, row in enumerate(rows[2:4])]
    write_tuning(tmp_path / "tuned", [task], chosen)
    results = recheck_records(
        tmp_path / "tuned", tmp_path / "out", tasks=[task.task_id[:8]], limits=LIMITS
    )
    assert [(result.recorded, result.status) for result in results] == [
        ("ok", "ok"),
        ("schedule_failed", "schedule_failed"),
    ]
    assert results[0].min_t == rows[2].min_t
    assert recheck_records(tmp_path / "tuned", tmp_path / "out") == results  # read from the file
    with pytest.raises(TuningError, match="No record of"):
        recheck_records(tmp_path / "tuned", tmp_path / "out", tasks=["x"])


def test_the_example_of_the_page_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setitem(tune_samples.__kwdefaults__, "limits", LIMITS)
    page = Path(__file__).parents[2] / "docs" / "tuning.md"
    blocks = re.findall(r"```python\n(.*?)```", page.read_text(), re.DOTALL)
    (block,) = (block for block in blocks if "tensor_comprehensions" in block)
    exec(compile(block, str(page), "exec"), {"__name__": "pasted"})  # noqa: S102
    assert capsys.readouterr().out.startswith("Options(")


def test_the_command_writes_a_task_for_each_repeated_input(tmp_path: Path) -> None:
    (tmp_path / "mv.tc").write_text(SOURCE)
    shapes = ("A=8,16", "x=16", "A=4,16")
    arguments = [f"--shape={shape}" for shape in shapes]
    out = str(tmp_path / "tasks")
    done = CliRunner().invoke(
        app, ["tc", "tasks", str(tmp_path / "mv.tc"), *arguments, "--out", out]
    )
    assert "mv (8, 16), (16,), (8,): matmul, 256 flops" in done.output, done.output
    tasks = read_tasks(out).tasks.values()
    assert sorted(task.arg_shapes[0] for task in tasks) == [(4, 16), (8, 16)]
