"""Calls of one compiled graph with other sizes and numbers, from the plan to the verdict."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from graphnet_datasets.analysis.columns import derived_columns
from graphnet_datasets.analysis.orders import find_orders
from graphnet_datasets.benchmark import Settings, run
from graphnet_datasets.benchmark.executors.sample_runner import (
    CandidateCompiler,
    SampleJob,
    SampleRunner,
)
from graphnet_datasets.benchmark.judging.correctness import Output
from graphnet_datasets.benchmark.judging.varied_calls import EagerVaried, judge_varied
from graphnet_datasets.benchmark.varied_calls import (
    VariedCall,
    VaryingPlan,
    other_sizes,
    plan_calls,
)
from graphnet_datasets.errors import RunError
from graphnet_datasets.isolation import Ending, Outcome
from graphnet_datasets.sample import Input, Op, Sample, Symbol, Value
from graphnet_datasets.sample.arguments import ListArg, Ref
from graphnet_datasets.schema import RUNS_SCHEMA, empty_run, sample_to_row
from tests.benchmark.samples import DROPOUT, LINEAR, make_sample, quick

VARYING = quick(num_variations=3, has_oracle=False, has_profile=False)
ROWS = Input("input", Value("float32", ("rows", 16)))


def symbolic(name: str, *ops: Op) -> Sample:
    """Return a sample over `rows`, which is an input as well, that returns its last value."""
    symbol = Input("symbol", Value("int64", ()), source_name="rows")
    return Sample(
        f"test/{name}",
        "torch",
        "other",
        (ROWS, symbol),
        ops,
        Ref(1 + len(ops)),
        (Symbol("rows", 6, 1, 64),),
    )


SCALED = symbolic(
    "scaled",
    Op("torch.Tensor.view", (Ref(0), Ref(1), 4, 4), results=(Value("float32", ("rows", 4, 4)),)),
    Op("torch.Tensor.sum", (Ref(2), ListArg((0, 1))), results=(Value("float32", (4,)),)),
    Op("operator.truediv", (Ref(3), Ref(1)), results=(Value("float32", (4,)),)),
)
"""A mean whose symbol is an input, used as a size and as a number."""
CLAMPED = make_sample(
    "clamped",
    Op("torch.mul", (Ref(0), 3.0)),
    Op("torch.clamp", (Ref(1),), (("max", 1.0),)),
    Op("torch.mul", (Ref(2), 1.0)),
)
"""Two literals, of which one is used twice: the graph of a known fault of TorchInductor."""
NUMBER = make_sample(
    "number",
    Op("torch.mul", (Ref(0), Ref(1))),
    inputs=(
        Input("input", Value("float32", (4, 16))),
        Input("scalar", Value("float64", ()), data=np.float64(1.5).tobytes()),
    ),
)


@pytest.fixture(scope="module")
def runner() -> Iterator[SampleRunner]:
    made = SampleRunner("cpu", VARYING)
    yield made
    made.close()


def vary(runner: SampleRunner, compiler: str, sample: Sample, **options: Any) -> dict[str, Any]:
    is_named = ":" in compiler or compiler in ("eager", "inductor", "torchscript", "aot_eager")
    name = compiler if is_named else f"tests.varied_candidates:{compiler}"
    row = sample_to_row(sample, derived_columns(sample))
    candidate = CandidateCompiler(name, "torch", options, "")
    (record,) = runner.run(SampleJob(sample, row, [("id", candidate)]))
    assert record.keys() == set(RUNS_SCHEMA.names)
    return record


def kinds(record: dict[str, Any]) -> list[str]:
    return [call["kind"] for call in record["varied_calls"]]


@pytest.mark.parametrize("compiler", ["eager", "right"])
def test_a_right_candidate_is_right_at_three_sizes_and_values(
    runner: SampleRunner, compiler: str
) -> None:
    record = vary(runner, compiler, SCALED)
    assert (record["status"], record["varied_verdict"], record["varied_message"]) == (
        "ok",
        "ok",
        None,
    )
    sizes = {call["sizes"] for call in record["varied_calls"]}
    assert len(sizes) == 3
    assert json.dumps({"rows": 6}) in sizes
    record = vary(runner, compiler, CLAMPED)
    assert (record["status"], record["varied_verdict"]) == ("ok", "ok")
    # Two values of each of two literals, of both together, and the first call before and after.
    assert kinds(record) == ["base", *["scalars"] * 6, "base"]
    assert len({call["scalars"] for call in record["varied_calls"]}) == 7
    assert record["num_varied_recompilations"] == 0
    assert record["recompiles_each_call"] is False
    assert all(call["stale_t"] > -4 for call in record["varied_calls"])


@pytest.mark.parametrize(
    ("compiler", "sample"),
    [
        ("first_numbers", NUMBER),
        ("first_numbers", CLAMPED),
        ("numbers_of_second_call", NUMBER),
        ("numbers_of_second_call", CLAMPED),
        ("first_sizes", SCALED),
    ],
)
def test_an_answer_to_an_earlier_size_or_number_is_stale(
    runner: SampleRunner, compiler: str, sample: Sample
) -> None:
    record = vary(runner, compiler, sample)
    assert record["varied_verdict"] == "stale"
    assert record["varied_message"].startswith("With sizes {")
    assert (record["status"], record["reason"], record["error_code"]) == (
        *("output_mismatch", "stale"),
        2,
    )
    assert record["speedup"] is None
    assert record["varied_calls"][0]["verdict"] == "ok"


def test_rows_that_are_left_out_are_stale(runner: SampleRunner) -> None:
    rows = symbolic("rows", Op("torch.relu", (Ref(0),), results=(Value("float32", ("rows", 16)),)))
    record = vary(runner, "first_rows", rows)
    assert record["varied_verdict"] == "stale"
    assert vary(runner, "right", rows)["varied_verdict"] == "ok"


def test_a_frozen_size_is_stale_and_torchscript_freezes_none(runner: SampleRunner) -> None:
    frozen = symbolic(
        "frozen",
        Op("torch.Tensor.sum", (Ref(0), 0), results=(Value("float32", (16,)),)),
        Op("operator.truediv", (Ref(2), Ref(1)), results=(Value("float32", (16,)),)),
    )
    record = vary(runner, "tests.varied_candidates:frozen_size", frozen)
    assert record["varied_verdict"] == "stale"
    record = vary(runner, "torchscript", frozen)
    assert record["varied_verdict"] == "ok"


def test_other_faults_at_other_sizes(runner: SampleRunner) -> None:
    record = vary(runner, "slightly_off", SCALED)
    assert (record["status"], record["varied_verdict"]) == ("ok", "wrong")
    assert record["min_t"] == max(call["min_t"] for call in record["varied_calls"]) > -3
    record = vary(runner, "raising", SCALED)
    assert (record["status"], record["reason"], record["phase"], record["varied_verdict"]) == (
        *("run_failed", "exception", "run"),
        "failed",
    )
    assert "IndexError: out of the buffer" in record["error_message"]


def test_unsupported_sizes_are_reported_and_not_wrong(runner: SampleRunner) -> None:
    record = vary(runner, "Static", SCALED)
    assert (record["status"], record["varied_verdict"]) == ("ok", "unsupported")
    assert {call["verdict"] for call in record["varied_calls"]} == {"ok", "unsupported"}
    record = vary(runner, "torchscript", CLAMPED)
    assert (record["status"], record["varied_verdict"]) == ("ok", "unsupported")
    assert "compiled the input `scalar_0` for 3.0" in record["varied_message"]
    assert vary(runner, "torchscript", SCALED)["varied_verdict"] == "ok"


@pytest.mark.parametrize(
    "compiler",
    ["tracing_each_call", pytest.param("CountsEachCall", marks=pytest.mark.slow)],
)
def test_recompilation_in_each_call_is_reported(runner: SampleRunner, compiler: str) -> None:
    record = vary(runner, compiler, SCALED)
    assert (record["status"], record["varied_verdict"]) == ("ok", "ok")
    assert record["recompiles_each_call"] is True
    assert record["num_varied_recompilations"] == len(record["varied_calls"])
    assert any(text.startswith("recompiles_each_call") for text in record["warnings"])


@pytest.mark.slow
def test_inductor_keeps_an_old_number_in_clamp(runner: SampleRunner) -> None:
    """A float that became dynamic is stale from the third value on in torch 2.13."""
    record = vary(runner, "inductor", CLAMPED)
    assert (record["status"], record["reason"], record["varied_verdict"]) == (
        *("output_mismatch", "stale"),
        "stale",
    )
    assert max(call["max_abs_error"] for call in record["varied_calls"]) > 0.5
    assert 1 <= record["num_varied_recompilations"] < len(record["varied_calls"])
    assert vary(runner, "aot_eager", CLAMPED)["varied_verdict"] == "ok"


def test_without_anything_to_vary_there_is_no_verdict(runner: SampleRunner) -> None:
    record = vary(runner, "right", LINEAR)
    assert (record["status"], record["varied_verdict"], record["varied_calls"]) == (
        *("ok", "undecidable"),
        None,
    )
    assert "no symbol, scalar input or literal" in record["varied_message"]


def test_random_outputs_have_no_verdict(runner: SampleRunner) -> None:
    record = vary(runner, "right", DROPOUT)
    assert record["varied_verdict"] == "undecidable"
    assert "random numbers" in record["varied_message"]


@pytest.mark.parametrize(
    ("positions", "verdict"), [([1, 0, 2], "undecidable"), ([0, 1, 2], "ok"), ([2, 2, 2], "wrong")]
)
def test_other_orders_of_tied_elements_are_not_wrong(positions: list[int], verdict: str) -> None:
    sort = Op("torch.argsort", (Ref(0),))
    values = Op("torch.relu", (Ref(0),))
    sample = make_sample("sort", sort, values, outputs=(Ref(1), Ref(2)))
    eager = [Output("int64", np.array([0, 1, 2])), Output("float32", np.ones(3, np.float32))]
    own = [
        Output("int64", np.array(positions)),
        Output("float32", np.full(3, 1.0 if verdict != "wrong" else 2.0, np.float32)),
    ]
    plan = VaryingPlan((VariedCall("base", {}, {}),))
    messages = {"varied call 0": {"num_compilations": 0}}
    ended = Outcome(Ending.FINISHED, "run", [messages], None, 0, "", 0, 1.0, {}, 0, 0)
    record = {**empty_run(), "min_t": -math.inf, "warnings": []}
    judge_varied(record, EagerVaried(plan, (eager,)), ended, {0: own}, find_orders(sample))
    assert record["varied_verdict"] == verdict


@pytest.mark.slow
def test_run_takes_the_number_of_variations() -> None:
    runs = run(NUMBER, "eager", settings=VARYING)
    assert runs[0]["varied_verdict"] == "ok"
    assert len({call["scalars"] for call in runs[0]["varied_calls"]}) == 3
    with pytest.raises(RunError, match="`num_variations` is 2; it must be 0, or from 3 to 16"):
        Settings(num_variations=2)


def test_settings_without_variation_are_those_of_earlier_versions() -> None:
    assert "num_variations" not in Settings().to_json()
    varying = Settings(num_variations=4)
    assert Settings.from_json(varying.to_json()) == varying


def test_sizes_differ_from_one_another() -> None:
    sample = Sample(
        "test/two",
        "torch",
        "other",
        (Input("input", Value("float32", ("a", "b"))),),
        (),
        Ref(0),
        (Symbol("a", 8, 1), Symbol("b", 8, 1)),
    )
    found = list(other_sizes(sample))
    assert len(found) >= 3
    assert all(sizes["a"] != sizes["b"] for sizes in found)
    assert len({tuple(sizes.values()) for sizes in found}) == len(found)


def test_the_plan_changes_one_thing_at_a_time_and_ends_where_it_began() -> None:
    calls = plan_calls({"n": 2}, {"s": 1.0}, [{"n": 4}, {"n": 6}], {"s": [2.0, 3.0]})
    assert [(call.kind, call.sizes["n"], call.scalars["s"]) for call in calls] == [
        ("base", 2, 1.0),
        ("sizes", 4, 1.0),
        ("sizes", 6, 1.0),
        ("scalars", 2, 2.0),
        ("scalars", 2, 3.0),
        ("base", 2, 1.0),
    ]
    assert math.isfinite(calls[0].scalars["s"])
