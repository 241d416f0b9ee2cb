"""Allocators on curves that are known: who spends slots where they gain."""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Sequence

import numpy as np
import pytest

from graphnet_datasets.errors import TuningError
from graphnet_datasets.tuning import (
    Measurement,
    Origin,
    Task,
    TaskAllocator,
    TrialStatus,
    make_allocator,
)
from graphnet_datasets.tuning.allocators.dynatune import (
    TYPICAL_DECAY,
    TYPICAL_GAIN,
    DynaTune,
    believed_gain,
)
from graphnet_datasets.tuning.allocators.gradient import GradientAllocator

from .toy import make_task

NAMES = ("round-robin", "gradient", "dynatune")


def rows_of(task: Task, latency: float, seconds: float = 1.0) -> list[Measurement]:
    if math.isinf(latency):
        return [Measurement(task.task_id, "[]", Origin.RANDOM, TrialStatus.CRASH)]
    return [
        Measurement(task.task_id, "[]", Origin.RANDOM, TrialStatus.OK, (latency,), trial_s=seconds)
    ]


def synthetic(seed: int) -> tuple[list[Task], list[np.ndarray], list[float]]:
    """Ten tasks: weights over two orders, curves that saturate soon or late, any lengths."""
    rng = np.random.default_rng(seed)
    tasks = [
        make_task(8, 8, 8 + index, count=int(10 ** rng.uniform(0, 2)), family=f"f{index}")
        for index in range(10)
    ]
    slots = np.arange(1, 200)
    curves = []
    for _ in tasks:
        floor, drop = rng.uniform(0.5, 3), 10 ** rng.uniform(-0.5, 1.0)
        rate = 10 ** rng.uniform(-1.5, 0.3)
        smooth = floor + drop * (
            slots**-rate if rng.random() < 0.5 else np.exp(-rate * (slots - 1))
        )
        # best so far goes down in steps
        curves.append(np.minimum.accumulate(smooth * np.exp(rng.normal(0, 0.02, len(slots)))))
    return tasks, curves, list(rng.uniform(0.5, 2.0, len(tasks)))


def excess_area(
    allocator: TaskAllocator, tasks: list[Task], curves: list[np.ndarray], lengths: Sequence[float]
) -> float:
    """The area between sum of w * L and its floor, over 100 seconds behind the warm-up."""
    index = {task.task_id: position for position, task in enumerate(tasks)}
    used = [0] * len(tasks)
    latency = [curve[0] for curve in curves]
    weights = [task.weight for task in tasks]
    floor = sum(w * curve[-1] for w, curve in zip(weights, curves, strict=True))
    area = seconds = 0.0
    while seconds < 100:
        slot = allocator.next()
        assert slot is not None
        position = index[slot.task.task_id]
        value = float(curves[position][used[position]])
        used[position] += 1
        allocator.observe(slot.task, rows_of(slot.task, value, lengths[position]))
        is_warm_up = used[position] == 1
        if not is_warm_up:
            total = sum(w * each for w, each in zip(weights, latency, strict=True))
            area += lengths[position] * (total - floor)
            seconds += lengths[position]
        latency[position] = min(latency[position], value)
    return area


def test_dynatune_and_the_gradient_regret_less_than_round_robin() -> None:
    areas = {name: [] for name in NAMES}
    for seed in range(8):
        tasks, curves, lengths = synthetic(seed)
        for name in NAMES:
            allocator = make_allocator(name, tasks, seed=seed, options={"slot_trials": 1})
            areas[name].append(excess_area(allocator, tasks, curves, lengths))
    ratio = {name: float(np.median(np.array(areas[name]) / areas["round-robin"])) for name in NAMES}
    assert ratio["dynatune"] < 0.75
    assert ratio["gradient"] < 0.9


def test_dynatune_lets_small_tasks_wait_and_forgets_none() -> None:
    tasks, _, _ = synthetic(0)
    small = dataclasses.replace(tasks[0], task_id="0" * 32, flops=1, bytes=1)
    allocator = make_allocator("dynatune", [small, *tasks])
    slots = 3 * len(tasks)
    seen = []
    for number in range(slots):
        allocator.reserve((slots - number) * allocator.slot_trials)
        slot = allocator.next()
        assert slot is not None
        seen.append(slot.task.task_id)
        allocator.observe(slot.task, rows_of(slot.task, 10.0 / (1 + seen.count(seen[-1]))))
    assert seen.index(small.task_id) == slots - 1  # the last that the budget had
    assert set(seen) == {small.task_id, *(task.task_id for task in tasks)}


def test_dynatune_weighs_the_typical_gain_by_half() -> None:
    steep, flat = [8.0, 4.0, 2.0, 1.5], [1.5, 1.5, 1.5, 1.5]
    tasks = [make_task(8, 8, size) for size in (8, 16)]
    allocator = DynaTune(tasks, slot_trials=1, exploration=0.0)
    for values in zip(steep, flat, strict=True):
        for task, value in zip(tasks, values, strict=True):
            allocator.observe(task, rows_of(task, value))
    typical = 1.5 * TYPICAL_GAIN * 4**-TYPICAL_DECAY
    for index, curve in enumerate((steep, flat)):
        own, _ = believed_gain(curve)
        expected = tasks[index].weight * (own + typical) / 2
        assert allocator.bound(index) == pytest.approx(expected)
    assert (
        1
        < allocator.bound(0) / allocator.bound(1)
        < believed_gain(steep)[0] / believed_gain(flat)[0]
    )


