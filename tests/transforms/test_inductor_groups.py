"""Groups that TorchInductor makes one kernel of: read from its scheduler, nothing is compiled."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest
import torch

from graphnet_datasets import Sample
from graphnet_datasets.errors import TransformError, UncheckedOperatorError
from graphnet_datasets.frameworks import find_fused
from graphnet_datasets.sample import Input, Op, Value
from graphnet_datasets.sample.arguments import Ref
from graphnet_datasets.transforms import Cutter
from graphnet_datasets.transforms.inductor_groups import find_cuda_groups, find_inductor_groups
from graphnet_datasets.transforms.parts import make_parts, open_cutter

X = Input("input", Value("float32", (64, 64)))
TWO = Input("scalar", Value("int64", ()), data=(2).to_bytes(8, "little"))


def graph(*ops: Op, inputs: tuple[Input, ...] = (X,), outputs: Any = None) -> Sample:
    outputs = (Ref(len(inputs) + len(ops) - 1),) if outputs is None else outputs
    return Sample("test/whole", "torch", "other", inputs, ops, outputs)


EPILOGUE = graph(
    Op("torch.exp", (Ref(0),)),
    Op("torch.mul", (Ref(2), Ref(1))),
    Op("torch.matmul", (Ref(3), Ref(0))),
    Op("torch.relu", (Ref(4),)),
    Op("torch.Tensor.t", (Ref(5),)),
    Op("torch.add", (Ref(6), 1)),
    inputs=(X, TWO),
)


def test_groups_are_those_of_the_scheduler() -> None:
    """A product is a call into a library on a CPU; numbers of the capture are no inputs."""
    fusion = find_fused(EPILOGUE)
    assert (fusion.compiler, fusion.version, fusion.device) == (
        "inductor",
        torch.__version__,
        "cpu",
    )
    assert [(each.ops, each.is_extern) for each in fusion.kernels] == [
        ((0, 1), False),
        ((2,), True),
        ((3, 4, 5), False),
    ]
    assert find_inductor_groups(Cutter(EPILOGUE)) == [(0, 1), (3, 4, 5)]


def test_an_operator_computed_again_is_in_both_groups() -> None:
    sample = graph(
        Op("torch.exp", (Ref(0),)),
        Op("torch.abs", (Ref(1),)),
        Op("torch.Tensor.t", (Ref(1),)),
        Op("torch.matmul", (Ref(2), Ref(3))),
    )
    kernels = [each.ops for each in find_fused(sample).kernels]
    assert (0, 1) in kernels


def test_an_operator_in_several_kernels_belongs_to_the_one_that_finishes_it() -> None:
    images = Input("input", Value("float32", (2, 8, 16, 16)))
    sample = graph(
        Op("torch.exp", (Ref(0),)),
        Op("torch.nn.functional.group_norm", (Ref(1), 2)),
        Op("torch.relu", (Ref(2),)),
        inputs=(images,),
    )
    kernels = find_fused(sample).kernels
    assert [1 in each.split_ops for each in kernels][-1] is False
    assert any(1 in each.split_ops for each in kernels)
    assert {1, 2} <= set(kernels[-1].ops)
    (group,) = find_inductor_groups(Cutter(sample))
    assert {1, 2} <= set(group)


def test_parts_of_the_groups_are_samples() -> None:
    parts = [
        each for each in make_parts(open_cutter(EPILOGUE), "inductor") if isinstance(each, Sample)
    ]
    assert [part.provenance.parent_ops for part in parts] == [(0, 1), (3, 4, 5)]


def test_a_graph_of_another_framework_is_refused() -> None:
    cutter = Cutter(EPILOGUE)
    cutter.sample = dataclasses.replace(EPILOGUE, framework="paddle")
    with pytest.raises(TransformError, match="which TorchInductor does not compile"):
        find_inductor_groups(cutter)


def test_unchecked_operators_stay_unchecked() -> None:
    sample = graph(Op("torch.ops.aten._fft_c2c.default", (Ref(0), (1,), 0, True)))
    with pytest.raises(UncheckedOperatorError):
        find_fused(sample)


def test_a_gpu_that_is_not_there_is_refused() -> None:
    if torch.cuda.is_available():
        pytest.skip("there is a GPU here")
    with pytest.raises(TransformError, match="There is no GPU here"):
        find_cuda_groups(Cutter(EPILOGUE))


@pytest.mark.gpu
def test_groups_on_a_gpu_hold_the_same_pointwise_operators() -> None:
    groups = find_cuda_groups(Cutter(EPILOGUE))
    assert (0, 1) in groups
