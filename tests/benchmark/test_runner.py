"""Runs of real candidates: every way to fail, each with its own status, reason and phase."""

from __future__ import annotations

import dataclasses
import json
import math
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from graphnet_datasets.analysis.columns import derived_columns
from graphnet_datasets.benchmark import Settings, run
from graphnet_datasets.benchmark.executors.sample_runner import (
    CandidateCompiler,
    SampleJob,
    SampleRunner,
)
from graphnet_datasets.errors import (
    CompilerError,
    DatasetNotFoundError,
    RunError,
    UnknownCompilerError,
)
from graphnet_datasets.sample import Input, Op, Sample, Value
from graphnet_datasets.sample.arguments import Ref
from graphnet_datasets.schema import RUNS_SCHEMA, sample_to_row
from graphnet_datasets.transforms import backward
from tests.benchmark import samples
from tests.benchmark.samples import LINEAR, quick

LIMITED = quick(
    memory_limit_bytes=2**30,
    phase_timeouts_s={"load": 600, "baseline": 600, "compile": 600, "run": 600},
)


@pytest.fixture(scope="module")
def runner() -> Iterator[SampleRunner]:
    made = SampleRunner("cpu", LIMITED)
    yield made
    made.close()


def run_one(
    runner: SampleRunner, compiler: str, sample: Sample = LINEAR, **limits: float
) -> dict[str, Any]:
    name = compiler if ":" in compiler or compiler == "eager" else f"tests.candidates:{compiler}"
    before = runner._limits
    runner._limits = dataclasses.replace(
        before, phase_timeouts_s={**before.phase_timeouts_s, **limits}
    )
    try:
        row = sample_to_row(sample, derived_columns(sample))
        (record,) = runner.run(
            SampleJob(sample, row, [("id", CandidateCompiler(name, "torch", {}, ""))])
        )
    finally:
        runner._limits = before
    assert record.keys() == set(RUNS_SCHEMA.names)
    return record


def ending(record: dict[str, Any]) -> tuple[Any, ...]:
    return record["status"], record["reason"], record["phase"], record["error_code"]


@pytest.mark.slow
def test_elements_lie_on_pages_as_those_of_a_model_do(runner: SampleRunner) -> None:
    """NumPy, which draws the elements, asks for huge pages from 4 MB on, torch never does."""
    large = samples.make_sample(
        "large",
        Op("torch.nn.functional.linear", (Ref(0), Ref(1))),
        inputs=(
            Input("input", Value("float32", (1024, 1536))),
            Input("parameter", Value("float32", (1024, 1536))),
        ),
    )
    record = run_one(runner, "refusing_huge_pages", large)
    assert ending(record) == ("ok", "", "judge", None), record["error_message"]


def test_a_step_of_training_runs_as_any_graph(runner: SampleRunner) -> None:
    record = run_one(runner, "eager", backward(LINEAR))
    assert ending(record) == ("ok", "", "judge", None), record["error_message"]
    assert record["min_t"] == -math.inf


def test_eager_against_itself_is_bit_equal_and_timed(runner: SampleRunner) -> None:
    record = run_one(runner, "eager")
    assert ending(record) == ("ok", "", "judge", None)
    assert record["min_t"] == -math.inf
    assert (record["is_deterministic"], record["determinism_t"]) == (True, -math.inf)
    assert len(record["baseline_latency_ms"]) == len(record["candidate_latency_ms"]) >= 4
    assert len(record["is_candidate_first"]) == len(record["baseline_latency_ms"])
    assert record["speedup_low"] <= record["speedup"] <= record["speedup_high"]
    assert len(record["baseline_alone_ms"]) == 3
    assert record["clock"] == "kernel"
    # On a busy machine, a doubted time is repeated in two processes.
    assert (record["timed_in"], record["paired_speedup"] is None) in [
        ("pairs", True),
        ("turns", False),
    ]
    assert record["load"] >= 0
    assert 0 <= record["other_cpu_share"] <= 1
    assert 0 <= record["steal_share"] <= 1
    assert record["is_noisy"] in (True, False)
    for arm in ("baseline", "candidate"):
        assert len(record[f"{arm}_preemptions"]) == len(record[f"{arm}_latency_ms"])
        assert record[f"{arm}_cpu_ms"] >= 0
        assert record[f"{arm}_num_kernels"] == 2  # a linear layer and a relu
        assert record[f"{arm}_kernel_ms"] > 0
        assert min(record[f"{arm}_latency_ms"]) <= record[f"{arm}_wall_ms"]
    assert (record["launch_mode"], record["device_before"]) == (None, None)
    assert record["num_attempts"] == 1
    assert record["task"] == "other"
    assert record["source"] == "tests"
    assert record["family"]
    assert json.loads(record["settings"])["num_threads"] == 1


def test_nan_is_correct_at_no_tolerance(runner: SampleRunner) -> None:
    record = run_one(runner, "nan")
    assert record["status"] == "ok"
    assert record["min_t"] == math.inf
    assert record["outputs"][0]["is_nonfinite_mismatch"]


