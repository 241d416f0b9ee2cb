"""Makes one check and says what came of it."""

from __future__ import annotations

import re

from graphnet_datasets import Sample
from graphnet_datasets.validation import Validator


def found(validator: Validator, sample: Sample, check: str) -> tuple[str, str]:
    result = validator.validate(sample, [check])[check]
    return result.outcome, result.reason


def assert_found(
    validator: Validator, sample: Sample, check: str, outcome: str, reason: str
) -> None:
    """Make a check; `reason` is a pattern for all of the reason."""
    found_outcome, found_reason = found(validator, sample, check)
    assert found_outcome == outcome, found_reason
    assert re.fullmatch(reason, found_reason, re.DOTALL), found_reason