def test_dynatune_refuses_an_invalid_share() -> None:
    with pytest.raises(TuningError, match="`own_share` must be from 0 to 1"):
        DynaTune([make_task(8, 8, 8)], own_share=1.5)


@pytest.mark.parametrize("name", [name for name in NAMES if name != "dynatune"])
def test_each_task_has_a_slot_before_any_has_two(name: str) -> None:
    tasks, curves, _ = synthetic(0)
    allocator = make_allocator(name, tasks)
    seen = []
    for _ in tasks:
        slot = allocator.next()
        assert slot is not None
        assert slot.trials == 8
        seen.append(slot.task.task_id)
        allocator.observe(slot.task, rows_of(slot.task, 1.0))
    assert seen == [task.task_id for task in tasks]
    assert len(curves) == len(seen)


@pytest.mark.parametrize("name", NAMES)
def test_a_dropped_task_gets_nothing_and_a_state_goes_on(name: str) -> None:
    tasks, curves, lengths = synthetic(1)
    first = make_allocator(name, tasks, seed=4)
    used = dict.fromkeys((task.task_id for task in tasks), 0)
    index = {task.task_id: position for position, task in enumerate(tasks)}

    def step(allocator: TaskAllocator, counts: dict[str, int]) -> str:
        slot = allocator.next()
        assert slot is not None
        key = slot.task.task_id
        value = math.inf if index[key] == 3 else float(curves[index[key]][counts[key]])
        allocator.observe(slot.task, rows_of(slot.task, value, lengths[index[key]]))
        counts[key] += 1
        return key

    for _ in range(14):
        step(first, used)
    first.drop(tasks[3])
    second = make_allocator(name, tasks, seed=9)
    state = json.loads(json.dumps(first.state(), allow_nan=False))
    second.restore(state)
    second.seed = 4  # type: ignore[attr-defined]
    counts = dict(used)
    taken = [step(first, used) for _ in range(20)]
    assert taken == [step(second, counts) for _ in range(20)]
    assert tasks[3].task_id not in taken
    for task in tasks:
        first.drop(task)
    assert first.next() is None
    with pytest.raises(TuningError, match="belongs to other tasks"):
        make_allocator(name, tasks[:4]).restore(state)
    with pytest.raises(TuningError, match="is invalid: KeyError: 'trials'"):
        second.restore({key: each for key, each in state.items() if key != "trials"})
    with pytest.raises(TuningError, match="lacks entries for some of 10 tasks"):
        second.restore({**state, "curves": state["curves"][:3]})


def test_the_gradient_is_the_formula_of_the_paper() -> None:
    tasks = [make_task(64, 64, 64, count=3), make_task(128, 64, 64)]
    allocator = GradientAllocator(tasks, alpha=0.2, beta=2.0, window=3, epsilon=0.0)
    for value in (10.0, 8.0, 7.0, 6.0, 5.0):
        allocator.observe(tasks[0], rows_of(tasks[0], value))
    allocator.observe(tasks[1], rows_of(tasks[1], 2.0))
    backward = (5.0 - 8.0) / 3
    # a similar task reaches 524288 / 2 flops a ms: twice this task's time at that speed is 4 ms
    forward = min(-5.0 / 5, 2 * tasks[0].flops / (tasks[1].flops / 2.0) - 5.0)
    assert allocator.gain(0) == pytest.approx(3 * abs(0.2 * backward + 0.8 * forward))
    alone = GradientAllocator(tasks, use_similarity=False)
    alone.observe(tasks[1], rows_of(tasks[1], 2.0))
    assert alone.gain(1) == pytest.approx(0.8 * 2.0)


def test_a_similar_fast_task_raises_the_hope_for_a_slow_one() -> None:
    slow, fast, other = make_task(64, 64, 64), make_task(64, 64, 128), make_task(9, 9, 9)
    other = make_task(64, 64, 64, family="softmax")
    allocator = GradientAllocator([slow, fast, other], epsilon=0.0)
    for _ in range(6):
        allocator.observe(slow, rows_of(slow, 10.0))
        allocator.observe(other, rows_of(other, 10.0))
    allocator.observe(fast, rows_of(fast, 1.0))
    assert allocator.gain(0) > 3 * allocator.gain(2)


def test_the_belief_follows_the_curve() -> None:
    slots = np.arange(1, 9)
    for curve in (5 + 20 * slots**-1.0, 5 + 20 * np.exp(-0.3 * (slots - 1))):
        mean, std = believed_gain(list(curve[:-1]))
        assert abs(mean - (curve[-2] - curve[-1])) < 3 * std
        assert 0 < std < curve[-2] - curve[-1] + 1.0
    flat, falling = believed_gain([5.0] * 6), believed_gain([10.0, 9.0, 8.0, 7.0, 6.0, 5.0])
    assert falling[0] > 5 * flat[0]
    few, many = believed_gain([9.0, 5.0]), believed_gain([9.0, 5.0, *[4.9] * 8])
    assert few[1] > many[1]
    # in its own unit
    scaled = believed_gain([9000.0, 5000.0])
    assert scaled == pytest.approx((few[0] * 1000, few[1] * 1000))


def test_invalid_allocators_are_refused() -> None:
    tasks = [make_task(8, 8, 8)]
    with pytest.raises(TuningError, match="Did you mean `dynatune`"):
        make_allocator("dynatun", tasks)
    with pytest.raises(TuningError, match="`slot_trials` must be at least 1"):
        make_allocator("gradient", tasks, options={"slot_trials": 0})
