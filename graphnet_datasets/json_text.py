"""JSON that strangers wrote, read without an error of Python's."""

from __future__ import annotations

import json
from typing import Any


def parse_json(text: str | bytes, default: Any = None) -> Any:
    """Return the value of a JSON text, or `default` where Python's reader refuses the text.

    It refuses what is no JSON with `ValueError`, as it does numbers of more than 4,300 digits, and
    arrays within a thousand arrays with `RecursionError`.

    >>> parse_json('{"mode": "max"}'), parse_json("[" * 100_000), parse_json("9" * 5_000, {})
    ({'mode': 'max'}, None, {})
    """
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return default
