"""Escaping of text for terminals, pages, pictures and tables.

Text from data must not move the cursor, set titles, hide words or change the reading direction.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

_CONTROLS = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f"  # C0 without tab and newline, DEL, and C1, which begin sequences
    # Format characters change the reading direction, have no width, or tag other characters.
    "\xad\u0600-\u0605\u061c\u06dd\u070f\u0890\u0891\u08e2\u180e\u200b-\u200f\u202a-\u202e"
    "\u2060-\u206f\ufeff\ufff9-\ufffb\U000110bd\U000110cd\U00013430-\U0001343f"
    "\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e007f"
    "\u2028\u2029\ud800-\udfff]"  # other line ends, and surrogates, which cannot be encoded
)


_FORMULA_STARTS = ("=", "+", "-", "@", "\uff1d", "\uff0b", "\uff0d", "\uff20")
"""Characters with which formulas of spreadsheets begin, also in their wide forms."""


def printable(text: object) -> str:
    r"""Return the text of an object with control characters escaped, except tab and newline.

    Format characters of Unicode, which change the direction of text or are invisible, are escaped
    too.

    >>> printable("title\x1b]0;owned\x07, colour\x9b31m")
    'title\\x1b]0;owned\\x07, colour\\x9b31m'
    """
    return _CONTROLS.sub(_escape, str(text))


def counted(number: int, noun: str, plural: str = "") -> str:
    """Return a number with its noun, in the plural for all numbers except 1.

    >>> counted(1, "run"), counted(12, "graph"), counted(0, "directory", "directories")
    ('1 run', '12 graphs', '0 directories')
    """
    return f"{number} {noun if number == 1 else plural or noun + 's'}"


def first_few(names: Sequence[str], limit: int) -> str:
    """Return at most `limit` names, and the number of the others.

    >>> first_few(["a", "b", "c"], 3), first_few(["a", "b", "c"], 1)
    ('a, b, c', 'a and 2 more')
    """
    more = f" and {len(names) - limit} more" if len(names) > limit else ""
    return ", ".join(names[:limit]) + more


def printable_line(text: object) -> str:
    r"""Return the text of an object on one line, with every control character escaped.

    >>> printable_line("first\nsecond")
    'first\\nsecond'
    """
    return printable(text).replace("\n", "\\n").replace("\t", "\\t")


def printable_cell(text: str) -> str:
    """Return the text of a cell in a CSV file, which spreadsheets must not read as a formula.

    >>> printable_cell("torch/resnet-18"), printable_cell("=HYPERLINK(A1)")
    ('torch/resnet-18', "'=HYPERLINK(A1)")
    """
    line = printable_line(text)
    return f"'{line}" if line.lstrip().startswith(_FORMULA_STARTS) else line


def printable_data(value: Any) -> Any:
    r"""Return JSON data with `printable` applied to every string in it.

    >>> printable_data({"id": ["a\u202eb", 1, None]})
    {'id': ['a\\u202eb', 1, None]}
    """
    if isinstance(value, str):
        return printable(value)
    if isinstance(value, Mapping):
        return {printable_data(key): printable_data(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [printable_data(item) for item in value]
    return value


def _escape(match: re.Match[str]) -> str:
    code = ord(match[0])
    if code > 0xFFFF:
        return f"\\U{code:08x}"
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"
