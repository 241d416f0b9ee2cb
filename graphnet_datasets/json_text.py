"""Parsing of untrusted JSON without exceptions."""

from __future__ import annotations

from typing import Any

from .decoding import load_json


def parse_json(text: str | bytes, default: Any = None) -> Any:
    """Parse a JSON string, or return `default` if Python's parser rejects it.

    Rejected are invalid JSON, numbers of more than 4,300 digits, a thousand nested arrays, and
    strings whose value may exceed the limit of `decoding`.

    >>> parse_json('{"mode": "max"}'), parse_json("[" * 100_000), parse_json("9" * 5_000, {})
    ({'mode': 'max'}, None, {})
    """
    try:
        return load_json(text, "a JSON string")
    except ValueError:
        return default
