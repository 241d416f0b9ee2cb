"""C spellings of scalar types, literals and comments.

Generated code contains text of a definition only in comments, restricted to characters that cannot
end a line comment. Tensors are named `t0, t1 …` by their position in the instance, dimensions
`d0, d1 …`; the generator chooses all other names.
"""

from __future__ import annotations

import re

from ..language.types import ScalarType

_C_TYPES = {
    "bool": "uint8_t",
    "float16": "tc_half",
    "bfloat16": "tc_bfloat",
    "float32": "float",
    "float64": "double",
}
STORED = {"float16": "half", "bfloat16": "bfloat"}
"""Name suffixes of the functions that load and store vectors of these types."""
_UNSAFE = re.compile(r"[^/A-Za-z0-9_ ().,=+*<>!:-]")
_COMMENT_MARKS = re.compile(r"/{2,}|/\*|\*/")


def c_type(scalar: ScalarType) -> str:
    """Return the C type of an element in memory.

    >>> from graphnet_datasets.tensor_comprehensions.language.types import BOOL, UINT8
    >>> c_type(BOOL), c_type(UINT8)
    ('uint8_t', 'uint8_t')
    """
    return _C_TYPES.get(scalar.name, f"{scalar.name}_t")


def comment(text: str, limit: int = 100) -> str:
    r"""Return `text` as a C line comment, without characters that could end the comment.

    >>> comment("A(i) = 1 // x\\\n#define A")
    '// A(i) = 1 x define A'
    >>> comment("A(i)/2 */ B")
    '// A(i) / 2 B'
    """
    safe = _COMMENT_MARKS.sub(" ", _UNSAFE.sub(" ", text)).replace("/", " / ")
    safe = " ".join(safe.split())
    return f"// {safe[:limit]}".rstrip()


def c_number(value: int | float | bool, scalar: ScalarType) -> str:
    """Return a C literal of the given type, without loss of digits.

    >>> from graphnet_datasets.tensor_comprehensions.language.types import FLOAT32, INT32
    >>> c_number(0.5, FLOAT32), c_number(float("inf"), FLOAT32), c_number(-1, INT32)
    ('0x1.0000000000000p-1f', '__builtin_inff()', '(-1)')
    """
    if scalar.is_float:
        suffix = "" if scalar.bits == 64 else "f"
        number = float(value)
        if number != number:
            return f'__builtin_nan{suffix}("")'
        if number in (float("inf"), float("-inf")):
            return f"{'-' if number < 0 else ''}__builtin_inf{suffix}()"
        return f"{number.hex()}{suffix}" if number >= 0 else f"({number.hex()}{suffix})"
    if scalar.is_bool:
        return "1" if value else "0"
    whole = int(value)
    if scalar.bits == 64:
        if scalar.kind == "uint":
            return f"UINT64_C({whole})"
        # INT64_MIN has no literal: its absolute value is out of range.
        return "INT64_MIN" if whole == scalar.least() else f"INT64_C({whole})"
    if whole == -(2**31):
        return "INT32_MIN"
    text = f"{whole}u" if scalar.kind == "uint" and scalar.bits == 32 else str(whole)
    return f"({text})" if whole < 0 else text
