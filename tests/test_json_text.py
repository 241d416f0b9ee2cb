"""JSON of strangers gives a value or a default, never an error."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphnet_datasets.json_text import parse_json

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=20,
)


@given(VALUES)
def test_valid_json_is_read(value: object) -> None:
    assert parse_json(json.dumps(value), "default") == value
    assert parse_json(json.dumps(value).encode(), "default") == value


@pytest.mark.parametrize("text", ["", "{", "nul", "[" * 100_000, "9" * 5_000, b"\xff"])
def test_refused_text_returns_the_default(text: str | bytes) -> None:
    assert parse_json(text, "default") == "default"
