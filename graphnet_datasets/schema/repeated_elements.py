"""Stored elements that several inputs of a graph share, held once.

Each block of a transformer of pictures has an index of relative positions, a megabyte that is the
same in all of them. Parquet holds what repeats in little, but a table in memory, or in the cache of
`datasets`, holds each: of a thousand graphs of pictures 360 MB, of which 10 MB differ.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

from ..errors import SchemaError

MIN_BYTES = 256
"""What is smaller is held where it is, as a reader of the table would look for it."""

REPEAT_FIELDS = [("input", pa.int32()), ("first", pa.int32())]
"""The number of an input, and that of an earlier one whose elements it has too."""


def with_repeats(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return a row of `graphs` that holds equal elements of its inputs once.

    One that holds them so already is returned as it is.

    >>> inputs = [{"data": bytes(512)}, {"data": None}, {"data": bytes(512)}]
    >>> row = with_repeats({"inputs": inputs, "repeated_elements": None})
    >>> row["repeated_elements"], row["inputs"][2]
    ([{'input': 2, 'first': 0}], {'data': None})
    """
    first_of: dict[bytes, int] = {}
    inputs, repeats = [], []
    for number, each in enumerate(row["inputs"]):
        data = each["data"]
        first = number
        if data is not None and len(data) >= MIN_BYTES:
            first = first_of.setdefault(data, number)
        if first < number:
            repeats.append({"input": number, "first": first})
        inputs.append({**each, "data": None} if first < number else each)
    if not repeats:
        return dict(row)
    repeats += row.get("repeated_elements") or []
    repeats.sort(key=lambda each: each["input"])
    return {**row, "inputs": inputs, "repeated_elements": repeats}


def unpack_repeats(
    column: Sequence[Any], elements: Sequence[bytes | None]
) -> list[tuple[int, bytes]]:
    """Return the number and the elements of each input in the column.

    `elements` are those that the inputs themselves hold.

    Raises:
        SchemaError: the column is not one that `with_repeats` could have given.
    """
    found: dict[int, bytes] = {}
    for place, each in enumerate(column):
        pair: Mapping[str, Any] = each if isinstance(each, dict) else {}
        number, first = pair.get("input"), pair.get("first")
        if type(number) is not int or type(first) is not int:
            raise SchemaError(f"`repeated_elements[{place}]` is not two numbers of inputs")
        if not 0 <= first < number < len(elements):
            raise SchemaError(
                f"`repeated_elements[{place}]` names the inputs {number} and {first}, of which "
                f"the second is no earlier one of the {len(elements)} inputs"
            )
        data = elements[first]
        if data is None:
            raise SchemaError(
                f"`repeated_elements[{place}]` names the input {first}, which holds no elements"
            )
        if elements[number] is not None or number in found:
            raise SchemaError(
                f"`repeated_elements[{place}]` names the input {number}, which has others"
            )
        found[number] = data
    return list(found.items())
