"""A real graph cut into tasks, its candidates drawn and measured in separate processes."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="torch is not installed")

from graphnet_datasets import Sample  # noqa: E402
from graphnet_datasets.errors import CompilerError, DatasetExistsError, TuningError  # noqa: E402
from graphnet_datasets.isolation import Limits  # noqa: E402
from graphnet_datasets.storage.selection import select_rows  # noqa: E402
from graphnet_datasets.tuning import Candidate, Origin, Progress, Task, TrialStatus  # noqa: E402
from graphnet_datasets.tuning.bolt_compiler import TvmBolt  # noqa: E402
from graphnet_datasets.tuning.collecting import TaskReport, collect_tasks  # noqa: E402
from graphnet_datasets.tuning.compiler import TvmOneShot, TvmTuned  # noqa: E402
from graphnet_datasets.tuning.exporting import (  # noqa: E402
    export_tvm_database,
    import_tvm_database,
)
from graphnet_datasets.tuning.isolated_space import IsolatedSpace  # noqa: E402
from graphnet_datasets.tuning.machine_code import FEATURE_NAMES  # noqa: E402
from graphnet_datasets.tuning.measure import LiveMeasurer, TimingPlan  # noqa: E402
from graphnet_datasets.tuning.records import read_records, read_tasks, write_tuning  # noqa: E402
from graphnet_datasets.tuning.running import RunPlan, TaskChoice, tune_samples, usable  # noqa: E402
from graphnet_datasets.tuning.target import foreign, target_of  # noqa: E402
from graphnet_datasets.tuning.worker import compare, make_arrays  # noqa: E402

from .live import SAMPLE, needs_tvm  # noqa: E402

slow_with_tvm = [pytest.mark.slow, needs_tvm]


def is_product(task: Task) -> bool:
    return task.family == "matmul" and task.arg_shapes[1] == (64, 64)


ELSEWHERE = '[[["GetSBlock",[],["nothing","main"],["b0"]]],[]]'
"""A valid trace that does not replay, because no task has a block of this name."""


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> TaskReport:
    return collect_tasks(SAMPLE, tmp_path_factory.mktemp("tuning") / "tasks", jobs=1)


@pytest.fixture(scope="module")
def task(report: TaskReport) -> Task:
    return next(task for task in report.tasks if is_product(task))


@pytest.fixture(scope="module")
def space() -> Iterator[IsolatedSpace]:
    with IsolatedSpace() as space:
        yield space


@pytest.fixture(scope="module")
def measurer(task: Task) -> Iterator[LiveMeasurer]:
    with LiveMeasurer([task], plan=TimingPlan(repeat=2, min_repeat_ms=1)) as measurer:
        yield measurer


@pytest.fixture(scope="module")
def records(
    report: TaskReport,
    space: IsolatedSpace,
    measurer: LiveMeasurer,
    task: Task,
    tmp_path_factory: pytest.TempPathFactory,
) -> Path:
    rows = [
        dataclasses.replace(row, record_id=str(number), tuner_s=0.5)
        for number, row in enumerate(measurer.measure(space.sample(task, 2, seed=0)))
    ]
    broken = dataclasses.replace(
        rows[0], record_id="b", trace_json=ELSEWHERE, times_ms=(1e-6, 1e-6)
    )
    return write_tuning(tmp_path_factory.mktemp("records") / "mine", report.tasks, [*rows, broken])


class TestCutting:
    pytestmark = slow_with_tvm

    def test_equal_operators_are_one_task_with_a_weight(self, report: TaskReport) -> None:
        (product,) = (task for task in report.tasks if is_product(task))
        assert (product.family, product.weight) == ("matmul", 2)
        assert product.flops >= 2 * 512 * 64 * 64 and product.arg_dtypes == ("float32",) * 4
        assert product.bytes == 4 * (2 * 512 * 64 + 64 * 64 + 64)
        assert [source.sample_id for source in product.sources] == [SAMPLE]

    def test_they_are_a_dataset_with_a_report(self, report: TaskReport) -> None:
        assert report.out is not None and not report.refused
        found = read_tasks(report.out)
        assert set(found.tasks) == {task.task_id for task in report.tasks} and not found.skipped
        (line,) = report.report_path.read_text().splitlines()
        assert json.loads(line)["num_tasks"] == len(report.tasks)
        assert "matmul: " in report.summary()
        with pytest.raises(DatasetExistsError):
            collect_tasks(SAMPLE, report.out)


class TestSpace:
    pytestmark = slow_with_tvm

    def test_a_seed_stands_for_its_candidates(self, space: IsolatedSpace, task: Task) -> None:
        first, again = (space.sample(task, 6, seed=3) for _ in range(2))
        other = space.sample(task, 6, seed=4)
        assert first == again and {candidate.trace_hash for candidate in first} != {
            candidate.trace_hash for candidate in other
        }
        assert len({candidate.trace_hash for candidate in first}) == 6

    def test_candidates_have_neighbours_features_and_knobs(
        self, space: IsolatedSpace, task: Task
    ) -> None:
        candidates = space.sample(task, 6, seed=0)
        assert all(
            matrix is not None and matrix.ndim == 2 and matrix.shape[1] == 164
            for matrix in space.features_of(candidates)
        )
        graphs = [space.graph(candidate) for candidate in candidates]
        assert len({graph.nodes.tobytes() for graph in graphs}) == 6  # the programs differ
        for graph in graphs:
            statements = np.isfinite(graph.log_runs)
            assert statements.any() and not graph.nodes[~statements, 1].any()  # stores alone
            # lowered: no loop of one iteration is left
            assert (graph.nodes[graph.nodes[:, 0] == 1, 14] > 0).all()
        codes = np.stack([space.machine_code(candidate) for candidate in candidates])
        assert len({code.tobytes() for code in codes}) > 1
        largest = dict(zip(FEATURE_NAMES, codes.max(axis=0).tolist(), strict=True))
        assert sum(largest[f"text_fma_{width}"] for width in ("zmm", "ymm", "xmm", "scalar")) > 0
        assert largest["loops"] > 0 and largest["total_flops"] > 0
        mutated = [space.mutate(candidate, seed) for seed, candidate in enumerate(candidates)]
        mutants = [candidate for candidate in mutated if candidate is not None]
        assert mutants and all(candidate.origin is Origin.MUTATE for candidate in mutants)
        assert not {candidate.trace_hash for candidate in mutants} & {
            candidate.trace_hash for candidate in candidates
        }
        assert mutated == [
            space.mutate(candidate, seed) for seed, candidate in enumerate(candidates)
        ]
        assert any("tile" in name for name in space.knobs(candidates[0]))
        pairs = [(one, two) for one in candidates for two in candidates if one != two]
        children = [space.crossover(*pair, seed=5) for pair in pairs]
        assert any(children), "no two of six candidates of three sketches have a child"

    def test_traces_that_do_not_replay_raise_our_error(
        self, space: IsolatedSpace, task: Task
    ) -> None:
        space.add(task)
        broken = Candidate(task.task_id, ELSEWHERE, Origin.RANDOM)
        assert space.features_of([broken]) == space.machine_code_of([broken]) == [None]
        with pytest.raises(TuningError, match="does not replay"):
            space.mutate(broken, 0)
        with pytest.raises(TuningError, match="unknown to the space"):
            space.features(Candidate("0" * 32, "[[], []]", Origin.RANDOM))
        with pytest.raises(TuningError, match="A workload is not an object"):
            space.add(dataclasses.replace(task, task_id="1" * 32, workload_json="{}"))


class TestMeasuring:
    pytestmark = slow_with_tvm

    def test_a_candidate_is_built_checked_and_timed(
        self, space: IsolatedSpace, measurer: LiveMeasurer, task: Task
    ) -> None:
        candidates = space.sample(task, 2, seed=0)
        broken = Candidate(task.task_id, ELSEWHERE, Origin.RANDOM)
        rows = list(measurer.measure([candidates[0], broken, candidates[1]]))
        assert [row.status for row in rows] == ["ok", "schedule_failed", "ok"]
        assert [row.candidate for row in rows[::2]] == candidates
        for row, features in zip(rows[::2], space.features_of(candidates), strict=True):
            assert len(row.times_ms) == 2 and row.min_t is not None and row.min_t <= -3
            assert row.features is not None and np.array_equal(row.features, features)
            assert row.feature_set == space.feature_set and row.tool_versions["tvm"]
            assert row.machine_code is not None
            assert np.array_equal(row.machine_code, space.machine_code(row.candidate))
            assert row.machine_code_set == space.machine_code_set
            assert row.build_s and row.run_s and row.trial_s and row.trial_s > row.build_s
            assert len(row.anchor_ms) == 2 and row.mcpu and row.num_threads == 1
        assert "replay" in rows[1].error and rows[1].times_ms == ()

    def test_other_outputs_are_wrong(
        self, space: IsolatedSpace, measurer: LiveMeasurer, task: Task
    ) -> None:
        (candidate,) = space.sample(task, 1, seed=1)
        (good,) = measurer.measure([candidate])
        path = measurer._references[task.task_id]
        assert isinstance(path, Path) and good.is_ok
        content = path.read_bytes()
        with np.load(path) as found:
            outputs = {name: found[name] * np.float32(1.01) for name in found}
        np.savez(path, **outputs)
        try:
            (row,) = measurer.measure([candidate])
        finally:
            path.write_bytes(content)
        assert row.status is TrialStatus.WRONG and row.times_ms == ()
        assert row.max_abs_error and row.min_t is not None and row.min_t > -3

    def test_a_phase_that_takes_too_long_is_a_timeout(
        self, space: IsolatedSpace, task: Task
    ) -> None:
        limits = Limits(phase_timeouts_s={"build": 30.0, "check": 30.0, "time": 0.05})
        plan = TimingPlan(repeat=2, min_repeat_ms=1)
        with LiveMeasurer([task], plan=plan) as measurer:
            (reference,) = measurer.measure(space.sample(task, 1, seed=2))  # its anchor fits
            measurer._close_pool()
            measurer._limits = limits
            measurer._anchor = lambda _: ((1.0,), {})  # which would not
            measurer.plan = TimingPlan(repeat=6, min_repeat_ms=500)
            (row,) = measurer.measure([reference.candidate])
        assert row.status is TrialStatus.TIMEOUT and "time" in row.error
        assert row.build_s and row.features is not None  # known before it hung


def test_arrays_are_the_same_everywhere_and_indices_stay_inside() -> None:
    types = [((2, 3), "float32"), ((4,), "int64"), ((2,), "bfloat16"), ((3,), "bool")]
    first, again = make_arrays(types, 7), make_arrays(types, 7)
    assert all(one.tobytes() == two.tobytes() for one, two in zip(first, again, strict=True))
    assert [str(array.dtype) for array in first] == [dtype for _, dtype in types]
    assert set(first[1].tolist()) <= {0, 1} and (first[0] > 0).all()
    assert first[0].tobytes() != make_arrays(types, 8)[0].tobytes()


def test_an_input_that_was_written_to_is_wrong() -> None:
    types = [((2,), "float32"), ((2,), "float32")]
    inputs = [np.ones(2, "f4"), np.zeros(2, "f4")]
    reference = {"1": np.full(2, 3, "f4")}
    right = [np.ones(2, "f4"), np.full(2, 3, "f4")]
    assert compare(right, inputs, reference, types) == (0.0, -np.inf)
    largest, worst_t = compare([np.full(2, 2, "f4"), right[1]], inputs, reference, types)
    assert largest == 1.0 and worst_t > -3
    with pytest.raises(TuningError, match="belong to another workload"):
        compare(right, inputs, {"1": np.zeros(3, "f4")}, types)


def test_tasks_of_other_machines_are_refused() -> None:
    task = Task("a", "{}", '{"kind": "llvm", "mcpu": "apple-m1"}', "matmul", "matmul", (), ())
    assert foreign(target_of(task), "znver4") == (
        "is for the processor `apple-m1`, but this machine has `znver4`"
    )
    with pytest.raises(TuningError, match="is for the processor `apple-m1`"):
        LiveMeasurer([task], mcpu="znver4")
    with pytest.raises(TuningError, match="cannot be parsed"):
        target_of(dataclasses.replace(task, target_json="[]"))
    with pytest.raises(TuningError, match="is not a valid timing plan"):
        TimingPlan(repeat=1)


class TestRunning:
    pytestmark = slow_with_tvm

    def test_a_run_that_is_stopped_goes_on(self, report: TaskReport, tmp_path: Path) -> None:
        assert report.out is not None
        options: dict[str, Any] = {
            "tuner": "random",
            "trials": 3,
            "choice": TaskChoice(family=("matmul",), max_tasks=1),
            "plan": TimingPlan(repeat=2, min_repeat_ms=1),
        }
        seen: list[str] = []

        def stop(progress: Progress) -> None:
            seen.append(progress.row.trace_hash)
            if len(seen) == 2:
                raise KeyboardInterrupt

        out = tmp_path / "tuned"
        with pytest.raises(KeyboardInterrupt):
            tune_samples(report.out, out, on_trial=stop, **options)
        assert not out.exists()
        with pytest.raises(TuningError, match="`seed` was 0 and is now 1"):
            tune_samples(report.out, out, seed=1, **options)
        plans: list[RunPlan] = []
        done = tune_samples(
            report.out,
            out,
            on_plan=plans.append,
            on_trial=lambda progress: seen.append(progress.row.trace_hash),
            **options,
        )
        assert plans[0].num_resumed == 2 and "2 trials were measured earlier" in plans[0].text()
        assert len(seen) == len(set(seen)) == 3
        found = read_records(out)
        assert [row.trace_hash for row in found.measurements] == seen
        assert len({row.run_id for row in found.measurements}) == 1
        assert "3 measurements of 1 task written to" in done.summary()

    def test_tasks_of_other_machines_are_left_out_by_count(
        self, report: TaskReport, space: IsolatedSpace
    ) -> None:
        target = '{"kind":"llvm","mcpu":"apple-m1","num-cores":1}'
        foreign_one = dataclasses.replace(report.tasks[0], target_json=target)
        broken = dataclasses.replace(report.tasks[1], task_id="2" * 32, workload_json="{}")
        kept, skipped = usable([report.tasks[0], foreign_one, broken], space)
        assert kept == [report.tasks[0]] and sum(skipped.values()) == 2
        with pytest.raises(TuningError, match="No task is left to tune"):
            usable([broken], space)


class TestCompilers:
    pytestmark = slow_with_tvm

    def test_the_best_correct_record_of_a_task_is_run(self, records: Path, task: Task) -> None:
        from graphnet_datasets.frameworks import make_inputs, materialize

        sample = Sample.from_row(select_rows(SAMPLE)[0])
        module = materialize(sample, weights="parameters")
        inputs = make_inputs(sample, weights="parameters")
        compiler = TvmTuned({"records": str(records), "num_threads": 1})
        with torch.no_grad():
            outputs = compiler.compile(module, dict(inputs))(**inputs)
            expected = module(**inputs)
        for mine, right in zip(
            torch.utils._pytree.tree_leaves(outputs),
            torch.utils._pytree.tree_leaves(expected),
            strict=True,
        ):
            torch.testing.assert_close(mine, right, rtol=1e-4, atol=1e-4)
        found = compiler.coverage
        assert (found.num_tuned, found.num_broken) == (1, 1) and found.num_tasks > 1
        assert 2 * task.flops <= found.tuned_flops < found.flops and found.tuning_s > 1.0
        assert compiler.warnings == [found.text()]

    def test_records_that_fit_nothing_are_an_error(self, records: Path) -> None:
        module = torch.nn.Linear(4, 3)
        inputs = {"input": torch.ones(2, 4)}
        for threads, why in ((1, "among the graph's 1"), (2, "they are for other targets")):
            compiler = TvmTuned({"records": str(records), "num_threads": threads})
            with pytest.raises(
                CompilerError, match=rf"No record in .* applies to the graph.*{why}"
            ):
                compiler.compile(module, inputs)
        with pytest.raises(CompilerError, match="needs records"):
            TvmTuned({"num_threads": 1}).compile(module, inputs)
        with pytest.raises(CompilerError, match="needs a trained predictor"):
            TvmOneShot({"num_threads": 1}).compile(module, inputs)


class TestTemplates:
    pytestmark = slow_with_tvm

    def test_every_candidate_of_a_product_is_correct(
        self, measurer: LiveMeasurer, task: Task
    ) -> None:
        with IsolatedSpace(kind="templates") as templates:
            everything = templates.enumerate(task)
            assert everything and len(everything) <= 40
            assert all(candidate.origin is Origin.TEMPLATE for candidate in everything)
            assert templates.mutate(everything[0], 0) is None
            drawn = templates.sample(task, 3, seed=0)
        assert {candidate.trace_hash for candidate in drawn} < {
            candidate.trace_hash for candidate in everything
        }
        rows = list(measurer.measure(drawn))
        assert [row.status for row in rows] == ["ok"] * 3, [row.error for row in rows]

    def test_shapes_are_profiled_while_they_are_compiled(self) -> None:
        module = torch.nn.Sequential(torch.nn.Linear(64, 32), torch.nn.ReLU())
        inputs = {"input": torch.randn(16, 64, generator=torch.Generator().manual_seed(0))}
        options = {"num_threads": 1, "min_flops": 1000, "candidates": 2}
        compiler = TvmBolt(options)
        with torch.no_grad():
            outputs = compiler.compile(module, dict(inputs))(**inputs)
            torch.testing.assert_close(outputs, module(**inputs), rtol=1e-4, atol=1e-4)
        assert compiler.coverage.num_tuned == 1 and compiler.coverage.tuning_s > 0
        with pytest.raises(CompilerError, match="is a product or convolution"):
            TvmBolt({**options, "min_flops": 10**9}).compile(module, inputs)


class TestExchange:
    pytestmark = slow_with_tvm

    def test_records_go_to_tvm_and_come_back(self, records: Path, tmp_path: Path) -> None:
        found = read_records(records)
        good = [row for row in found.measurements if row.record_id != "b"]
        mine = write_tuning(tmp_path / "mine", found.tasks.values(), good)
        assert export_tvm_database(mine, tmp_path / "database") == len(good)
        with pytest.raises(DatasetExistsError):
            export_tvm_database(mine, tmp_path / "database")
        assert import_tvm_database(tmp_path / "database", tmp_path / "back") == {}
        back = read_records(tmp_path / "back")
        assert [row.trace_json for row in back.measurements] == [row.trace_json for row in good]
        assert np.allclose(back.measurements[0].times_ms, good[0].times_ms)
        assert {row.task_id for row in back.measurements} <= set(found.tasks)
