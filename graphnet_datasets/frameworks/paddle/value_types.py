"""Types of values in the comments of a captured program, such as `-1x64x7x7xf32` and `[2xi64]`.

A type is its dimensions and its dtype joined by `x`. Two extensions are specific to this library:
`*xf32` for an unknown shape, as in MLIR, and symbolic dimensions in braces (`{2*s0}x3xf32`).
"""

from __future__ import annotations

import re

from ...sample import Value
from ...sample.symbols import Dim
from ...sample.vocabulary import ITEM_SIZE_BYTES

DTYPE_NAMES = {
    "bool": "b", "uint8": "ui8", "int8": "i8", "int16": "i16", "int32": "i32", "int64": "i64",
    "float16": "f16", "bfloat16": "bf16", "float32": "f32", "float64": "f64",
    "complex64": "c64", "complex128": "c128",
    "float8_e4m3fn": "f8e4m3fn", "float8_e5m2": "f8e5m2",
}  # fmt: skip
"""Paddle's short name of each of its dtypes."""

_DTYPES = {
    **{name: name for name in ITEM_SIZE_BYTES},
    **{short: name for name, short in DTYPE_NAMES.items()},
    "i1": "bool",
}
_COMMENT = re.compile(
    r"\s*# (?:pd_op|builtin|cf|cinn_op)\.\w+: \((?P<results>.*?)\) <- \(.*\)\s*\Z"
)
_DIMENSION = re.compile(r"(-?\d{1,19}|\{[^{}]{1,1000}\}|\*)x|x(?=[a-z?])")


def parse_type(text: str) -> Value:
    """Return the value for a type; unknown parts are None.

    >>> parse_type("8x3xf32"), parse_type("-1x3xf32").shape, parse_type("i64").shape
    (Value(dtype='float32', shape=(8, 3), stride=None), None, ())
    """
    dims: list[Dim] = []
    is_known, position = True, 0
    while match := _DIMENSION.match(text, position):
        position = match.end()
        dim = match[1]
        if dim is None:
            continue
        if dim == "*" or dim.startswith("-"):
            is_known = False
        else:
            dims.append(dim[1:-1] if dim.startswith("{") else int(dim))
    name = text[position:]
    dtype = _DTYPES.get(name)
    if dtype is None and name != "?":
        return Value()
    return Value(dtype, tuple(dims) if is_known else None)


def print_type(value: Value) -> str:
    """Return the text of a type, the inverse of `parse_type` (strides are omitted).

    >>> print_type(Value("float32", ("s0", 3))), print_type(Value("bool")), print_type(Value())
    ('{s0}x3xf32', '*xb', 'None')
    """
    if value.dtype is None and value.shape is None:
        return "None"
    dims = (
        ["*"] if value.shape is None else [f"{{{d}}}" if type(d) is str else d for d in value.shape]
    )
    dtype = "?" if value.dtype is None else DTYPE_NAMES.get(value.dtype, value.dtype)
    return "x".join(map(str, (*dims, dtype)))


def parse_results(comment: str) -> tuple[Value, ...] | None:
    """Return the results recorded in an operator's comment, or None for other comments.

    A list of tensors among several results is one value without a dtype. If a list is the only
    result, its elements are the results.

    >>> parse_results("# pd_op.split: ([2xf32, 3xf32]) <- (5xf32, 2xi64)")[1]
    Value(dtype='float32', shape=(3,), stride=None)
    """
    match = _COMMENT.match(comment)
    if match is None:
        return None
    parts = _split(match["results"])
    if len(parts) == 1 and parts[0].startswith("["):
        parts = _split(parts[0][1:-1])
    return tuple(Value() if part.startswith("[") else parse_type(part) for part in parts)


def _split(text: str) -> list[str]:
    """Split at commas outside brackets and braces."""
    parts, depth, start = [], 0, 0
    for position, character in enumerate(text):
        if character in "[{":
            depth += 1
        elif character in "]}":
            depth -= 1
        elif character == "," and depth == 0:
            parts.append(text[start:position].strip())
            start = position + 1
    tail = text[start:].strip()
    return [*parts, tail] if tail or parts else []
