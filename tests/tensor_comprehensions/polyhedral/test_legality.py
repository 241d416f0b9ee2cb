"""Schedules that break a dependence are refused."""

from __future__ import annotations

import dataclasses

import pytest

from benchmarks.tc import paper
from graphnet_datasets.errors import IllegalScheduleError
from graphnet_datasets.tensor_comprehensions.compiling import generate
from graphnet_datasets.tensor_comprehensions.options import Options

from ..kernels import instance_of

pytest.importorskip("islpy", reason="needs islpy (extra tc)")

from graphnet_datasets.tensor_comprehensions.polyhedral import (
    Loop,
    Nested,
    Schedule,
    StatementSchedule,
    check_schedule,
    dependences,
    domains,
)

CHAIN = "def f(float(N) A) -> (B, C) { B(i) = A(i) C(i) = B(i) + B(i + 1) }"
SUM = "def f(float(N,K) A) -> (B) { B(i) +=! A(i,k) }"


def schedule(source: str, parallel: int = 0, **times: tuple[str, ...]) -> None:
    """Check a schedule of one nest: a time for each statement."""
    shapes = ((9,),) if source == CHAIN else ((5, 4),)
    model = domains(instance_of(source, *shapes))
    indices = {"I0": ("i0",), "S0": ("i0",), "S1": ("i0",)}
    if source == SUM:
        indices["S0"] = ("i0", "i1")
    bounds = {name: _bounds(source, name) for name in times}
    statements = tuple(
        StatementSchedule(name, indices[name], bounds[name], time) for name, time in times.items()
    )
    width = max(map(len, times.values()))
    nest = Nested(tuple(Loop(f"t{each}", "loop") for each in range(width)), statements, parallel)
    check_schedule(model, dependences(model), Schedule((nest,)))


def _bounds(source: str, name: str) -> str:
    if source == CHAIN:
        return "0 <= i0 < 9" if name == "S0" else "0 <= i0 < 8"
    return "0 <= i0 < 5 and 0 <= i1 < 4" if name == "S0" else "0 <= i0 < 5"


def test_the_order_of_the_text_is_legal() -> None:
    schedule(CHAIN, S0=("0", "i0"), S1=("1", "i0"))


def test_a_shift_makes_fusion_legal() -> None:
    schedule(CHAIN, S0=("i0", "0"), S1=("i0 + 1", "1"))


def test_fusion_without_a_shift_is_illegal() -> None:
    with pytest.raises(IllegalScheduleError, match="no later than a point it depends on"):
        schedule(CHAIN, S0=("i0", "0"), S1=("i0", "1"))


def test_the_shifted_loop_is_not_parallel() -> None:
    with pytest.raises(IllegalScheduleError, match="in different threads"):
        schedule(CHAIN, 1, S0=("i0", "0"), S1=("i0 + 1", "1"))


def test_terms_of_a_sum_may_come_in_any_order_after_its_start() -> None:
    schedule(SUM, 1, I0=("i0", "0", "0"), S0=("i0", "1", "-i1"))
    with pytest.raises(IllegalScheduleError, match="no later than a point"):
        schedule(SUM, I0=("i0", "2", "0"), S0=("i0", "1", "i1"))
    with pytest.raises(IllegalScheduleError, match="in different threads"):
        schedule(SUM, 1, I0=("0", "i0", "0"), S0=("1", "i0", "i1"))


def test_points_left_out_or_run_twice_are_found() -> None:
    with pytest.raises(IllegalScheduleError, match="omits points"):
        schedule(CHAIN, S0=("0", "i0"))


def test_each_kernel_of_the_paper_has_a_legal_schedule_under_each_strategy() -> None:
    for kernel in paper.kernels():
        if kernel.size not in ("128,1024,1024", "d32", "128", "4,512,12,12", "32,32,32", "8,28"):
            continue
        instance = instance_of(kernel.source, *kernel.shapes)
        for strategy in ("max", "preserve3", "min"):
            made = generate(instance, Options(threads=2).with_fusion(strategy))
            assert "parallel" in str(made.schedule)


def test_a_spoilt_schedule_of_a_real_kernel_is_refused() -> None:
    """Each member of the tuple that orders phases or blocks matters: reversing it is illegal."""
    instance = instance_of(paper.MLP1, (16, 700), (700, 40), (40,))
    model = domains(instance)
    needed = dependences(model)
    made = generate(instance, Options(threads=1))
    check_schedule(model, needed, made.schedule)
    (nest,) = made.schedule.nests
    phase = next(place for place, each in enumerate(nest.loops) if each.kind == "phase")
    spoilt = tuple(
        dataclasses.replace(
            each,
            time=tuple(
                f"-({value})" if place == phase else value for place, value in enumerate(each.time)
            ),
        )
        for each in nest.statements
    )
    with pytest.raises(IllegalScheduleError):
        check_schedule(model, needed, Schedule((dataclasses.replace(nest, statements=spoilt),)))
