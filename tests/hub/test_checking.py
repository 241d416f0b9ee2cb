"""What is pushed was validated first, or says why it was not."""

from __future__ import annotations

import pytest

from graphnet_datasets import load_dataset, push_samples
from graphnet_datasets.errors import SchemaError
from graphnet_datasets.hub import Skipped
from graphnet_datasets.validation import CHECKS, Validation
from tests.validation.graphs import BREAKS, VALID

from .pushes import REPO, push


@pytest.mark.usefixtures("hub")
def test_rows_that_fail_a_check_are_skipped_with_the_reason() -> None:
    pushed = push_samples([VALID, BREAKS], REPO, split="train")
    assert pushed.num_added == 1
    [skipped] = pushed.skipped
    assert skipped.id == BREAKS.id
    assert skipped.reason.startswith("It is not valid: ")
    assert "reextractable: A second capture breaks into 2 graphs" in skipped.reason
    (row,) = load_dataset(REPO, split="train")
    validation = Validation.from_row(row)
    assert validation is not None
    assert [(each.check, each.outcome) for each in validation.results] == [
        (name, "passed") for name in CHECKS
    ]
    assert row["why_excluded"] is None
    # Only what is new is checked.
    assert push_samples(VALID, REPO).skipped == (Skipped(VALID.id, f"`{REPO}` has it already."),)


@pytest.mark.usefixtures("hub")
def test_the_reason_for_not_checking_is_recorded() -> None:
    assert push(BREAKS, REPO, split="train", skip_validation="checked by hand").num_added == 1
    (row,) = load_dataset(REPO, split="train")
    assert {(each["outcome"], each["reason"]) for each in row["validation"]} == {
        ("skipped", "Not checked before it was pushed: checked by hand")
    }
    with pytest.raises(SchemaError, match=r"^`skip_validation` must state why"):
        push(VALID, REPO, skip_validation=" ")
