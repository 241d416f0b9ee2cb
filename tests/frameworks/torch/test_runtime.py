"""What the worker does with modules of torch."""

from __future__ import annotations

import pytest
import torch

from graphnet_datasets import materialize
from graphnet_datasets.frameworks.torch.building.region_state import RestoringModule
from graphnet_datasets.frameworks.torch.runtime import make_runtime
from graphnet_datasets.sample import Input, Op, Sample, Value
from graphnet_datasets.sample.arguments import Ref


def sample(*ops: Op) -> Sample:
    """Return `x @ w + w`, or other operators on an input and a weight."""
    inputs = (
        Input("input", Value("float32", (3, 3))),
        Input("parameter", Value("float32", (3, 3))),
    )
    plain = (Op("torch.matmul", (Ref(0), Ref(1))), Op("operator.add", (Ref(2), Ref(1))))
    return Sample("example/copied", "torch", "other", inputs, ops or plain, Ref(3))


@pytest.mark.parametrize("count", [1, 2, 3])
@pytest.mark.parametrize("is_separate", [True, False])
def test_copies_compute_the_same_and_share_no_graph(count: int, is_separate: bool) -> None:
    runtime = make_runtime("cpu", torch.get_num_threads())
    module = materialize(sample(), weights="parameters")
    given = torch.arange(9.0).reshape(3, 3)
    expected = module(input_0=given)
    copies = runtime.copy_module(module, count, is_separate=is_separate)
    assert len(copies) == count
    assert len({id(each.graph) for each in copies}) == count
    weights = [runtime.tensors_of(each)["parameter_0"] for each in copies]
    assert len({id(each) for each in weights}) == count
    assert len({each.data_ptr() for each in weights}) == (count if is_separate else 1)
    assert all(torch.equal(each(input_0=given), expected) for each in copies)
    for node in list(copies[-1].graph.nodes):  # a compiler may rewrite what it is given
        if node.target is torch.matmul:
            node.target = torch.mul
    copies[-1].recompile()
    if count > 1:
        assert torch.equal(copies[0](input_0=given), expected)


def test_weights_that_share_memory_share_it_in_a_copy() -> None:
    runtime = make_runtime("cpu", torch.get_num_threads())
    module = materialize(sample(), weights="parameters")
    module.register_parameter("tied", module.parameter_0)
    module.register_buffer("part", module.parameter_0.detach()[1:])
    for each in runtime.copy_module(module, 2, is_separate=True):
        held = runtime.tensors_of(each)
        if "part" in held:  # what no node names stays with the module that was given
            assert each.tied is each.parameter_0
            assert held["part"].data_ptr() == held["parameter_0"].data_ptr() + 12


def test_copies_of_a_module_with_regions_are_alike() -> None:
    runtime = make_runtime("cpu", torch.get_num_threads())
    ops = (
        Op("torch._C._set_grad_enabled", (False,)),
        Op("torch.matmul", (Ref(0), Ref(1))),
        Op("torch._C._set_grad_enabled", (True,)),
    )
    module = materialize(sample(*ops), weights="parameters")
    assert isinstance(module, RestoringModule)
    copies = runtime.copy_module(module, 2, is_separate=True)
    assert {type(each).__base__ for each in copies} == {torch.fx.GraphModule}


def test_a_sample_that_is_known_to_fit_is_not_walked(monkeypatch: pytest.MonkeyPatch) -> None:
    from graphnet_datasets.frameworks.torch import materialize as building

    walked: list[str] = []
    check = building.check_memory

    def watched(each: Sample, *rest: object, **options: object) -> object:
        walked.append(each.id)
        return check(each, *rest, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(building, "check_memory", watched)
    for allowed in (True, False):
        materialize(sample(), allow_unchecked_operators=allowed, is_known_to_fit=True)
        assert len(walked) == (not allowed)  # what is checked in any process always is
