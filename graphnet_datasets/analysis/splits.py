"""Fixed splits by group or family, so that no architecture is in two splits."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

SPLITS = ("train", "validation", "test")


def split_of(family: str) -> str:
    """Return the split of a family: 80 % of families are train, 10 % validation and 10 % test.

    The split depends only on the family's hash, so a growing dataset never moves a graph.

    >>> split_of("00000000000000000000000000000001")
    'train'
    """
    # Hash again, because `family` may be any string and the split must not depend on its alphabet.
    tenth = int.from_bytes(hashlib.sha256(family.encode()).digest()[:8]) % 10
    return SPLITS[max(0, tenth - 7)]


def split_of_row(row: Mapping[str, Any]) -> str:
    """Return the recorded split of a row of the `graphs` table, else the split of its group or
    family.

    >>> split_of_row({"family": "0", "split": "test"})
    'test'
    >>> split_of_row({"family": "0", "split": None}) == split_of("0")
    True
    """
    return row.get("split") or split_of(row.get("split_group") or row["family"] or "")
