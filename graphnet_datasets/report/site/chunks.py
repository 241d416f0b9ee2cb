"""Compressed data files that a page can also load from a local disk.

Browsers block `fetch` on `file://` but allow scripts. So a chunk is a script with one call,
`graphnetChunk("name", "…")`, whose argument is base64-encoded, gzip-compressed JSON.
"""

from __future__ import annotations

import base64
import gzip
import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from ...atomic import write_text
from ...terminal import printable_data


def write_chunk(path: Path, name: str, columns: Mapping[str, Any]) -> int:
    """Write a chunk and return its size in bytes; equal data produces equal bytes.

    `name` is chosen by this library and consists of letters, digits and `-`. Control characters are
    escaped. Floats are rounded to six digits; NaN and infinities become null, "inf" and "-inf".
    """
    columns = printable_data(columns)
    text = json.dumps(columns, allow_nan=False, separators=(",", ":"), ensure_ascii=True)
    packed = base64.b64encode(gzip.compress(text.encode(), compresslevel=9, mtime=0)).decode()
    write_text(path, f'graphnetChunk("{name}","{packed}");\n')
    return path.stat().st_size


def plain_floats(values: np.ndarray) -> list[float | str | None]:
    """Return floats as JSON-compatible values.

    >>> plain_floats(np.array([1.23456789, np.nan, np.inf, -np.inf]))
    [1.23457, None, 'inf', '-inf']
    """
    return [_plain(value) for value in values.tolist()]


def _plain(value: float) -> float | str | None:
    if math.isnan(value):
        return None
    return float(f"{value:.6g}") if math.isfinite(value) else str(value)
