"""Records whose outputs allow no verdict are neither right nor wrong, and the reason is shown."""

from __future__ import annotations

import math
from typing import Any

import pytest

from graphnet_datasets.scores import as_table, by_sample, speedup_score
from graphnet_datasets.scores.samples import cells_by_sample
from graphnet_datasets.scores.undecidable import undecidable_reason
from graphnet_datasets.scores.variants import find_variant
from graphnet_datasets.scores.verdicts import Verdict, verdicts
from tests.scores.run_rows import make_run

GOOD = make_run("good", 2.0, min_t=-8.0)
UNDECIDABLE: dict[str, dict[str, Any]] = {
    "recorded": {"min_t": 0.3, "undecidable_reason": "The output depends on the order of ties."},
    "stale": {"min_t": -4.0, "null_t": -4.4, "stale_t": -4.4},
    "trivial": {"min_t": -9.0, "null_t": -math.inf},
}


@pytest.mark.parametrize("name", UNDECIDABLE)
def test_an_undecidable_run_counts_neither_way(name: str) -> None:
    odd = make_run("odd", 8.0, **UNDECIDABLE[name])
    reason = undecidable_reason(odd)
    assert reason is not None
    scores = speedup_score([GOOD, odd])
    assert scores["S"] == speedup_score([GOOD])["S"]
    assert [row["reason"] for row in scores.excluded] == ["undecidable"]
    assert scores.excluded[0]["error_message"] == reason
    assert "1, since their outputs allow no verdict (undecidable): odd" in str(scores)
    (row,) = [row for row in by_sample([GOOD, odd]) if row["sample_id"] == "odd"]
    assert (row["is_right"], row["undecidable_reason"]) == (None, reason)
    assert cells_by_sample([row])[1][0][2] == "undecidable"
    results = verdicts(as_table([GOOD, odd]), find_variant("report"))
    assert results == [Verdict.FASTER, Verdict.UNDECIDABLE]


@pytest.mark.parametrize(
    "columns",
    [
        {"min_t": -5.0, "null_t": -4.4, "stale_t": -4.4},  # passes where a stored answer fails
        {"min_t": -2.0, "null_t": -4.4, "stale_t": -4.4},  # fails where a stored answer passes
        {"min_t": -4.0, "null_t": -4.2, "stale_t": -4.1},  # no better than zeros
        {"min_t": -1.0, "null_t": -math.inf},
        {"min_t": -math.inf, "null_t": -4.4, "stale_t": -4.4},
        {"min_t": -5.0},
    ],
)
def test_samples_decided_at_a_tolerance_are_decidable(columns: dict[str, Any]) -> None:
    assert undecidable_reason(make_run("odd", 8.0, **columns)) is None


def test_reasons_distinguish_zeros_from_stored_answers() -> None:
    output = {"dtype": "float32", "null_t": -0.5, "null_mean_t": None, "constant_t": -4.4}
    stale = make_run("a", 2.0, min_t=-4.0, null_t=-4.4, stale_t=-4.4, outputs=[output])
    zeros = stale | {"outputs": [output | {"null_t": -4.2}]}
    assert undecidable_reason(stale) is not None
    assert undecidable_reason(zeros) is None


def test_a_stored_answer_makes_a_greater_t_vacuous() -> None:
    run = make_run("a", 2.0, min_t=-8.0, null_t=-1.0, stale_t=-3.5)
    shares = speedup_score([run])
    assert (shares.at(-4)["vacuous_share"], shares.at(-3)["vacuous_share"]) == (0.0, 1.0)


def test_upstreams_variant_counts_by_tolerance_alone() -> None:
    odd = make_run("odd", 8.0, **UNDECIDABLE["stale"])
    assert speedup_score([GOOD, odd], variant="upstream").num_samples == 2
