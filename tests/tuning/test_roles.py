"""Inputs drawn by the roles of arguments, and references that a check can rely on."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest

from graphnet_datasets.storage.loading import STARTER
from graphnet_datasets.tuning.references import reference_problem
from graphnet_datasets.tuning.roles import Role
from graphnet_datasets.tuning.verifying import argument_roles
from graphnet_datasets.tuning.worker import make_arrays

AFFECTED = {
    "fused_equal_tir_logical_not_cast2_max": 2,
    "fused_equal_tir_logical_not_cast_max": 1,
    "fused_softmax_cast1_tir_logical_not1_full_where_broadcast_to3": 2,
    "fused_softmax_cast3_tir_logical_not1_full1_where_broadcast_to2": 1,
    "fused_softmax_cast3_tir_logical_not1_full1_where1_broadcast_to3": 1,
}
"""Shipped tasks with masks, whose references were constant when they were recorded."""


@pytest.fixture(scope="module")
def tasks() -> list[dict[str, Any]]:
    columns = ["task_name", "workload_json", "arg_shapes", "arg_dtypes"]
    files = sorted((STARTER / "tuning_tasks").glob("*.parquet"))
    return [row for file in files for row in pq.read_table(file, columns=columns).to_pylist()]


def test_only_shipped_tasks_with_masks_have_other_inputs_than_floats(
    tasks: list[dict[str, Any]],
) -> None:
    counts: dict[str, int] = {}
    for task in tasks:
        if any(role.specials for role in argument_roles(task["workload_json"])):
            counts[task["task_name"]] = counts.get(task["task_name"], 0) + 1
    assert counts == AFFECTED


def test_masks_and_paddings_have_both_values(tasks: list[dict[str, Any]]) -> None:
    for task in tasks:
        if task["task_name"] not in AFFECTED:
            continue
        types = [(tuple(s), d) for s, d in zip(task["arg_shapes"], task["arg_dtypes"], strict=True)]
        first, mask = make_arrays(types, 0, argument_roles(task["workload_json"]))[:2]
        if "softmax" in task["task_name"]:
            assert 0.2 < (mask == 0).mean() < 0.8
        else:
            is_padding = np.isneginf(first)
            assert is_padding.all(-1).any() and not is_padding.any(-1).all()


def gather(*, size: int, factor: int = 1) -> str:
    """Return the workload `out[i] = table[index[i] * factor]`, with a table of `size` elements."""
    te = pytest.importorskip("tvm.te")
    tvm = pytest.importorskip("tvm")
    from graphnet_datasets.tuning.extract import workload_text

    table, index = te.placeholder((size,), name="table"), te.placeholder((8,), "int32", "index")
    out = te.compute((8,), lambda i: table[index[i] * factor], "out")
    function = te.create_prim_func([table, index, out]).with_attr("global_symbol", "main")
    return workload_text(tvm.IRModule({"main": function}))


def test_an_index_is_below_the_axis_that_it_indexes() -> None:
    assert [role.bound for role in argument_roles(gather(size=300))[:2]] == [128, 300]
    # A multiple of the index would leave the table: the smallest size of all arguments remains.
    assert argument_roles(gather(size=300, factor=4))[1].bound == 8


def test_specials_are_limited_to_the_dtype() -> None:
    random = np.random.default_rng(0)
    drawn = Role(4, (-1.0, 2.0, np.inf)).draw((64, 8), np.dtype("uint8"), random)
    assert set(np.unique(drawn)) == {0, 1, 2, 3}
    mask = Role(2).draw((64, 8), np.dtype(bool), random)
    assert mask.any() and not mask.all()


def test_a_reference_that_no_output_could_differ_from_is_refused() -> None:
    varied, other = np.arange(4.0), np.arange(4.0) + 1
    assert "equal" in reference_problem({"1": np.ones(4)}, {"1": np.ones(4) * 2})
    assert "same for two" in reference_problem({"1": varied}, {"1": varied})
    assert reference_problem({"1": varied}, {"1": varied}, has_inputs=False) == ""
    assert reference_problem({"1": np.ones(4), "2": varied}, {"2": other}) == ""
    assert "none of its arguments" in reference_problem({}, {})
