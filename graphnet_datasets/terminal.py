"""Text for a terminal: what came from data must not move the cursor, set titles or hide words."""

from __future__ import annotations

import re

_CONTROLS = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f"  # C0 without tab and newline, DEL, and C1, which begin sequences
    "\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069"  # turn the reading direction of what follows
    "\u2028\u2029\ud800-\udfff]"  # other line ends, and halves of pairs, which cannot be encoded
)


def printable(text: object) -> str:
    r"""Return the text of an object with every control character but tab and newline escaped.

    >>> printable("title\x1b]0;owned\x07, colour\x9b31m")
    'title\\x1b]0;owned\\x07, colour\\x9b31m'
    """
    return _CONTROLS.sub(_escape, str(text))


def counted(number: int, noun: str, plural: str = "") -> str:
    """Return a number with its noun, which in the plural for all numbers but 1.

    >>> counted(1, "run"), counted(12, "graph"), counted(0, "directory", "directories")
    ('1 run', '12 graphs', '0 directories')
    """
    return f"{number} {noun if number == 1 else plural or noun + 's'}"


def printable_line(text: object) -> str:
    r"""Return the text of an object on one line, with every control character escaped.

    >>> printable_line("first\nsecond")
    'first\\nsecond'
    """
    return printable(text).replace("\n", "\\n").replace("\t", "\\t")


def _escape(found: re.Match[str]) -> str:
    code = ord(found[0])
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"
