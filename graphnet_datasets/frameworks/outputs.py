"""Outputs of a graph on their way to the parent: what stands in them, written down bit by bit."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, BinaryIO

ALIGNMENT = 64
"""Bytes; every output begins at a multiple of it."""

SCALARS: dict[type, str] = {bool: "bool", int: "int64", float: "float64", complex: "complex128"}
"""The dtype under which a Python number is compared."""


MAX_EXCERPT = 2**15
"""Elements of an excerpt, all outputs together; smaller outputs are taken whole."""
MIN_EXCERPT = 16
"""Elements of an excerpt of each output, however many outputs there are."""


class OutputTypeError(Exception):
    """An output is not a plain tensor or number, so that nothing could be compared."""


def excerpt_of(
    num_elements: int, num_outputs: int, start: int | None, most: int = MAX_EXCERPT
) -> slice:
    """Return which elements of an output, flat, are compared: those at equal distances, or all.

    Which residue is not known before the call has ended, so that none can be left out. `most` is
    the number of elements of all outputs together.

    >>> excerpt_of(100_000, 1, start=5), excerpt_of(100, 1, start=5), excerpt_of(100, 1, None)
    (slice(1, None, 4), slice(0, None, 1), slice(0, None, 1))
    """
    most_of_one = max(MIN_EXCERPT, most // max(1, num_outputs))
    step = 1 if start is None else max(1, -(-num_elements // most_of_one))
    return slice((start or 0) % step, None, step)


def leaves(outputs: Any) -> Iterator[Any]:
    """Yield what stands in the outputs' structure, in order; None stands for no value."""
    if type(outputs) in (list, tuple) or (
        isinstance(outputs, tuple) and hasattr(outputs, "_fields")
    ):
        for each in outputs:
            yield from leaves(each)
    elif type(outputs) is dict:
        for each in outputs.values():
            yield from leaves(each)
    elif outputs is not None:
        yield outputs


def write_leaves(
    outputs: Any, path: Path, describe: Callable[[Any, int], tuple[str, list[int], Any]]
) -> list[dict[str, Any]]:
    """Write the elements of the outputs to `path`; return dtype, shape and place of each.

    `describe` gives dtype, shape and elements, as an array of bytes, of output `index`.

    Raises:
        OutputTypeError: an output is something else than a plain dense tensor or a number.
    """
    return write_described(
        (describe(leaf, index) for index, leaf in enumerate(leaves(outputs))), path
    )


def write_described(
    outputs: Iterable[tuple[str, list[int], Any]], path: Path
) -> list[dict[str, Any]]:
    """Write outputs, given as dtype, shape and elements in bytes; return the place of each."""
    with path.open("wb") as file:
        return append_described(outputs, file)


def append_described(
    outputs: Iterable[tuple[str, list[int], Any]], file: BinaryIO
) -> list[dict[str, Any]]:
    """Write outputs behind what stands in a file already; return the place of each."""
    described = []
    for dtype, shape, elements in outputs:
        file.seek(-(-file.tell() // ALIGNMENT) * ALIGNMENT, os.SEEK_SET)
        described.append({"dtype": dtype, "shape": shape, "offset": file.tell()})
        file.write(elements)
    return described
