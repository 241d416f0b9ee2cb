"""A validator that the tests of a module share, with its processes."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from graphnet_datasets.validation import Validator


@pytest.fixture(scope="module")
def validator() -> Iterator[Validator]:
    with Validator() as validator:
        yield validator
