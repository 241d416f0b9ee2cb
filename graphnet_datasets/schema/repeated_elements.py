"""Deduplication of stored elements that several inputs of a graph share.

For example, each block of a vision transformer has the same index of relative positions, a megabyte
in size. Parquet compresses repetitions, but tables in memory and in the cache of `datasets` do not:
for a thousand vision graphs they take 360 MB, of which 10 MB are distinct.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

from ..errors import SchemaError
from .columns import Column

MIN_BYTES = 256
"""Elements of fewer bytes are stored directly, so that readers find them in `inputs`."""

REPEAT_FIELDS = (
    Column("input", pa.int32(), "index of the input"),
    Column("first", pa.int32(), "index of the earlier input"),
)
"""The number of an input, and the number of an earlier input with the same elements."""


def with_repeats(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return a row of `graphs` in which equal elements of inputs are stored once.

    Rows that are already deduplicated are returned unchanged.

    >>> inputs = [{"data": bytes(512)}, {"data": None}, {"data": bytes(512)}]
    >>> row = with_repeats({"inputs": inputs, "repeated_elements": None})
    >>> row["repeated_elements"], row["inputs"][2]
    ([{'input': 2, 'first': 0}], {'data': None})
    """
    first_of: dict[bytes, int] = {}
    inputs, repeats = [], []
    for number, argument in enumerate(row["inputs"]):
        data = argument["data"]
        first = number
        if data is not None and len(data) >= MIN_BYTES:
            first = first_of.setdefault(data, number)
        if first < number:
            repeats.append({"input": number, "first": first})
        inputs.append({**argument, "data": None} if first < number else argument)
    if not repeats:
        return dict(row)
    repeats += row.get("repeated_elements") or []
    repeats.sort(key=lambda repeat: repeat["input"])
    return {**row, "inputs": inputs, "repeated_elements": repeats}


def unpack_repeats(
    column: Sequence[Any], elements: Sequence[bytes | None]
) -> list[tuple[int, bytes]]:
    """Return the number and the elements of each input in the column.

    `elements` are those stored directly in the inputs.

    Raises:
        SchemaError: the column is not a result of `with_repeats`.
    """
    data_by_input: dict[int, bytes] = {}
    for position, entry in enumerate(column):
        pair: Mapping[str, Any] = entry if isinstance(entry, dict) else {}
        number, first = pair.get("input"), pair.get("first")
        if type(number) is not int or type(first) is not int:
            raise SchemaError(f"`repeated_elements[{position}]` is not a pair of inputs")
        if not 0 <= first < number < len(elements):
            raise SchemaError(
                f"`repeated_elements[{position}]` refers to the inputs {number} and {first}, but "
                f"the second must precede the first and both must be below {len(elements)}"
            )
        data = elements[first]
        if data is None:
            raise SchemaError(
                f"`repeated_elements[{position}]` refers to the input {first}, which has no stored "
                "elements"
            )
        if elements[number] is not None or number in data_by_input:
            raise SchemaError(
                f"`repeated_elements[{position}]` refers to the input {number}, which has its own "
                "elements"
            )
        data_by_input[number] = data
    return list(data_by_input.items())
