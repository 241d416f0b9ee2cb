"""Outputs in an open order are judged by what the operator promises."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from graphnet_datasets.analysis.columns import derived_columns
from graphnet_datasets.analysis.orders import find_orders, keys_sample
from graphnet_datasets.benchmark.executors.jobs import CandidateCompiler, SampleJob
from graphnet_datasets.benchmark.executors.sample_runner import SampleRunner
from graphnet_datasets.benchmark.judging.calls import compare_calls
from graphnet_datasets.benchmark.judging.correctness import Output, eager_t
from graphnet_datasets.benchmark.judging.ties import settle, without_ties
from graphnet_datasets.frameworks.runtime import make_runtime
from graphnet_datasets.sample import Input, Op, Sample, Value
from graphnet_datasets.sample.arguments import Graph, ListArg, Ref
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


BRANCH = on_digits(
    "branch",
    Op("torch.any", (DIGITS,), results=(Value("bool", ()),)),
    Op(
        "torch.ops.higher_order.cond",
        (Ref(3), *[Graph(1, (Op("torch.argsort", (X,)),), (Ref(1),))] * 2, (DIGITS,)),
        results=(Value("int64", (4, 64)),),
    ),
    Op("operator.getitem", (Ref(4), 0)),
)
WRITTEN = make_sample(
    "written",
    Op("torch.mul", (X, 3.0)),
    Op("torch.Tensor.long", (Ref(2),), results=(Value("int64", (4, 64)),)),
    Op("torch.argsort", (Ref(3),)),
    Op("torch.Tensor.copy_", (Ref(1), Ref(4))),
    inputs=(Input("input", Value("float32", (4, 64))), Input("buffer", Value("int64", (4, 64)))),
    outputs=Ref(3),
)


@pytest.mark.torch
@pytest.mark.parametrize(
    ("sample", "candidate", "place"),
    [(BRANCH, "argsort_by_other_ties", "in a body"), (WRITTEN, "argsort_to_a_buffer", "Output 1")],
    ids=["body", "written"],
)
def test_ties_in_bodies_and_in_buffers_are_no_errors(
    runner: SampleRunner, sample: Sample, candidate: str, place: str
) -> None:
    record = judged(runner, sample, candidate)
    assert place in record["undecidable_reason"]
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


def codebook(outputs: Any) -> Sample:
    """Return a sample that looks up the code nearest to its input, by computed distances."""
    return make_sample(
        "codebook",
        Op("torch.abs", (X,), results=(Value("float32", (4,)),)),
        Op("torch.argmin", (Ref(1), 0)),
        Op("torch.take", (X, Ref(2))),
        inputs=(Input("input", Value("float32", (4,))),),
        outputs=outputs,
    )


TIED = np.array([0.5, 0.50000006, 3.0, 2.0], np.float32)
NEARLY_TIED = np.array([0.5, 0.50001, 3.0, 2.0], np.float32)
CLOSE = np.array([0.5, 0.5002, 3.0, 2.0], np.float32)
UNTIED = np.array([0.5, 0.6, 3.0, 2.0], np.float32)


def judge_codebook(
    outputs: Any, *calls: tuple[np.ndarray, list[Any], list[Any]]
) -> tuple[float, str | None]:
    """Return the tolerance and the reason of calls with these keys, and outputs of both arms."""
    orders = find_orders(codebook(outputs))
    assert orders is not None
    eager, candidate = (
        [[Output(str(np.asarray(x).dtype), np.asarray(x)) for x in call[side]] for call in calls]
        for side in (1, 2)
    )
    keys = [[Output("float32", call_keys)] for call_keys, *_ in calls]
    result = settle(list(zip(eager, candidate, strict=True)), orders, keys)
    rows = compare_calls(result.calls)
    reason = result.take(rows)
    return max(row["min_t"] for row in rows), reason


CODES = [np.float32(0.5)], [np.float32(7.0)]


def test_elements_that_tie_up_to_rounding_may_be_looked_up_in_either_order() -> None:
    _, reason = judge_codebook(Ref(3), (TIED, *CODES))
    assert "does not specify" in (reason or "")
    t, reason = judge_codebook(Ref(3), (UNTIED, *CODES))
    assert (t > 0, reason) == (True, None)


def test_keys_may_be_further_apart_than_their_last_bits() -> None:
    """Distances differ by more than a few rounding steps, since their terms cancel."""
    _, reason = judge_codebook(Ref(3), (NEARLY_TIED, *CODES))
    assert "does not specify" in (reason or "")


def test_outputs_of_other_correct_positions_are_no_errors() -> None:
    outputs = (Ref(3), Ref(2))
    right = [np.float32(0.25), np.int64(0)], [np.float32(0.25), np.int64(0)]
    other = [np.float32(0.5), np.int64(0)], [np.float32(7.0), np.int64(1)]
    _, reason = judge_codebook(outputs, (CLOSE, *other))
    assert "does not specify" in (reason or "")
    t, reason = judge_codebook(outputs, (UNTIED, *right), (CLOSE, *other), (UNTIED, *right))
    assert (-5 < t < -3, reason) == (True, None)
    t, reason = judge_codebook(outputs, (UNTIED, *right), (UNTIED, *other), (UNTIED, *right))
    assert (t > -3, reason) == (True, None)


def test_a_call_without_ties_decides() -> None:
    right = [np.float32(0.25)], [np.float32(0.25)]
    for calls in (
        [(TIED, *CODES), (UNTIED, *right)],
        [(UNTIED, *right), (TIED, *CODES), (UNTIED, *right)],
    ):
        assert judge_codebook(Ref(3), *calls) == (-math.inf, None)
    t, reason = judge_codebook(Ref(3), (TIED, *CODES), (UNTIED, *CODES))
    assert (t > 0, reason) == (True, None)
    # The first call alone cannot show a stored answer.
    _, reason = judge_codebook(Ref(3), (UNTIED, *right), (TIED, *CODES))
    assert "does not specify" in (reason or "")


def test_ties_excuse_no_output_if_the_positions_are_returned_and_equal() -> None:
    outputs = (Ref(3), Ref(2))
    same = [np.float32(0.5), np.int64(0)], [np.float32(7.0), np.int64(0)]
    t, reason = judge_codebook(outputs, (TIED, *same))
    assert (t > 0, reason) == (True, None)
    other = [np.float32(0.5), np.int64(0)], [np.float32(7.0), np.int64(1)]
    _, reason = judge_codebook(outputs, (TIED, *other))
    assert "does not specify" in (reason or "")


def test_float64_outputs_that_break_a_tie_are_ignored() -> None:
    orders = find_orders(codebook(Ref(3)))
    assert orders is not None
    eager, other, near = (
        [Output(dtype, np.array(value, dtype))]
        for dtype, value in (("float32", 0.5), ("float64", 7.0), ("float64", 0.5 + 1e-9))
    )
    tied, untied = ([Output("float32", keys)] for keys in (TIED, UNTIED))
    assert without_ties(eager, other, orders, tied) == [None]
    assert eager_t(eager, [None]) is None
    for oracle, keys in ((other, untied), (near, tied)):
        (output,) = without_ties(eager, oracle, orders, keys)
        assert output is not None and output.elements == oracle[0].elements


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


F, ATEN = "torch.nn.functional", "torch.ops.aten"
FIVES = [[5, 2, 5, 2, 9]]
PLANE = [[[1, 1, 7, 0], [0, 1, 7, 7], [3, 3, 0, 2], [3, 3, 2, 2]]]
LINE = [[1, 1, 7, 7]]
CUBE = [[[[1, 1], [0, 1]], [[1, 0], [0, 0]]]]
ROWS = [[2, 1], [0, 3], [2, 1], [0, 3]]
OPEN = [
    # operator, arguments, keywords, keys, results of eager, valid ones, wrong ones
    ("torch.argsort", (), {}, FIVES, [[[1, 3, 0, 2, 4]]], [[[3, 1, 2, 0, 4]]], [[[3, 3, 2, 0, 4]]]),
    ("torch.sort", (), {}, FIVES, [[[2, 2, 5, 5, 9]], [[1, 3, 0, 2, 4]]],
     [[[2, 2, 5, 5, 9]], [[3, 1, 0, 2, 4]]], [[[2, 2, 5, 5, 9]], [[0, 1, 3, 2, 4]]]),
    ("torch.topk", (2,), {}, FIVES, [[[9, 5]], [[4, 0]]], [[[9, 5]], [[4, 2]]],
     [[[9, 5]], [[4, 1]]]),
    ("torch.topk", (2,), {"sorted": False}, FIVES, [[[9, 5]], [[4, 0]]], [[[5, 9]], [[2, 4]]],
     [[[5, 9]], [[2, 2]]]),
    ("torch.kthvalue", (2,), {}, FIVES, [[2], [3]], [[2], [1]], [[2], [0]]),
    ("torch.median", (1,), {}, FIVES, [[5], [2]], [[5], [0]], [[5], [1]]),
    ("torch.nanmedian", (1,), {}, FIVES, [[5], [2]], [[5], [0]], [[5], [4]]),
    ("torch.mode", (), {}, FIVES, [[2], [3]], [[5], [0]], [[9], [4]]),
    ("torch.mode", (), {}, FIVES, [[2], [3]], [[2], [1]], [[2], [0]]),
    ("torch.mode", (), {}, FIVES, [[2], [3]], [[5], [2]], [[5], [1]]),
    ("torch.cummax", (1,), {}, FIVES, [[[5, 5, 5, 5, 9]], [[0, 0, 2, 2, 4]]],
     [[[5, 5, 5, 5, 9]], [[0, 0, 0, 0, 4]]], [[[5, 5, 5, 5, 9]], [[2, 0, 2, 2, 4]]]),
    ("torch.cummin", (1,), {}, FIVES, [[[5, 2, 2, 2, 2]], [[0, 1, 1, 3, 3]]],
     [[[5, 2, 2, 2, 2]], [[0, 1, 1, 1, 1]]], [[[5, 2, 2, 2, 2]], [[0, 1, 1, 2, 1]]]),
    (f"{F}.max_pool1d", (2,), {"return_indices": True}, LINE, [[[1, 7]], [[0, 2]]],
     [[[1, 7]], [[1, 3]]], [[[1, 7]], [[0, 1]]]),
    (f"{F}.max_pool1d", (2,), {"return_indices": True}, [[7, 1, 7, 7]], [[[7, 7]], [[0, 2]]],
     [[[7, 7]], [[0, 3]]], [[[7, 7]], [[2, 3]]]),
    (f"{F}.max_pool2d", (2, 2, 0, 1, False, True), {}, PLANE, [[[[1, 7], [3, 2]]],
     [[[0, 2], [8, 11]]]], [[[[1, 7], [3, 2]]], [[[5, 7], [13, 15]]]],
     [[[[1, 7], [3, 2]]], [[[5, 7], [13, 3]]]]),
    (f"{F}.max_pool2d_with_indices", (2,), {}, PLANE, [[[[1, 7], [3, 2]]], [[[0, 2], [8, 11]]]],
     [[[[1, 7], [3, 2]]], [[[1, 6], [9, 14]]]], [[[[1, 7], [3, 2]]], [[[0, 2], [8, 9]]]]),
    (f"{ATEN}.max_pool2d_with_indices.default", (ListArg((2, 2)), ListArg((2, 2))), {}, PLANE,
     [[[[1, 7], [3, 2]]], [[[0, 2], [8, 11]]]], [[[[1, 7], [3, 2]]], [[[1, 6], [9, 14]]]],
     [[[[1, 7], [3, 2]]], [[[1, 6], [9, 16]]]]),
    (f"{F}.max_pool3d", (2,), {"return_indices": True}, CUBE, [[[[[1]]]], [[[[0]]]]],
     [[[[[1]]]], [[[[4]]]]], [[[[[1]]]], [[[[5]]]]]),
    (f"{F}.adaptive_max_pool1d", (2,), {"return_indices": True}, LINE, [[[1, 7]], [[0, 2]]],
     [[[1, 7]], [[1, 3]]], [[[1, 7]], [[2, 2]]]),
    (f"{F}.adaptive_max_pool2d", (2, True), {}, PLANE, [[[[1, 7], [3, 2]]], [[[0, 2], [8, 11]]]],
     [[[[1, 7], [3, 2]]], [[[5, 7], [13, 15]]]], [[[[1, 7], [3, 2]]], [[[5, 3], [13, 15]]]]),
    (f"{ATEN}.adaptive_max_pool3d.default", (1,), {}, CUBE, [[[[[1]]]], [[[[0]]]]],
     [[[[[1]]]], [[[[3]]]]], [[[[[1]]]], [[[[2]]]]]),
    (f"{F}.fractional_max_pool2d_with_indices", (2,), {"output_size": 1}, PLANE, [[[[3]]], [[[8]]]],
     [[[[3]]], [[[13]]]], [[[[3]]], [[[11]]]]),
    (f"{F}.fractional_max_pool3d", (2,), {"output_size": 1, "return_indices": True}, CUBE,
     [[[[[1]]]], [[[[0]]]]], [[[[[1]]]], [[[[4]]]]], [[[[[1]]]], [[[[7]]]]]),
    ("torch.unique", (False,), {}, FIVES, [[9, 2, 5]], [[2, 5, 9]], [[2, 5, 8]]),
    ("torch.unique", (False, True, True, 0), {}, ROWS, [[[0, 3], [2, 1]], [1, 0, 1, 0], [2, 2]],
     [[[2, 1], [0, 3]], [0, 1, 0, 1], [2, 2]], [[[2, 1], [0, 3]], [1, 0, 1, 0], [2, 2]]),
    (f"{ATEN}.unique_dim.default", (0, False, True, True), {}, ROWS,
     [[[0, 3], [2, 1]], [1, 0, 1, 0], [2, 2]], [[[2, 1], [0, 3]], [0, 1, 0, 1], [2, 2]],
     [[[2, 3], [0, 1]], [0, 1, 0, 1], [2, 2]]),
]  # fmt: skip
FIRST = [
    ("torch.argmax", (1,), {}, [[7, 2, 7]], [[0]], [[2]]),
    ("torch.argmin", (1,), {}, [[7, 2, 2]], [[1]], [[2]]),
    ("torch.max", (1,), {}, [[7, 2, 7]], [[7], [0]], [[7], [2]]),
    ("torch.min", (1,), {}, [[7, 2, 2]], [[2], [1]], [[2], [2]]),
]
DETERMINED = [
    ("torch.sort", (), {"stable": True}),
    ("torch.argsort", (), {"stable": True}),
    ("torch.unique", (True, True, True), {}),
    ("torch.unique_consecutive", (True,), {}),
    (f"{F}.max_pool2d", (2,), {}),
    (f"{F}.adaptive_max_pool2d", (2,), {}),
    ("torch.median", (), {}),
]


def sample_of(
    target: str, args: Any, kwargs: dict[str, Any], keys: Any, num_results: int
) -> Sample:
    """Return a sample with one operator, whose results are the outputs."""
    shape = np.shape(keys)
    ops = [Op(target, (X, *args), tuple(kwargs.items()))]
    if num_results > 1:
        ops += [Op("operator.getitem", (Ref(1), index)) for index in range(num_results)]
    outputs = tuple(Ref(len(ops) + 1 - num_results + index) for index in range(num_results))
    inputs = (Input("input", Value("int64", shape)),)
    return make_sample("open", *ops, inputs=inputs, outputs=outputs)


@pytest.mark.parametrize(("target", "args", "kwargs", "keys", "eager", "valid", "wrong"), OPEN)
def test_each_valid_result_is_right_and_no_other(
    target: str, args: Any, kwargs: Any, keys: Any, eager: Any, valid: Any, wrong: Any
) -> None:
    sample = sample_of(target, args, kwargs, keys, len(eager))
    tolerances, reason = settled(sample, keys, eager, valid)
    assert (max(tolerances), reason) == (-math.inf, None)
    tolerances, reason = settled(sample, keys, eager, wrong)
    assert (max(tolerances) > -1, reason) == (True, None)


@pytest.mark.parametrize(("target", "args", "kwargs", "keys", "eager", "last"), FIRST)
def test_torch_promises_the_first_of_several_extremes(
    target: str, args: Any, kwargs: Any, keys: Any, eager: Any, last: Any
) -> None:
    tolerances, reason = settled(
        sample_of(target, args, kwargs, keys, len(eager)), keys, eager, last
    )
    assert (max(tolerances), reason) == (math.inf, None)


@pytest.mark.parametrize(("target", "args", "kwargs"), DETERMINED)
def test_operators_that_specify_their_order_are_compared(
    target: str, args: Any, kwargs: Any
) -> None:
    assert find_orders(sample_of(target, args, kwargs, PLANE, 2)) is None


@pytest.mark.parametrize(("value", "is_open"), [(0, True), (1, False)])
def test_a_gradient_through_tied_maxima_is_undecidable(value: int, is_open: bool) -> None:
    """Zeros that relu made tie in a window; the gradient goes to one of them."""
    ops = (
        Op(f"{ATEN}.max_pool2d_with_indices.default", (X, ListArg((2, 2)))),
        Op("operator.getitem", (Ref(1), 1)),
        Op("torch.mul", (Ref(2), 2)),
    )
    sample = make_sample("pooled", *ops, inputs=(Input("input", Value("int64", (1, 2, 2))),))
    keys = [[[0, 0], [0, value]]]
    _, reason = settled(sample, keys, [[[[0]]]], [[[[2]]]])
    assert (reason is not None) is is_open


def test_without_keys_a_difference_is_undecidable() -> None:
    orders = find_orders(GIVEN)
    assert orders is not None
    eager, other = ([Output("int64", np.array(order))] for order in ([0, 1], [1, 0]))
    calls = settle([(eager, other)], orders, [None])
    assert "does not specify" in (calls.take(compare_calls(calls.calls)) or "")


def test_topk_has_ties_only_among_its_results() -> None:
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


@pytest.mark.parametrize(
    ("indices", "dtype", "is_open"),
    [([0, 2, 0], "int64", True), ([0, 2, 1], "int64", False), ([1, 0, 1], "bool", False)],
    ids=["repeated", "distinct", "mask"],
)
def test_any_of_several_writes_may_be_the_last(indices: Any, dtype: str, is_open: bool) -> None:
    row = Input("input", Value("float32", (3,)))
    sample = make_sample(
        "overwrite",
        Op("torch.index_put", (Ref(0), (Ref(1),), Ref(2))),
        inputs=(row, Input("input", Value("int64", (3,))), row),
    )
    orders = find_orders(sample)
    assert orders is not None
    eager, other = ([Output("float32", np.array([x, 0, 2], "f4"))] for x in (1, 3))
    keys = [Output(dtype, np.array(indices, dtype))]
    result = settle([(eager, other)], orders, [keys])
    reason = result.take(compare_calls(result.calls))
    assert reason == (
        "Output 0 depends on which of several writes to one element is the last, which "
        "`torch.index_put` (operator 0) does not specify."
        if is_open
        else None
    )


@pytest.mark.parametrize(
    ("rows", "columns", "is_open"),
    [
        ([0, 0, 1], [2, 2, 2], True),
        ([0, 0, 1], [2, 1, 2], False),
        ([0, 0, -2], [2, 1, 2], True),
        ([[0], [1]], [0, 1, 2], False),
        ([[0], [0]], [0, 1, 2], True),
    ],
    ids=["repeated", "distinct", "negative", "grid", "repeated in a grid"],
)
def test_writes_to_pairs_of_indices_are_open_if_a_pair_repeats(
    rows: Any, columns: Any, is_open: bool
) -> None:
    sample = make_sample(
        "pairs",
        Op("torch.index_put", (Ref(0), (Ref(1), Ref(2)), Ref(3))),
        inputs=(
            Input("input", Value("float32", (2, 3))),
            *[Input("input", Value("int64", (3,)))] * 2,
            Input("input", Value("float32", (3,))),
        ),
    )
    orders = find_orders(sample)
    assert orders is not None
    assert keys_sample(sample, orders).outputs == (Ref(1), Ref(2))
    eager, other = ([Output("float32", np.full((2, 3), x, "f4"))] for x in (1, 3))
    keys = [Output("int64", np.array(indices)) for indices in (rows, columns)]
    result = settle([(eager, other)], orders, [keys])
    assert (result.take(compare_calls(result.calls)) is not None) is is_open