def test_a_small_error_is_a_small_min_t(runner: SampleRunner) -> None:
    record = run_one(runner, "slightly_off")
    assert record["status"] == "ok"
    assert -6 < record["min_t"] < -3
    assert record["outputs"][0]["max_rel_error"] == pytest.approx(1e-4, rel=0.01)


@pytest.mark.skipif(sys.platform != "linux", reason="the peak of a call is Linux's to tell")
def test_the_peak_is_that_of_a_call_of_the_candidate(runner: SampleRunner) -> None:
    eager, hungry = (run_one(runner, name) for name in ("eager", "takes_memory"))
    assert eager["candidate_peak_memory_bytes"] < 48 * 2**20
    assert 64 * 2**20 <= hungry["candidate_peak_memory_bytes"] < 112 * 2**20
    assert hungry["baseline_peak_memory_bytes"] < 48 * 2**20


# the faults of earlier tools


def test_random_operators_draw_the_same_in_both_arms(runner: SampleRunner) -> None:
    record = run_one(runner, "eager", samples.DROPOUT)
    assert (record["status"], record["min_t"]) == ("ok", -math.inf)
    assert record["is_deterministic"]


@pytest.mark.parametrize(
    "sample", [samples.IN_PLACE, samples.RUNNING_STATISTICS], ids=lambda s: s.id
)
def test_in_place_writes_are_judged(runner: SampleRunner, sample: Sample) -> None:
    record = run_one(runner, "eager", sample)
    assert (record["status"], record["min_t"]) == ("ok", -math.inf)
    assert len(record["outputs"]) > 1


@pytest.mark.parametrize(
    ("op", "message"),
    [
        (Op("torch.log", (Ref(0),)), "The outputs hold {} NaN elements."),
        (Op("torch.div", (Ref(0), 0.0)), "The outputs hold 64 infinite elements."),
    ],
)
def test_eager_that_is_not_finite_is_a_failed_baseline(
    runner: SampleRunner, op: Op, message: str
) -> None:
    """Whatever a compiler makes of it would pass: NaN equals NaN."""
    record = run_one(runner, "eager", samples.make_sample(op.target, op))
    found = [record[name] for name in ("status", "reason", "phase", "error_type")]
    assert found == ["baseline_failed", "not_finite", "baseline", "NotFiniteError"]
    assert re.fullmatch(message.format(r"\d+"), record["error_message"])
    assert record["speedup"] is record["min_t"] is record["candidate_latency_ms"] is None


def test_infinities_that_the_graph_writes_are_compared(runner: SampleRunner) -> None:
    """A mask; the compiler has the same infinities, and none of them tells zeros apart."""
    mask = samples.make_sample(
        "mask",
        Op("torch.masked_fill", (Ref(0), Ref(1), -math.inf)),
        inputs=(Input("input", Value("float32", (4, 16))), Input("input", Value("bool", (4, 16)))),
    )
    record = run_one(runner, "eager", mask)
    assert (record["status"], record["min_t"]) == ("ok", -math.inf), record["error_message"]


def test_eager_is_held_against_float64(runner: SampleRunner) -> None:
    record = run_one(runner, "eager", samples.LINEAR)
    assert -20 < record["eager_t"] < -5, "rounding of sixteen float32 products"
    # A difference of large and nearly equal numbers: float32 keeps none of its digits.
    lost = samples.make_sample(
        "lost", Op("torch.add", (Ref(0), 1e7)), Op("torch.sub", (Ref(1), 1e7))
    )
    assert run_one(runner, "eager", lost)["eager_t"] > -1


def test_integers_are_exact(runner: SampleRunner) -> None:
    assert run_one(runner, "eager", samples.INTEGERS)["min_t"] == -math.inf


def test_no_outputs_are_never_correct(runner: SampleRunner) -> None:
    record = run_one(runner, "eager", samples.NO_OUTPUTS)
    assert ending(record) == ("output_mismatch", "output_count", "judge", 2)
    assert record["error_message"] == "There are no outputs, so nothing could be compared."


def test_a_baseline_that_fails_is_never_the_compilers_fault(runner: SampleRunner) -> None:
    record = run_one(runner, "compile_raises", samples.BROKEN)
    assert (record["status"], record["error_code"]) == ("baseline_failed", None)
    assert record["phase"] in ("load", "baseline")


def test_a_sample_over_the_memory_limit_is_a_failed_baseline(runner: SampleRunner) -> None:
    record = run_one(runner, "eager", samples.HUGE)
    assert ending(record) == ("baseline_failed", "out_of_memory", "load", None)
    assert "MemoryLimitError" in record["error_type"]


