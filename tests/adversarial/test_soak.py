"""A small part of `make soak`: failures at random, and a parent that is killed at times."""

from __future__ import annotations

import json

import pytest

from benchmarks import soak

pytestmark = pytest.mark.usefixtures("fresh_servers")  # none may be left


@pytest.fixture(autouse=True)
def seed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(soak.SEED, "7")


@pytest.mark.slow
def test_every_run_has_one_record_with_its_status_and_nothing_is_left() -> None:
    figures = soak.survive_faults(20)
    assert soak.is_clean(figures), json.dumps(figures)
    assert figures["records"] == 20


@pytest.mark.slow
def test_a_tenth_of_the_failures() -> None:
    figures = soak.survive_faults(100)
    assert soak.is_clean(figures), figures
    assert set(figures["statuses"]) == {"ok", "compile_failed", "run_failed"}


@pytest.mark.slow
def test_a_tenth_of_the_kills() -> None:
    figures = soak.survive_kills(5, 8)
    assert soak.is_clean(figures), figures
