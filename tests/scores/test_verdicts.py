"""Verdicts of run records."""

from __future__ import annotations

import math
from typing import Any

import pytest

from graphnet_datasets.scores import as_table
from graphnet_datasets.scores.variants import find_variant
from graphnet_datasets.scores.verdicts import Verdict, verdicts
from tests.report.site.records import failed, timed


@pytest.mark.parametrize(
    ("columns", "expected"),
    [
        ({}, Verdict.FASTER),
        ({"min_t": -1.0}, Verdict.WRONG),
        ({"min_t": -3.5, "null_t": -3.5}, Verdict.WRONG),  # no better than zeros
        ({"min_t": -3.6, "null_t": -3.5}, Verdict.FASTER),
        ({"min_t": -math.inf, "eager_t": -2.3}, Verdict.UNDECIDABLE),  # eager itself is off
        ({"min_t": -1.0, "eager_t": -2.3}, Verdict.UNDECIDABLE),
        ({"min_t": -1.0, "eager_t": -3.0}, Verdict.WRONG),
        ({"min_t": -math.inf, "null_t": -math.inf}, Verdict.UNDECIDABLE),  # zeros always pass
        ({"min_t": -4.0, "null_t": -3.5, "eager_t": -3.2}, Verdict.UNDECIDABLE),
    ],
)
def test_nothing_is_said_of_a_compiler_where_eager_or_zeros_do_no_better(
    columns: dict[str, Any], expected: Verdict
) -> None:
    runs = [timed("other", 1.0), timed("sample", 2.0, **{"min_t": -6.0, **columns})]
    assert verdicts(as_table(runs), find_variant("report")) == [Verdict.EVEN, expected]


def test_failures_do_not_depend_on_the_tolerance() -> None:
    runs = [timed("even", 1.0), failed("crashed", "run_failed", eager_t=-1.0, min_t=None)]
    expected = [Verdict.EVEN, Verdict.RUN_FAILED]
    assert verdicts(as_table(runs), find_variant("report")) == expected