@pytest.mark.slow
@pytest.mark.usefixtures("unconfined")
def test_a_worker_lost_before_the_baseline_is_tried_once_more(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The worker's own code is made to die while loading, once or always."""
    monkeypatch.setenv("TEST_DEATHS_FILE", str(tmp_path / "deaths"))
    monkeypatch.setattr(SampleRunner, "server_module", "tests.benchmark.dying_server")
    own = SampleRunner("cpu", LIMITED)
    try:
        (tmp_path / "deaths").write_text("1")
        once = run_one(own, "eager")
        (tmp_path / "deaths").write_text("9")
        always = run_one(own, "eager")
    finally:
        own.close()
    assert (once["status"], once["num_attempts"]) == ("ok", 2)
    assert ending(always) == ("harness_failed", "crash", "load", None)
    assert always["num_attempts"] == 2


def test_several_compilers_share_one_reference_and_each_has_its_record(
    runner: SampleRunner,
) -> None:
    row = sample_to_row(LINEAR, derived_columns(LINEAR))
    names = ("eager", "tests.candidates:compile_raises", "tests.candidates:slightly_off")
    candidates = [(name, CandidateCompiler(name, "torch", {}, "")) for name in names]
    records = runner.run(SampleJob(LINEAR, row, candidates))
    assert [record["run_id"] for record in records] == list(names)
    assert [record["status"] for record in records] == ["ok", "compile_failed", "ok"]
    assert records[0]["min_t"] < records[2]["min_t"]


# the function


def test_run_returns_a_dataset_with_a_row_for_every_sample(tmp_path: Path) -> None:
    runs = run(
        [LINEAR, samples.BROKEN, samples.DROPOUT],
        compiler="tests.candidates:compile_raises",
        out=tmp_path,
        settings=quick(),
    )
    assert runs["sample_id"] == ["test/linear", "test/broken", "test/dropout"]
    assert runs["status"] == ["compile_failed", "baseline_failed", "compile_failed"]
    assert runs.column_names == RUNS_SCHEMA.names
    assert len(list((tmp_path / "logs").iterdir())) == 3


@pytest.mark.parametrize(
    ("arguments", "kind", "message"),
    [
        (
            {"compiler": "tests.candidates:no_such"},
            CompilerError,
            "The compiler `tests.candidates:no_such` cannot be imported",
        ),
        ({"compiler": "no_such"}, UnknownCompilerError, "There is no compiler `no_such` for torch"),
        (
            {"options": {"speed": 9}},
            CompilerError,
            "The compiler `eager` has no option `speed` (accepted: none).",
        ),
        ({"compiler": []}, RunError, "No compiler was passed. Pass at least one name."),
        ({"dataset": []}, RunError, "No sample was passed. Pass names or samples."),
        ({"dataset": 3}, RunError, "Samples cannot be taken from a `int`."),
        ({"dataset": "./no_such"}, DatasetNotFoundError, "The path `no_such` does not exist."),
        ({"sneed": 3}, RunError, "There is no setting `sneed`."),
    ],
)
def test_invalid_runs_are_refused_before_anything_runs(
    arguments: dict[str, Any], kind: type[Exception], message: str
) -> None:
    with pytest.raises(kind) as caught:
        run(**{"dataset": LINEAR, "compiler": "eager", "settings": quick(), **arguments})
    assert str(caught.value).startswith(message)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"weights": "inside"},
            "The setting `weights` is 'inside'; it must be 'parameters' or 'inputs'.",
        ),
        (
            {"launch_mode": "sideways"},
            "The setting `launch_mode` is 'sideways'; it must be 'stream' or 'cuda_graph'.",
        ),
        ({"num_threads": 0}, "The setting `num_threads` is 0; it must be at least 1."),
        (
            {"phase_timeouts_s": {"judge": 1}},
            "There is no phase `judge`. A timeout can be set for load, baseline, compile, run, "
            "profile, oracle.",
        ),
    ],
)
def test_a_setting_that_makes_no_sense_is_refused(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(RunError) as caught:
        Settings(**changes)
    assert str(caught.value) == message


def test_weights_as_inputs_and_without_a_profile() -> None:
    own = SampleRunner("cpu", quick(weights="inputs", has_profile=False))
    try:
        for sample in (LINEAR, samples.RUNNING_STATISTICS):
            record = run_one(own, "eager", sample)
            assert (record["status"], record["min_t"]) == ("ok", -math.inf), record
            assert record["weights"] == "inputs"
            assert record["baseline_num_kernels"] is None
    finally:
        own.close()


def test_more_threads_than_a_worker_may_start_are_refused() -> None:
    """Without the check, the worker crashes with SIGSEGV."""
    settings = Settings(num_threads=1_000_000)  # as read from the record of a larger machine
    with pytest.raises(RunError, match=r"`num_threads` is 1000000; on this machine it must be at"):
        _ = settings.threads


@pytest.mark.slow
def test_inductor_compiles_again_in_every_run(tmp_path: Path) -> None:
    first = run(
        [LINEAR, samples.RUNNING_STATISTICS],
        compiler="inductor",
        out=tmp_path / "a",
        settings=quick(),
    )
    again = run([LINEAR], compiler="inductor", out=tmp_path / "b", settings=quick())
    assert set(first["status"]) == {"ok"}
    assert max(first["min_t"]) < 0
    # A compiler that found its own cache would take a small fraction of the time.
    assert again[0]["compile_time_s"] > 0.2 * first[0]["compile_time_s"]
