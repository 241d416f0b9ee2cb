"""Servers of these tests start and end as they do for users, who keep none unless they ask."""

from __future__ import annotations

import pytest


@pytest.fixture(autouse=True)
def _fresh(fresh_servers: None) -> None:
    """Keep none."""
