"""Outputs judged by their distribution: right generators pass, and each named fault is found."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Sequence
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import pytest

from graphnet_datasets.benchmark.draw_plan import (
    FURTHER_DRAWS,
    DrawPlan,
    elements_per_draw,
    plan_draws,
)
from graphnet_datasets.benchmark.handover import WRITTEN
from graphnet_datasets.benchmark.judging.correctness import Drawn, Output, compare_outputs
from graphnet_datasets.benchmark.judging.draws import (
    LEVEL,
    Draws,
    DrawVerdict,
    judge_calls,
    judge_draws,
    stored_draw,
)
from graphnet_datasets.benchmark.judging.judging import Run
from graphnet_datasets.benchmark.judging.random_outputs import judge_random_outputs
from graphnet_datasets.isolation import Ending, Outcome
from graphnet_datasets.sample import Input, Op, Sample, Statistics, Value
from graphnet_datasets.sample.arguments import Ref
from graphnet_datasets.schema import empty_run

Generator = Callable[[np.random.Generator, int], npt.NDArray]
"""Makes as many draws as it is called with, (draws, elements)."""
INPUT = np.random.default_rng(0).normal(size=(8, 32)) + 0.1
WEIGHT = np.random.default_rng(1).normal(size=(32, 16)) / 6
CHEAP = DrawPlan(1e6, (True,))


def mask(generator: np.random.Generator, count: int, rate: float) -> npt.NDArray:
    return generator.random((count, *INPUT.shape)) >= rate


def rows_of_one_mask(generator: np.random.Generator, count: int, rate: float) -> npt.NDArray:
    return np.repeat(generator.random((count, 1, INPUT.shape[1])) >= rate, len(INPUT), axis=1)


def stuck(period: int) -> Callable[[np.random.Generator, int, float], npt.NDArray]:
    def masks(generator: np.random.Generator, count: int, rate: float) -> npt.NDArray:
        some = mask(generator, period, rate)
        return some[np.arange(count) % period]

    return masks


def halves(generator: np.random.Generator, count: int, rate: float) -> npt.NDArray:
    del generator, rate
    is_kept = np.arange(INPUT.size).reshape(INPUT.shape) % 2 == 0
    return np.repeat(is_kept[None], count, axis=0)


def dropout(
    then: Callable[[npt.NDArray], npt.NDArray],
    rate: float = 0.5,
    scale: float | None = None,
    masks: Callable[[np.random.Generator, int, float], npt.NDArray] = mask,
) -> Generator:
    def draw(generator: np.random.Generator, count: int) -> npt.NDArray:
        scaled = (
            masks(generator, count, rate) * INPUT * (1 / (1 - rate) if scale is None else scale)
        )
        return then(scaled).reshape(count, -1).astype(np.float32)

    return draw


def itself(x: npt.NDArray) -> npt.NDArray:
    return x


def linear(x: npt.NDArray) -> npt.NDArray:
    return x @ WEIGHT


def loss(x: npt.NDArray) -> npt.NDArray:
    return ((x @ WEIGHT) ** 2).mean(axis=(1, 2))


def norm(x: npt.NDArray) -> npt.NDArray:
    x = x - x.mean(axis=-1, keepdims=True)
    return x / np.sqrt((x**2).mean(axis=-1, keepdims=True) + 1e-5)


THEN = {"itself": itself, "linear": linear, "loss": loss, "norm": norm}


def verdict_of(
    eager: Generator, candidate: Generator, seed: int = 0, dtype: str = "float32"
) -> DrawVerdict:
    generator = np.random.default_rng(seed)
    size = eager(generator, 1).shape[1]
    count = CHEAP.count([size])
    draws = (eager(generator, count), candidate(generator, count), eager(generator, FURTHER_DRAWS))
    shape = (len(INPUT), size // len(INPUT)) if size % len(INPUT) == 0 else (size,)
    return judge_draws([Draws(dtype, shape, *draws)])[0]


FAULTS: dict[str, dict[str, Any]] = {
    "no dropout": {"rate": 0.0},
    "another rate": {"rate": 0.4},
    "no scale": {"scale": 1.0},
    "all dropped": {"scale": 0.0},
    "one mask": {"masks": stuck(1)},
    "three masks in turn": {"masks": stuck(3)},
    "always the same elements": {"masks": halves},
}


@pytest.mark.parametrize("then", THEN)
@pytest.mark.parametrize("fault", FAULTS)
def test_each_fault_of_a_dropout_is_found(then: str, fault: str) -> None:
    if (then, fault) in (("norm", "no scale"),):
        pytest.skip("a norm takes the scale away")
    changes = FAULTS[fault]
    found = verdict_of(dropout(THEN[then]), dropout(THEN[then], **changes))
    assert found.p_value < LEVEL / 10, found


@pytest.mark.parametrize("then", ["itself", "linear", "norm"])
def test_one_mask_for_all_rows_is_found(then: str) -> None:
    wrong = dropout(THEN[then], masks=rows_of_one_mask)
    assert verdict_of(dropout(THEN[then]), wrong).p_value < LEVEL / 10


def test_kept_elements_have_the_right_scale() -> None:
    right = verdict_of(dropout(itself), dropout(itself, scale=2 * (1 + 1e-6)))
    assert right.p_value > LEVEL
    assert -7 < right.min_t < -5
    exact = verdict_of(dropout(itself), dropout(itself))
    assert exact.min_t == -math.inf
    wrong = verdict_of(dropout(itself), dropout(itself, scale=2.01))
    assert wrong.p_value < LEVEL
    assert wrong.test == "values"


def test_a_continuous_draw_has_no_values_to_agree_with() -> None:
    narrow = of("uniform", 200, 0.5, 0.502)
    right = verdict_of(narrow, narrow)
    assert (right.p_value > LEVEL, right.min_t) == (True, -math.inf)


def integers(low: int, high: int, size: int) -> Generator:
    return lambda generator, count: generator.integers(low, high, (count, size))


def permutations(generator: np.random.Generator, count: int) -> npt.NDArray:
    return np.stack([generator.permutation(64) for _ in range(count)])


def of(name: str, size: int, *parameters: float) -> Generator:
    return lambda generator, count: getattr(generator, name)(
        *parameters, size=(count, size)
    ).astype(np.float32)


@pytest.mark.parametrize("size", [1, 7, 300])
@pytest.mark.parametrize(
    ("eager", "candidate"),
    [
        (("uniform", 0.0, 1.0), ("normal", 0.5, 12**-0.5)),
        (("normal", 0.0, 1.0), ("uniform", -(3**0.5), 3**0.5)),
        (("normal", 0.0, 1.0), ("normal", 0.0, 1.3)),
        (("exponential", 1.0), ("gamma", 2.0, 0.5)),
        (("standard_cauchy",), ("normal", 0.0, 1.0)),
        (("binomial", 1, 0.5), ("binomial", 1, 0.4)),
    ],
)
def test_another_distribution_is_found(size: int, eager: Any, candidate: Any) -> None:
    right, wrong = (of(name, size, *rest) for name, *rest in (eager, candidate))
    assert verdict_of(right, right).p_value > LEVEL
    assert verdict_of(right, wrong).p_value < LEVEL / 10


def test_permutations_and_whole_numbers_are_exact() -> None:
    found = verdict_of(permutations, permutations, dtype="int64")
    assert found.p_value > LEVEL
    with_repetitions = verdict_of(permutations, integers(0, 64, 64), dtype="int64")
    assert with_repetitions.p_value < LEVEL
    beyond = verdict_of(integers(0, 10, 50), integers(0, 11, 50), dtype="int64")
    assert beyond.p_value < LEVEL


def test_dropouts_with_one_mask_for_two_outputs_are_found() -> None:
    generator = np.random.default_rng(3)

    def outputs(is_shared: bool) -> list[Draws]:
        arms = []
        for shared in (False, is_shared, False):
            first, second = (dropout(itself)(generator, 96) for _ in range(2))
            arms.append((first, first.copy() if shared else second))
        return [Draws("float32", INPUT.shape, *(arm[place] for arm in arms)) for place in (0, 1)]

    assert all(found.p_value > LEVEL for found in judge_draws(outputs(False)))
    wrong = judge_draws(outputs(True))[1]
    assert wrong.p_value < LEVEL
    assert wrong.test == "products with output 0"


def rounded(candidate: Generator, relative: float) -> Generator:
    """Return the generator with a rounding of its own of each element, the same in all draws."""

    def draw(generator: np.random.Generator, count: int) -> npt.NDArray:
        drawn = candidate(generator, count)
        steps = np.random.default_rng(9).choice([-1, 0, 1], drawn.shape[1])
        return (drawn * (1 + relative * steps)).astype(np.float32)

    return draw


def softmax_of_noise(generator: np.random.Generator, count: int) -> npt.NDArray:
    noise = np.exp(generator.gumbel(size=(count, 8, 2)))
    return (noise / noise.sum(axis=-1, keepdims=True)).reshape(count, -1).astype(np.float32)


def scaled_noise(generator: np.random.Generator, count: int) -> npt.NDArray:
    return (1 + 1e-2 * generator.normal(size=(count, 256))).astype(np.float32)


CORRECT: dict[str, Generator] = {
    "dropout": dropout(itself),
    "rare dropout": dropout(itself, rate=0.01),
    "linear": dropout(linear),
    "loss": dropout(loss),
    "norm": dropout(norm),
    "softmax": softmax_of_noise,
    "small noise": scaled_noise,
    "cauchy": of("standard_cauchy", 40),
    "scalar": of("uniform", 1, 0.0, 1.0),
}


@pytest.mark.parametrize("name", CORRECT)
def test_p_values_of_a_correct_candidate_are_uniform_or_larger(name: str) -> None:
    """The level of 1 in a million cannot be simulated, but levels of 1 in 10 and in 100 can."""
    eager = CORRECT[name]
    candidate = rounded(eager, 1e-6) if name not in ("cauchy", "scalar") else eager
    seeds = 20 if name in ("scalar", "loss") else 60
    p_values = [verdict_of(eager, candidate, seed).p_value for seed in range(seeds)]
    assert np.mean(np.array(p_values) < 0.1) <= 0.2
    assert np.mean(np.array(p_values) < 0.01) <= 0.05
    assert min(p_values) > 1e-4


def test_the_level_holds_for_many_outputs_of_few_elements() -> None:
    """400 outputs of a correct candidate, none of which may be near to the level."""
    p_values = []
    draw = of("normal", 9)
    for seed in range(10):
        generator = np.random.default_rng(seed)
        outputs = [
            Draws("float32", (9,), draw(generator, 96), draw(generator, 96), draw(generator, 32))
            for _ in range(40)
        ]
        p_values += [found.p_value for found in judge_draws(outputs)]
    assert np.mean(np.array(p_values) < 0.05) < 0.06
    assert min(p_values) > 0.05 / len(p_values) / 10


def call_pairs(candidate: Generator, count: int) -> list[tuple[Output, Output]]:
    """Return calls on inputs of different sizes, of noise added to the inputs."""
    generator = np.random.default_rng(5)
    pairs = []
    for call in range(count):
        noise = of("uniform", 64, 0.0, 1.0)
        pair = [call * draw(generator, 1)[0] for draw in (noise, candidate)]
        pairs.append((Output("float32", pair[0]), Output("float32", pair[1])))
    return pairs


def test_timed_calls_are_judged_as_well() -> None:
    right = judge_calls(call_pairs(of("uniform", 64, 0.0, 1.0), 48))
    assert right.p_value > LEVEL
    wrong = judge_calls(call_pairs(lambda _, count: np.ones((count, 64), "f4"), 48))
    assert wrong.p_value < LEVEL
    assert wrong.test.endswith("of timed calls")


def drawn(elements: npt.NDArray) -> Drawn:
    return Drawn("float32", elements.shape[1:], elements, 1)


def judged(
    eager: Sequence[Generator], candidate: Sequence[Generator], plan: DrawPlan
) -> tuple[Any, list[dict[str, Any]]]:
    generator = np.random.default_rng(7)
    firsts = [
        [Output("float32", draw(generator, 1)[0]) for draw in arm] for arm in (eager, candidate)
    ]
    rows = compare_outputs(*firsts)
    count = plan.count([output.elements.size for output in firsts[0]])
    ours = [drawn(draw(generator, count)) for draw in candidate] if count else None
    theirs = [drawn(draw(generator, count + FURTHER_DRAWS)) for draw in eager] if count else None
    verdict = judge_random_outputs(rows, [(firsts[0], firsts[1])], plan, ours, theirs)
    return verdict, rows


def steady(generator: np.random.Generator, count: int) -> npt.NDArray:
    del generator
    return np.ones((count, 5), np.float32)


def test_rows_of_random_outputs_hold_the_test_and_the_others_stay() -> None:
    plan = DrawPlan(1e6, (True, False))
    verdict, rows = judged([dropout(itself), steady], [dropout(itself), steady], plan)
    assert verdict.is_random
    assert verdict.undecidable_reason is None
    assert verdict.places == {0}
    assert (rows[0]["is_random"], rows[1]["is_random"]) == (True, False)
    assert rows[0]["null_t"] == rows[0]["constant_t"] == math.inf
    assert rows[0]["max_abs_error"] is None
    assert rows[1]["p_value"] is None
    verdict, rows = judged([dropout(itself), steady], [dropout(itself, rate=0.4), steady], plan)
    assert rows[0]["min_t"] == math.inf
    assert rows[0]["p_value"] < LEVEL
    (warning,) = verdict.warnings
    assert warning.startswith("random_output: output 0 ")


def test_too_much_work_allows_no_verdict() -> None:
    verdict, rows = judged([dropout(itself)], [dropout(itself)], DrawPlan(1e11, (True,)))
    assert verdict.is_random
    assert "too much work" in str(verdict.undecidable_reason)
    assert rows[0]["p_value"] is None


def test_noise_too_rare_to_be_seen_allows_no_verdict() -> None:
    eager = np.zeros((2 * 96 + 32, 4), np.float32)
    eager[5, 0] = 1.0
    draws = Draws("float32", (4,), eager[:96], eager[96:192], eager[192:])
    assert judge_draws([draws])[0].p_value > LEVEL
    assert judge_draws([stored_draw(draws)])[0].p_value > LEVEL


def test_the_number_of_draws_follows_from_counts_alone() -> None:
    assert [CHEAP.count([size]) for size in (1, 16, 4096)] == [4224, 384, 128]
    costly = dataclasses.replace(CHEAP, work=1e9)
    assert costly.count([1]) == 128
    assert dataclasses.replace(CHEAP, work=1.5e10).count([1]) == 66
    assert dataclasses.replace(CHEAP, work=2e10).count([1]) == 0
    assert DrawPlan(1e6, (False, True)).count([1, 4096]) == 128
    assert elements_per_draw(128) == 2**13


NORMALIZED = Sample(
    "example/normalized",
    "torch",
    "other",
    (
        Input("input", Value("float32", (8, 64)), statistics=Statistics(0.0, 1.0)),
        *[Input("buffer", Value("float32", (64,)), statistics=Statistics(1.0, 0.0))] * 2,
        Input("buffer", Value("int64", ()), statistics=Statistics(0.0, 0.0, 0.0, 0.0)),
    ),
    (
        Op("torch.Tensor.add_", (Ref(3), 1)),
        Op("torch.nn.functional.dropout", (Ref(0), 0.5)),
        Op(
            "torch.nn.functional.batch_norm",
            (Ref(5), Ref(1), Ref(2), None, None, True, 0.1, 1e-5),
        ),
    ),
    Ref(6),
)
"""Dropout before batch normalization, whose statistics depend on the draw but whose counter does
not."""


@pytest.mark.torch
@pytest.mark.parametrize("weights", ["inputs", "parameters"])
def test_a_counter_that_a_graph_writes_to_asks_for_no_further_draws(
    weights: Literal["inputs", "parameters"],
) -> None:
    import torch

    from graphnet_datasets.benchmark.child.arms import Arm, Workload
    from graphnet_datasets.benchmark.child.draws import complete_plan
    from graphnet_datasets.frameworks.torch.runtime import TorchRuntime

    with torch.enable_grad():  # restores the mode, which the runtime turns off
        runtime = TorchRuntime("cpu", torch.get_num_threads())
    workload = Workload(
        runtime,
        NORMALIZED,
        device="cpu",
        weights=weights,
        mode="replay",
        seed=3,
    )
    workload.note_writes()
    messages: list[dict[str, Any]] = []

    class Reporter:
        send = staticmethod(messages.append)

    plan = plan_draws({"num_ops": 3}, NORMALIZED)
    complete = complete_plan(plan, workload, Reporter())  # type: ignore[arg-type]
    assert complete is not None
    assert complete.outputs == (True, True, True, False)
    arm = Arm(workload, workload.module)
    arm.prepare(0)
    arm()
    sizes = [math.prod(shape) for _, shape, _ in runtime.excerpt(arm.results(), None)]
    assert sizes == [512, 64, 64, 1]
    assert complete.count(sizes) == 192

    outcome = Outcome(Ending.FINISHED, "run", messages, None, 0, "", 0, 1.0, {"run": 1.0}, 0, 0)
    assert messages[0].keys() == {WRITTEN}
    assert Run(empty_run(), outcome, plan=plan).plan == complete
