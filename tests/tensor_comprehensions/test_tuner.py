"""The search for options, on a small product."""

from __future__ import annotations

import json
import random
from pathlib import Path

import numpy as np
import pytest

from graphnet_datasets.errors import TensorComprehensionError
from graphnet_datasets.tensor_comprehensions.codegen import toolchain
from graphnet_datasets.tensor_comprehensions.language import Instance
from graphnet_datasets.tensor_comprehensions.options import Options
from graphnet_datasets.tensor_comprehensions.tuner import (
    Candidate,
    TunerConfig,
    TuningResult,
    autotune,
)
from graphnet_datasets.tensor_comprehensions.tuner.curve import plot_curve
from graphnet_datasets.tensor_comprehensions.tuner.evaluation import Evaluator
from graphnet_datasets.tensor_comprehensions.tuner.genetic import next_generation
from graphnet_datasets.tensor_comprehensions.tuner.space import space_of

from .kernels import inputs_of, instance_of

pytest.importorskip("islpy", reason="needs islpy (extra tc)")

GENERATOR = random.Random(0)  # noqa: S311
SMALL = TunerConfig(population=4, generations=2, elites=1, num_runs=3, seed=1)


@pytest.fixture(scope="module")
def product() -> Instance:
    return instance_of(
        "def f(float(M,K) A, float(N,K) B) -> (C) { C(m,n) +=! A(m,k)*B(n,k) }", (24, 40), (33, 40)
    )


def test_search_finds_options_and_goes_on_from_its_log(product: Instance, tmp_path: Path) -> None:
    log, seen = tmp_path / "log.jsonl", []
    inputs = inputs_of(product)
    result = autotune(
        product, inputs, start=[Options(threads=1)], config=SMALL, log=log, progress=seen.append
    )
    assert len(result.candidates) == len(seen) == 8
    assert result.candidates[0].options == Options(threads=1)
    assert seen[-1].best_ms == min(each.median_ms for each in result.candidates)
    assert result.best.median_ms == min(each.median_ms for each in result.finalists)
    assert all(options.threads == 1 for options in (each.options for each in result.candidates))
    curve = [best for _, best in result.curve()]
    assert curve == sorted(curve, reverse=True)
    plot_curve(result, tmp_path / "curve.svg", "a product")
    assert (tmp_path / "curve.svg").read_text().startswith("<?xml")

    with log.open("a") as file:
        file.write('{"options": {')  # a line that was cut off
    again = autotune(product, inputs, start=[Options(threads=1)], config=SMALL, log=log)
    assert [each.times_ms for each in again.candidates] == [
        each.times_ms for each in result.candidates
    ]


def test_wrong_and_crashing_and_hanging_code_is_no_candidate(
    product: Instance, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = TunerConfig(population=1, generations=1, elites=0, num_runs=2, timeout_s=5.0)
    real = toolchain.compile_payload
    bodies = {
        1: "((float *)a[2])[5] = 1e6f;",
        2: "*(volatile int *)0 = 1;",
        3: "for (volatile int i = 0; ; ) ;",
    }

    def spoil(program, compiler, extra_flags, source):
        number = next(n for n in bodies if f"spoilt {n}" in source.read_text())
        source.write_text(f"void tc_kernel(void *const *a, long nt) {{ {bodies[number]} }}")
        return real(program, compiler, extra_flags, source)

    from graphnet_datasets.tensor_comprehensions.tuner import evaluation

    monkeypatch.setattr(evaluation, "compile_payload", spoil)
    generate = evaluation.generate

    def mark(instance: Instance, options: Options):
        import dataclasses

        made = generate(instance, options)
        source = f"{made.program.source}// spoilt {options.unroll} {random.random()}\n"  # noqa: S311
        return dataclasses.replace(made, program=dataclasses.replace(made.program, source=source))

    monkeypatch.setattr(evaluation, "generate", mark)
    with Evaluator(product, inputs_of(product), config) as evaluator:
        options = [Options(unroll=number, threads=1) for number in bodies]
        found = [each.error for each in evaluator.evaluate(options, float("inf"))]
    assert "differs by" in found[0]
    assert found[1].startswith("crash during the run")
    assert found[2].startswith("timeout during the run")


def test_children_take_their_options_from_parents(product: Instance) -> None:
    space = space_of(product)
    config = TunerConfig(population=6, elites=2, mutation=0.0, min_valid=1)
    tried = [
        Candidate(Options(k_block=128, pack="never"), (1.0,)),
        Candidate(Options(k_block=256, pack="always"), (2.0,)),
        Candidate(Options(k_block=1024), error="it crashed"),
    ]
    following = next_generation(space, tried, config, GENERATOR)
    assert following[:2] == [tried[0].options, tried[1].options]
    assert {each.k_block for each in following} <= {128, 256}
    assert {each.pack for each in following} <= {"never", "always"}


def test_too_few_that_ran_are_replaced_but_the_best(product: Instance) -> None:
    tried = [Candidate(Options(k_block=256), (1.0,)), Candidate(Options(), error="no")]
    following = next_generation(space_of(product), tried, TunerConfig(), GENERATOR)
    assert following[0] == tried[0].options
    assert len(set(following)) == 12


def test_a_budget_ends_the_search(product: Instance) -> None:
    config = TunerConfig(population=4, generations=500, elites=1, num_runs=1, budget_s=0.5)
    result = autotune(product, inputs_of(product), start=[Options(threads=1)], config=config)
    assert 0 < len(result.candidates) < 2000
    assert json.dumps(result.options.to_dict())


def test_config_is_checked() -> None:
    with pytest.raises(TensorComprehensionError, match="`elites` is 7; it must be from 0 to half"):
        TunerConfig(elites=7)
    with pytest.raises(TensorComprehensionError, match="`mutation` is 2"):
        TunerConfig(mutation=2)
    assert np.isinf(Candidate(Options()).median_ms)


def test_a_lucky_measurement_does_not_win(product: Instance) -> None:
    """The finalists are timed again, beside what the search began with."""
    config = TunerConfig(population=3, generations=1, elites=1, num_runs=3, num_finalists=1)
    result = autotune(product, inputs_of(product), config=config)
    first = next(each for each in result.candidates if each.times_ms)
    hashes = {each.source_hash for each in result.finalists}
    assert first.source_hash in hashes
    assert len(hashes) <= 2
    assert all(len(each.times_ms) == 6 for each in result.finalists)
    assert result.best in result.finalists
    lucky = Candidate(Options(unroll=8), (1e-9,), source_hash="lucky")
    ranked = TuningResult((lucky, *result.candidates), 1.0, result.finalists).ranked()
    assert "lucky" not in {each.source_hash for each in ranked}
    assert ranked[0] == result.best
