"""Compact storage of elements that are decimal fractions.

GraphNet prints the elements of small tensors with six decimal places. As float32, 27 of their 32
bits look random to a compressor, while the integer number of millionths has 16 to 21 such bits.
Float32 inputs whose elements are all bitwise equal to such fractions are therefore stored as
integers, in a column for each of the four bytes, which compress separately. Other elements stay in
`inputs.data`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ..errors import SchemaError
from .columns import Column

PLACES = 6
MAX_PLACES = 9
_BYTES = tuple(f"byte_{number}" for number in range(4))
_DTYPE = "float32"
_MAX_MAGNITUDE = 2**30

DECIMAL_FIELDS = (
    Column("inputs", pa.list_(pa.int32()), "indices of these inputs"),
    Column("lengths", pa.list_(pa.int64()), "number of elements of each input"),
    Column("places", pa.int32(), "decimal places: integers are divided by 10 to this power"),
    Column("byte_0", pa.binary(), "lowest byte of each integer; 0, 1, 2, 3 encode 0, -1, 1, -2"),
    Column("byte_1", pa.binary(), "second byte"),
    Column("byte_2", pa.binary(), "third byte"),
    Column("byte_3", pa.binary(), "highest byte"),
)
"""Elements of the float32 inputs with these numbers, `lengths` elements each, concatenated. An
element is w / 10**places, where w is 0, -1, 1, -2, … for the codes 0, 1, 2, 3, …. The four bytes of
the codes, least significant first, are in the four columns."""


def pack_decimals(
    elements: Sequence[tuple[str | None, bytes | None]],
) -> tuple[dict[str, Any] | None, set[int]]:
    """Encode the inputs that are decimal fractions; `elements` are dtypes and bytes of all inputs.

    Returns:
        The value of the column, or None if no input can be encoded, and the numbers of the encoded
        inputs.

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
    byte_columns = np.concatenate(parts).astype("<u4").view(np.uint8).reshape(-1, 4)
    column = {
        "inputs": numbers,
        "lengths": [part.size for part in parts],
        "places": PLACES,
        **{name: byte_columns[:, position].tobytes() for position, name in enumerate(_BYTES)},
    }
    return column, set(numbers)


def unpack_decimals(column: Mapping[str, Any]) -> dict[int, bytes]:
    """Decode the elements of each input in the column, little-endian.

    Raises:
        SchemaError: the column is not a result of `pack_decimals`.
    """
    numbers, lengths, places = (column.get(name) for name in ("inputs", "lengths", "places"))
    planes = [column.get(name) for name in _BYTES]
    for name, column_values in (("inputs", numbers), ("lengths", lengths)):
        if type(column_values) is not list or any(
            type(item) is not int or item < 0 for item in column_values
        ):
            raise SchemaError(f"`decimal_elements.{name}` is not a list of integers")
    assert numbers is not None and lengths is not None  # noqa: S101 - checked to be lists above
    if len(numbers) != len(lengths) or len(set(numbers)) != len(numbers):
        raise SchemaError("`decimal_elements` must have distinct inputs, each with a length")
    if type(places) is not int or not 0 <= places <= MAX_PLACES:
        raise SchemaError(
            f"`decimal_elements.places` is {str(places)[:20]}, not from 0 to {MAX_PLACES}"
        )
    size = sum(lengths)
    for name, plane in zip(_BYTES, planes, strict=True):
        if type(plane) is not bytes or len(plane) != size:
            raise SchemaError(f"`decimal_elements.{name}` does not have {size} bytes")
    codes = np.empty((size, 4), np.uint8)
    for place, plane in enumerate(planes):
        codes[:, place] = np.frombuffer(plane or b"", np.uint8)
    elements = _decode(codes.view("<u4").reshape(-1), places).tobytes()
    data_by_input, start = {}, 0
    for number, length in zip(numbers, lengths, strict=True):
        data_by_input[number] = elements[start : start + 4 * length]
        start += 4 * length
    return data_by_input


def _encode(elements: npt.NDArray[np.float32]) -> npt.NDArray[np.uint32] | None:
    """Return the codes of elements, or None if they would not reproduce the same bits."""
    with np.errstate(invalid="ignore", over="ignore"):
        wholes = np.rint(elements.astype(np.float64) * 10**PLACES)
    if not (np.abs(wholes) < _MAX_MAGNITUDE).all():  # false for NaN
        return None
    signed = wholes.astype(np.int32)
    codes = ((signed << 1) ^ (signed >> 31)).view(np.uint32)
    # Negative zeros, for example, are not reproduced.
    return codes if _decode(codes, PLACES).tobytes() == elements.tobytes() else None


def _decode(codes: npt.NDArray[np.uint32], places: int) -> npt.NDArray[np.float32]:
    """Decode elements; the quotient of two exact numbers is rounded correctly, as parsing is."""
    wholes = (codes >> np.uint32(1)).astype(np.int64) ^ -(codes & np.uint32(1)).astype(np.int64)
    return (wholes / float(10**places)).astype("<f4")
