"""Filters by themselves; what they keep of a dataset is in `test_selection`."""

from __future__ import annotations

from typing import Any

import pyarrow.compute as pc
import pytest

from graphnet_datasets.benchmark.matching import match_compilers
from graphnet_datasets.errors import RunError, SchemaError
from graphnet_datasets.storage.filters import Filters, as_filters
from graphnet_datasets.storage.selection import select_rows

ROW: dict[str, Any] = {
    "framework": "torch",
    "task": "cv",
    "family": "20faa78d",
    "tags": None,
    "num_ops": 3,
    "num_params": 10,
}


@pytest.mark.parametrize(
    ("filters", "is_kept"),
    [
        ({}, True),
        ({"task": ("cv", "nlp"), "framework": ("torch",)}, True),
        ({"task": ("nlp",)}, False),
        ({"tag": ("small",)}, False),  # a row without tags has none of them
        ({"method": ("rules",)}, False),  # whole graphs have no such column
        ({"family": ("20fa",)}, True),
        ({"family": ("30fa",)}, False),
        ({"min_ops": 3, "max_ops": 3, "max_params": 10}, True),
        ({"max_params": 9}, False),
        ({"limit": 0}, True),
    ],
)
def test_of_a_row(filters: dict[str, Any], is_kept: bool) -> None:
    assert Filters(**filters).keeps(ROW) is is_kept


def test_names_that_nothing_has_are_refused() -> None:
    with pytest.raises(RunError, match=r"There is no framework `torhc`\. Did you mean `torch`\?"):
        Filters(framework=("torhc",))


@pytest.mark.parametrize(
    ("conditions", "is_kept"),
    [
        ([("num_ops", "<", 20)], True),
        ([("num_ops", "<", 3)], False),
        ([("num_ops", "<=", 3.0), ("task", "=", "cv"), ("task", "!=", "nlp")], True),
        ([("task", "in", ["nlp", "audio"])], False),
        ([("task", "not in", ["nlp", "audio"])], True),
        ([[("num_ops", ">", 20)], [("task", "==", "cv")]], True),
        ([("tags", "contains", "small")], False),  # a missing value matches nothing
        (pc.field("num_ops") < 20, True),
        ([], True),
        (None, True),
    ],
)
def test_the_filters_of_load_dataset(conditions: Any, is_kept: bool) -> None:
    assert as_filters(conditions).keeps(ROW) is is_kept


def test_a_row_is_kept_by_what_its_lists_contain() -> None:
    row = {**ROW, "tags": ["small", "conv"]}
    assert as_filters([("tags", "contains", "small")]).keeps(row)
    assert not as_filters([("tags", "contains", "smal")]).keeps(row)


def test_a_wrong_filter_is_refused() -> None:
    with pytest.raises(SchemaError, match=r"no column `num_op`\. Did you mean `num_ops`\?"):
        as_filters([("num_op", "<", 20)])
    with pytest.raises(RunError) as caught:
        as_filters(("num_ops", "<", 20))
    assert str(caught.value) == (
        "`filters=('num_ops', '<', 20)` is not a filter. Pass a list of conditions as to "
        '`load_dataset`, `[("num_ops", "<", 20)]`, or `Filters(max_ops=19)`.'
    )


def test_a_run_takes_the_filters_of_load_dataset() -> None:
    rows = select_rows("cv", [("num_ops", "<", 5), ("flops", ">", 0), ("framework", "=", "torch")])
    assert rows
    assert all(row["num_ops"] < 5 and row["flops"] > 0 for row in rows)
    frameworks = {row["framework"] for row in rows}
    assert frameworks == {"torch"}
    matched, _ = match_compilers("cv", [("num_ops", "<", 5)], "graphnet", ["eager"])
    assert {row["id"] for row in rows} <= {row["id"] for row in matched}
