"""Whoever sets attributes of the objects that lay out and time its calls is found out."""

from __future__ import annotations

import pytest

from tests.adversarial.conftest import Trial
from tests.adversarial.steering_cheats import CHEATS


@pytest.mark.parametrize("cheat", CHEATS)
def test_replaced_parts_of_the_harness_are_named(trial: Trial, cheat: str) -> None:
    record = trial(cheat, module="tests.adversarial.steering_cheats")
    assert (record["status"], record["reason"]) == ("run_failed", "tampering")
    assert record["error_message"].startswith("The candidate replaced `")
    assert record["speedup"] is None
