"""Outputs in an open order are judged by what the operator promises."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from graphnet_datasets.analysis.columns import derived_columns
from graphnet_datasets.analysis.orders import find_orders
from graphnet_datasets.benchmark.executors.jobs import CandidateCompiler, SampleJob
from graphnet_datasets.benchmark.executors.sample_runner import SampleRunner
from graphnet_datasets.benchmark.judging.calls import compare_calls
from graphnet_datasets.benchmark.judging.correctness import Output
from graphnet_datasets.benchmark.judging.ties import settle
from graphnet_datasets.frameworks.runtime import make_runtime
from graphnet_datasets.sample import Input, Op, Sample, Value
from graphnet_datasets.sample.arguments import Ref
from graphnet_datasets.schema import sample_to_row
from graphnet_datasets.scores import by_sample
from tests.benchmark.samples import make_sample, quick

X, DIGITS = Ref(0), Ref(2)


def on_digits(name: str, *ops: Op, outputs: Any = None) -> Sample:
    """Return a sample that sorts integers with many ties, made of its input."""
    inputs = (Input("input", Value("float32", (4, 64))),)
    made = (
        Op("torch.mul", (X, 3.0)),
        Op("torch.Tensor.long", (Ref(1),), results=(Value("int64", (4, 64)),)),
    )
    return make_sample(name, *made, *ops, inputs=inputs, outputs=outputs)


ARGSORT = on_digits("argsort", Op("torch.argsort", (DIGITS,)))
STABLE = on_digits("stable", Op("torch.argsort", (DIGITS,), (("stable", True),)))
DOUBLE = on_digits(
    "double", Op("torch.argsort", (DIGITS,)), Op("torch.mul", (Ref(3), 2)),
    outputs=(Ref(3), Ref(4)),
)  # fmt: skip
GATHER = on_digits(
    "gather", Op("torch.argsort", (DIGITS,)), Op("torch.gather", (DIGITS, -1, Ref(3)))
)
TOPK = on_digits(
    "topk", Op("torch.topk", (DIGITS, 5)), Op("operator.getitem", (Ref(3), 0)),
    Op("operator.getitem", (Ref(3), 1)), outputs=(Ref(4), Ref(5)),
)  # fmt: skip
UNIQUE = on_digits(
    "unique",
    Op("torch.unique", (DIGITS, False, True, True)),
    *(Op("operator.getitem", (Ref(3), index)) for index in range(3)),
    outputs=(Ref(4), Ref(5), Ref(6)),
)


@pytest.fixture(scope="module")
def runner() -> Iterator[SampleRunner]:
    runner = SampleRunner("cpu", quick())
    yield runner
    runner.close()


def judged(runner: SampleRunner, sample: Sample, candidate: str) -> dict[str, Any]:
    compiler = CandidateCompiler(f"tests.benchmark.orderings:{candidate}", "torch", {}, "")
    row = sample_to_row(sample, derived_columns(sample))
    (record,) = runner.run(SampleJob(sample, row, [("id", compiler)]))
    assert record["status"] == "ok", record["error_message"]
    return record


@pytest.mark.torch
@pytest.mark.parametrize(
    ("sample", "candidate"),
    [
        (ARGSORT, "argsort_by_other_ties"),
        (GATHER, "argsort_and_gather"),
        (TOPK, "topk_by_other_ties"),
        (UNIQUE, "unique_backwards"),
    ],
    ids=lambda value: getattr(value, "id", value),
)
def test_another_valid_order_is_right(runner: SampleRunner, sample: Sample, candidate: str) -> None:
    record = judged(runner, sample, candidate)
    assert (record["min_t"], record["undecidable_reason"]) == (-math.inf, None)
    assert by_sample([record])[0]["is_right"] is True


@pytest.mark.torch
@pytest.mark.parametrize(
    ("sample", "candidate"),
    [
        (ARGSORT, "argsort_not_at_all"),
        (ARGSORT, "argsort_repeating"),
        (ARGSORT, "argsort_out_of_range"),
        (STABLE, "argsort_by_other_ties"),
        (TOPK, "topk_least"),
        (UNIQUE, "unique_with_a_wrong_inverse"),
    ],
    ids=lambda value: getattr(value, "id", value),
)
def test_a_wrong_order_is_wrong(runner: SampleRunner, sample: Sample, candidate: str) -> None:
    record = judged(runner, sample, candidate)
    assert (record["min_t"], record["undecidable_reason"]) == (math.inf, None)
    assert by_sample([record])[0]["is_right"] is False


@pytest.mark.torch
def test_an_output_that_shows_the_order_of_ties_is_undecidable(runner: SampleRunner) -> None:
    record = judged(runner, DOUBLE, "argsort_and_double")
    assert record["undecidable_reason"] == (
        "Output 1 depends on the order of tied elements, which `torch.argsort` (operator 2) does "
        "not specify."
    )
    assert [output["min_t"] for output in record["outputs"]] == [-math.inf, math.inf]
    assert by_sample([record])[0]["is_right"] is None


def settled(sample: Sample, keys: Any, eager: list[Any], candidate: list[Any]) -> Any:
    """Return the tolerances of the outputs, and the reason why they are undecidable."""
    orders = find_orders(sample)
    assert orders is not None
    arms = [
        [Output(str(array.dtype), array) for array in map(np.asarray, arm)]
        for arm in (eager, candidate)
    ]
    array = np.asarray(keys)
    calls = settle([(arms[0], arms[1])], orders, [[Output(str(array.dtype), array)]])
    rows = compare_calls(calls.calls)
    reason = calls.take(rows)
    return [row["min_t"] for row in rows], reason


COMPUTED = make_sample(
    "computed",
    Op("torch.nn.functional.gelu", (X,), results=(Value("float32", (4,)),)),
    Op("torch.argsort", (Ref(1),)),
    inputs=(Input("input", Value("float32", (4,))),),
)
GIVEN = make_sample(
    "given", Op("torch.argsort", (X,)), inputs=(Input("input", Value("float32", (4,))),)
)


def test_computed_keys_that_differ_by_rounding_may_change_places() -> None:
    keys = np.array([1.0, 1.0000001, 3.0, 2.0], np.float32)
    (t,), _ = settled(COMPUTED, keys, [[0, 1, 3, 2]], [[1, 0, 3, 2]])
    assert -8 < t < -6
    (t,), _ = settled(GIVEN, keys, [[0, 1, 3, 2]], [[1, 0, 3, 2]])
    assert t == math.inf
    (t,), _ = settled(COMPUTED, keys, [[0, 1, 3, 2]], [[0, 1, 2, 3]])
    assert t > -1


@pytest.mark.parametrize(
    ("name", "eager", "candidate", "is_right"),
    [
        ("mode", [[2], [1]], [[2], [3]], True),
        ("mode", [[2], [1]], [[2], [0]], False),
        ("kthvalue", [[2], [1]], [[2], [2]], True),
        ("median", [[2], [1]], [[2], [3]], True),
        ("max", [[7], [0]], [[7], [4]], False),  # torch promises the first
    ],
)
def test_one_of_several_tied_elements_is_right(
    name: str, eager: list[Any], candidate: list[Any], is_right: bool
) -> None:
    keys = {"max": [7, 2, 2, 2, 7]}.get(name, [5, 2, 2, 2, 9])
    args = (X, 2) if name == "kthvalue" else (X, 0)
    sample = make_sample(
        name,
        Op(f"torch.{name}", (*args, True) if name != "kthvalue" else (*args, 0, True)),
        inputs=(Input("input", Value("int64", (5,))),),
    )
    tolerances, reason = settled(sample, keys, eager, candidate)
    assert (max(tolerances) == -math.inf, reason) == (is_right, None)


def test_without_keys_a_difference_is_undecidable() -> None:
    orders = find_orders(GIVEN)
    assert orders is not None
    eager, other = ([Output("int64", np.array(order))] for order in ([0, 1], [1, 0]))
    calls = settle([(eager, other)], orders, [None])
    assert "does not specify" in (calls.take(compare_calls(calls.calls)) or "")


def test_topk_has_ties_only_among_what_it_returns() -> None:
    ops = (
        Op("torch.topk", (X, 2)),
        Op("operator.getitem", (Ref(1), 1)),
        Op("torch.mul", (Ref(2), 2)),
    )
    sample = make_sample("top", *ops, inputs=(Input("input", Value("int64", (5,))),))
    assert settled(sample, [0, 0, 0, 8, 9], [[8, 6]], [[6, 8]]) == ([math.inf], None)
    _, reason = settled(sample, [0, 0, 8, 8, 9], [[8, 6]], [[8, 4]])
    assert "does not specify" in reason


@pytest.mark.torch
@pytest.mark.parametrize("size", [2, 7, 1023, 5000])
@pytest.mark.parametrize("dtype", ["int64", "int32", "uint8", "float32"])
def test_elements_that_change_places_change_the_checksum(size: int, dtype: str) -> None:
    """The outputs of `argsort` have the same elements for all inputs."""
    torch = pytest.importorskip("torch")
    runtime = make_runtime("torch", "cpu", 1)
    tensor = (torch.arange(size) * 7 % 61).to(getattr(torch, dtype))
    for first, second in ((0, 1), (0, size - 1), (size // 2, size - 1)):
        if tensor[first] != tensor[second]:
            other = tensor.clone()
            other[first], other[second] = tensor[second], tensor[first]
            assert runtime.checksum(other) != runtime.checksum(tensor)
    assert runtime.checksum(tensor.clone()) == runtime.checksum(tensor)
    assert runtime.checksum(tensor[:0]) == 0
