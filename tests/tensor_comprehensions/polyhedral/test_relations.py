"""Definitions whose dependences would take too long: kept apart, checked alone, or refused."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from graphnet_datasets.errors import IllegalScheduleError, SchedulingLimitError
from graphnet_datasets.tensor_comprehensions.codegen.toolchain import compile_object
from graphnet_datasets.tensor_comprehensions.compiling import FusionWarning, generate
from graphnet_datasets.tensor_comprehensions.kernel import Kernel
from graphnet_datasets.tensor_comprehensions.language.interpreter import interpret
from graphnet_datasets.tensor_comprehensions.options import Options

from ..kernels import inputs_of, instance_of

pytest.importorskip("islpy", reason="needs islpy (extra tc)")

from graphnet_datasets.tensor_comprehensions.polyhedral import Schedule, relations
from graphnet_datasets.tensor_comprehensions.polyhedral.isl import isl, limited

STEPS = "\n".join(f"T(i, j) += A(i, k) * B(k, j) * {number}.0" for number in range(12))
MANY = f"def f(float(N, N) A, float(N, N) B) -> (T) {{ T(i, j) = A(i, j) {STEPS} }}"
ONE = Options(threads=1)


def test_statements_stay_apart_where_dependences_take_too_long() -> None:
    instance = instance_of(MANY, (9, 9), (9, 9))
    assert len(generate(instance, ONE.with_fusion("max")).schedule.nests) < 13
    with pytest.warns(FusionWarning, match="^The 13 statements of `f` are not fused"):
        made = generate(instance, ONE.with_fusion("max"), max_operations=30_000)
    assert len(made.schedule.nests) == 13
    with pytest.raises(SchedulingLimitError, match="several statements with fewer indices"):  # noqa: SIM117
        with pytest.warns(FusionWarning):
            generate(instance, ONE, max_operations=10)


def test_statements_that_stay_apart_compute_the_same() -> None:
    instance = instance_of(MANY, (9, 9), (9, 9))
    with pytest.warns(FusionWarning):
        made = generate(instance, ONE, max_operations=30_000)
    path = compile_object(made.program)
    inputs = inputs_of(instance)
    kernel = Kernel(instance, ONE, made.program.source, made.schedule, path, made.threads)
    for found, wanted in zip(
        kernel(*inputs), interpret(instance, inputs, float64=True), strict=True
    ):
        np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-3)


def test_hundreds_of_statements_on_one_tensor_end() -> None:
    steps = "\n".join(f"T(i) += A(i) * {number}.0" for number in range(250))
    instance = instance_of(f"def f(float(N) A) -> (T) {{ T(i) = A(i) {steps} }}", (5,))
    with pytest.warns(FusionWarning, match="exceeds 3000000 isl operations"):
        made = generate(instance, ONE, max_operations=3_000_000)
    assert len(made.schedule.nests) == 251


def test_schedules_are_checked_statement_by_statement_too() -> None:
    instance = instance_of(MANY, (9, 9), (9, 9))
    needed = relations(instance, is_whole=False)
    schedule = generate(instance, ONE.with_fusion("min")).schedule
    needed.check(schedule)
    swapped = (schedule.nests[1], schedule.nests[0], *schedule.nests[2:])
    with pytest.raises(IllegalScheduleError, match="Statement 1 would run before statement 0"):
        needed.check(Schedule(swapped))
    together = dataclasses.replace(
        schedule.nests[0],
        statements=(*schedule.nests[0].statements, *schedule.nests[1].statements),
    )
    with pytest.raises(IllegalScheduleError, match=r"Statements \[0, 1\] share loops"):
        needed.check(Schedule((together, *schedule.nests[2:])))
    with pytest.raises(IllegalScheduleError, match="omits points"):
        needed.check(Schedule(schedule.nests[1:]))


def test_a_reduction_alone_must_start_before_it_sums() -> None:
    instance = instance_of("def f(float(N, K) A) -> (B) { B(i) +=! A(i, k) }", (5, 4))
    (nest,) = generate(instance, ONE).schedule.nests
    phase = next(place for place, each in enumerate(nest.loops) if each.kind == "phase")
    spoilt = tuple(
        dataclasses.replace(
            each, time=(*each.time[:phase], f"-({each.time[phase]})", *each.time[phase + 1 :])
        )
        for each in nest.statements
    )
    with pytest.raises(IllegalScheduleError, match="no later than a point"):
        relations(instance, is_whole=False).check(
            Schedule((dataclasses.replace(nest, statements=spoilt),))
        )


def test_isl_is_not_limited_afterwards() -> None:
    with pytest.raises(SchedulingLimitError), limited(1):
        isl().UnionMap("{ S[i] -> [i] : 0 <= i < 9 }").lexmin()
    assert isl().DEFAULT_CONTEXT.get_max_operations() == 0
