"""Smaller sizes and drawn inputs."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip(
    "torch", reason="torch is not installed: pip install 'graphnet-datasets[torch]'"
)

from graphnet_datasets import make_inputs, materialize
from graphnet_datasets.bisection.shrinking import drop_elements, resize, shrink_sizes
from graphnet_datasets.bisection.trials import Piece
from graphnet_datasets.errors import GraphNetError
from graphnet_datasets.frameworks.results import Observed
from graphnet_datasets.sample import Input, Op, Sample, Statistics, Value
from graphnet_datasets.sample.arguments import ListArg, Ref

ATTENTION = Sample(
    "test/heads",
    "torch",
    "other",
    (Input("input", Value("float32", (4, 16, 64))), Input("parameter", Value("float32", (64, 64)))),
    (
        Op("torch.nn.functional.linear", (Ref(0), Ref(1))),
        Op("torch.Tensor.view", (Ref(2), 4, 16, 8, 8)),
        Op("torch.Tensor.transpose", (Ref(3), 1, 2)),
        Op("torch.Tensor.reshape", (Ref(4), 32, 16, 8)),
    ),
    (Ref(5),),
)


def piece_of(sample: Sample) -> Piece:
    return Piece(sample, tuple(range(len(sample.inputs))))


def runs(sample: Sample) -> bool:
    try:
        materialize(sample)(**make_inputs(sample))
    except (RuntimeError, GraphNetError):
        return False
    return True


def test_sizes_become_small_and_the_graph_still_runs() -> None:
    kept: list[Piece] = []
    found = shrink_sizes(piece_of(ATTENTION), lambda piece: runs(piece.sample), kept.append)
    first = found.sample.inputs[0].value.shape
    assert first is not None and first[:2] == (1, 1) and runs(found.sample)
    assert kept and kept[-1] == found
    assert found.values == (0, 1)


def test_a_condition_on_a_size_is_kept() -> None:
    def fails(piece: Piece) -> bool:
        shape = piece.sample.inputs[0].value.shape
        return shape is not None and int(shape[1]) >= 5

    soft = Sample(
        "test/soft", "torch", "other", (Input("input", Value("float32", (4, 40, 3))),),
        (Op("torch.nn.functional.softmax", (Ref(0), 1)),), Ref(1),
    )  # fmt: skip
    found = shrink_sizes(piece_of(soft), fails, lambda _: None)
    assert found.sample.inputs[0].value.shape == (1, 5, 1)


def test_sizes_that_do_not_fit_together_are_never_tried() -> None:
    assert resize(ATTENTION, {0: (3, 5, 7)}, {}) is None
    smaller = resize(ATTENTION, {0: (2, 16, 64)}, {4: 2})
    assert smaller is not None
    assert [op.results and op.results[0].shape for op in smaller.ops] == [
        (2, 16, 64), (2, 16, 8, 8), (2, 8, 16, 8), (16, 16, 8)
    ]  # fmt: skip


def test_stored_elements_and_strides_are_cut_along() -> None:
    whole = np.arange(24, dtype="<i8").reshape(4, 6)
    data = Input("input", Value("int64", (4, 6), (1, 4)), data=whole.tobytes())
    sample = Sample("test/kept", "torch", "other", (data,), (Op("torch.abs", (Ref(0),)),), Ref(1))
    smaller = resize(sample, {0: (2, 3)}, {})
    assert smaller is not None
    assert smaller.inputs[0].value.stride == (1, 2)
    assert make_inputs(smaller)["input_0"].tolist() == [[0, 1, 2], [6, 7, 8]]


def test_numbers_that_are_no_sizes_stay() -> None:
    pad = Sample(
        "test/pad", "torch", "other", (Input("input", Value("float32", (3, 4))),),
        (Op("torch.nn.functional.pad", (Ref(0), ListArg((4, 4)))),), Ref(1),
    )  # fmt: skip
    smaller = resize(pad, {0: (3, 2)}, {4: 2})
    assert smaller is not None and smaller.ops == (
        Op("torch.nn.functional.pad", (Ref(0), ListArg((4, 4))), (), (Value("float32", (3, 10)),)),
    )


@pytest.mark.parametrize("needed", [(), (0,), (1,), (0, 1)])
def test_only_the_values_that_matter_stay(needed: tuple[int, ...]) -> None:
    seen = {0: Observed(Statistics(1.0, 2.0, -3.0, 4.0)), 1: Observed(None)}

    def fails(piece: Piece) -> bool:
        return all(piece.values[place] is not None for place in needed)

    found = drop_elements(piece_of(ATTENTION), seen, fails, lambda _: None)
    assert tuple(each for each in found.values if each is not None) == needed
    if 0 not in needed:
        assert found.sample.inputs[0].statistics == Statistics(1.0, 2.0, -3.0, 4.0)
