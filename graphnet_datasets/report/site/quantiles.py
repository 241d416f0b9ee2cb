"""Quantiles of many lists at once."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute

pc: Any = pyarrow.compute
SHARES = (0.1, 0.25, 0.5, 0.75, 0.9)
Floats = npt.NDArray[np.float64]


def quantiles(lists: pa.ChunkedArray) -> Floats:
    """Return the `SHARES` quantiles of each list, (lists, 5); NaN for empty or missing lists.

    Values are interpolated linearly, as in `numpy.quantile`.

    >>> quantiles(pa.chunked_array([[[3.0, 1.0, 2.0], None, []]]))[:, 2].tolist()
    [2.0, nan, nan]
    """
    counts = pc.fill_null(pc.list_value_length(lists), 0).to_numpy().astype(np.int64)
    flat = pc.list_flatten(lists)
    values = pc.fill_null(flat, np.nan).to_numpy().astype(np.float64)
    owner = np.repeat(np.arange(len(counts)), counts)
    values = values[np.lexsort((values, owner))]
    starts = np.cumsum(counts) - counts
    result = np.full((len(counts), len(SHARES)), np.nan)
    has_any = counts > 0
    for column, share in enumerate(SHARES):
        place = share * (counts[has_any] - 1)
        below = np.floor(place).astype(np.int64)
        above = np.minimum(below + 1, counts[has_any] - 1)
        low, high = values[starts[has_any] + below], values[starts[has_any] + above]
        result[has_any, column] = low + (high - low) * (place - below)
    return result
