"""Filters by themselves; what they keep of a dataset is in `test_selection`."""

from __future__ import annotations

from typing import Any

import pytest

from graphnet_datasets.errors import RunError
from graphnet_datasets.storage.filters import Filters

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
