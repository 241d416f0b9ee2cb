"""Serialization of a graph's outputs for the parent process, and excerpts of outputs."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, BinaryIO

ALIGNMENT = 64
"""Alignment in bytes of each output in the file."""

SCALARS: dict[type, str] = {bool: "bool", int: "int64", float: "float64", complex: "complex128"}
"""The dtype that represents each type of Python number in comparisons."""


MAX_EXCERPT = 2**15
"""Maximum number of elements in an excerpt of all outputs together; smaller outputs are included
whole."""
MIN_EXCERPT = 16
"""Minimum number of excerpt elements per output, regardless of the number of outputs."""


class OutputTypeError(Exception):
    """An output is not a plain tensor or number, and therefore cannot be compared."""


def excerpt_of(
    num_elements: int, num_outputs: int, start: int | None, most: int = MAX_EXCERPT
) -> slice:
    """Return a slice of a flattened output to compare: equally spaced elements, or all elements.

    The offset `start` is chosen after the call has ended, so that a call cannot predict which
    elements are compared. `most` is the number of elements of all outputs together.

    >>> excerpt_of(100_000, 1, start=5), excerpt_of(100, 1, start=5), excerpt_of(100, 1, None)
    (slice(1, None, 4), slice(0, None, 1), slice(0, None, 1))
    """
    most_of_one = max(MIN_EXCERPT, most // max(1, num_outputs))
    step = 1 if start is None else max(1, -(-num_elements // most_of_one))
    return slice((start or 0) % step, None, step)


def leaves(outputs: Any) -> Iterator[Any]:
    """Yield the leaves of nested outputs in order, omitting None."""
    if type(outputs) in (list, tuple) or (
        isinstance(outputs, tuple) and hasattr(outputs, "_fields")
    ):
        for item in outputs:
            yield from leaves(item)
    elif type(outputs) is dict:
        for item in outputs.values():
            yield from leaves(item)
    elif outputs is not None:
        yield outputs


def write_leaves(
    outputs: Any, path: Path, describe: Callable[[Any, int], tuple[str, list[int], Any]]
) -> list[dict[str, Any]]:
    """Write the elements of the outputs to `path`; return the dtype, shape and offset of each
    output.

    `describe` returns the dtype, the shape and the bytes of the output with the given index.

    Raises:
        OutputTypeError: an output is not a plain dense tensor or a number.
    """
    return write_described(
        (describe(leaf, index) for index, leaf in enumerate(leaves(outputs))), path
    )


def write_described(
    outputs: Iterable[tuple[str, list[int], Any]], path: Path
) -> list[dict[str, Any]]:
    """Write outputs, passed as dtype, shape and bytes; return the dtype, shape and offset of
    each."""
    with path.open("wb") as file:
        return append_described(outputs, file)


def append_described(
    outputs: Iterable[tuple[str, list[int], Any]], file: BinaryIO
) -> list[dict[str, Any]]:
    """Append outputs to an open file; return the dtype, shape and offset of each."""
    described = []
    for dtype, shape, elements in outputs:
        file.seek(-(-file.tell() // ALIGNMENT) * ALIGNMENT, os.SEEK_SET)
        described.append({"dtype": dtype, "shape": shape, "offset": file.tell()})
        file.write(elements)
    return described
