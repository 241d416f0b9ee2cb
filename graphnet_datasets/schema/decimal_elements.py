"""Stored elements that are decimal fractions, in the bytes that they need.

GraphNet writes the elements of small tensors as text with six places. As float32 that text is 32
bits, of which 27 look random to a compressor; the whole number of millionths has 16 to 21 such
bits. So float32 inputs all of whose elements are such fractions, bit by bit, are held as whole
numbers, in columns for the first to the fourth byte of each, which compress apart. What is not
stays in `inputs.data`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ..errors import SchemaError

PLACES = 6
MAX_PLACES = 9
_BYTES = tuple(f"byte_{number}" for number in range(4))
_DTYPE = "float32"
_MAX_MAGNITUDE = 2**30

DECIMAL_FIELDS = [
    ("inputs", pa.list_(pa.int32())),
    ("lengths", pa.list_(pa.int64())),
    ("places", pa.int32()),
    *((name, pa.binary()) for name in _BYTES),
]
"""Elements of the float32 inputs with these numbers, `lengths` elements each, one after the other:
w / 10**places, where w is 0, -1, 1, -2, … for 0, 1, 2, 3, …, whose four bytes, least first, stand
in the four columns."""


def pack_decimals(
    elements: Sequence[tuple[str | None, bytes | None]],
) -> tuple[dict[str, Any] | None, set[int]]:
    """Return what can be held as decimal fractions of inputs, each a dtype and its elements.

    Returns:
        The value of the column, None where there is nothing for it, and the numbers of the inputs
        that are in it.

    >>> halves = np.array([0.5, -1.5], np.float32).tobytes()
    >>> column, packed = pack_decimals([("int64", bytes(8)), ("float32", halves)])
    >>> packed, column["lengths"], unpack_decimals(column) == {1: halves}
    ({1}, [2], True)
    """
    numbers: list[int] = []
    parts: list[npt.NDArray[np.uint32]] = []
    for number, (dtype, data) in enumerate(elements):
        if dtype == _DTYPE and data is not None and len(data):
            codes = _encode(np.frombuffer(data, "<f4"))
            if codes is not None:
                numbers.append(number)
                parts.append(codes)
    if not numbers:
        return None, set()
    bytes_of = np.concatenate(parts).astype("<u4").view(np.uint8).reshape(-1, 4)
    column = {
        "inputs": numbers,
        "lengths": [each.size for each in parts],
        "places": PLACES,
        **{name: bytes_of[:, place].tobytes() for place, name in enumerate(_BYTES)},
    }
    return column, set(numbers)


def unpack_decimals(column: Mapping[str, Any]) -> dict[int, bytes]:
    """Return the elements of each input in the column, little-endian.

    Raises:
        SchemaError: the column is not one that `pack_decimals` could have given.
    """
    numbers, lengths, places = (column.get(name) for name in ("inputs", "lengths", "places"))
    planes = [column.get(name) for name in _BYTES]
    for name, given in (("inputs", numbers), ("lengths", lengths)):
        if type(given) is not list or any(type(each) is not int or each < 0 for each in given):
            raise SchemaError(f"`decimal_elements.{name}` is not a list of whole numbers")
    assert numbers is not None and lengths is not None  # noqa: S101 - lists, as was looked at
    if len(numbers) != len(lengths) or len(set(numbers)) != len(numbers):
        raise SchemaError("`decimal_elements` does not name each input once, with a length")
    if type(places) is not int or not 0 <= places <= MAX_PLACES:
        raise SchemaError(
            f"`decimal_elements.places` is {str(places)[:20]}, not from 0 to {MAX_PLACES}"
        )
    size = sum(lengths)
    for name, plane in zip(_BYTES, planes, strict=True):
        if type(plane) is not bytes or len(plane) != size:
            raise SchemaError(f"`decimal_elements.{name}` does not hold {size} bytes")
    codes = np.empty((size, 4), np.uint8)
    for place, plane in enumerate(planes):
        codes[:, place] = np.frombuffer(plane or b"", np.uint8)
    elements = _decode(codes.view("<u4").reshape(-1), places).tobytes()
    found, start = {}, 0
    for number, length in zip(numbers, lengths, strict=True):
        found[number] = elements[start : start + 4 * length]
        start += 4 * length
    return found


def _encode(elements: npt.NDArray[np.float32]) -> npt.NDArray[np.uint32] | None:
    """Return the codes of elements, or None where they would not give the same bits."""
    with np.errstate(invalid="ignore", over="ignore"):
        wholes = np.rint(elements.astype(np.float64) * 10**PLACES)
    if not (np.abs(wholes) < _MAX_MAGNITUDE).all():  # nor is NaN
        return None
    signed = wholes.astype(np.int32)
    codes = ((signed << 1) ^ (signed >> 31)).view(np.uint32)
    # A negative zero is one that would not.
    return codes if _decode(codes, PLACES).tobytes() == elements.tobytes() else None


def _decode(codes: npt.NDArray[np.uint32], places: int) -> npt.NDArray[np.float32]:
    """Return the elements. The quotient of two exact numbers is rounded correctly, as text is."""
    wholes = (codes >> np.uint32(1)).astype(np.int64) ^ -(codes & np.uint32(1)).astype(np.int64)
    return (wholes / float(10**places)).astype("<f4")
