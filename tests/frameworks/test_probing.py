"""One walk over shapes at several sizes at once, in both frameworks."""

from __future__ import annotations

import pytest

from graphnet_datasets import Sample
from graphnet_datasets.frameworks.probing import probe
from graphnet_datasets.sample import Input, Op, Symbol, Value
from graphnet_datasets.sample.arguments import ListArg, Ref

FRAMEWORKS = ["torch", pytest.param("paddle", marks=pytest.mark.paddle)]
POINTS = [{"n": 4}, {"n": 6}, {"n": 10}]


def reshape(framework: str, *sizes: int) -> Op:
    target = {"torch": "torch.reshape", "paddle": "paddle._C_ops.reshape"}[framework]
    return Op(target, (Ref(0), ListArg(sizes)))


def whole(framework: str) -> Sample:
    return Sample(
        "test/whole",
        framework,  # type: ignore[arg-type]
        "other",
        (Input("input", Value("float32", ("n", 3))),),
        (reshape(framework, 12),),
        (Ref(1),),
        (Symbol("n", 4),),
    )


@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_a_literal_fits_where_it_does(framework: str) -> None:
    with probe(whole(framework), POINTS) as prober:
        outcomes = prober.call([reshape(framework, 12)] * 3)
        assert [outcome.kind for outcome in outcomes] == ["known", "failed", "failed"]
        assert "12" in outcomes[1].error
        outcomes = prober.call([reshape(framework, 3 * sizes["n"]) for sizes in POINTS])
        assert [outcome.values[0].shape for outcome in outcomes] == [(12,), (18,), (30,)]
        prober.keep(outcomes)
        assert prober.rewind(0) == 0
        outcomes = prober.call([reshape(framework, -1, 3)] * 3)
        assert [outcome.values[0].shape for outcome in outcomes] == [(4, 3), (6, 3), (10, 3)]


@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_failures_at_the_captured_sizes_are_unknown(framework: str) -> None:
    with probe(whole(framework), POINTS) as prober:
        outcomes = prober.call([reshape(framework, 7)] * 3)
        assert [outcome.kind for outcome in outcomes] == ["unknown"] * 3
        prober.keep(outcomes)
        relu = {"torch": "torch.relu", "paddle": "paddle._C_ops.relu"}[framework]
        (first, *_) = prober.call([Op(relu, (Ref(1),))] * 3)
        assert first.kind == "unknown"


def test_state_is_changed_once_for_all_points() -> None:
    from graphnet_datasets.sample.arguments import Named

    autocast = "torch.amp.autocast_mode"
    sample = Sample(
        "test/autocast",
        "torch",
        "other",
        (Input("input", Value("float32", ("n", 3))),),
        (
            Op(f"{autocast}._enter_autocast", ("cpu", Named("dtype", "bfloat16"), True, None)),
            Op("torch.matmul", (Ref(0), Ref(0))),
            Op(f"{autocast}._exit_autocast", (Ref(1),)),
        ),
        (Ref(2),),
        (Symbol("n", 3),),
    )
    import torch

    with probe(sample, [{"n": 3}, {"n": 3}]) as prober:
        for op in sample.ops:
            outcomes = prober.call([op] * 2)
            prober.keep(outcomes)
            if op.target == "torch.matmul":
                assert [each.values[0].dtype for each in outcomes] == ["bfloat16"] * 2
        assert not prober.can_rewind and prober.rewind(2) == 0
    assert not torch.is_autocast_enabled("cpu")
