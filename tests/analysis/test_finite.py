"""Outputs that are not finite: meant by the graph, or a failure of it."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from graphnet_datasets.analysis.finite import explain_not_finite, written_by
from graphnet_datasets.sample import Input, Op, Sample, Value
from graphnet_datasets.sample.arguments import DictArg, ListArg, Ref


def sample_of(*ops: Op, stored: Any = None) -> Sample:
    value = Value("float32", (2,))
    data = None if stored is None else np.array(stored, "<f4").tobytes()
    return Sample("a", "torch", "other", (Input("buffer", value, data=data),), ops, Ref(0))


@pytest.mark.parametrize(
    ("sample", "written"),
    [
        (sample_of(Op("torch.relu", (Ref(0),))), set()),
        (sample_of(Op("torch.full", ((2,), -math.inf))), {"infinite"}),
        (sample_of(Op("torch.full", (), (("fill_value", math.nan),))), {"NaN"}),
        (sample_of(Op("torch.f", (ListArg((1.0, DictArg((("x", math.inf),)))),))), {"infinite"}),
        (sample_of(stored=[0, math.inf]), {"infinite"}),
        (sample_of(stored=[math.nan, -math.inf]), {"NaN", "infinite"}),
        (sample_of(stored=[3e38, 0]), set()),
    ],
)
def test_literals_and_stored_elements_are_intentional(sample: Sample, written: set[str]) -> None:
    assert written_by(sample) == written
    for counted, kinds in (([(0, 2)], {"infinite"}), ([(1, 0)], {"NaN"}), ([(1, 2)], None)):
        _, is_meant = explain_not_finite(counted, sample)
        assert is_meant == ((kinds or {"NaN", "infinite"}) <= written)
    assert explain_not_finite([(0, 0), (0, 0)], sample) == ("", True)
