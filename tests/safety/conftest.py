"""A clock that counts, for tests of time limits."""

from __future__ import annotations

import itertools
import types

import pytest


@pytest.fixture
def second_per_look(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let every look at the clock take a second, so that a time limit bounds the looks."""
    seconds = map(float, itertools.count())
    clock = types.SimpleNamespace(monotonic=lambda: next(seconds))
    monkeypatch.setattr("graphnet_datasets.frameworks.deadline.time", clock)
