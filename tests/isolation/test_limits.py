from __future__ import annotations

import pytest

from graphnet_datasets.errors import RunError
from graphnet_datasets.isolation import Limits
from graphnet_datasets.isolation.linux import available_memory_bytes


def test_a_phase_without_a_timeout_has_the_default() -> None:
    limits = Limits(phase_timeouts_s={"compile": 5}, default_timeout_s=7)
    assert (limits.timeout_s("compile"), limits.timeout_s("run")) == (5, 7)


def test_a_job_without_a_limit_has_nine_tenths_of_the_available_memory() -> None:
    before = available_memory_bytes()
    assert 0 < Limits().tree_bytes < max(before, available_memory_bytes())
    assert Limits(memory_bytes=5).tree_bytes == 5


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            {"memory_bytes": 0},
            "The limit `memory_bytes` is 0; it must be more than zero, or None for "
            "nine tenths of the available memory.",
        ),
        (
            {"default_timeout_s": -1},
            "The limit `default_timeout_s` is -1; it must be more than zero.",
        ),
        (
            {"phase_timeouts_s": {"run": 0}},
            "The timeout of the phase `run` is 0 s; it must be more than zero.",
        ),
    ],
)
def test_a_limit_that_nothing_could_keep_is_refused(arguments: dict, message: str) -> None:
    with pytest.raises(RunError) as caught:
        Limits(**arguments)
    assert str(caught.value) == message
