"""Data for the browser in compressed files that a page can load from a disk as well.

Browsers refuse `fetch` on `file://`, but they load scripts from there. So a chunk is a script of
one call, `graphnetChunk("name", "…")`, whose text is JSON, compressed by gzip, in base64.
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
    """Write a chunk and return its size in bytes; equal data gives equal bytes.

    `name` is one of ours, made of letters, digits and `-`. Control characters are escaped.
    Floats are rounded to six digits; NaN and infinities, which JSON lacks, become null, "inf" and
    "-inf".
    """
    columns = printable_data(columns)
    text = json.dumps(columns, allow_nan=False, separators=(",", ":"), ensure_ascii=True)
    packed = base64.b64encode(gzip.compress(text.encode(), compresslevel=9, mtime=0)).decode()
    write_text(path, f'graphnetChunk("{name}","{packed}");\n')
    return path.stat().st_size


def plain_floats(values: np.ndarray) -> list[float | str | None]:
    """Return floats as JSON can hold them.

    >>> plain_floats(np.array([1.23456789, np.nan, np.inf, -np.inf]))
    [1.23457, None, 'inf', '-inf']
    """
    return [_plain(value) for value in values.tolist()]


def _plain(value: float) -> float | str | None:
    if math.isnan(value):
        return None
    return float(f"{value:.6g}") if math.isfinite(value) else str(value)
