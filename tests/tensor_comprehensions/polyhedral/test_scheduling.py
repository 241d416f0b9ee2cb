"""What isl's scheduler and code generator say of our statements and schedules."""

from __future__ import annotations

import re

import pytest

from benchmarks.tc import paper
from graphnet_datasets.tensor_comprehensions.compiling import generate
from graphnet_datasets.tensor_comprehensions.options import Options

from ..kernels import instance_of

pytest.importorskip("islpy", reason="needs islpy (extra tc)")

from graphnet_datasets.tensor_comprehensions.polyhedral import (
    Dependences,
    as_loops,
    domains,
    parallel_loops,
    relations,
)
from graphnet_datasets.tensor_comprehensions.polyhedral.isl import isl


def test_isl_finds_every_loop_parallel_that_we_share_out() -> None:
    """Each statement of the paper's kernels, alone, may run all its output indices in parallel."""
    for kernel in paper.kernels():
        if kernel.size not in ("128,256,32", "d1", "128", "4,512,12,12", "32,32,32", "8,28"):
            continue
        instance = instance_of(kernel.source, *kernel.shapes)
        found = relations(instance).parallel_loops()
        ranks = {n: len(each.subscripts) for n, each in enumerate(instance.statements)}
        assert found == ranks, kernel.label


def test_only_common_facts_of_all_statements_are_used() -> None:
    source = "def f(float(N, K) A) -> (B) { B(i) = 0.0 where i in 0:N B(i) += A(i, k) }"
    instance = instance_of(source, (5, 4))
    assert relations(instance).parallel_loops() == {0: 1, 1: 1}
    assert relations(instance, is_whole=False).parallel_loops() == {}


def test_a_loop_that_carries_a_dependence_is_not_parallel() -> None:
    """No statement of the language has such a loop, so one is made by hand."""
    instance = instance_of("def f(float(N, M) A) -> (B) { B(i, j) = A(i, j) }", (5, 4))
    model = domains(instance)
    step = isl().UnionMap("{ S0[i0, i1] -> S0[i0, 1 + i1] : 0 <= i0 <= 4 and 0 <= i1 <= 2 }")
    nothing = isl().UnionMap("{ }")
    assert parallel_loops(model, Dependences(nothing, nothing)) == {0: 2}
    assert parallel_loops(model, Dependences(step, nothing)) == {0: 1}


def test_a_schedule_is_shown_as_loops() -> None:
    source = "def f(float(N, K) A) -> (B) { B(i) +=! A(i, k) B(i) = B(i) * 2 }"
    instance = instance_of(source, (5, 4))
    made = generate(instance, Options(threads=1, backend="scalar"))
    text = as_loops(domains(instance), made.schedule)
    calls = re.findall(r"([IS]\d)\(", text)
    assert calls == ["I0", "S0", "S1"]
    assert text.count("for (int") == 2
    assert "<= 4" in text
    assert "<= 3" in text
