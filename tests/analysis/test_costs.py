"""Costs as the analysis gives them, and where there are none."""

from __future__ import annotations

import dataclasses
import subprocess
import sys

import pytest

from graphnet_datasets.analysis.costs import Costs, measure_costs
from graphnet_datasets.sample import Input, Op, Sample, Symbol, Value
from graphnet_datasets.sample.arguments import Ref

RELU = Sample(
    "test/relu", "torch", "other", (Input("input", Value("float32", ("s0", 4))),),
    (Op("torch.relu", (Ref(0),)),), Ref(1), symbols=(Symbol("s0", 2),),
)  # fmt: skip


def test_costs_follow_the_sizes_of_the_symbols() -> None:
    assert measure_costs(RELU) == Costs(8, 1.0, 64, 64)
    assert measure_costs(RELU, {"s0": 10}) == Costs(40, 1.0, 320, 320)


def test_arithmetic_intensity_is_operations_per_byte() -> None:
    costs = measure_costs(RELU)
    assert costs is not None and costs.arithmetic_intensity == 8 / 64
    assert Costs(0, 1.0, 0, 8).arithmetic_intensity is None


@pytest.mark.parametrize(
    "sample",
    [
        dataclasses.replace(RELU, ops=(Op("torch.no_such_operator", (Ref(0),)),)),
        dataclasses.replace(RELU, ops=(Op("torch._C._set_grad_enabled", (False,)),)),
    ],
    ids=["unknown operator", "open region"],
)
def test_unknown_costs_are_none(sample: Sample) -> None:
    assert measure_costs(sample) is None


def test_without_torch_there_are_hashes_and_no_costs() -> None:
    program = """
import sys
sys.modules["torch"] = None
from graphnet_datasets.analysis.columns import derived_columns
from graphnet_datasets.sample.arguments import Ref
from graphnet_datasets.sample import Input, Op, Sample, Value
sample = Sample("a", "torch", "other", (Input("input", Value("float32", (2,))),),
    (Op("torch.relu", (Ref(0),)),), Ref(1))
columns = derived_columns(sample)
print(columns["flops"], columns["op_tags"], len(columns["family"]))
"""
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert done.stdout == "None [] 32\n"
